"""Hold the state of modules and optimizers at the place where a plan is recorded."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

import torch
from torch import nn

from syft_core.hook.rules import leaves
from syft_core.location import Location
from syft_core.peer import Id
from syft_core.plans.recording import Recorder
from syft_core.values import Function, Tensor
from syft_torch.module import find_parts, location, move_weights, set_helpers
from syft_torch.parameter import CONTENT_ATTRIBUTES, exchange_all, location_of, require_all_movable

Setters = dict[Id, Callable[[Tensor], None]]


@contextmanager
def hold_state(
    objects: Sequence[object], place: Location, send: Function
) -> Iterator[tuple[list[torch.Tensor], Callable[[], Setters]]]:
    """Replace the tensors of these objects, in place, by pointers to ``place``; restore everything afterwards.

    Yield the tensors, and a function that finds the state that optimizers have created at ``place``.
    """
    modules, optimizers = _find_holders(objects)
    layers, tensors = _find_all(modules, optimizers, objects)
    move_weights(layers, partial(require_all_movable, tensors, in_graphs=True))
    homes = [(module, location(module)) for module in modules]
    saved = [(optimizer, _save(optimizer)) for optimizer in optimizers]
    buffers = [(layer, dict(layer._buffers)) for layer in layers]
    generator = torch.get_rng_state()
    contents = [send(tensor) for tensor in tensors]
    known = {content.child._id_at_location for content in contents}

    def swap() -> None:
        for tensor, content in zip(tensors, contents, strict=True):
            before = {name: value for name, value in vars(tensor).items() if name in CONTENT_ATTRIBUTES}
            exchange_all([tensor], [content], temporary=True)
            vars(content).update(before)

    move_weights(layers, swap)
    set_helpers(layers, place)
    try:
        yield tensors, partial(_find_made, optimizers, place, known)
        for layer, before in buffers:
            _require_same_buffers(layer, before, cast("Recorder", place))
    finally:
        for layer, before in buffers:
            layer._buffers.update(before)
        set_helpers(layers, None)
        move_weights(layers, swap)
        for module, home in homes:
            if home is not None:
                parts, own = find_parts(module)
                set_helpers(parts, own[0].child._location)
        for optimizer, (state, groups) in saved:
            _restore(optimizer, state, groups)
        torch.set_rng_state(generator)


def find_state(objects: Sequence[object]) -> list[torch.Tensor]:
    """Return the tensors of the modules and optimizers among these objects, each once."""
    return _find_all(*_find_holders(objects), ())[1]


def _find_holders(objects: Sequence[object]) -> tuple[list[nn.Module], list[torch.optim.Optimizer]]:
    modules = [module for module in objects if isinstance(module, nn.Module)]
    return modules, [optimizer for optimizer in objects if isinstance(optimizer, torch.optim.Optimizer)]


def _find_all(
    modules: list[nn.Module], optimizers: list[torch.optim.Optimizer], objects: Sequence[object]
) -> tuple[list[nn.Module], list[torch.Tensor]]:
    layers: dict[int, nn.Module] = {}
    found: list[Tensor] = [leaf for leaf in objects if isinstance(leaf, torch.Tensor)]
    for module in modules:
        parts, tensors = find_parts(module)
        layers.update({id(layer): layer for layer in parts})
        found += tensors
        found += [leaf for layer in parts for leaf in leaves(list(vars(layer).values())) if type(leaf) is torch.Tensor]
    for optimizer in optimizers:
        found += [parameter for group in optimizer.param_groups for parameter in group["params"]]
        found += optimizer.state  # Also parameters that have been removed from the groups, whose state remains.
        found += leaves([list(state.values()) for state in optimizer.state.values()])
    tensors = list({id(leaf): leaf for leaf in found if isinstance(leaf, torch.Tensor)}.values())
    return list(layers.values()), [tensor for tensor in tensors if tensor.is_leaf or location_of(tensor) is not None]


def _require_same_buffers(layer: nn.Module, before: dict[str, Any], place: Recorder) -> None:
    """Refuse a function that assigns to a buffer: a worker changes state in place, and would return the old tensor."""
    for name, tensor in before.items():
        if layer._buffers.get(name) is not tensor:
            problem = f"assigns a new tensor to the buffer {name!r} of a {type(layer).__name__}"
            advice = f"change it in place, e.g. `self.{name}.copy_(new)`"
            if tensor is None:
                advice = "make it before: in `__init__`, or with one call of the model, e.g. `model(x)`"
            place.refuse(problem, advice, _find_line(layer._buffers.get(name), place))


def _find_line(tensor: Any, place: Recorder) -> tuple[str, int]:
    """Return the line that made a tensor, if it was made while the function was recorded."""
    id = getattr(getattr(tensor, "child", None), "_id_at_location", None)
    return place.find_line(id) if id in place.earlier else place.where


def _save(optimizer: torch.optim.Optimizer) -> tuple[dict[Any, dict[str, Any]], list[dict[str, Any]]]:
    state = {key: dict(value) if isinstance(value, dict) else value for key, value in optimizer.state.items()}
    return state, [copy.copy(group) for group in optimizer.param_groups]


def _restore(optimizer: torch.optim.Optimizer, state: dict[Any, Any], groups: list[dict[str, Any]]) -> None:
    optimizer.state.clear()
    optimizer.state.update(state)
    for group, before in zip(optimizer.param_groups, groups, strict=True):
        group.clear()
        group.update(before)


def _find_made(optimizers: list[torch.optim.Optimizer], place: Location, known: set[Id]) -> Setters:
    made: Setters = {}
    for optimizer in optimizers:
        for parameter, state in optimizer.state.items():
            for name, value in state.items() if isinstance(state, dict) else ():
                pointer: Any = getattr(value, "child", None)
                if getattr(pointer, "_location", None) is place and pointer._id_at_location not in known:
                    made[pointer._id_at_location] = partial(_set_state, optimizer, parameter, name)
    return made


def _set_state(optimizer: torch.optim.Optimizer, parameter: object, name: str, value: Tensor) -> None:
    optimizer.state[parameter][name] = value
