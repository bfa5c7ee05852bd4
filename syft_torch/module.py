"""The methods that a hook adds to ``nn.Module``: send a model, train it where the data is, and get it back.

A module changes in place. Its Parameter objects and their ids stay the same, so optimizers and tied weights still refer
to them; only the data moves. Buffers and existing gradients are sent too.

Note [Helpers on a remote module]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
A remote module would create local tensors in two ways: its forward calls ``torch.zeros`` or ``torch.arange``, and
``load_state_dict`` copies local values. So each layer of a remote module has a helper that puts these tensors on the
worker. It is removed when the module is fetched, so that a local module is exactly as it was and can be saved.
Torch's own layers that create no tensors, and sequences of them, run without the mode, because it costs time; on a
worker in this process, most of them as one command.
"""

from __future__ import annotations

import copy
import itertools
import sys
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, NoReturn, TypeVar

import torch
from torch import nn
from torch.nn.utils.weight_norm import WeightNorm

from syft_core.exceptions import InvalidTensorForRemoteGetError, SendNotPermittedError, WorkerError, WrapperLeakError
from syft_core.features import FEATURES
from syft_core.hook.chain import end_of
from syft_core.hook.hook import current_worker
from syft_core.location import Location
from syft_core.pointers.fetches import FetchSteps, complete
from syft_core.tensors.numeric import NumericTensor
from syft_core.values import Args, Function, Kwargs, Nested, Tensor
from syft_torch.parameter import (
    exchange_all,
    fetch,
    find_remote,
    location_of,
    make_move,
    relocate,
    require_all_movable,
    send_in_place,
)
from syft_torch.placing import Placing
from syft_torch.versions import UNCHECKABLE
from syft_torch.wrapper import Wrapper, call

M = TypeVar("M", bound=nn.Module)

_count_modes = torch._C._len_torch_function_stack
_get_mode = torch._C._get_function_stack_at
_push_mode = torch._C._push_on_torch_function_stack
_pop_mode = torch._C._pop_torch_function_stack


def send(module: M, *workers: object, force_send: bool = False, preinitialize_grad: bool = False) -> M:
    """Send parameters and buffers to a worker, in place, and return the module itself.

    Those that are on the worker already stay there, so a model to which layers were added can be sent again. With
    ``preinitialize_grad``, missing gradients are first set to zeros. ``force_send`` has no effect; it is accepted for
    compatibility.
    """
    if len(workers) != 1:
        raise WorkerError(
            f"cannot send a {_name(module)} to {len(workers)} workers: its parameters can be in one place only; "
            f"send a copy to each: `models = [model.copy().send(worker) for worker in workers]`"
        )
    layers, tensors = find_parts(module)
    _require_whole(tensors, "send")
    destination = _owner_of(tensors).location_of(workers[0])
    away = find_remote(tensors)
    for tensor in away:
        if (place := location_of(tensor).id) != destination.id:
            raise WorkerError(
                f"cannot send a {_name(module)} to {destination.id!r}: it is on {place!r}; "
                f"move it: `model.move({destination.id!r})`"
            )
    _refuse_weight_norm(layers)
    if preinitialize_grad:
        create_grad_objects(module)
    _send_local(layers, tensors, away, destination)
    set_helpers(layers, destination)
    return module


def get(module: M, user: str | None = None, reason: str = "") -> M:
    """Fetch parameters and buffers from their worker, in place, and return the module itself."""
    fetched: M = complete(fetch_parts(module, user, reason))
    return fetched


def fetch_parts(module: nn.Module, user: str | None, reason: str) -> FetchSteps:
    """Fetch parameters and buffers in place: the generator version of ``get``."""
    layers, away = _find_remote_parts(module, "get")
    move_weights(layers, partial(require_all_movable, away))
    arrived = yield from fetch(away, user, reason)
    move_weights(layers, partial(exchange_all, away, arrived))
    set_helpers(layers, None)
    return module


def request(module: nn.Module, reason: str) -> Nested:
    """Ask the owner of the worker to release the model; ``get`` works after they approve."""
    parts = _find_remote_parts(module, "request")[1]
    names = {id(part): name for name, part in itertools.chain(module.named_buffers(), module.named_parameters())}
    pointers = [end_of(part) for part in parts]
    ids, labels = [pointer._id_at_location for pointer in pointers], [names[id(part)] for part in parts]
    return FEATURES.resolve("RequestHandle").ask(pointers[0]._location, ids, None, reason, labels)


