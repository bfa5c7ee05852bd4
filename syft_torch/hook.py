"""TorchHook: chains on torch."""

from __future__ import annotations

import builtins
import functools
import inspect
import sys
import types
from types import ModuleType
from typing import Any

import torch as _torch
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.overrides import get_overridable_functions

from syft_core.hook.dispatch import dispatch, forget_answers, frameworks
from syft_core.hook.hook import FrameworkHook, Patches
from syft_core.hook.hook_args import default_register_tensor, type_rule
from syft_core.pointers.travel import Travelling
from syft_core.serde import codecs
from syft_core.tensors.abstract import AbstractTensor
from syft_core.tensors.identity import Identified
from syft_core.values import Args, Function, Kwargs, Nested
from syft_core.workers.virtual import VirtualWorker
from syft_torch import hook_args, serde  # noqa: F401  # hook_args registers torch's types
from syft_torch.attributes import TorchAttributes
from syft_torch.module import ADDED_TO_MODULES
from syft_torch.native import TorchTensor
from syft_torch.optim import ADDED_TO_OPTIMIZERS, OptimizerState
from syft_torch.substitutes import substitutes
from syft_torch.wrapper import Wrapper


class TorchHook(FrameworkHook):
    """Let chains of syft tensors go wherever a torch tensor goes.

    Interception is by torch's own protocol on the wrapper that heads a chain; plain tensors never meet a line of this
    library. The hook only adds names: ids, owners and tags to ``torch.Tensor``, ``native_<name>`` beside each original.
    The one exception is ``torch.tensor``, which learns ``owner=`` and ``id=``; inside of torch, a few functions have
    substitutes that do something else for wrappers only (``substitutes.py``).

    Args:
        torch: the torch module.
        local_worker: the worker that owns what is on this machine, for all hooks; see ``FrameworkHook`` for this
            option and the next two.
        is_client: whether a new local worker leaves it to Python to keep objects alive.
        verbose: whether a new local worker reports what it does.
        queue_size: accepted and ignored, for programs written for PySyft 0.1; each message is sent at once.

    """

    name = "torch"
    worker_type = VirtualWorker
    attributes: TorchAttributes

    def __init__(
        self,
        torch: ModuleType,
        local_worker: object = None,
        is_client: bool = True,
        verbose: bool = True,
        queue_size: int = 0,
    ) -> None:
        super().__init__(torch, local_worker, is_client, verbose)
        self.torch = torch

    # --- what FrameworkHook asks for

    def _make_attributes(self) -> TorchAttributes:
        return _attributes()

    def _install(self, patches: Patches) -> None:
        self._patches = patches
        Wrapper.ops, Wrapper.framework = self.attributes.ops, self.attributes
        get_overridable_functions()  # torch caches its own list; it must be taken before the aliases exist
        patches.set(_torch, "torch_hooked", 1)
        self._hook_native_tensor(_torch.Tensor, TorchTensor)
        self._hook_syft_tensor_methods(AbstractTensor)
        self._hook_torch_module()
        self._hook_tensor()
        self._hook_module()
        self._hook_parameters()
        self._hook_optim()

    @classmethod
    def create_shape(cls, shape_dims: object) -> _torch.Size:
        """Return ``shape_dims`` as a ``torch.Size``."""
        return _torch.Size(shape_dims)

    @classmethod
    def create_wrapper(cls, wrapper_type: object = None) -> _torch.Tensor:
        """Return an empty tensor of the given dtype; None and ``torch.Tensor`` mean the default one."""
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
    def create_zeros(cls, *shape: int, dtype: object = None, **kwargs: Any) -> _torch.Tensor:
        """Return a tensor of zeros."""
        return _torch.zeros(*shape, dtype=dtype, **kwargs)

    # --- the tensor

    def _hook_native_tensor(self, tensor_type: type, syft_type: type) -> None:
        """Add the names of ``syft_type`` to ``tensor_type``, and keep its own methods as ``native_<name>``."""
        self._transfer_methods_to_native_tensor(tensor_type, Travelling)  # Its words go further than those below.
        self.__hook_properties(tensor_type)
        self.to_auto_overload[tensor_type] = self._which_methods_should_we_auto_overload(tensor_type)
        self._rename_native_functions(tensor_type)
        self._transfer_methods_to_native_tensor(tensor_type, syft_type)

    def __hook_properties(self, tensor_type: type) -> None:
        """Add id, owner, tags and description."""
        self._transfer_methods_to_native_tensor(tensor_type, Identified)

    def _which_methods_should_we_auto_overload(self, tensor_type: type) -> set[str]:
        """Return the names of the methods that a chain answers: torch's own, less the excluded ones."""
        return {
            name
            for name in dir(tensor_type)
            if name in self.attributes.methods
            and name not in dir(object)
            and not name.startswith("native_")
            and self.attributes.methods[name].spelling == "method"
        }

    def _rename_native_functions(self, tensor_type: type) -> None:
        """Keep each method reachable as ``native_<name>``."""
        names = [name for name in self.to_auto_overload[tensor_type] if not hasattr(tensor_type, f"native_{name}")]
        natives = {f"native_{name}": inspect.getattr_static(tensor_type, name) for name in names}
        for name, native in natives.items():
            self._patches.set(tensor_type, name, native)

    def _transfer_methods_to_native_tensor(self, tensor_type: type, syft_type: type) -> None:
        """Add what ``syft_type`` defines, without replacing anything that ``tensor_type`` has itself."""
        for name, attribute in vars(syft_type).items():
            if not (name.startswith("__") or hasattr(tensor_type, name)):
                self._patches.set(tensor_type, name, attribute)

    def _hook_syft_tensor_methods(self, syft_type: type) -> None:
        """Let torch's functions accept ``syft_type`` as it is, and make it known if it is not."""
        if syft_type is not AbstractTensor and syft_type not in type_rule:
            default_register_tensor(syft_type)
        self._patches.set(syft_type, "__torch_function__", classmethod(_torch_function))

    def _hook_private_tensor_methods(self, syft_type: Any) -> None:
        """Do the same, and let every result remember its parents and the command that made it."""
        self._hook_syft_tensor_methods(syft_type)
        self._patches.set(syft_type, "records_lineage", True)
        self._patches.on_undo(forget_answers)
        forget_answers()

    # --- torch itself

    def _hook_torch_module(self) -> None:
        """Keep each function of torch reachable as ``native_<name>``."""
        for module in self.attributes.torch_modules.values():
            for name, function in list(vars(module).items()):
                # A few genuine functions of torch are called native_<name>: they stay what they are.
                if _is_public_function(name, function) and not hasattr(module, f"native_{name}"):
                    self._patches.set(module, f"native_{name}", function)

    def _hook_tensor(self) -> None:
        """Let ``torch.tensor`` take an owner and an id."""
        native, local_worker = _torch.tensor, self.local_worker

        @functools.wraps(native)
        def tensor(
            *args: Any, owner: Any = None, id: Any = None, register: bool = True, **kwargs: Any
        ) -> _torch.Tensor:
            made = native(*args, **kwargs)
            if id is not None:
                made.id = id
            if owner is not None:
                made.owner = owner
            keeper = owner if owner is not None else local_worker
            if register and not keeper.is_client_worker:
                keeper.register_obj(made)
            return made

        self._patches.set(_torch, "native_tensor", native)
        self._patches.on_undo(_forget_what_dynamo_knows)
        self._patches.set(_torch, "tensor", tensor)
        _forget_what_dynamo_knows()
        key = builtins.id(tensor)
        # torch.jit knows functions by identity: without this, scripting `torch.tensor(...)` would fail.
        _torch.jit._builtins._register_builtin(tensor, "aten::tensor")
        self._patches.on_undo(lambda: _torch.jit._builtins._get_builtin_table().pop(key, None))

    def _hook_module(self) -> None:
        """Let modules be sent, fetched, moved and copied, in place."""
        for name, added in ADDED_TO_MODULES.items():
            self._patches.set(_torch.nn.Module, name, added)

    def _hook_parameters(self) -> None:
        """Do nothing: torch makes a Parameter of a wrapper by itself, and ``parameter.py`` exchanges contents."""

    def _hook_optim(self) -> None:
        """Let the state of optimizers follow their parameters, and their lists keep workers apart."""
        self.optimizer_state = OptimizerState()
        self._patches.on_undo(self.optimizer_state.stop)
        handle = register_optimizer_step_pre_hook(self.optimizer_state.before_step)
        self._patches.on_undo(handle.remove)
        for name, added in ADDED_TO_OPTIMIZERS.items():
            self._patches.set(_torch.optim.Optimizer, name, added)
        for target, name, substitute in substitutes():
            self._patches.set(target, name, substitute)

    def _hook_worker_methods(self) -> None:
        """Do nothing: ``worker.remote.torch`` finds the functions of ``TorchAttributes.worker_methods`` by itself."""

    def _get_hooked_base_worker_method(self, attr: str) -> Function:
        """Return a function that makes a tensor on the worker given first: ``f(bob, 2, 3)``."""
        return lambda worker, *args, **kwargs: getattr(worker.remote.torch, attr)(*args, **kwargs)

    def _get_hooked_func(self, public_module_name: str, func_api_name: str, attr: object = None) -> Function:
        """Return the function under its public name."""
        return self.get_hooked_func(f"{public_module_name}.{func_api_name}")

    # --- names of earlier hooks

    _get_hooked_method = FrameworkHook.get_hooked_method
    _get_hooked_syft_method = FrameworkHook.get_hooked_method
    _get_hooked_pointer_method = FrameworkHook.get_hooked_method
    _get_hooked_multi_pointer_method = FrameworkHook.get_hooked_method
    _get_hooked_additive_shared_method = FrameworkHook.get_hooked_method
    _get_overloaded_method = FrameworkHook.get_hooked_method

    def _hook_native_tensors_and_variables(self, tensor_type: type) -> None:
        """Do what ``_hook_native_tensor`` does, under the name of 0.1.0."""
        self._hook_native_tensor(tensor_type, TorchTensor)


serde.register_codecs(codecs)


@functools.cache
def _attributes() -> TorchAttributes:
    attributes = TorchAttributes(_torch)
    frameworks.register(_torch.Tensor, attributes)
    return attributes


def _torch_function(
    cls: object, func: Function, types: object, args: Args = (), kwargs: Kwargs | None = None
) -> Nested:
    """Answer torch's functions for layers that are used without a wrapper."""
    return dispatch(Wrapper.ops.of(func), args, dict(kwargs) if kwargs else {})


def _forget_what_dynamo_knows() -> None:
    """Let torch.compile look again: it remembers torch's functions by identity, and ``torch.tensor`` has changed."""
    rules: Any = sys.modules.get("torch._dynamo.trace_rules")
    known = getattr(rules, "get_torch_obj_rule_map", None)  # Another thread may be importing it.
    if known is not None:
        known.cache_clear()


def _is_public_function(name: str, function: object) -> bool:
    return (
        isinstance(function, types.FunctionType | types.BuiltinFunctionType)
        and not name.startswith(("_", "native_"))
        and not name[0].isupper()
        and name not in ("tensor",)
    )
