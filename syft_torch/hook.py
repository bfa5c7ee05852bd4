"""TorchHook: chains on torch."""

from __future__ import annotations

import builtins
import functools
import inspect
import sys
import types
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
import torch as _torch
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.overrides import get_overridable_functions

from syft_core.features import Later
from syft_core.hook.dispatch import dispatch, forget_answers, frameworks
from syft_core.hook.hook import FrameworkHook, Patches
from syft_core.hook.hook_args import default_register_tensor, type_rule
from syft_core.pointers.travel import Travelling
from syft_core.serde import register_failure
from syft_core.tensors.abstract import AbstractTensor
from syft_core.tensors.identity import Identified
from syft_core.values import Args, Function, Kwargs, Nested
from syft_core.workers.party.base import BaseWorker
from syft_core.workers.party.virtual import VirtualWorker
from syft_mpc.sharing import Sharing
from syft_torch import hook_args  # noqa: F401  # registers types
from syft_torch.attributes import TorchAttributes
from syft_torch.module import ADDED_TO_MODULES
from syft_torch.native import TorchTensor
from syft_torch.optim import ADDED_TO_OPTIMIZERS, OptimizerState
from syft_torch.sharing import ADDED_FOR_SHARING, SHARING_OPTIMIZERS
from syft_torch.substitutes import make_substitutes
from syft_torch.wrapper import Wrapper


