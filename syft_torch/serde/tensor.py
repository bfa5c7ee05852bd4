"""Codecs for tensors and parameters.

A payload starts with its kind. ``(DENSE, dtype, data, *shape)`` is a plain cpu tensor. A tensor with attributes is
``(FULL, extras, kind, ...)``, where ``extras`` contains those that are set: requires_grad, grad, id, tags, description,
device, order of the dimensions in memory, buffer, child.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from syft_core.serde import Codec, Context, SerdeError
from syft_core.serde.received import require
from syft_core.tensors.codecs import IDENTITY
from syft_core.values import Kwargs, Payload
from syft_torch.serde import kinds
from syft_torch.serde.names import choose_device
from syft_torch.serde.raw import detail_dense, find_memory_order, restore_order, simplify_dense, simplify_plain
from syft_torch.serde.strategy import deserialize_with, get_strategy, get_strategy_name

DENSE, FULL, COO, COMPRESSED, QUANTIZED, META, STRATEGY = range(7)

_STRIDED = torch.strided


def simplify_tensor(tensor: torch.Tensor, context: Context) -> tuple[object, ...]:
    """Return the payload of a tensor, with a fast path for plain ones."""
    if not tensor.requires_grad and tensor.is_cpu and tensor.grad is None:
        worker = context.worker
        plain = simplify_plain(tensor) if worker is None or get_strategy_name(worker) == "torch" else None
        if plain is not None:
            attributes = _collect_attributes(tensor.__dict__)
            return (FULL, attributes, DENSE, *plain) if attributes else (DENSE, *plain)
    extras = _collect_extras(tensor)
    inner = _simplify_elements(tensor.detach(), extras, context)
    return (FULL, extras, *inner) if extras else inner


def detail_tensor(payload: Payload, context: Context) -> torch.Tensor:
    """Rebuild a tensor."""
    kind = payload[0]
    if type(kind) is int and kind == DENSE:  # Comparing a remote tensor with a number would send a message.
        return detail_dense(payload[1], payload[2], payload[3:], context)
    return _set_extras(*_detail_full(payload, context))


def simplify_parameter(parameter: torch.nn.Parameter, context: Context) -> tuple[object, ...]:
    """Return the payload of a parameter: requires_grad and the payload of its tensor."""
    extras = _collect_extras(parameter)
    extras.pop("requires_grad", None)
    inner = _simplify_elements(parameter.detach(), extras, context)
    return (parameter.requires_grad, FULL, extras, *inner) if extras else (parameter.requires_grad, *inner)


def detail_parameter(payload: Payload, context: Context) -> torch.nn.Parameter:
    """Rebuild a parameter."""
    requires_grad, *rest = payload
    require(type(requires_grad) is bool, "a Parameter: requires_grad is not a bool")
    tensor, extras = _detail_full(rest, context)
    parameter = torch.nn.Parameter(tensor, requires_grad)
    return _set_extras(parameter, extras) if extras else parameter


def _collect_extras(tensor: torch.Tensor) -> dict[str, object]:
    extras: dict[str, Any] = {}
    if tensor.requires_grad:
        extras["requires_grad"] = True
    # torch warns when grad is read from a non-leaf tensor that does not retain it.
    if (tensor.is_leaf or tensor.retains_grad) and tensor.grad is not None:
        extras["grad"] = tensor.grad
    if not tensor.is_cpu and tensor.device.type != "meta":
        extras["device"] = tensor.device
    return extras | _collect_attributes(tensor.__dict__)


def _collect_attributes(own: Kwargs) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in own.items():
        known = _NAMES.get(key)
        if known is not None and known[1](value):
            found[known[0]] = value
    if "tags" in found and not found["tags"]:
        del found["tags"]
    if own.get("_is_buffer"):
        found["buffer"] = bool(own.get("persistent", True))
    return found


def _simplify_elements(tensor: torch.Tensor, extras: dict[str, object], context: Context) -> tuple[object, ...]:
    """Encode the elements of ``tensor``, which is detached; record their memory order in ``extras``."""
    if tensor.is_nested:
        raise SerdeError("cannot serialize a nested tensor: torch has no stable format for it; send `x.unbind()`")
    strategy = get_strategy_name(context.worker)
    if strategy != "torch":
        return STRATEGY, strategy, get_strategy(strategy).serialize(tensor)
    if tensor.device.type == "meta":
        return META, *kinds.simplify_meta(tensor)
    tensor = tensor.cpu()
    if tensor.is_quantized:
        return QUANTIZED, *kinds.simplify_quantized(tensor)
    if tensor.layout is torch.sparse_coo:
        return COO, *kinds.simplify_coo(tensor)
    if tensor.layout in kinds.COMPRESSED_ROWS | kinds.COMPRESSED_COLUMNS:
        return COMPRESSED, *kinds.simplify_compressed(tensor)
    if tensor.layout is not _STRIDED:
        raise SerdeError(
            f"cannot serialize a tensor of layout {tensor.layout}: it is not supported; send `x.to_dense()`"
        )
    order = find_memory_order(tensor)
    if order is not None:
        extras["order"] = order
        tensor = tensor.permute(order)
    return DENSE, *simplify_dense(tensor)


def _detail_elements(payload: Payload, context: Context) -> torch.Tensor:
    kind, *rest = payload
    if type(kind) is int and kind == DENSE:
        return detail_dense(rest[0], rest[1], rest[2:], context)
    detail = _DETAILS.get(kind) if type(kind) is int else None
    if detail is None:
        raise SerdeError("cannot rebuild a tensor: this release does not know its kind; upgrade it")
    return detail(rest, context)


_DETAILS: dict[int, Callable[[Payload, Context], torch.Tensor]] = {
    COO: kinds.detail_coo,
    COMPRESSED: kinds.detail_compressed,
    QUANTIZED: kinds.detail_quantized,
    META: kinds.detail_meta,
    STRATEGY: lambda payload, _: deserialize_with(*payload),
}


def _detail_full(payload: Payload, context: Context) -> tuple[torch.Tensor, dict[str, Any]]:
    """Rebuild the elements, in their memory order and on their device; return them with the extras, if any."""
    if type(payload[0]) is not int or payload[0] != FULL:
        return _detail_elements(payload, context), {}
    extras = payload[1]
    if type(extras) is not dict or not _EXTRAS.issuperset(extras):
        raise SerdeError("cannot rebuild a tensor: it has extras that this release does not know; upgrade it")
    tensor = _detail_elements(payload[2:], context)
    if "order" in extras:
        tensor = restore_order(tensor, extras["order"])
    device = extras.get("device")
    if device is not None:
        is_valid = type(device) is torch.device and device.type != "meta"
        require(is_valid, "a tensor: its device is invalid")
        tensor = tensor.to(choose_device(device, context))
    return tensor, extras


def _set_extras(tensor: torch.Tensor, extras: dict[str, object]) -> torch.Tensor:
    own = tensor.__dict__
    for name, value in extras.items():
        if name in _ATTRIBUTES:
            key, is_valid = _ATTRIBUTES[name]
            if not is_valid(value):
                raise SerdeError(f"cannot rebuild a tensor: its {name} has a wrong type (malformed message)")
            own[key] = value
    if _ATTRIBUTES.keys() >= extras.keys():
        return tensor
    flags = type(extras.get("buffer")), type(extras.get("requires_grad"))
    require(_FLAGS.issuperset(flags), "a tensor: one of its flags has a wrong type")
    if extras.get("buffer") is not None:
        own["_is_buffer"], own["persistent"] = True, extras["buffer"]
    if extras.get("requires_grad"):
        tensor.requires_grad_()
    if "grad" in extras:
        grad: Any = extras["grad"]
        require(type(grad) in (torch.Tensor, torch.nn.Parameter), "a tensor: its grad is not a plain tensor")
        tensor.grad = grad.to(tensor.device)
    return tensor


_FLAGS = frozenset({bool, type(None)})
_ATTRIBUTES = {**IDENTITY, "child": ("child", lambda value: value is not None)}
_NAMES = {key: (name, is_valid) for name, (key, is_valid) in _ATTRIBUTES.items()}
_EXTRAS = frozenset({*_ATTRIBUTES, "requires_grad", "grad", "device", "order", "buffer"})

CODECS = (
    Codec(torch.nn.Parameter, 151, simplify_parameter, detail_parameter, shared=True),
    Codec(torch.Tensor, 150, simplify_tensor, detail_tensor, shared=True),
)
