"""The names that a hook adds to ``nn.Module``: send a model, train it where the data is, and get it back.

A module changes in place. Its Parameter objects, their ids and whatever refers to them (optimizers, tied weights) stay
the same; only their data is elsewhere. Buffers travel along, and so do gradients that exist.

Note [Helpers on a remote module]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
Two things that modules do make plain tensors here although the data is elsewhere: a forward calls ``torch.zeros`` or
``torch.arange``, and ``load_state_dict`` copies from a file. While a module is elsewhere, each of its layers has a
helper that puts these where they belong. It goes when the module comes back, so that a module at home is exactly what
it was, and can be saved.
"""

from __future__ import annotations

import copy
import itertools
import sys
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import torch
from torch import nn

from syft_core.exceptions import InvalidTensorForRemoteGetError, WorkerError
from syft_core.hook.chain import end_of
from syft_core.hook.hook import current_worker
from syft_core.location import Location
from syft_core.messages import AskRelease
from syft_core.values import Function, Nested
from syft_torch.parameter import is_elsewhere, location_of, make_fetch, make_move, relocate, send_in_place
from syft_torch.placing import Placing, is_placing_at
from syft_torch.wrapper import Wrapper


def send(module: nn.Module, *workers: object, force_send: bool = False, preinitialize_grad: bool = False) -> nn.Module:
    """Send parameters and buffers to a worker, in place, and return the module itself.

    With ``preinitialize_grad`` parameters that need a gradient and have none get one of zeros first.
    ``force_send`` is a word of the published interface; a module is sent either way.
    """
    if len(workers) != 1:
        raise WorkerError(
            f"cannot send a {_name(module)} to {len(workers)} workers: its parameters can be in one place only; "
            f"send a copy to each: `models = [model.copy().send(worker) for worker in workers]`"
        )
    layers, tensors = _parts(module)
    destination = _owner_of(tensors).location_of(workers[0])
    for tensor in tensors:
        if is_elsewhere(tensor):
            raise WorkerError(
                f"cannot send a {_name(module)} to {destination.id!r}: it is on {location_of(tensor).id!r}; "
                f"move it: `model.move({destination.id!r})`"
            )
    if preinitialize_grad:
        create_grad_objects(module)
    _travel(layers, partial(send_in_place, tensors, destination))
    _set_helpers(layers, destination)
    return module


def get(module: nn.Module, user: str | None = None, reason: str = "") -> nn.Module:
    """Fetch parameters and buffers from their worker, in place, and return the module itself."""
    layers, away = _parts_elsewhere(module, "get")
    _travel(layers, partial(relocate, away, make_fetch(user, reason)))
    _set_helpers(layers, None)
    return module


def request(module: nn.Module, reason: str) -> int:
    """Ask the owner of the worker to release the model; ``get`` works after they approve."""
    pointers = [end_of(tensor) for tensor in _parts_elsewhere(module, "request")[1]]
    message = AskRelease(tuple([pointer._id_at_location for pointer in pointers]), None, reason)
    number: int = pointers[0]._location.ask(message)
    return number


def move(module: nn.Module, destination: Any) -> nn.Module:
    """Let parameters and buffers go from their worker to another, in place, and return the module itself."""
    layers, away = _parts_elsewhere(module, "move")
    here = _owner_of(away)
    destination = here.location_of(destination)
    if destination.id == here.id:
        return get(module)
    going = [tensor for tensor in away if location_of(tensor).id != destination.id]
    _travel(layers, partial(relocate, going, make_move(destination)))
    _set_helpers(layers, destination)
    return module


def end_get(module: nn.Module) -> nn.Module:
    """Let the module's worker fetch what it holds pointers to, after ``remote_send``; return the module itself."""
    for tensor in _parts_elsewhere(module, "end_get")[1]:
        with suppress(InvalidTensorForRemoteGetError):  # The worker has the data already.
            tensor.remote_get()
    return module


def location(module: nn.Module) -> Any:
    """Return the worker that holds the module's data, or None when it is here."""
    return location_of(next(itertools.chain(module.parameters(), module.buffers()), None))


