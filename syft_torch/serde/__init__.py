"""Codecs for torch: tensors as the raw bytes of their elements, everything else through tables.

The functions with an underscore have the names and signatures of the ancestor, ``(worker, object)``; the codecs are in
the other modules of this package.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import torch

from syft_core.serde import CodecTable, Context, register_failure
from syft_torch.serde import chain, module, names, script, strategy, tensor
from syft_torch.serde.module import register_module
from syft_torch.serde.names import Pair, Worker
from syft_torch.serde.strategy import Strategy, strategies

__all__ = [
    "MAP_TORCH_SIMPLIFIERS_AND_DETAILERS",
    "Strategy",
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

CODECS = (*tensor.CODECS, *chain.CODECS, *names.CODECS, *script.CODECS, *module.CODECS)


def register_codecs(table: CodecTable) -> None:
    """Register the codecs of this backend in ``table``."""
    for codec in CODECS:
        table.register(codec)
    for error in (torch.linalg.LinAlgError, torch.OutOfMemoryError):
        register_failure(error)


def _serialize_tensor(worker: Worker, tensor: torch.Tensor) -> Any:
    """Serialize a tensor with the strategy ``worker.serializer``; add your own to ``strategies``."""
    return strategy.serialize_with(strategy.get_strategy_name(worker), tensor)


def _deserialize_tensor(worker: Worker, serializer: str, tensor_bin: object) -> torch.Tensor:
    """Deserialize the result of ``_serialize_tensor``, written with the strategy ``serializer``."""
    return strategy.get_strategy(serializer).deserialize(tensor_bin)


def simplified_tensor_serializer(worker: Worker, tensor: torch.Tensor) -> tuple[object, ...]:
    """Return the shape, the dtype name and a flat list of numbers; warn if autograd history is lost."""
    return strategy.to_list(tensor)


def simplified_tensor_deserializer(worker: Worker, tensor_tuple: tuple[object, ...]) -> torch.Tensor:
    """Rebuild a tensor from the result of ``simplified_tensor_serializer``."""
    return strategy.from_list(tensor_tuple)


def numpy_tensor_serializer(worker: Worker, tensor: torch.Tensor) -> tuple[object, ...]:
    """Return a numpy dtype, the shape and row-major bytes."""
    return strategy.to_array(tensor)


def numpy_tensor_deserializer(worker: Worker, tensor_tuple: tuple[object, ...]) -> torch.Tensor:
    """Rebuild a tensor from the result of ``numpy_tensor_serializer``."""
    return strategy.from_array(tensor_tuple)


def torch_tensor_serializer(worker: Worker, tensor: torch.Tensor) -> bytes:
    """Serialize a tensor as a separate message."""
    return strategy.to_message(tensor)


def torch_tensor_deserializer(worker: Worker, tensor_bin: bytes) -> torch.Tensor:
    """Deserialize the result of ``torch_tensor_serializer``."""
    return strategy.from_message(tensor_bin)


def _simplify_torch_tensor(worker: Worker, tensor: torch.Tensor) -> tuple[object, ...]:
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


def _detail_torch_tensor(worker: Worker, tensor_tuple: tuple[Any, ...]) -> torch.Tensor:
    """Rebuild a tensor from the result of ``_simplify_torch_tensor``."""
    id_, data, chain, grad, tags, description, serializer = tensor_tuple
    found = _deserialize_tensor(worker, serializer, data)
    kept = {"_syft_id": id_, "child": chain, "_syft_tags": tags, "_syft_description": description}
    found.__dict__.update({key: value for key, value in kept.items() if value is not None})
    if grad is not None:
        found.grad = _detail_torch_tensor(worker, grad)
    return found


def _simplify_torch_parameter(worker: Worker, param: torch.nn.Parameter) -> tuple[object, ...]:
    """Return (id, data, requires_grad, grad chain)."""
    grad = None if param.grad is None else _simplify_torch_tensor(worker, param.grad)
    return (
        param.__dict__.get("_syft_id"),
        _serialize_tensor(worker, param.detach()),
        param.requires_grad,
        grad,
        strategy.get_strategy_name(worker),
    )


def _detail_torch_parameter(worker: Worker, param_tuple: tuple[Any, ...]) -> torch.nn.Parameter:
    """Rebuild a parameter from the result of ``_simplify_torch_parameter``."""
    id_, data, requires_grad, grad, serializer = param_tuple
    param = torch.nn.Parameter(_deserialize_tensor(worker, serializer, data), requires_grad)
    if id_ is not None:
        param.__dict__["_syft_id"] = id_
    if grad is not None:
        param.grad = _detail_torch_tensor(worker, grad)
    return param


def _simplify_torch_device(worker: Worker, device: torch.device) -> tuple[object, ...]:
    """Return the type and the index."""
    return names.simplify_device(device, Context(worker))


def _detail_torch_device(worker: Worker, device_type: tuple[object, ...]) -> torch.device:
    """Rebuild a device."""
    return names.detail_device(list(device_type), Context(worker))


def _simplify_script_module(worker: Worker, obj: torch.jit.ScriptModule) -> tuple[bytes]:
    """Return a script as bytes."""
    return (bytes(script.simplify_script(obj, Context(worker))[0]),)


def _detail_script_module(worker: Worker, script_module_bin: tuple[bytes]) -> torch.jit.ScriptModule:
    """Load a script, if the worker has ``allow_scripts = True``: loading a script runs its code."""
    allowed = Context(worker, allow_scripts=getattr(worker, "allow_scripts", False) is True)
    return script.detail_script(list(script_module_bin), allowed)


def _simplify_torch_size(worker: Worker, size: torch.Size) -> tuple[int, ...]:
    """Return the lengths."""
    return names.simplify_size(size, Context(worker))


def _detail_torch_size(worker: Worker, size: tuple[int, ...]) -> torch.Size:
    """Rebuild a size."""
    return names.detail_size(list(size), Context(worker))


def _simplify_torch_mem_format(worker: Worker, mem_format: torch.memory_format) -> int:
    """Return 1 for channels_last, 2 for contiguous_format, 3 for preserve_format, 4 for channels_last_3d."""
    return int(names.MEMORY_FORMAT.simplify(mem_format, Context(worker))[0])


def _detail_torch_mem_format(worker: Worker, mem_format: int) -> torch.memory_format:
    """Rebuild a memory format."""
    return names.MEMORY_FORMAT.detail([mem_format], Context(worker))


def _simplify_torch_dtype(worker: Worker, dtype: torch.dtype) -> int:
    """Return the wire number of a dtype."""
    return int(names.DTYPE.simplify(dtype, Context(worker))[0])


def _detail_torch_dtype(worker: Worker, dtype: int) -> torch.dtype:
    """Rebuild a dtype."""
    return names.DTYPE.detail([dtype], Context(worker))


# Parameter precedes its base class Tensor, so that a search in order finds the subclass first.
MAP_TORCH_SIMPLIFIERS_AND_DETAILERS: OrderedDict[type, Pair] = OrderedDict(
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