class TorchHook(FrameworkHook):
    """Make chains of syft tensors usable wherever torch tensors are.

    Calls on wrappers are intercepted by torch's own protocol; calls on plain tensors do not run code of this library.
    The hook only adds names: ids, owners and tags to ``torch.Tensor``, and ``native_<name>`` for each function. It
    replaces ``torch.tensor``, which also accepts ``owner=`` and ``id=``, and a few internal functions of torch, which
    behave differently for wrappers only (``substitutes.py``).

    Args:
        torch: the torch module.
        local_worker: the worker that owns local objects, for all hooks; see ``FrameworkHook`` for this option and the
            next two.
        is_client: whether a new local worker is a client, which does not keep its objects alive.
        verbose: whether a new local worker logs what it does.
        queue_size: ignored; accepted for programs written for PySyft 0.1.

    """

    name = "torch"
    worker_type = VirtualWorker
    local_worker: BaseWorker
    readers = Later("syft_torch.files:READERS")
    attributes: TorchAttributes

    def __init__(
        self,
        torch: ModuleType,
        local_worker: BaseWorker | None = None,
        is_client: bool = True,
        verbose: bool = True,
        queue_size: int = 0,
    ) -> None:
        super().__init__(torch, local_worker, is_client, verbose)
        self.torch = torch

    # --- the interface of FrameworkHook

    def _make_attributes(self) -> TorchAttributes:
        return _attributes()

    def _install(self, patches: Patches) -> None:
        self._patches = patches
        Wrapper.ops, Wrapper.framework = self.attributes.ops, self.attributes
        get_overridable_functions()  # torch caches this list; it must be built before the aliases exist
        patches.set(_torch, "torch_hooked", 1)
        self._hook_native_tensor(_torch.Tensor, TorchTensor)
        self._hook_syft_tensor_methods(AbstractTensor)
        self._hook_torch_module()
        self._hook_tensor()
        self._hook_module()
        self._hook_parameters()
        self._hook_optim()
        patches.set(_torch.utils.data.Dataset, "federate", _FEDERATE)

    @classmethod
    def create_shape(cls, shape_dims: object) -> _torch.Size:
        """Return ``shape_dims`` as a ``torch.Size``."""
        return _torch.Size(shape_dims)

    @classmethod
    def create_wrapper(cls, wrapper_type: object = None) -> _torch.Tensor:
        """Return an empty tensor of the given dtype; None and ``torch.Tensor`` mean the default dtype."""
        if wrapper_type is None or wrapper_type is _torch.Tensor:
            return _torch.empty(0)
        if isinstance(wrapper_type, _torch.dtype):
            return _torch.empty(0, dtype=wrapper_type)
        raise ValueError(f"cannot create a wrapper of type {wrapper_type!r}: give a torch.dtype, torch.Tensor or None")

    @classmethod
    def create_tensor(cls, data: object) -> _torch.Tensor:
        """Return a plain tensor with the numbers of a nested list."""
        return _torch.tensor(data)

    @classmethod
    def create_zeros(cls, *shape: int, dtype: object = None, **kwargs: object) -> _torch.Tensor:
        """Return a tensor of zeros."""
        return _torch.zeros(*(shape or ((),)), dtype=dtype, **kwargs)

    def create_table(self, columns: Sequence[Any]) -> _torch.Tensor:
        """Return a tensor with these columns: of integers, or of the default float type."""
        table = _torch.from_numpy(np.stack(columns, axis=1))
        return table.to(_torch.get_default_dtype()) if table.is_floating_point() else table

    # --- the tensor

    def _hook_native_tensor(self, tensor_type: type, syft_type: type) -> None:
        """Add the names of ``syft_type`` to ``tensor_type``, and keep its own methods as ``native_<name>``."""
        self._transfer_methods_to_native_tensor(tensor_type, Sharing)
        self._transfer_methods_to_native_tensor(tensor_type, Travelling)  # Takes precedence over the methods below.
        self.__hook_properties(tensor_type)
        self.to_auto_overload[tensor_type] = self._which_methods_should_we_auto_overload(tensor_type)
        self._rename_native_functions(tensor_type)
        self._transfer_methods_to_native_tensor(tensor_type, syft_type)

    def __hook_properties(self, tensor_type: type) -> None:
        self._transfer_methods_to_native_tensor(tensor_type, Identified)

    def _which_methods_should_we_auto_overload(self, tensor_type: type) -> set[str]:
        """Return the names of torch's methods that are dispatched to chains."""
        return {
            name
            for name in dir(tensor_type)
            if name in self.attributes.methods
            and name not in dir(object)
            and not name.startswith("native_")
            and self.attributes.methods[name].spelling == "method"
        }

    def _rename_native_functions(self, tensor_type: type) -> None:
        names = [name for name in self.to_auto_overload[tensor_type] if not hasattr(tensor_type, f"native_{name}")]
        natives = {f"native_{name}": inspect.getattr_static(tensor_type, name) for name in names}
        for name, native in natives.items():
            self._patches.set(tensor_type, name, native)

    def _transfer_methods_to_native_tensor(self, tensor_type: type, syft_type: type) -> None:
        """Add the attributes of ``syft_type``, without replacing those of ``tensor_type``."""
        for name, attribute in vars(syft_type).items():
            if not (name.startswith("__") or hasattr(tensor_type, name)):
                self._patches.set(tensor_type, name, attribute)

    def _hook_syft_tensor_methods(self, syft_type: type) -> None:
        """Let torch's functions accept ``syft_type`` without a wrapper; register the type if necessary."""
        if syft_type is not AbstractTensor and syft_type not in type_rule:
            default_register_tensor(syft_type)
        self._patches.set(syft_type, "__torch_function__", classmethod(_torch_function))

    def _hook_private_tensor_methods(self, syft_type: Any) -> None:
        """Let torch's functions accept ``syft_type``, and record the parents and the command of every result."""
        self._hook_syft_tensor_methods(syft_type)
        self._patches.set(syft_type, "records_lineage", True)
        self._patches.on_undo(forget_answers)
        forget_answers()

    # --- torch itself

    def _hook_torch_module(self) -> None:
        for module in self.attributes.torch_modules.values():
            for name, function in list(vars(module).items()):
                # Some of torch's own functions are called native_<name>; do not replace them.
                if _is_public_function(name, function) and not hasattr(module, f"native_{name}"):
                    self._patches.set(module, f"native_{name}", function)

    def _hook_tensor(self) -> None:
        native = _torch.tensor

        @functools.wraps(native)
        def tensor(
            *args: Any, owner: Any = None, id: Any = None, register: bool = True, **kwargs: Any
        ) -> _torch.Tensor:
            made = native(*args, **kwargs)
            if id is not None:
                made.id = id
            if owner is not None:
                made.owner = owner
            keeper = owner if owner is not None else self.local_worker
            if register and not keeper.is_client_worker:
                keeper.register_obj(made)
            return made

        self._patches.set(_torch, "native_tensor", native)
        self._patches.on_undo(_clear_dynamo_cache)
        self._patches.set(_torch, "tensor", tensor)
        _clear_dynamo_cache()
        key = builtins.id(tensor)
        # torch.jit looks up functions by identity: without this, scripting `torch.tensor(...)` would fail.
        _torch.jit._builtins._register_builtin(tensor, "aten::tensor")
        self._patches.on_undo(lambda: _torch.jit._builtins._get_builtin_table().pop(key, None))

    def _hook_module(self) -> None:
        for name, added in {**ADDED_TO_MODULES, **ADDED_FOR_SHARING}.items():
            self._patches.set(_torch.nn.Module, name, added)

    def _hook_parameters(self) -> None:
        """Do nothing: torch itself makes a Parameter of a wrapper, and ``parameter.py`` swaps contents."""

    def _hook_optim(self) -> None:
        """Let optimizer state follow its parameters, and group lists by worker."""
        self.optimizer_state = OptimizerState()
        self._patches.on_undo(self.optimizer_state.stop)
        handle = register_optimizer_step_pre_hook(self.optimizer_state.before_step)
        self._patches.on_undo(handle.remove)
        for name, added in {**ADDED_TO_OPTIMIZERS, **SHARING_OPTIMIZERS}.items():
            self._patches.set(_torch.optim.Optimizer, name, added)
        for target, name, substitute in make_substitutes():
            self._patches.set(target, name, substitute)

    def _hook_worker_methods(self) -> None:
        """Do nothing: ``worker.remote.torch`` uses ``TorchAttributes.worker_methods``."""

    def _get_hooked_base_worker_method(self, attr: str) -> Function:
        """Return a function that creates a tensor on a worker, its first argument: ``f(bob, 2, 3)``."""
        return lambda worker, *args, **kwargs: getattr(worker.remote.torch, attr)(*args, **kwargs)

    def _get_hooked_func(self, public_module_name: str, func_api_name: str, attr: object = None) -> Function:
        return self.get_hooked_func(f"{public_module_name}.{func_api_name}")

    # --- names of earlier hooks

    _get_hooked_method = FrameworkHook.get_hooked_method
    _get_hooked_syft_method = FrameworkHook.get_hooked_syft_method
    _get_hooked_pointer_method = FrameworkHook.get_hooked_syft_method
    _get_hooked_multi_pointer_method = FrameworkHook.get_hooked_syft_method
    _get_hooked_additive_shared_method = FrameworkHook.get_hooked_syft_method
    _get_overloaded_method = FrameworkHook.get_hooked_syft_method

    def _hook_native_tensors_and_variables(self, tensor_type: type) -> None:
        """Call ``_hook_native_tensor``; the name of 0.1.0."""
        self._hook_native_tensor(tensor_type, TorchTensor)


_FEDERATE = Later("syft_torch.federated.dataset:dataset_federate")
for _error in (_torch.linalg.LinAlgError, _torch.OutOfMemoryError):
    register_failure(_error)


@functools.cache
def _attributes() -> TorchAttributes:
    attributes = TorchAttributes(_torch)
    frameworks.register(_torch.Tensor, attributes)
    return attributes


def _torch_function(
    cls: object, func: Function, types: object, args: Args = (), kwargs: Kwargs | None = None
) -> Nested:
    """Dispatch torch's functions on layers without a wrapper."""
    return dispatch(Wrapper.ops.of(func), args, dict(kwargs) if kwargs else {})


def _clear_dynamo_cache() -> None:
    """Clear a cache of torch.compile, which identifies functions by identity: ``torch.tensor`` has changed."""
    module: Any = sys.modules.get("torch._dynamo.trace_rules")
    known = getattr(module, "get_torch_obj_rule_map", None)  # Another thread may be importing it.
    if known is not None:
        known.cache_clear()


def _is_public_function(name: str, function: object) -> bool:
    return (
        isinstance(function, types.FunctionType | types.BuiltinFunctionType)
        and not name.startswith(("_", "native_"))
        and not name[0].isupper()
        and name not in ("tensor",)
    )
