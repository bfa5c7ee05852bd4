"""The optimizer of the workers, round by round: a function that makes it, and a scheduler of its learning rate."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from math import isnan

from torch import nn, optim

from syft_core.values import Function, Nested
from syft_torch.federated import optimizers
from syft_torch.federated.errors import FederatedError


class RoundOptimizer:
    """Describes the optimizer for each round.

    Without a scheduler, the optimizer is made anew for each round, so that the function may read other numbers then.
    With one, it is made once, and never makes a step here: the scheduler changes its numbers after each round. Its
    state follows from the losses of the rounds, so a run that continues repeats them instead of loading a state.
    """

    def __init__(self, make: Callable[[Nested], optim.Optimizer], scheduler: Function | None, model: nn.Module) -> None:
        self._make, self._make_scheduler, self._model = make, scheduler, model
        self._optimizer: optim.Optimizer | None = None
        self._scheduler: Nested = None
        self.begin(())

    def begin(self, losses: Sequence[float]) -> None:
        """Start again, after rounds with these losses."""
        if self._make_scheduler is None:
            return
        self._optimizer = optimizers.make_here(self._make, self._model)
        self._scheduler = self._make_scheduler(self._optimizer) if callable(self._make_scheduler) else None
        if getattr(self._scheduler, "optimizer", None) is not self._optimizer or not hasattr(self._scheduler, "step"):
            raise FederatedError.trainer(
                f"the scheduler is a {type(self._scheduler or self._make_scheduler).__name__}",
                "pass a function of the optimizer, e.g. `lambda o: optim.lr_scheduler.StepLR(o, 10)`",
            )
        for loss in losses:
            self.step(loss)

    def describe(self) -> tuple[str, optimizers.Groups]:
        """Return the name and the numbers of the optimizer for the next round."""
        if self._optimizer is None:
            return optimizers.describe(self._make, self._model)
        return optimizers.describe_made(self._optimizer, self._model)

    def step(self, loss: float) -> None:
        """End a round with this loss."""
        if self._scheduler is None:
            return
        takes_loss = "metrics" in inspect.signature(self._scheduler.step).parameters
        if takes_loss and isnan(loss):
            advice = "use one that counts rounds, e.g. `optim.lr_scheduler.StepLR`"
            raise FederatedError.privacy("the scheduler reads the loss, which workers do not return", advice)
        with warnings.catch_warnings():  # The optimizer makes its steps on the workers.
            warnings.filterwarnings("ignore", r"Detected call of `lr_scheduler\.step\(\)` before", UserWarning)
            self._scheduler.step(*[loss] * takes_loss)
