"""Keep the state of torch's optimizers on the worker of its parameter.

An optimizer's step runs as commands on the worker of its parameters, and creates its state there. When a model moves,
existing state is in the wrong place. It is moved before the next step, and before ``state_dict()``, not with the model:
in federated training, a model moves often between steps.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from weakref import WeakKeyDictionary, WeakSet

import torch

from syft_core.hook.rules import map_leaves
from syft_core.values import Function, Nested, Tensor
from syft_mpc.checking import PrecisionWarning
from syft_mpc.fixed_precision import FixedPrecisionTensor
from syft_torch.numeric import NumericWrapper
from syft_torch.parameter import Moves, location_of

NUMBERS = frozenset({"step", "eta", "mu", "mu_product"})
"""State that torch's optimizers read as numbers; it stays local."""


def collocate(optimizer: torch.optim.Optimizer) -> None:
    """Move the state of each parameter to where the parameter is."""
    for parameter, state in optimizer.state.items():
        if isinstance(parameter, torch.Tensor):
            state.update({name: _move_to(parameter, value) for name, value in state.items() if name not in NUMBERS})


def _move_to(parameter: torch.nn.Parameter, value: object) -> Nested:
    """Return optimizer state with every tensor moved to where the parameter is."""
    where = location_of(parameter)

    def move(leaf: Tensor) -> Nested:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        here = location_of(leaf)
        if here == where:
            return leaf
        if here is None:
            is_like_parameter = leaf.dim() > 0 or parameter.dim() == 0  # Not a number, which is sent with each command.
            return leaf.send(where) if is_like_parameter else leaf
        return leaf.get() if where is None else leaf.move(where)

    return map_leaves(move, value)


def warn_of_small_squares(optimizer: torch.optim.Optimizer) -> None:
    """Warn if an optimizer divides encoded parameters' gradients by averages of their squares, which may vanish.

    The optimizers that do so have ``eps``, a number that keeps the divisor from 0.
    """
    for group in optimizer.param_groups:
        layers = [getattr(p, "child", None) for p in group["params"] if isinstance(p, NumericWrapper)]
        scales = [layer.scale for layer in layers if isinstance(layer, FixedPrecisionTensor)]
        if not scales or "eps" not in group or isinstance(optimizer, torch.optim.Adamax):  # It needs no squares.
            continue
        kept = group["betas"][1] if "betas" in group else group.get("alpha", group.get("rho", 0))
        smallest = math.sqrt(_ROUNDED / (min(scales) * (1 - kept)))
        text = (
            f"{type(optimizer).__name__} divides by averages of squared gradients, and at this precision the squares "
            f"of gradients smaller than {smallest:.1g} are mostly rounding errors: parameters move by wrong amounts, "
            "or not at all; unless you do it already, multiply the loss by a constant, e.g. `(loss * 256).backward()`; "
            "`sy.checking()` shows which results are too small"
        )
        warnings.warn(text, PrecisionWarning, stacklevel=4)  # Where the program calls the step, behind torch's wrapper.
        return


_ROUNDED = 10
"""How many units a square must have, so that rounding changes it by less than a tenth."""


class OptimizerState:
    """Moves the state of all optimizers while torch is hooked; does nothing until a module has moved."""

    def __init__(self) -> None:
        self._followed: WeakKeyDictionary[torch.optim.Optimizer, int] = WeakKeyDictionary()
        """The value of ``Moves.count`` when the state of an optimizer was last moved."""
        self._watched: WeakKeyDictionary[torch.optim.Optimizer, list[torch.utils.hooks.RemovableHandle]] = (
            WeakKeyDictionary()
        )
        """The hooks on optimizers that have had remote parameters."""
        self._warned: WeakSet[torch.optim.Optimizer] = WeakSet()
        """The optimizers whose precision was looked at."""

    def before_step(self, optimizer: torch.optim.Optimizer, _args: Nested, _kwargs: Nested) -> None:
        """Collocate an optimizer whose parameters may have moved since its last step."""
        if optimizer not in self._warned:
            self._warned.add(optimizer)
            warn_of_small_squares(optimizer)
        if Moves.count:
            self._follow(optimizer)

    def stop(self) -> None:
        """Remove the hooks from all optimizers."""
        for handles in self._watched.values():
            for handle in handles:
                handle.remove()

    def _follow(self, optimizer: torch.optim.Optimizer) -> None:
        if not optimizer.state and optimizer in self._watched:  # There is nothing to move.
            return
        if self._followed.get(optimizer) == Moves.count:
            return
        has_hooks = hasattr(optimizer, "_optimizer_state_dict_pre_hooks")  # unless it skips torch's constructor
        is_new = has_hooks and optimizer not in self._watched
        if is_new and any(location_of(p) is not None for p in _parameters(optimizer)):
            self._watched[optimizer] = [
                optimizer.register_state_dict_pre_hook(self._follow),
                optimizer.register_load_state_dict_post_hook(self._forget),
            ]
        collocate(optimizer)
        self._followed[optimizer] = Moves.count

    def _forget(self, optimizer: torch.optim.Optimizer) -> None:
        self._followed.pop(optimizer, None)


def _parameters(optimizer: torch.optim.Optimizer) -> Iterator[torch.nn.Parameter]:
    return (parameter for group in optimizer.param_groups for parameter in group["params"])


ADDED_TO_OPTIMIZERS: dict[str, Function] = {"collocate": collocate}
"""The names that a hook adds to ``torch.optim.Optimizer``."""
