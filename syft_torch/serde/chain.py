"""Codecs for wrappers: the chain, and whether the wrapper is a Parameter."""

from __future__ import annotations

import torch

from syft_core.hook.ranks import is_numeric
from syft_core.serde import Codec, Context
from syft_core.serde.received import require
from syft_core.tensors.codecs import get_identity, require_child, set_identity
from syft_core.values import Payload
from syft_torch.numeric import NumericWrapper
from syft_torch.wrapper import Wrapper


def _simplify(wrapper: Wrapper, _context: Context) -> tuple[object, ...]:
    return wrapper.__dict__.get("_is_param", False), get_identity(wrapper), wrapper.child


def _simplify_numeric(wrapper: NumericWrapper, context: Context) -> tuple[object, ...]:
    gradient = wrapper.grad if wrapper.is_leaf else None
    return *_simplify(wrapper, context), wrapper.requires_grad, gradient


def _detail_numeric(payload: Payload, _context: Context) -> NumericWrapper:
    *plain, requires_grad, gradient = payload
    wrapper: NumericWrapper = _wrap(NumericWrapper, plain)
    are_typed = type(requires_grad) is bool and type(gradient) in (NumericWrapper, type(None))
    require(are_typed, "a numeric wrapper: expected a numeric gradient or none")
    wrapper.requires_grad_(requires_grad)
    wrapper.grad = gradient
    return wrapper


def _wrap(wrapper_type: type[Wrapper] | type[NumericWrapper], payload: Payload) -> torch.Tensor:
    is_parameter, identity, child = payload
    require(type(is_parameter) is bool, "a wrapper: its Parameter flag is not a bool")
    is_matching = is_numeric(require_child(child)) == (wrapper_type is NumericWrapper)
    require(is_matching, f"a wrapper: {wrapper_type.__name__} does not match its layers")
    wrapper = set_identity(wrapper_type(child), identity)
    if is_parameter:
        wrapper._is_param = True
    return wrapper


CODECS = (
    Codec(Wrapper, 152, _simplify, lambda payload, _: _wrap(Wrapper, payload), shared=True),
    Codec(NumericWrapper, 165, _simplify_numeric, _detail_numeric, shared=True),
)