def owner(module: nn.Module) -> Any:
    """Return the worker that the module belongs to."""
    return _owner_of([*itertools.islice(itertools.chain(module.parameters(), module.buffers()), 1)])


def module_is_missing_grad(module: nn.Module) -> bool:
    """Say whether a parameter that needs a gradient has none."""
    return any(parameter.requires_grad and parameter.grad is None for parameter in module.parameters())


def create_grad_objects(module: nn.Module) -> None:
    """Give every parameter that needs a gradient and has none one of zeros, where the parameter is.

    Nobody computed it: an optimizer with weight decay will change parameters that no loss depends on.
    """
    for parameter in module.parameters():
        if parameter.requires_grad and parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)


class AddedName:
    """A name added to ``nn.Module`` that steps aside for a user's own submodule, parameter or buffer of that name.

    It is no ``property``, because ``torch.jit.script`` compiles the properties of a module's class. And it is not there
    for ``nn.Module`` itself, which refuses to register a parameter under a name that a module seems to have already.
    """

    def __init__(self, function: Function, is_attribute: bool = False) -> None:
        self.function = function
        self.is_attribute = is_attribute
        self.__doc__ = function.__doc__

    def __set_name__(self, _owner: type, name: str) -> None:
        self.name = name

    def __get__(self, module: nn.Module, _owner: type | None = None) -> Any:
        if module is None:
            return self.function
        for own in ("_modules", "_parameters", "_buffers"):
            if self.name in module.__dict__.get(own, ()):
                return module.__dict__[own][self.name]
        if sys._getframe(1).f_globals.get("__name__") == nn.Module.__module__:
            raise AttributeError(self.name)
        return self.function(module) if self.is_attribute else self.function.__get__(module)


ADDED_TO_MODULES: dict[str, AddedName] = {
    "send": AddedName(send),
    "send_": AddedName(send),
    "get": AddedName(get),
    "request": AddedName(request),
    "get_": AddedName(get),
    "move": AddedName(move),
    "end_get": AddedName(end_get),
    "copy": AddedName(copy.deepcopy),
    "location": AddedName(location, is_attribute=True),
    "owner": AddedName(owner, is_attribute=True),
}
"""What a hook sets on ``nn.Module``."""
for _word, _added in ADDED_TO_MODULES.items():
    _added.__set_name__(nn.Module, _word)


# --- the journey of a module


def _parts(module: nn.Module) -> tuple[list[nn.Module], list[torch.Tensor]]:
    """Return the module and all in it, and their parameters and buffers: each once, however many names it has.

    TorchScript is refused: it hands out its tensors by copied reference.
    """
    layers, tensors = {id(module): module}, {}
    waiting = [module]
    while waiting:
        layer = waiting.pop()
        if isinstance(layer, torch.jit.ScriptModule):
            raise WorkerError(
                f"cannot send a {_name(module)}: it is, or contains, TorchScript, whose tensors cannot be exchanged; "
                f"send the module that it was made from"
            )
        for tensor in (*layer._parameters.values(), *layer._buffers.values()):
            tensors[id(tensor)] = tensor
        for part in reversed(layer._modules.values()):
            if id(part) not in layers and part is not None:
                layers[id(part)] = part
                waiting.append(part)
    tensors.pop(id(None), None)
    return list(layers.values()), list(tensors.values())


def _owner_of(tensors: list[torch.Tensor]) -> Any:
    return tensors[0].owner if tensors else current_worker()


def _parts_elsewhere(module: nn.Module, verb: str) -> tuple[list[nn.Module], list[torch.Tensor]]:
    """Return the module and all in it, and the tensors that are on a worker; refuse one that is here altogether."""
    layers, tensors = _parts(module)
    away = list(filter(is_elsewhere, tensors))
    if tensors and not away:
        raise WorkerError(f"cannot {verb} a {_name(module)}: it is in this process; use it as it is")
    return layers, away


def _travel(layers: list[nn.Module], set_out: Callable[[], None]) -> None:
    """Let recurrent layers forget, for a moment, their weak references to weights, which swapping does not allow."""
    recurrent = [layer for layer in layers if isinstance(layer, nn.RNNBase)]
    for layer in recurrent:
        layer._flat_weight_refs = [None] * len(layer._flat_weights)
    try:
        set_out()
    finally:
        for layer in recurrent:
            layer._flat_weight_refs = [None if w is None else weakref.ref(w) for w in layer._flat_weights]


