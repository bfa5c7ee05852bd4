"""The names that a hook adds to ``nn.Module``: send a model, train it where the data is, and get it back.

A module changes in place. Its Parameter objects, their ids and whatever refers to them (optimizers, tied weights) stay
the same; only their data is elsewhere. Buffers travel along, and so do gradients that exist.

Note [Helpers on a remote module]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
Two things that torch's modules do make plain tensors here although the data is elsewhere: recurrent layers start from
zeros, and ``load_state_dict`` copies from a file. While a module is elsewhere, hooks of torch's own kind on it
(forward and load-state-dict pre-hooks) put these where they belong. They go when the module comes back, so that a
module at home is exactly what it was, and can be saved.
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
from torch.nn.utils.rnn import PackedSequence

from syft_core.exceptions import InvalidTensorForRemoteGetError, WorkerError
from syft_core.hook.chain import end_of
from syft_core.hook.hook import current_worker
from syft_core.messages import AskRelease
from syft_core.values import Args, Function, Kwargs, Nested
from syft_torch.parameter import fetched, is_elsewhere, location_of, moved, relocate, send_in_place


def send(module: nn.Module, *workers: object, force_send: bool = False, preinitialize_grad: bool = False) -> nn.Module:
    """Send parameters and buffers to a worker, in place, and return the module itself.

    With ``preinitialize_grad`` parameters that need a gradient and have none get one of zeros first.
    ``force_send`` is a word of the published interface; a module is sent either way.
    """
    if len(workers) != 1:
        raise WorkerError(
            f"cannot send a {_name(module)} to {len(workers)} workers: its parameters can be in one place only; "
            f"send a copy to each, e.g. `model.copy().send(bob)`"
        )
    layers, tensors = _parts(module)
    destination = _owner_of(tensors).location_of(workers[0])
    for tensor in tensors:
        if is_elsewhere(tensor):
            raise WorkerError(
                f"cannot send a {_name(module)} to {destination.id!r}: it is on {location_of(tensor).id!r}; "
                f"write `model.move({destination.id})`, or `model.get()` first"
            )
    if preinitialize_grad:
        create_grad_objects(module)
    _travel(layers, partial(send_in_place, tensors, destination))
    for layer in layers:
        if layer._parameters or layer._buffers:
            _set_helpers(layer)
    return module


def get(module: nn.Module, user: str | None = None, reason: str = "") -> nn.Module:
    """Fetch parameters and buffers from their worker, in place, and return the module itself."""
    layers, away = _parts_elsewhere(module, "get")
    _travel(layers, partial(relocate, away, fetched(user, reason)))
    for layer in layers:
        if layer._load_state_dict_pre_hooks:
            _remove_helpers(layer)
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
    _travel(layers, partial(relocate, going, moved(destination)))
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
        raise WorkerError(f"cannot {verb} a {_name(module)}: it is here; send it first, e.g. `model.send(bob)`")
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


def _set_helpers(layer: nn.Module) -> None:
    """Put helpers on a layer that was sent."""
    if layer._load_state_dict_pre_hooks:
        _remove_helpers(layer)
    layer._register_load_state_dict_pre_hook(_send_what_is_loaded, with_module=True)
    if isinstance(layer, nn.RNNBase | nn.RNNCellBase):
        layer.register_forward_pre_hook(_start_from_zeros, with_kwargs=True)


def _remove_helpers(layer: nn.Module) -> None:
    if loaders := layer._load_state_dict_pre_hooks:
        for key in [key for key, loader in loaders.items() if getattr(loader, "hook", None) is _send_what_is_loaded]:
            del loaders[key]
    if starters := layer._forward_pre_hooks:
        for key in [key for key, starter in starters.items() if starter is _start_from_zeros]:
            del starters[key]
            layer._forward_pre_hooks_with_kwargs.pop(key, None)


def _send_what_is_loaded(layer: nn.Module, state_dict: dict[str, object], prefix: str, *_rest: object) -> None:
    """Send the local values of a state dict to the parameters and buffers that they are loaded into."""
    for name, tensor in itertools.chain(layer._parameters.items(), layer._buffers.items()):
        value = state_dict.get(prefix + name)
        where = location_of(tensor)
        if isinstance(value, torch.Tensor) and where is not None and location_of(value) is None:
            state_dict[prefix + name] = value.detach().send(where)


def _start_from_zeros(layer: nn.Module, args: Args, kwargs: Kwargs) -> Nested:
    """Give a recurrent layer its initial zeros beside its input."""
    given = args[1] if len(args) > 1 else kwargs.get("hx")
    data = args[0] if args else kwargs["input"]
    tensor = data.data if isinstance(data, PackedSequence) else data
    if given is not None or not isinstance(tensor, torch.Tensor) or location_of(tensor) is None:
        return None
    zeros = _cell_zeros(layer, data) if isinstance(layer, nn.RNNCellBase) else _layer_zeros(layer, data)
    return args[:1], {**kwargs, "hx": zeros}


def _cell_zeros(cell: nn.Module, data: torch.Tensor) -> Nested:
    zeros = data.new_zeros(*data.shape[:-1], cell.hidden_size)
    return (zeros, zeros) if isinstance(cell, nn.LSTMCell) else zeros


def _layer_zeros(layer: nn.Module, data: torch.Tensor | PackedSequence) -> Nested:
    if isinstance(data, PackedSequence):
        data, sizes, *_order = data
        batch: tuple[int, ...] = (sizes[0],)
    else:
        shape = data.shape
        batch = () if len(shape) == 2 else (shape[0 if layer.batch_first else 1],)
    count = layer.num_layers * (2 if layer.bidirectional else 1)
    hidden = data.new_zeros(count, *batch, layer.proj_size or layer.hidden_size)
    return (hidden, data.new_zeros(count, *batch, layer.hidden_size)) if layer.mode == "LSTM" else hidden
