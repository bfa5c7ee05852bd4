"""Codecs for torch: tensors as the raw bytes of their elements, everything else through tables.

The functions below have the names and signatures of the ancestor, ``(worker, object)``; the codecs are in the other
modules of this package.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeAlias

import torch

from syft_core.serde import Codec, CodecTable, Context, codecs
from syft_torch.serde import chain, module, names, script, strategy, tensor
from syft_torch.serde.module import register_module
from syft_torch.serde.strategy import TensorEncoding, strategies

__all__ = [
    "MAP_TORCH_SIMPLIFIERS_AND_DETAILERS",
    "TensorEncoding",
    "numpy_tensor_deserializer",
    "numpy_tensor_serializer",
    "register_codecs",
    "register_module",
    "simplified_tensor_deserializer",
    "simplified_tensor_serializer",
    "strategies",
    "torch_tensor_deserializer",
    "torch_tensor_serializer",
]

AnyWorker: TypeAlias = Any
OfWorker: TypeAlias = Callable[[AnyWorker, Any], Any]

CODECS = (*tensor.CODECS, *chain.CODECS, *names.CODECS, *script.CODECS, *module.CODECS)


def register_codecs(table: CodecTable) -> None:
    """Register the codecs of this backend in ``table``."""
    for codec in CODECS:
        table.register(codec)


def _simplify(codec: Codec, worker: AnyWorker, obj: object) -> tuple[object, ...]:
    payload = codec.simplify(obj, Context(worker))
    return tuple([bytes(part) if isinstance(part, memoryview) else part for part in payload])


def _detail(codec: Codec, worker: AnyWorker, payload: tuple[object, ...]) -> object:
    """Read an object; scripts need ``worker.allow_scripts = True``."""
    allow_scripts = getattr(worker, "allow_scripts", False) is True
    return codec.detail(list(payload), Context(worker, allow_scripts=allow_scripts))


def simplified_tensor_serializer(worker: AnyWorker, tensor: torch.Tensor) -> object:
    """Return shape, name of the dtype, and numbers of a tensor."""
    return strategies["all"].serialize(tensor)


def simplified_tensor_deserializer(worker: AnyWorker, tensor_tuple: tuple[object, ...]) -> torch.Tensor:
    """Read the result of ``simplified_tensor_serializer``."""
    return strategies["all"].deserialize(tensor_tuple)


def numpy_tensor_serializer(worker: AnyWorker, tensor: torch.Tensor) -> object:
    """Return a tensor as numpy writes it."""
    return strategies["numpy"].serialize(tensor)


def numpy_tensor_deserializer(worker: AnyWorker, tensor_bin: object) -> torch.Tensor:
    """Read the result of ``numpy_tensor_serializer``."""
    return strategies["numpy"].deserialize(tensor_bin)


def torch_tensor_serializer(worker: AnyWorker, tensor: torch.Tensor) -> object:
    """Return the raw bytes of a tensor."""
    return strategies["torch"].serialize(tensor)


def torch_tensor_deserializer(worker: AnyWorker, tensor_bin: object) -> torch.Tensor:
    """Read the result of ``torch_tensor_serializer``."""
    return strategies["torch"].deserialize(tensor_bin)


def _simplify_torch_device(worker: AnyWorker, device: torch.device) -> tuple[object, ...]:
    return _simplify(names.DEVICE, worker, device)


def _detail_torch_device(worker: AnyWorker, device_type: tuple[object, ...]) -> object:
    return _detail(names.DEVICE, worker, device_type)


def _simplify_torch_size(worker: AnyWorker, size: torch.Size) -> tuple[object, ...]:
    return _simplify(names.SIZE, worker, size)


def _detail_torch_size(worker: AnyWorker, size: tuple[object, ...]) -> object:
    return _detail(names.SIZE, worker, size)


def _simplify_script_module(worker: AnyWorker, obj: torch.jit.ScriptModule) -> tuple[object, ...]:
    return _simplify(script.SCRIPT_MODULE, worker, obj)


def _detail_script_module(worker: AnyWorker, script_module_bin: tuple[object, ...]) -> object:
    return _detail(script.SCRIPT_MODULE, worker, script_module_bin)


# The ancestor sends constants as a number instead of a tuple.
def _simplify_torch_mem_format(worker: AnyWorker, mem_format: torch.memory_format) -> object:
    return _simplify(names.MEMORY_FORMAT, worker, mem_format)[0]


def _detail_torch_mem_format(worker: AnyWorker, mem_format: int) -> object:
    return _detail(names.MEMORY_FORMAT, worker, (mem_format,))


def _simplify_torch_dtype(worker: AnyWorker, dtype: torch.dtype) -> object:
    return _simplify(names.DTYPE, worker, dtype)[0]


def _detail_torch_dtype(worker: AnyWorker, dtype: int) -> object:
    return _detail(names.DTYPE, worker, (dtype,))


def _serialize_tensor(worker: AnyWorker, tensor: torch.Tensor) -> Any:
    """Serialize a tensor with the strategy ``worker.serializer``; add your own to ``strategies``."""
    return strategy.get_strategy(strategy.get_strategy_name(worker)).serialize(tensor)


def _deserialize_tensor(worker: AnyWorker, serializer: str, tensor_bin: object) -> torch.Tensor:
    return strategy.get_strategy(serializer).deserialize(tensor_bin)


def _simplify_torch_tensor(worker: AnyWorker, tensor: torch.Tensor) -> tuple[object, ...]:
    """Return (id, data, chain, grad chain, tags, description, strategy)."""
    own = tensor.__dict__
    grad = tensor.grad if tensor.is_leaf or tensor.retains_grad else None
    return (
        own.get("_syft_id"),
        _serialize_tensor(worker, tensor),
        own.get("child"),
        None if grad is None else _simplify_torch_tensor(worker, grad),
        own.get("_syft_tags"),
        own.get("_syft_description"),
        strategy.get_strategy_name(worker),
    )


def _detail_torch_tensor(worker: AnyWorker, tensor_tuple: tuple[Any, ...]) -> torch.Tensor:
    id_, data, chain, grad, tags, description, serializer = tensor_tuple
    found = _deserialize_tensor(worker, serializer, data)
    kept = {"_syft_id": id_, "child": chain, "_syft_tags": tags, "_syft_description": description}
    found.__dict__.update({key: value for key, value in kept.items() if value is not None})
    if grad is not None:
        found.grad = _detail_torch_tensor(worker, grad)
    return found


def _simplify_torch_parameter(worker: AnyWorker, param: torch.nn.Parameter) -> tuple[object, ...]:
    """Return (id, data, requires_grad, grad chain, strategy)."""
    grad = None if param.grad is None else _simplify_torch_tensor(worker, param.grad)
    data, serializer = _serialize_tensor(worker, param.detach()), strategy.get_strategy_name(worker)
    return param.__dict__.get("_syft_id"), data, param.requires_grad, grad, serializer


def _detail_torch_parameter(worker: AnyWorker, param_tuple: tuple[Any, ...]) -> torch.nn.Parameter:
    id_, data, requires_grad, grad, serializer = param_tuple
    param = torch.nn.Parameter(_deserialize_tensor(worker, serializer, data), requires_grad)
    if id_ is not None:
        param.__dict__["_syft_id"] = id_
    if grad is not None:
        param.grad = _detail_torch_tensor(worker, grad)
    return param


# Parameter precedes its base class Tensor, so that a search in order finds the subclass first.
MAP_TORCH_SIMPLIFIERS_AND_DETAILERS: OrderedDict[type, tuple[OfWorker, OfWorker]] = OrderedDict(
    {
        torch.device: (_simplify_torch_device, _detail_torch_device),
        torch.jit.ScriptModule: (_simplify_script_module, _detail_script_module),
        torch.jit.ScriptFunction: (_simplify_script_module, _detail_script_module),
        torch.jit.TopLevelTracedModule: (_simplify_script_module, _detail_script_module),
        torch.nn.Parameter: (_simplify_torch_parameter, _detail_torch_parameter),
        torch.Tensor: (_simplify_torch_tensor, _detail_torch_tensor),
        torch.Size: (_simplify_torch_size, _detail_torch_size),
        torch.memory_format: (_simplify_torch_mem_format, _detail_torch_mem_format),
        torch.dtype: (_simplify_torch_dtype, _detail_torch_dtype),
    }
)
register_codecs(codecs)
