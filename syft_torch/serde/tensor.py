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
from syft_core.values import Payload
from syft_torch.serde import kinds
from syft_torch.serde.names import choose_device
from syft_torch.serde.raw import detail_dense, find_memory_order, restore_order, simplify_dense, simplify_plain
from syft_torch.serde.strategy import deserialize_with, get_strategy_name, serialize_with

DENSE, FULL, COO, COMPRESSED, QUANTIZED, META, STRATEGY = range(7)

_STRIDED = torch.strided


def simplify_tensor(tensor: torch.Tensor, context: Context) -> tuple[object, ...]:
    """Return the payload of a tensor, with a fast path for plain ones."""
    if not (tensor.__dict__ or tensor.requires_grad or not tensor.is_cpu or tensor.grad is not None):
        worker = context.worker
        plain = simplify_plain(tensor) if worker is None or get_strategy_name(worker) == "torch" else None
        if plain is not None:
            return DENSE, *plain
    extras = _collect_extras(tensor)
    inner = _simplify_elements(tensor.detach(), extras, context)
    return (FULL, extras, *inner) if extras else inner


def detail_tensor(payload: Payload, context: Context) -> torch.Tensor:
    """Rebuild a tensor."""
    kind = payload[0]
    if type(kind) is not int:  # Comparing a remote tensor with a number would send a message.
        raise _unknown_kind_error()
    if kind == DENSE:
        return detail_dense(payload[1], payload[2], payload[3:], context)
    if kind != FULL:
        return _detail_elements(payload, context)
    tensor, extras = _detail_full(payload, context)
    return _set_extras(tensor, extras)


def simplify_parameter(parameter: torch.nn.Parameter, context: Context) -> tuple[object, ...]:
    """Return the payload of a parameter: requires_grad and the payload of its tensor."""
    extras = _collect_extras(parameter)
    extras.pop("requires_grad", None)
    inner = _simplify_elements(parameter.detach(), extras, context)
    return (parameter.requires_grad, FULL, extras, *inner) if extras else (parameter.requires_grad, *inner)


def detail_parameter(payload: Payload, context: Context) -> torch.nn.Parameter:
    """Rebuild a parameter."""
    requires_grad, *rest = payload
    if type(requires_grad) is not bool:
        raise SerdeError("cannot rebuild a Parameter: requires_grad is not a bool (malformed message)")
    if type(rest[0]) is not int:
        raise _unknown_kind_error()
    if rest[0] != FULL:
        return torch.nn.Parameter(_detail_elements(rest, context), requires_grad)
    tensor, extras = _detail_full(rest, context)
    return _set_extras(torch.nn.Parameter(tensor, requires_grad), extras)


def _collect_extras(tensor: torch.Tensor) -> dict[str, object]:
    extras: dict[str, Any] = {}
    if tensor.requires_grad:
        extras["requires_grad"] = True
    # torch warns when grad is read from a non-leaf tensor that does not retain it.
    if (tensor.is_leaf or tensor.retains_grad) and tensor.grad is not None:
        extras["grad"] = tensor.grad
    if not tensor.is_cpu and tensor.device.type != "meta":
        extras["device"] = tensor.device
    own = tensor.__dict__
    if own:
        extras.update({name: own[key] for name, (key, is_valid) in _ATTRIBUTES.items() if is_valid(own.get(key))})
        if own.get("_is_buffer"):
            extras["buffer"] = bool(own.get("persistent", True))
    return extras


def _simplify_elements(tensor: torch.Tensor, extras: dict[str, object], context: Context) -> tuple[object, ...]:
    """Encode the elements of ``tensor``, which is detached; record their memory order in ``extras``."""
    if tensor.is_nested:
        raise SerdeError("cannot serialize a nested tensor: torch has no stable format for it; send `x.unbind()`")
    strategy = get_strategy_name(context.worker)
    if strategy != "torch":
        return STRATEGY, strategy, serialize_with(strategy, tensor)
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
    kind = payload[0]
    if type(kind) is not int:
        raise _unknown_kind_error()
    if kind == DENSE:
        return detail_dense(payload[1], payload[2], payload[3:], context)
    detail = _DETAILS.get(kind)
    if detail is None:
        raise _unknown_kind_error()
    return detail(payload[1:], context)