def move(module: M, destination: Any) -> M:
    """Move parameters and buffers to another worker, or send local ones, in place; return the module itself."""
    layers, tensors = find_parts(module)
    away = _find_remote_parts(module, "move")[1]
    _require_whole(away, "move")
    here = _owner_of(away)
    destination = here.location_of(destination)
    if destination.id == here.id:
        return get(module)
    going = [tensor for tensor in away if location_of(tensor).id != destination.id]
    move_weights(layers, partial(relocate, going, make_move(destination)))
    _send_local(layers, tensors, away, destination)
    set_helpers(layers, destination)
    return module


def _send_local(
    layers: list[nn.Module], tensors: list[torch.Tensor], away: list[torch.Tensor], destination: Location
) -> None:
    remote = set(map(id, away))
    local = [tensor for tensor in tensors if id(tensor) not in remote] if away else tensors
    move_weights(layers, partial(send_in_place, local, destination))


def end_get(module: M) -> M:
    """Let the module's worker fetch the data that its pointers refer to, after ``remote_send``; return the module."""
    for tensor in _find_remote_parts(module, "end_get")[1]:
        with suppress(InvalidTensorForRemoteGetError):  # The worker already has the data.
            tensor.remote_get()
    return module


def location(module: nn.Module) -> Any:
    """Return the location of the module's data, or None if it is local."""
    return location_of(next(itertools.chain(module.parameters(), module.buffers()), None))


def owner(module: nn.Module) -> Any:
    """Return the worker that owns the module."""
    return _owner_of([*itertools.islice(itertools.chain(module.parameters(), module.buffers()), 1)])


def module_is_missing_grad(module: nn.Module) -> bool:
    """Return whether a parameter that needs a gradient has none."""
    return any(parameter.requires_grad and parameter.grad is None for parameter in module.parameters())


def create_grad_objects(module: nn.Module) -> None:
    """Set missing gradients to zeros, where the parameters are.

    With them, an optimizer with weight decay also changes parameters that the loss does not depend on.
    """
    for parameter in module.parameters():
        if parameter.requires_grad and parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)


_HIDDEN_FROM = nn.Module.__module__


class AddedName:
    """A name added to ``nn.Module`` that a user's own submodule, parameter or buffer of that name overrides.

    It is not a ``property``, because ``torch.jit.script`` compiles the properties of a module's class. It is hidden
    from ``nn.Module`` itself, which refuses to register a parameter under the name of an existing attribute.
    """

    def __init__(self, name: str, function: Function, is_attribute: bool = False) -> None:
        self.name = name
        self.function = function
        self.is_attribute = is_attribute
        self.__doc__ = function.__doc__

    def __get__(self, module: nn.Module, _owner: type | None = None) -> Any:
        if module is None:
            return self.function
        name, held = self.name, module.__dict__
        for own in (held.get("_modules"), held.get("_parameters"), held.get("_buffers")):
            if own and name in own:
                return own[name]
        if sys._getframe(1).f_globals.get("__name__") == _HIDDEN_FROM:
            raise AttributeError(name)
        return self.function(module) if self.is_attribute else self.function.__get__(module)


_METHODS: dict[str, Function] = {
    "send": send,
    "send_": send,
    "get": get,
    "_syft_fetch": fetch_parts,
    "request": request,
    "get_": get,
    "move": move,
    "end_get": end_get,
    "copy": copy.deepcopy,
}
ADDED_TO_MODULES: dict[str, AddedName] = {
    **{name: AddedName(name, function) for name, function in _METHODS.items()},
    "location": AddedName("location", location, is_attribute=True),
    "owner": AddedName("owner", owner, is_attribute=True),
}
"""The names that a hook adds to ``nn.Module``."""


# --- moving a module


def find_parts(module: nn.Module) -> tuple[list[nn.Module], list[torch.Tensor]]:
    """Return the module and its submodules, and their parameters and buffers, each once.

    TorchScript is refused, because the tensors that it returns are copies of references.
    """
    layers: dict[int, nn.Module] = {id(module): module}
    tensors: dict[int, Any] = {}
    waiting = [module]
    while waiting:
        layer = waiting.pop()
        if _SCRIPT in type(layer).__mro__:  # faster than ``isinstance``
            raise WorkerError(
                f"cannot send a {_name(module)}: it is, or contains, TorchScript, whose tensors cannot be replaced; "
                f"send the module that it was made from"
            )
        for held in (layer._parameters, layer._buffers):
            if held:
                for tensor in held.values():
                    tensors[id(tensor)] = tensor
        if parts := layer._modules:
            for part in reversed(parts.values()):
                if id(part) not in layers and part is not None:
                    layers[id(part)] = part
                    waiting.append(part)
    tensors.pop(id(None), None)
    return list(layers.values()), list(tensors.values())


