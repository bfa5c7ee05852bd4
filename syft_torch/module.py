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
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence

from syft_core.exceptions import InvalidTensorForRemoteGetError, WorkerError
from syft_core.hook.hook import current_worker
from syft_core.values import Args, Function, Kwargs, Nested
from syft_torch.parameter import location_of, make_fetch, make_move, relocate, send_in_place


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
    layers = _layers(module)
    tensors = _tensors(layers)
    destination = _owner_of(tensors).location_of(workers[0])
    for tensor in tensors:
        if (where := location_of(tensor)) is not None:
            raise WorkerError(
                f"cannot send a {_name(module)} to {destination.id!r}: it is on {where.id!r}; "
                f"write `model.move({destination.id})`, or `model.get()` first"
            )
    if preinitialize_grad:
        create_grad_objects(module)
    _travel(layers, partial(send_in_place, tensors, destination))
    return module


def get(module: nn.Module, user: str | None = None, reason: str = "") -> nn.Module:
    """Fetch parameters and buffers from their worker, in place, and return the module itself."""
    layers = _layers(module)
    _travel(layers, partial(relocate, _elsewhere(module, layers, "get"), make_fetch(user, reason)))
    return module


def move(module: nn.Module, destination: Any) -> nn.Module:
    """Let parameters and buffers go from their worker to another, in place, and return the module itself."""
    layers = _layers(module)
    away = _elsewhere(module, layers, "move")
    here = _owner_of(away)
    destination = here.location_of(destination)
    if destination.id == here.id:
        return get(module)
    going = [tensor for tensor in away if location_of(tensor).id != destination.id]
    _travel(layers, partial(relocate, going, make_move(destination)))
    return module


def end_get(module: nn.Module) -> nn.Module:
    """Let the module's worker fetch what it holds pointers to, after ``remote_send``; return the module itself."""
    for tensor in _elsewhere(module, _layers(module), "end_get"):
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


def _layers(module: nn.Module) -> list[nn.Module]:
    """Return the module and everything in it; refuse TorchScript, which hands out its tensors by copied reference."""
    layers = list(module.modules())
    if any(isinstance(layer, torch.jit.ScriptModule) for layer in layers):
        raise WorkerError(
            f"cannot send a {_name(module)}: it is, or contains, TorchScript, whose tensors cannot be exchanged; "
            f"send the module that it was made from"
        )
    return layers


def _tensors(layers: list[nn.Module]) -> list[torch.Tensor]:
    """Return parameters and buffers, each once, however many names it has."""
    own = (tensor for layer in layers for tensor in _own_tensors(layer))
    return list({id(tensor): tensor for tensor in own}.values())


def _own_tensors(layer: nn.Module) -> list[torch.Tensor]:
    return [tensor for tensor in (*layer._parameters.values(), *layer._buffers.values()) if tensor is not None]


def _owner_of(tensors: list[torch.Tensor]) -> Any:
    return tensors[0].owner if tensors else current_worker()


def _elsewhere(module: nn.Module, layers: list[nn.Module], verb: str) -> list[nn.Module]:
    """Return the tensors that are on a worker; refuse a module that is here altogether."""
    tensors = _tensors(layers)
    away = [tensor for tensor in tensors if location_of(tensor) is not None]
    if tensors and not away:
        raise WorkerError(f"cannot {verb} a {_name(module)}: it is here; send it first, e.g. `model.send(bob)`")
    return away


def _travel(layers: list[nn.Module], set_out: Callable[[], None]) -> None:
    with _without_weak_references(layers):
        set_out()
    for layer in layers:
        _set_helpers(layer)


@contextmanager
def _without_weak_references(layers: list[nn.Module]) -> Iterator[None]:
    """Let recurrent layers forget, for a moment, their weak references to weights, which swapping does not allow."""
    recurrent = [layer for layer in layers if isinstance(layer, nn.RNNBase)]
    for layer in recurrent:
        layer._flat_weight_refs = [None] * len(layer._flat_weights)
    try:
        yield
    finally:
        for layer in recurrent:
            layer._flat_weight_refs = [None if w is None else weakref.ref(w) for w in layer._flat_weights]


def _name(module: nn.Module) -> str:
    return type(module).__name__


# --- helpers while a module is elsewhere; see Note [Helpers on a remote module]


def _set_helpers(layer: nn.Module) -> None:
    """Put helpers on a layer that is elsewhere, and take them off one that is here."""
    _remove_helpers(layer)
    if any(location_of(tensor) is not None for tensor in _own_tensors(layer)):
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
