"""How vectors, and the chains on them, cross the wire."""

from __future__ import annotations

from typing import Any

import toy

from syft_core.serde import Codec, Context, SerdeError
from syft_core.tensors.codecs import get_identity, require_child, set_identity
from syft_toy.wrapper import Wrapper

_KINDS = {kind.__name__: kind for kind in (float, int, bool)}


def _simplify_vector(vector: toy.Vector, _context: Context) -> tuple[Any, ...]:
    return vector.dtype.__name__, vector.tolist()


def _detail_vector(payload: Any, _context: Context) -> toy.Vector:
    kind, values = payload
    if type(values) is not list or any(type(value) is not _KINDS[kind] for value in values):
        raise SerdeError("cannot rebuild a vector: expected a list of numbers of one type (malformed message)")
    return toy.Vector(values)


def _simplify_wrapper(wrapper: Wrapper, _context: Context) -> tuple[Any, ...]:
    return get_identity(wrapper), wrapper.child


def _detail_wrapper(payload: Any, _context: Context) -> Wrapper:
    identity, child = payload
    return set_identity(Wrapper(require_child(child)), identity)


CODECS = (
    Codec(toy.Vector, 1500, _simplify_vector, _detail_vector, shared=True),
    Codec(Wrapper, 1501, _simplify_wrapper, _detail_wrapper, shared=True),
)