_SCRIPT = torch.jit.ScriptModule


def _refuse_weight_norm(layers: list[nn.Module]) -> None:
    """Refuse the old form of weight norm before torch fails: its weight is part of a graph from the start."""
    for layer in layers:
        if layer._forward_pre_hooks and any(isinstance(h, WeightNorm) for h in layer._forward_pre_hooks.values()):
            raise WorkerError(
                f"cannot send a {_name(layer)} with torch.nn.utils.weight_norm: its weight is the result of an "
                f"autograd graph; use the parametrization: "
                f"`torch.nn.utils.parametrizations.weight_norm(torch.nn.utils.remove_weight_norm(layer))`"
            )


def _owner_of(tensors: list[torch.Tensor]) -> Any:
    return tensors[0].owner if tensors else current_worker()


def _find_remote_parts(module: nn.Module, verb: str) -> tuple[list[nn.Module], list[torch.Tensor]]:
    """Return the module and its submodules, and their remote tensors; raise if all tensors are local."""
    layers, tensors = find_parts(module)
    away = find_remote(tensors)
    if tensors and not away:
        raise WorkerError(f"cannot {verb} a {_name(module)}: it is in this process; use it as it is")
    return layers, away


def _require_whole(tensors: list[torch.Tensor], verb: str) -> None:
    """Raise if tensors are shared: their shares stay where they are."""
    if any(isinstance(end_of(tensor), NumericTensor) for tensor in tensors):
        raise SendNotPermittedError.stays(verb)


def move_weights(layers: list[nn.Module], move_all: Callable[[], None]) -> None:
    """Call ``move_all`` while recurrent layers have no weak references to weights, which prevent swapping.

    Their lists are changed in place, because plans that were recorded before refer to them.
    """
    recurrent = []
    for layer in layers:
        if isinstance(layer, nn.RNNBase):
            layer._flat_weight_refs[:] = [None] * len(layer._flat_weights)
            recurrent.append(layer)
    try:
        move_all()
    finally:
        for layer in recurrent:
            layer._flat_weight_refs[:] = [None if w is None else weakref.ref(w) for w in layer._flat_weights]


def _name(module: nn.Module) -> str:
    return type(module).__name__


# --- helpers of remote modules; see Note [Helpers on a remote module]


class _Helper:
    """Makes a layer of a remote module run and load its state on the worker.

    It is set on the layer twice: as a hook of ``load_state_dict``, which torch copies with the layer, and as the
    function that torch calls instead of ``forward`` and its hooks, which torch does not copy.
    """

    def __init__(self, layer: nn.Module, placing: Placing, compiled: Function | None = None) -> None:
        self.layer = weakref.ref(layer)
        self.placing = placing
        self.compiled = compiled
        """The compiled function that it replaces, if the layer was compiled."""
        layer.__dict__["_compiled_call_impl"] = self.run

    def run(self, *args: object, **kwargs: object) -> Nested:
        layer: Any = self.layer()
        count = _count_modes()
        mode = _get_mode(count - 1) if count else None
        is_placed = type(mode) is Placing and mode.location is self.placing.location
        simple: list[nn.Module] = []
        if not self.placing.location.records and _find_simple(layer, simple) and simple:
            return _call_without_mode(simple, args, kwargs) if is_placed else _call_all(simple, args, kwargs)
        call = partial(_call_on_fast_path, layer) if isinstance(layer, _WITH_FAST_PATH) else layer._call_impl
        if is_placed:
            return call(*args, **kwargs)
        _push_mode(self.placing)  # This is what ``with self.placing:`` does.
        try:
            return call(*args, **kwargs)
        finally:
            _pop_mode()

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        raise WrapperLeakError.saving(self.placing.location.id)

    def __call__(self, state_dict: dict[str, object], prefix: str, *_rest: object) -> None:
        """Send the local values of a state dict to the worker before they are loaded."""
        layer: Any = self.layer()
        for name, tensor in itertools.chain(layer._parameters.items(), layer._buffers.items()):
            value = state_dict.get(prefix + name)
            where = location_of(tensor)
            if isinstance(value, torch.Tensor) and where is not None and location_of(value) is None:
                state_dict[prefix + name] = value.detach().send(where)

    def describe(self) -> str:
        layer: Any = self.layer()
        own, place = type(layer).extra_repr(layer), f"on {self.placing.location.id}"
        return f"{own}, {place}" if own else place

    def __deepcopy__(self, memo: dict[int, Any]) -> _Helper:
        return _Helper(memo[id(self.layer())], self.placing, self.compiled)


