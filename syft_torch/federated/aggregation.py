"""Secure aggregation: results leave workers only within sums of several, which each worker enforces by itself."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import nan
from pathlib import Path

import torch

from syft_core.location import Location
from syft_core.peer import Id
from syft_core.values import Table, Tensor
from syft_sums.client import SumResult, SumStudy
from syft_sums.errors import SumError
from syft_sums.evidence import write_evidence
from syft_sums.studies import release_only_aggregates
from syft_torch.federated.clients import Client, Clients, PopulationClients
from syft_torch.federated.engines import Acceptance, Engine, explain, run_on_each
from syft_torch.federated.errors import FederatedError
from syft_torch.federated.layout import Remade
from syft_torch.federated.options import Options
from syft_torch.federated.rounds import Collected, MakeTask, Rounds, write_reasons
from syft_torch.federated.strategies import Strategy, Update, uses_mean

__all__ = ["SecureAggregation", "release_only_aggregates"]

_log = logging.getLogger(__name__)

Fail = Callable[[str], FederatedError]
"""A function of the reason why there is no sum that returns the error."""


class SecureAggregation:
    """Sums results over workers so that only the sum can be read; see docs/federated.md.

    Args:
        study: the name of the study, the same in all programs that belong to it.
        colluding: how many of the workers may be on the client's side without the results of others being revealed.

    """

    def __init__(self, study: str, colluding: int = 1) -> None:
        if not isinstance(study, str) or not study:
            raise FederatedError.trainer(f"the name of the study is {study!r}", "pass a text")
        if type(colluding) is not int or colluding < 0:
            raise FederatedError.trainer(f"colluding is {colluding!r}", "pass an integer that is not negative")
        self.study, self.colluding = study, colluding
        self.evidence: list[Table] = []
        """What the workers have signed in each sum, in order."""
        self._studies: list[tuple[dict[Id, Location], SumStudy]] = []

    def open(self, locations: Iterable[Location]) -> SumStudy:
        """Return the study with these workers; ask each for its key when it is opened for the first time."""
        found = {location.id: location for location in locations}
        for known, study in self._studies:
            if known.keys() == found.keys() and all(known[id] is found[id] for id in found):
                return study
        made = SumStudy(self.study, found.values(), self.colluding)
        self._studies.append((found, made))
        return made

    def make_rounds(self, options: Options, clients: Clients, strategy: Strategy) -> Rounds:
        """Return the rounds of a trainer; raise if it needs more of its workers than a sum."""
        _require_summable(options, clients, strategy)
        return SummedRounds(options, clients, self)

    def sum(
        self, clients: Clients, compute: Callable[[Client], Sequence[Id]], fail: Fail, least: int = 0
    ) -> tuple[SumResult, dict[Id, str]]:
        """Let workers compute results that they keep, and sum these; return the sum, and why others are not in it.

        The long phase comes first: a worker that fails in it takes no part in the sum, which costs nothing.
        """
        study = self.open([client.location for client in clients.values()])
        results, lost = {}, {}
        for client, outcome in run_on_each(clients.values(), compute):
            if isinstance(outcome, Exception):
                lost[client.id] = explain(outcome)
            else:
                results[client.id] = outcome
        try:
            least = max(least, study.quorum)
            if len(results) < least:
                raise fail(f"{len(results)} of {least} needed workers computed a result ({write_reasons(lost)})")
            found = self._sum(study, results, fail, least)
        finally:
            for worker, ids in results.items():
                for id in ids:
                    clients[worker].location.drop(id)
        return found, {**found.lost, **lost}

    def sum_up(self, results: Mapping[Id, Tensor]) -> Tensor:
        """Return the sum of flat tensors, one on each worker."""
        pointers = {worker: tensor.child for worker, tensor in results.items()}
        study = self.open([pointer._location for pointer in pointers.values()])
        ids = {worker: (pointer._id_at_location,) for worker, pointer in pointers.items()}
        found = self._sum(study, ids, FederatedError.no_statistic)
        for worker, why in found.lost.items():
            _log.warning("a sum is without worker %r: %s", worker, why)
        return read_vector(found)

    def _sum(self, study: SumStudy, results: Mapping[Id, Sequence[Id]], fail: Fail, least: int = 0) -> SumResult:
        try:
            found = study.sum(study.next_round, results, at_least=least)
        except SumError as error:
            raise fail(str(error)) from error
        members = tuple([worker for worker in results if worker in found.members])
        self.evidence.append(found.evidence)
        return replace(found, members=members)

    def write_evidence(self, path: str | Path) -> None:
        """Write what the workers have signed in each sum to a file."""
        write_evidence(path, self.evidence)

    def restore(self, evidence: Sequence[Table]) -> None:
        """Add what workers have signed in earlier sums of a run that continues."""
        self.evidence[:0] = [each for each in evidence if each not in self.evidence]

    def __repr__(self) -> str:
        return f"SecureAggregation({self.study!r}, colluding={self.colluding})"


def read_vector(found: SumResult) -> Tensor:
    """Return the numbers of a sum, without the number of samples."""
    return torch.from_numpy(found.vector[:-1].copy())


def _require_summable(options: Options, clients: Clients, strategy: Strategy) -> None:
    """Raise if a trainer needs more of its workers than a sum."""
    if isinstance(clients, PopulationClients):
        raise FederatedError.sums("the clients of a population have no lasting keys", "pass a FederatedDataset")
    if not uses_mean(strategy):
        why = f"{strategy!r} needs the update of each worker, and only their sum leaves"
        raise FederatedError.sums(why, "use one that needs the mean alone, e.g. `fl.FedAvg()` or `fl.FedAdam()`")
    if options.max_norm is not None:
        raise FederatedError.sums("`max_norm` rejects single updates", "use `clip`, which the workers apply")
    if options.buffer is not None:
        raise FederatedError.sums("the updates of asynchronous rounds have several ages", "leave out `buffer`")
    if options.count_clients(len(clients)) < len(clients):
        why = "each sample of workers is another list, and two sums over almost the same list differ by one update"
        raise FederatedError.sums(why, "leave out `clients_per_round`")
    if options.engine not in (None, "workers"):
        raise FederatedError.sums("each worker trains by itself", "leave out `engine`")


@dataclass(frozen=True)
class Summed(Collected):
    """The results of a round as one update: the mean over its members."""

    members: tuple[Id, ...] = ()

    @property
    def workers(self) -> list[Id]:
        """The workers whose results are in the sum."""
        return list(self.members)


class SummedRounds(Rounds):
    """Rounds in which all workers train, and only the sum of their updates leaves them."""

    def __init__(self, options: Options, clients: Clients, aggregation: SecureAggregation) -> None:
        super().__init__(options, clients)
        self._aggregation = aggregation
        self._options, self._least = options, options.min_results or 0
        self._attempts = 0
        """How often the current round was tried."""
        aggregation.open([client.location for client in clients.values()])

    def collect(
        self, number: int, engine: Engine, acceptance: Acceptance, make_task: MakeTask, read: Callable[[], Tensor]
    ) -> Collected:
        """Let all workers train, and return the mean of their updates; raise if there is no sum."""
        weights = Remade(read)
        kept = weights()

        # All have the same seed, because it is a part of the task; another one, so that others may be in the sum.
        seed = self._options.derive_seed(number, self._attempts)
        self._attempts += 1

        def train(client: Client) -> tuple[int, ...]:
            task = make_task(client, weights, number)
            return client.keep_training(task.job, task.find_weights, seed)

        fail = partial(FederatedError.no_sum, number)
        found, lost = self._aggregation.sum(self._clients, train, fail, self._least)
        del kept
        self._attempts = 0
        update = self._read(acceptance, found)
        fault = acceptance.find_fault(update)
        if fault is not None:
            raise FederatedError.no_sum(number, f"the sum is not usable: {fault}")
        return Summed(weights, [update], lost, len(self._clients), found.members)

    def _read(self, acceptance: Acceptance, found: SumResult) -> Update:
        layout, means = acceptance.layout, read_vector(found) / found.samples
        loss = float(means[-1]) if acceptance.has_losses else nan
        if not acceptance.has_losses:  # Nor are there statistics and counts: only the parameters have noise.
            means = torch.cat([means, means.new_zeros(layout.total - layout.parameters)])
        difference = means[: layout.total].to(layout.dtype)
        # Counts of batches are added up; the sum has them weighted by samples, so it is exact for equal counts.
        difference[layout.counts] = (means[layout.counts] * len(found.members)).round().to(layout.dtype)
        return Update(self._aggregation.study, difference, int(found.samples), loss)
