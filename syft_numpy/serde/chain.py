"""The codec for wrappers."""

from __future__ import annotations

from syft_core.serde import Codec, Context
from syft_core.tensors.codecs import get_identity, require_child, set_identity
from syft_core.values import Payload, Tensor
from syft_numpy.wrapper import Wrapper, wrap


def _simplify(wrapper: Wrapper, _context: Context) -> tuple[object, ...]:
    return get_identity(wrapper), wrapper.child


def _detail(payload: Payload, _context: Context) -> Tensor:
    identity, child = payload
    return set_identity(wrap(require_child(child)), identity)


CODECS = (Codec(Wrapper, 103, _simplify, _detail, shared=True),)