_HELPER: Any = "syft"
"""The key of a helper among the hooks of ``load_state_dict``; torch's own keys are numbers."""


def set_helpers(layers: list[nn.Module], place: Location | None) -> None:
    """Add helpers to the layers of a module at ``place``, and remove them if ``place`` is None."""
    placing = None if place is None else Placing(Wrapper.framework, place)
    for layer in layers:
        if (old := layer._load_state_dict_pre_hooks.pop(_HELPER, None)) is not None:
            layer.__dict__.pop("extra_repr", None)
            layer.__dict__.pop("_compiled_call_impl", None)
            if old.compiled is not None:
                layer.__dict__["_compiled_call_impl"] = old.compiled
        if placing is not None:
            helper = _Helper(layer, placing, layer._compiled_call_impl)
            layer._load_state_dict_pre_hooks[_HELPER] = helper
            if layer is layers[0]:
                layer.__dict__["extra_repr"] = helper.describe


_FORWARDS: dict[type, Function] = {
    cls: cls.forward
    for cls in (
        nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.LayerNorm, nn.Flatten, nn.AvgPool2d, nn.ReLU, nn.GELU, nn.SiLU,
        nn.LeakyReLU, nn.Sigmoid, nn.Tanh, nn.Softmax, nn.LogSoftmax, nn.Embedding, nn.Dropout, nn.MaxPool2d,
    )
}  # fmt: skip
"""Torch's layers that create no tensors except results, with their code; they need no mode."""
_SEQUENCE = nn.Sequential.forward
_hooks = nn.modules.module


def _find_simple(layer: nn.Module, found: list[nn.Module]) -> bool:
    """Append the layers that a call of ``layer`` runs one after the other; return False if it may do more than that.

    They are torch's own and create no tensors except results. Hooks, and layers of users, may do anything.
    """
    cls = type(layer)
    if (
        "forward" in layer.__dict__
        or (layer._forward_pre_hooks or layer._forward_hooks or layer._backward_pre_hooks or layer._backward_hooks)
        or (_hooks._global_forward_pre_hooks or _hooks._global_forward_hooks)
        or (_hooks._global_backward_pre_hooks or _hooks._global_backward_hooks)
    ):
        return False
    if _FORWARDS.get(cls) is cls.forward:
        found.append(layer)
        return True
    if cls is not nn.Sequential or cls.forward is not _SEQUENCE:
        return False
    for part in layer._modules.values():  # noqa: SIM110  # faster than a generator
        if not _find_simple(part, found):
            return False
    return True


def _call_all(layers: list[nn.Module], args: Args, kwargs: Kwargs) -> Nested:
    value = _call_simple(layers[0], *args, **kwargs)
    for layer in layers[1:]:
        value = _call_simple(layer, value)
    return value


def _call_simple(layer: nn.Module, *args: Tensor, **kwargs: object) -> Nested:
    """Call a simple layer; a linear one with remote tensors without torch's search for a type that handles the call."""
    if type(layer) is nn.Linear and len(args) == 1 and not kwargs:
        own = layer._parameters
        operands = (*args, own.get("weight"), own.get("bias"))
        if {Wrapper}.issuperset(map(type, operands)) and not _count_modes():
            return call(nn.functional.linear, operands, {})
    return layer.forward(*args, **kwargs)


def _call_without_mode(layers: list[nn.Module], args: Args, kwargs: Kwargs) -> Nested:
    mode = _pop_mode()
    try:
        return _call_all(layers, args, kwargs)
    finally:
        _push_mode(mode)


_WITH_FAST_PATH = () if UNCHECKABLE else (nn.TransformerEncoder, nn.TransformerEncoderLayer, nn.MultiheadAttention)
"""Layers with fused kernels, which torch uses unless a tensor overrides its functions; none if workers refuse them."""
_has_torch_function = torch.overrides.has_torch_function


def _call_on_fast_path(layer: nn.Module, *args: object, **kwargs: object) -> Nested:
    """Call a layer and let it take the fast path for remote tensors, as it would for local ones."""
    torch.overrides.has_torch_function = _has_local_override
    try:
        return layer._call_impl(*args, **kwargs)
    finally:
        torch.overrides.has_torch_function = _has_torch_function


def _has_local_override(tensors: Any) -> Any:
    return not all(location_of(tensor) is not None for tensor in tensors) and _has_torch_function(tensors)
