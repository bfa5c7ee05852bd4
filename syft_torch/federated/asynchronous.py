"""Asynchronous rounds (FedBuff): workers train all the time, and a number of updates make a round."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from random import Random
from typing import TYPE_CHECKING

from syft_core.peer import Id
from syft_core.values import Nested, Tensor
from syft_torch.federated.clients import Client, Clients
from syft_torch.federated.engines import Acceptance, Engine
from syft_torch.federated.errors import FederatedError
from syft_torch.federated.options import Options
from syft_torch.federated.rounds import Collected, MakeTask, Rounds
from syft_torch.federated.strategies import Strategy, Update

if TYPE_CHECKING:
    from syft_torch.federated.aggregation import SecureAggregation


class AsynchronousRounds(Rounds):
    """Keeps the wanted number of trainings running; a round ends when there are enough updates."""

    def __init__(self, options: Options, clients: Clients, buffer: int) -> None:
        super().__init__(options, clients)
        self._buffer = buffer
        self._staleness = options.staleness or (lambda age: (1 + age) ** -0.5)
        self._order: tuple[int, list[int]] = -1, []
        """The order in which workers have their turns, and the number of turns before."""

    def collect(
        self, number: int, engine: Engine, acceptance: Acceptance, make_task: MakeTask, read: Callable[[], Tensor]
    ) -> Collected:
        """Return enough updates for a round; restart idle workers with the newest weights; fail after many failures."""
        now = read()
        updates: list[Update] = []
        left_out: dict[Id, str] = {}
        failures = 0
        while len(updates) < self._buffer and failures < max(2 * self._running, self._buffer):
            while len(engine) < self._running:
                engine.submit(make_task(self._find_next(), lambda: now, number, self.starts))
            task, outcome = engine.take()
            if isinstance(outcome, Update):
                outcome.weight = self._weigh(number - task.version)
            good, bad = acceptance.sort_out([(task.client.id, outcome)])
            updates += good
            left_out.update(bad)
            failures += len(bad)
        return Collected(lambda: now, updates, left_out, self._buffer)

    def _weigh(self, age: int) -> float:
        found: Nested = self._staleness(age)
        try:
            weight = nan if isinstance(found, str | bytes) else float(found)
        except OverflowError:
            weight = inf
        except (TypeError, ValueError, RuntimeError):  # RuntimeError: a tensor with several numbers.
            weight = nan
        if not 0 < weight < inf:
            is_number = isinstance(found, float) or type(found) is int
            shown = str(weight) if is_number else f"a value of type {type(found).__name__}"
            raise FederatedError.trainer(f"`staleness({age})` returns {shown}", "return a positive number")
        return weight

    def _find_next(self) -> Client:
        """Return the next worker: all have a turn, in an order that depends on the seed."""
        turn, place = divmod(self.starts, len(self._clients))
        if self._order[0] != turn:
            order = list(range(len(self._clients)))
            Random(f"{self._seed}/turn {turn}").shuffle(order)  # noqa: S311  # not a secret
            self._order = turn, order
        self.starts += 1
        return self._clients.at(self._order[1][place])


def make_rounds(
    options: Options, clients: Clients, strategy: Strategy, aggregation: SecureAggregation | None
) -> Rounds:
    """Return the rounds of a run."""
    if aggregation is not None:
        return aggregation.make_rounds(options, clients, strategy)
    return Rounds(options, clients) if options.buffer is None else AsynchronousRounds(options, clients, options.buffer)