def _name(module: nn.Module) -> str:
    return type(module).__name__


# --- helpers while a module is elsewhere; see Note [Helpers on a remote module]


class _Helper:
    """What a layer has while its module is elsewhere: it runs, and loads, where its data is.

    It hangs on the layer twice: as a hook of ``load_state_dict``, with which it is copied, and as what torch calls in
    the place of ``forward`` and its hooks, which torch keeps out of copies.
    """

    def __init__(self, layer: nn.Module, place: Location, compiled: Function | None = None) -> None:
        self.layer = weakref.ref(layer)
        self.place = place
        self.compiled = compiled
        """What was called before, if the layer was compiled."""
        layer.__dict__["_compiled_call_impl"] = self.run

    def run(self, *args: Any, **kwargs: Any) -> Nested:
        """Call the layer, and let the tensors that it makes be where its parameters are."""
        layer: Any = self.layer()
        call = partial(_call_on_fast_path, layer) if isinstance(layer, _WITH_FAST_PATH) else layer._call_impl
        if is_placing_at(self.place):
            return call(*args, **kwargs)
        with Placing(Wrapper.framework, self.place):
            return call(*args, **kwargs)

    def __call__(self, layer: nn.Module, state_dict: dict[str, object], prefix: str, *_rest: object) -> None:
        """Send the local values of a state dict to the parameters and buffers that they are loaded into."""
        for name, tensor in itertools.chain(layer._parameters.items(), layer._buffers.items()):
            value = state_dict.get(prefix + name)
            where = location_of(tensor)
            if isinstance(value, torch.Tensor) and where is not None and location_of(value) is None:
                state_dict[prefix + name] = value.detach().send(where)

    def describe(self) -> str:
        """Return what ``print`` shows of the layer, and the worker that holds it."""
        layer: Any = self.layer()
        own = type(layer).extra_repr(layer)
        return f"{own}, on {self.place.id}" if own else f"on {self.place.id}"

    def __deepcopy__(self, memo: dict[int, Any]) -> _Helper:
        return _Helper(memo[id(self.layer())], self.place, self.compiled)


def _set_helpers(layers: list[nn.Module], place: Location | None) -> None:
    """Put helpers on the layers of a module that is elsewhere, and take them off those of one that is here."""
    for layer in layers:
        if layer._load_state_dict_pre_hooks:
            _remove_helper(layer)
        if place is not None:
            helper = _Helper(layer, place, layer._compiled_call_impl)
            layer._register_load_state_dict_pre_hook(helper, with_module=True)
            if layer is layers[0]:
                layer.__dict__["extra_repr"] = helper.describe


def _remove_helper(layer: nn.Module) -> None:
    loaders = layer._load_state_dict_pre_hooks
    for key, loader in list(loaders.items()):
        if isinstance(helper := getattr(loader, "hook", None), _Helper):
            del loaders[key]
            layer.__dict__.pop("extra_repr", None)
            layer._compiled_call_impl = helper.compiled
            if helper.compiled is None:
                del layer._compiled_call_impl


_WITH_FAST_PATH = (nn.TransformerEncoder, nn.TransformerEncoderLayer, nn.MultiheadAttention)
"""The layers for which torch has kernels of their own, which they use unless a tensor has a protocol."""
_has_torch_function = torch.overrides.has_torch_function


def _call_on_fast_path(layer: nn.Module, *args: Any, **kwargs: Any) -> Nested:
    """Call a layer that asks whether a tensor has a protocol, and answer as it would be answered at home."""
    torch.overrides.has_torch_function = _has_protocol_at_home
    try:
        return layer._call_impl(*args, **kwargs)
    finally:
        torch.overrides.has_torch_function = _has_torch_function


def _has_protocol_at_home(tensors: Any) -> Any:
    return not all(location_of(tensor) is not None for tensor in tensors) and _has_torch_function(tensors)
