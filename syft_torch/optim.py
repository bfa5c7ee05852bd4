"""Keep the state of torch's optimizers on the worker of its parameter.

An optimizer's step runs as commands on the worker of its parameters, and creates its state there. When a model moves,
existing state is in the wrong place. It is moved before the next step, and before ``state_dict()``, not with the model:
in federated training, a model moves often between steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from weakref import WeakKeyDictionary, WeakSet

import torch

from syft_core.features import Later
from syft_core.hook.rules import map_leaves
from syft_core.values import Function, Nested, Tensor
from syft_torch.numeric import NumericWrapper
from syft_torch.parameter import Moves, location_of

NUMBERS = frozenset({"step", "eta", "mu", "mu_product"})
"""State that torch's optimizers read as numbers; it stays local."""
_WARN_OF_SMALL_SQUARES = Later("syft_mpc.torch.squares:warn_of_small_squares")


def collocate(optimizer: torch.optim.Optimizer) -> None:
    """Move the state of each parameter to where the parameter is."""
    for parameter, state in optimizer.state.items():
        if isinstance(parameter, torch.Tensor):
            state.update({name: _move_to(parameter, value) for name, value in state.items() if name not in NUMBERS})


def _move_to(parameter: torch.nn.Parameter, value: object) -> Nested:
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
        """The optimizers whose precision was checked."""

    def before_step(self, optimizer: torch.optim.Optimizer, _args: Nested, _kwargs: Nested) -> None:
        """Collocate an optimizer whose parameters may have moved since its last step."""
        if optimizer not in self._warned:
            self._warned.add(optimizer)
            if any(isinstance(parameter, NumericWrapper) for parameter in _parameters(optimizer)):
                _WARN_OF_SMALL_SQUARES(optimizer)
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
