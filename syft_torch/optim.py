"""Optimizers on remote parameters: torch's own, with state that is where its parameter is.

An optimizer's step runs as commands where its parameters are, and makes its state there. When a model travels, state
that was made before is in the wrong place. It follows before the next step, and before a state dict is taken: a model
that goes to and fro between steps, as in federated training, does not drag its state along for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from weakref import WeakKeyDictionary

import torch

from syft_core.hook.rules import map_leaves
from syft_core.values import Function, Nested, Tensor
from syft_torch.parameter import Moves, location_of

NUMBERS = frozenset({"step", "eta", "mu", "mu_product"})
"""State that torch's optimizers read as numbers: it stays here, wherever the parameter is."""


def collocate(optimizer: torch.optim.Optimizer) -> None:
    """Bring the state of each parameter to where the parameter is; leave what is there already."""
    for parameter, state in optimizer.state.items():
        if isinstance(parameter, torch.Tensor):
            state.update({name: _beside(parameter, value) for name, value in state.items() if name not in NUMBERS})


def _beside(parameter: torch.nn.Parameter, value: object) -> Nested:
    """Return what an optimizer keeps for a parameter, every tensor of it where the parameter is."""
    where = location_of(parameter)

    def bring(leaf: Tensor) -> Nested:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        here = location_of(leaf)
        if here == where:
            return leaf
        if here is None:
            return leaf.send(where) if _has_form_of(leaf, parameter) else leaf
        return leaf.get() if where is None else leaf.move(where)

    return map_leaves(bring, value)


def _has_form_of(value: Tensor, parameter: torch.nn.Parameter) -> bool:
    """Tell state from a number in a tensor, which goes along with a command as it is."""
    return bool(value.dim() > 0 or parameter.dim() == 0)


class OptimizerState:
    """Watches over all optimizers while torch is hooked, at no cost as long as no module has travelled."""

    def __init__(self) -> None:
        self._followed: WeakKeyDictionary[torch.optim.Optimizer, int] = WeakKeyDictionary()
        """After how many moves the state of an optimizer was last brought to its parameters."""
        self._watched: WeakKeyDictionary[torch.optim.Optimizer, list[torch.utils.hooks.RemovableHandle]] = (
            WeakKeyDictionary()
        )
        """The hooks on optimizers that have had remote parameters."""

    def before_step(self, optimizer: torch.optim.Optimizer, _args: Nested, _kwargs: Nested) -> None:
        """Collocate an optimizer whose parameters may have travelled since its last step."""
        if Moves.count:
            self._follow(optimizer)

    def stop(self) -> None:
        """Leave every optimizer as torch made it."""
        for handles in self._watched.values():
            for handle in handles:
                handle.remove()

    def _follow(self, optimizer: torch.optim.Optimizer) -> None:
        if self._followed.get(optimizer) == Moves.count:
            return
        if optimizer not in self._watched and any(location_of(p) is not None for p in _parameters(optimizer)):
            self._watched[optimizer] = [
                optimizer.register_state_dict_pre_hook(self._follow),
                optimizer.register_load_state_dict_post_hook(self._forget),
            ]  # A state dict, taken or loaded, is an occasion too.
        collocate(optimizer)
        self._followed[optimizer] = Moves.count

    def _forget(self, optimizer: torch.optim.Optimizer) -> None:
        self._followed.pop(optimizer, None)


def _parameters(optimizer: torch.optim.Optimizer) -> Iterator[torch.nn.Parameter]:
    return (parameter for group in optimizer.param_groups for parameter in group["params"])


ADDED_TO_OPTIMIZERS: dict[str, Function] = {"collocate": collocate}
"""What a hook sets on ``torch.optim.Optimizer``."""
