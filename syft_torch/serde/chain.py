"""Wrappers on the wire: the chain under them, and whether they count as a Parameter."""

from __future__ import annotations

from typing import Any

from syft_core.exceptions import SerdeError
from syft_core.serde import Codec, Context
from syft_core.tensors.codecs import child_from, give_identity, identity_of
from syft_torch.wrapper import Wrapper


def _simplify(wrapper: Wrapper, _context: Context) -> tuple[Any, ...]:
    return wrapper.__dict__.get("_is_param", False), identity_of(wrapper), wrapper.child


def _detail(payload: list[Any], _context: Context) -> Wrapper:
    is_parameter, identity, child = payload
    if type(is_parameter) is not bool:
        raise SerdeError("cannot rebuild a wrapper: it does not say whether it is a Parameter; send it again")
    wrapper: Wrapper = give_identity(Wrapper(child_from(child)), identity)
    if is_parameter:
        wrapper._is_param = True
    return wrapper


CODECS = (Codec(Wrapper, 152, _simplify, _detail, shared=True),)
