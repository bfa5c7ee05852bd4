"""Optimizers by name: a function of parameters becomes a name and numbers, from which a worker makes the optimizer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from inspect import signature
from math import isfinite

import torch
from torch import nn, optim

from syft_core.values import Kwargs, Nested
from syft_torch.federated.errors import FederatedError

OPTIMIZERS: dict[str, type[optim.Optimizer]] = {
    kind.__name__: kind
    for kind in (
        optim.SGD, optim.Adam, optim.AdamW, optim.Adagrad, optim.Adadelta, optim.Adamax, optim.ASGD, optim.NAdam,
        optim.RAdam, optim.RMSprop, optim.Rprop, optim.LBFGS,
        *([optim.Adafactor] if hasattr(optim, "Adafactor") else []),
    )
}  # fmt: skip
"""The optimizers that workers have."""
_OF_WHOLE = frozenset({"Adafactor", "LBFGS"})
"""Optimizers that do not treat each number of a parameter separately: models of several workers cannot be stacked."""
SEARCHING = "LBFGS"
"""The optimizer that computes the loss several times in a step."""
_MOST_SEARCHED = 100
"""The largest number of iterations of its step, and of earlier steps that it remembers."""
_IGNORED = frozenset({"params", "foreach", "fused", "capturable", "differentiable"})
"""Options that choose a kernel; a worker chooses its own."""
_OF_SCHEDULERS = frozenset({"initial_lr", "max_lr", "min_lr", "base_momentum", "max_momentum", "swa_lr"})
"""Numbers that schedulers keep in the groups."""

Groups = tuple[tuple[Kwargs, tuple[int, ...]], ...]
"""The numbers of each group, and the places of its parameters."""


def describe(make: Callable[[Nested], optim.Optimizer], model: nn.Module) -> tuple[str, Groups]:
    """Return the name and the numbers of the optimizer that a function makes for the parameters of a model."""
    return describe_made(make_here(make, model), model)


def make_here(make: Callable[[Nested], optim.Optimizer], model: nn.Module) -> optim.Optimizer:
    """Return the optimizer that a function makes for the parameters of a model."""
    made: Nested = make(_find_parameters(model)) if callable(make) else make
    if not (callable(make) and isinstance(made, optim.Optimizer)):
        raise FederatedError.trainer(
            f"the optimizer is a {type(made).__name__}", "pass a function, e.g. `lambda p: optim.SGD(p, lr=0.1)`"
        )
    return made


def describe_made(made: optim.Optimizer, model: nn.Module) -> tuple[str, Groups]:
    """Return the name and the numbers of an optimizer of the parameters of a model."""
    name = type(made).__name__
    if OPTIMIZERS.get(name) is not type(made):
        raise FederatedError.trainer(f"workers do not have the optimizer {name}", f"use one of {', '.join(OPTIMIZERS)}")
    places = {id(parameter): place for place, parameter in enumerate(_find_parameters(model))}
    groups = []
    for group in made.param_groups:
        found = tuple([places[id(p)] for p in group["params"] if id(p) in places])
        if len(found) < len(group["params"]):
            raise FederatedError.trainer("the optimizer has parameters that the model does not have", "pass only those")
        groups.append((_find_numbers(group), found))
    return name, tuple(groups)


def _find_parameters(model: nn.Module) -> list[nn.Parameter]:
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def _find_numbers(group: Kwargs) -> Kwargs:
    return {name: _to_number(name, value) for name, value in group.items() if name not in _IGNORED | _OF_SCHEDULERS}


def _to_number(name: str, value: Nested) -> Nested:
    if isinstance(value, torch.Tensor):
        value = value.item()
    if not is_number(value):
        raise FederatedError.trainer(f"the option {name!r} of the optimizer is not a number", "pass a number")
    return value


def is_number(value: object) -> bool:
    """Return whether an option is a finite number, a flag, None, a pair of them, or the name of a line search."""
    if isinstance(value, tuple | list):
        return len(value) == 2 and all(part is None or is_finite(part) for part in value)
    return value is None or (type(value) is str and value == "strong_wolfe") or type(value) is bool or is_finite(value)


def is_finite(value: object) -> bool:
    """Return whether a value is a number with which torch computes: a finite one, and an integer of 64 bits."""
    return (type(value) is int and -(1 << 63) <= value < 1 << 63) or (type(value) is float and isfinite(value))


def find_obstacle(name: str) -> str | None:
    """Return why the models of several clients cannot be trained in one loop with this optimizer, or None."""
    return f"{name} treats a parameter as a whole" if name in _OF_WHOLE else None


def count_states(name: str, groups: Groups) -> int:
    """Return how many tensors an optimizer keeps for each parameter at most."""
    return 3 if name != SEARCHING else 8 + 2 * sum(numbers["history_size"] for numbers, _ in groups)


def _require_small(numbers: Kwargs) -> None:
    """Raise if a step could take too long: others wait until it ends."""
    for name in ("max_iter", "max_eval", "history_size"):
        most = _MOST_SEARCHED * (2 if name == "max_eval" else 1)
        if not (type(numbers.get(name)) is int and 0 < numbers[name] <= most):
            raise FederatedError.settings("optimizer", f"needs {name!r} from 1 to {most}")


def require_valid(name: str, groups: Groups) -> None:
    """Raise unless the optimizer and all of its options are in the table, and their values are valid."""
    kind = OPTIMIZERS.get(name)
    if kind is None:
        raise FederatedError.settings("optimizer", f"is {name!r}, which is not in the table of optimizers")
    known, taken = _find_options(name), signature(kind).parameters
    for numbers, _ in groups:
        if name == SEARCHING:
            _require_small(numbers)
        unknown = [option for option in numbers if option not in known or option in _IGNORED]
        if unknown:
            raise FederatedError.settings("optimizer", f"has the unknown option {unknown[0]!r} of {name}")
        try:  # torch checks the options of an optimizer, and not those of its groups.
            kind([nn.Parameter(torch.zeros(()))], **{option: numbers[option] for option in numbers if option in taken})
        except (TypeError, ValueError) as error:
            raise FederatedError.settings("optimizer", f"is not a valid {name} ({error})") from None


def make(name: str, groups: Groups, parameters: Sequence[torch.Tensor]) -> optim.Optimizer:
    """Make an optimizer for parameters, of a name and options that are valid."""
    kind = OPTIMIZERS[name]
    options = {"foreach": False} if "foreach" in _find_options(name) else {}
    return kind(
        [{**numbers, "params": [parameters[p] for p in places]} for numbers, places in groups],
        **_start(kind, groups),
        **options,
    )


@cache
def _find_options(name: str) -> frozenset[str]:
    start = {"lr": 0.1} if name == "SGD" else {}
    return frozenset(OPTIMIZERS[name]([nn.Parameter(torch.zeros(()))], **start).defaults)


def _start(kind: type[optim.Optimizer], groups: Groups) -> Kwargs:
    """Return a default learning rate, which some versions of torch require although every group has its own."""
    return {"lr": groups[0][0]["lr"]} if kind is optim.SGD and groups and "lr" in groups[0][0] else {}
