"""Rounds: the workers that are asked, and their results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from syft_core.peer import Id
from syft_core.values import Tensor
from syft_torch.federated.clients import Client, Clients
from syft_torch.federated.engines import Acceptance, Assignment, Engine
from syft_torch.federated.errors import FederatedError
from syft_torch.federated.history import Row
from syft_torch.federated.layout import Remade
from syft_torch.federated.options import Options
from syft_torch.federated.strategies import Update


@dataclass(frozen=True)
class Collected:
    """The results of the workers of a round."""

    weights: Callable[[], Tensor]
    """Returns the weights at the beginning of the round."""
    updates: list[Update]
    left_out: dict[Id, str]
    """Why other updates are not used."""
    expected: int
    """Number of updates if no worker failed."""

    @property
    def workers(self) -> list[Id]:
        """The workers whose results are used."""
        return [update.worker for update in self.updates]

    def require(self, number: int, needed: int) -> None:
        """Raise unless there are the results of as many workers as a round needs."""
        if not self.updates or len(self.workers) < needed:
            raise FederatedError.few_results(number, len(self.workers), needed, write_reasons(self.left_out))

    def describe(self, number: int, seconds: float) -> Row:
        """Return the row of the history for the round."""
        samples = sum(update.samples for update in self.updates)
        loss = sum(update.loss * update.samples for update in self.updates) / samples
        return Row(number, loss, self.workers, self.left_out, samples, seconds)


def write_reasons(left_out: Mapping[Id, str]) -> str:
    """Return why workers are missing, for an error."""
    return "; ".join([f"{worker}: {why}" for worker, why in list(left_out.items())[:3]])


class MakeTask(Protocol):
    """Makes the training of a client in a round; ``turn`` distinguishes those of one round."""

    def __call__(self, client: Client, weights: Callable[[], Tensor], number: int, turn: int = 0) -> Assignment:
        """Return the training."""


class Rounds:
    """Rounds that end when all workers that were sampled for them have trained."""

    starts = 0
    """Number of trainings that have been started, if that is a part of the state of a run."""

    def __init__(self, options: Options, clients: Clients) -> None:
        self._seed, self._clients = options.seed, clients
        self._running = options.count_clients(len(clients))

    def collect(
        self, number: int, engine: Engine, acceptance: Acceptance, make_task: MakeTask, read: Callable[[], Tensor]
    ) -> Collected:
        """Let workers train from the weights that are read, and return the usable results."""
        weights = Remade(read)
        chosen = self._sample(number)
        kept = None if type(engine) is Engine and not self._clients.are_local else weights()
        for client in chosen:
            engine.submit(make_task(client, weights, number))
        taken = [engine.take() for _ in chosen]
        outcomes = {task.client.id: outcome for task, outcome in taken}
        found = acceptance.sort_out([(client.id, outcomes[client.id]) for client in chosen])
        del kept
        return Collected(weights, *found, len(chosen))

    def _sample(self, number: int) -> list[Client]:
        """Return the workers of a round, which depend on the seed and the round alone."""
        places: Sequence[int] = range(len(self._clients))
        if self._running < len(places):
            places = Random(f"{self._seed}/{number}").sample(places, self._running)  # noqa: S311  # no secret
        return [self._clients.at(place) for place in places]