def _unknown_kind_error() -> SerdeError:
    return SerdeError("cannot rebuild a tensor: this release does not know its kind; upgrade it")


def _detail_strategy(payload: Payload, _: Context) -> torch.Tensor:
    name, data = payload
    return deserialize_with(name, data)


_DETAILS: dict[int, Callable[[Payload, Context], torch.Tensor]] = {
    COO: kinds.detail_coo,
    COMPRESSED: kinds.detail_compressed,
    QUANTIZED: kinds.detail_quantized,
    META: kinds.detail_meta,
    STRATEGY: _detail_strategy,
}


def _detail_full(payload: Payload, context: Context) -> tuple[torch.Tensor, dict[str, Any]]:
    """Rebuild the elements, in their memory order and on their device; return them with the extras."""
    extras = payload[1]
    if type(extras) is not dict or not _EXTRAS.issuperset(extras):
        raise SerdeError("cannot rebuild a tensor: it has extras that this release does not know; upgrade it")
    tensor = _detail_elements(payload[2:], context)
    if "order" in extras:
        tensor = restore_order(tensor, extras["order"])
    device = extras.get("device")
    if device is not None:
        if type(device) is not torch.device or device.type == "meta":
            raise SerdeError("cannot rebuild a tensor: its device is invalid (malformed message)")
        tensor = tensor.to(choose_device(device, context))
    return tensor, extras


def _set_extras(tensor: torch.Tensor, extras: dict[str, object]) -> torch.Tensor:
    own = tensor.__dict__
    for name, (key, is_valid) in _ATTRIBUTES.items():
        if name in extras:
            if not is_valid(extras[name]):
                raise SerdeError(f"cannot rebuild a tensor: its {name} has a wrong type (malformed message)")
            own[key] = extras[name]
    if not _FLAGS.issuperset([type(extras.get("buffer")), type(extras.get("requires_grad"))]):
        raise SerdeError("cannot rebuild a tensor: one of its flags has a wrong type (malformed message)")
    if extras.get("buffer") is not None:
        own["_is_buffer"], own["persistent"] = True, extras["buffer"]
    if extras.get("requires_grad"):
        tensor.requires_grad_()
    if "grad" in extras:
        if not isinstance(grad := extras["grad"], torch.Tensor) or type(grad) not in _PLAIN:
            raise SerdeError("cannot rebuild a tensor: its grad is not a plain tensor (malformed message)")
        tensor.grad = grad.to(tensor.device)
    return tensor


_FLAGS = frozenset({bool, type(None)})
_PLAIN = frozenset({torch.Tensor, torch.nn.Parameter})


def _is_id(value: object) -> bool:
    return type(value) is int or type(value) is str


def _is_tags(value: object) -> bool:
    return type(value) is set and bool(value) and all(type(tag) is str for tag in value)


def _is_text(value: object) -> bool:
    return type(value) is str


# The attribute of a tensor in which each is stored, and its validator.
_ATTRIBUTES: dict[str, tuple[str, Callable[[object], bool]]] = {
    "id": ("_syft_id", _is_id),
    "tags": ("_syft_tags", _is_tags),
    "description": ("_syft_description", _is_text),
    "child": ("child", lambda value: value is not None),
}
_EXTRAS = frozenset({*_ATTRIBUTES, "requires_grad", "grad", "device", "order", "buffer"})

TENSOR = Codec(torch.Tensor, 150, simplify_tensor, detail_tensor, shared=True)
PARAMETER = Codec(torch.nn.Parameter, 151, simplify_parameter, detail_parameter, shared=True)

CODECS = (PARAMETER, TENSOR)
