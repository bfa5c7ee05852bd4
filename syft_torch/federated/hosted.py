"""Training on Ray: each actor trains all of its clients in one task, and returns one sum.

In an actor, the agent of the trainer uses the engines that train workers of one process.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

import torch

from syft_core.exceptions import WorkerError
from syft_core.hook.hook import current_worker
from syft_core.peer import Id
from syft_core.values import Kwargs, Nested, Tensor
from syft_core.workers.party.turns import yield_turn
from syft_ray.actor import Actor
from syft_ray.errors import ActorLostError
from syft_ray.host import AgentPlace
from syft_ray.location import RayLocation
from syft_ray.workers import PER_ACTOR, Agents, RayWorkers
from syft_torch.federated.clients import Client, Clients, Job, PopulationClient, point_to
from syft_torch.federated.dataset import FederatedDataset
from syft_torch.federated.engines import Acceptance, Assignment, ClientOutcome, Engine, StackedEngine, can_stack
from syft_torch.federated.errors import FederatedError
from syft_torch.federated.loops import Settings
from syft_torch.federated.losses import ModelForms, Programs
from syft_torch.federated.options import Options
from syft_torch.federated.population import Population
from syft_torch.federated.strategies import Update


class HostedEngine(Engine):
    """Trains clients in the actors of Ray: those whose workers are there, or those of a population.

    With ``sums``, an actor returns the mean of its updates, and no single one leaves it.
    """

    name = "ray"

    def __init__(
        self,
        job: Job,
        acceptance: Acceptance,
        sums: bool,
        stacks: bool,
        actors: Sequence[Actor],
        population: Population | None,
        timeout: float | None,
    ) -> None:
        super().__init__()
        self._actors, self._population, self._sums, self._timeout = list(actors), population, sums, timeout
        settings = {"max_norm": acceptance.max_norm, "sums": sums, "stacks": stacks}
        value = {"train": job.train.known, "fixed": job.fixed, "parts": job.parts, **settings}
        self._agents = Agents(current_worker(), "federated training", value, population)
        self._queued: list[Assignment] = []

    def __len__(self) -> int:
        return super().__len__() + len(self._queued)

    def submit(self, task: Assignment) -> None:
        """Queue a training in an actor; run others as usual."""
        # Waiting for the decision of an owner must not keep the actor busy.
        is_hosted = self._population is not None or find_actor(task.client) is not None
        if is_hosted and not task.job.reason:
            self._queued.append(task)
        else:
            super().submit(task)

    def take(self) -> tuple[Assignment, ClientOutcome]:
        """Return a training that has ended; if there is none, start what is queued."""
        if self._queued and self._done.empty():
            self._start()
        return super().take()

    def cancel(self) -> None:
        """Forget all trainings that were submitted."""
        super().cancel()
        self._queued.clear()

    def _start(self) -> None:
        groups: dict[tuple[int, int], list[Assignment]] = {}
        for task in self._queued:
            groups.setdefault((id(task.weights), id(task.job)), []).append(task)
        self._queued = []
        for tasks in groups.values():
            shared = self._agents.share(tasks[0].weights)
            for actor, part in self._divide(tasks):
                self._elsewhere += len(part)
                given = actor, part, shared, self._run_number
                threading.Thread(target=self._run_group, args=given, daemon=True).start()

    def _divide(self, tasks: list[Assignment]) -> list[tuple[Actor, list[Assignment]]]:
        if self._population is None:
            parts: dict[Actor, list[Assignment]] = {}
            for task in tasks:
                if (actor := find_actor(task.client)) is not None:
                    parts.setdefault(actor, []).append(task)
            return list(parts.items())
        actors = [actor for actor in self._actors if not (actor.is_lost or actor.is_stuck)] or self._actors[:1]
        count = max(min(len(actors), len(tasks) // PER_ACTOR), 1)
        return [(actor, tasks[number::count]) for number, actor in enumerate(actors[:count])]

    def _run_group(self, actor: Actor, tasks: list[Assignment], shared: Nested, number: int) -> None:
        outcomes: dict[int, ClientOutcome] = {}
        try:
            ready = [task for task in tasks if self._settle(task, outcomes)]
            if ready:
                described = ready[0].job.settings.write(), [self._describe(task) for task in ready]
                found = self._agents.run(actor, described, shared, self._timeout)
                outcomes.update(self._read(ready, found))
        except Exception as error:  # noqa: BLE001  # it is reported, and the round continues
            for task in tasks:
                outcomes.setdefault(id(task), error.with_traceback(None))
        for task in tasks:
            self._done.put((task, outcomes[id(task)], number))

    def _settle(self, task: Assignment, outcomes: dict[int, ClientOutcome]) -> bool:
        """Wait until the worker has its data; return whether it has."""
        location = None if self._population is not None else task.client.location
        try:
            if isinstance(location, RayLocation):
                location.settle()
        except ActorLostError:
            raise
        except Exception as error:  # noqa: BLE001  # the same
            outcomes[id(task)] = error.with_traceback(None)
            return False
        return True

    def _describe(self, task: Assignment) -> Nested:
        if self._population is not None:
            return task.client.id, None, task.seed, task.correction
        ids = [[part.child._id_at_location for part in dataset.parts] for dataset in task.client.datasets]
        return task.client.id, ids, task.seed, task.correction

    def _read(self, tasks: list[Assignment], found: Kwargs) -> dict[int, ClientOutcome]:
        outcomes: dict[int, ClientOutcome] = {}
        for place, (task, (why, samples, loss, steps)) in enumerate(zip(tasks, found["rows"], strict=True)):
            if why is not None:
                outcomes[id(task)] = WorkerError(why)
            else:
                task.job.departures.add_update(task.client.id)
                difference = found["mean"] if self._sums else found["differences"][place]
                outcomes[id(task)] = Update(task.client.id, difference, samples, loss, steps, task.job.settings.lr)
        return outcomes


def choose_engine(
    job: Job,
    acceptance: Acceptance,
    options: Options,
    sums: bool,
    clients: Clients,
    data: FederatedDataset | Population,
) -> Engine:
    """Return the engine that runs trainings on these clients."""
    wanted = options.engine
    stacks = wanted != "workers" and can_stack(job, wanted if isinstance(wanted, str) else None)
    population = data if isinstance(data, Population) else None
    found = [] if population is not None else [find_actor(client) for client in clients.values()]
    actors = [actor for actor in dict.fromkeys(found) if actor is not None]
    if isinstance(wanted, RayWorkers):
        if population is None and not set(actors) & set(wanted.actors):
            raise FederatedError.trainer(
                "the data is not on these workers of Ray", "send it to them, e.g. `dataset.federate(workers)`"
            )
        actors = wanted.actors
    if actors and job.settings.privacy is not None:
        raise FederatedError.privacy("what actors of Ray were asked for is not counted here", "use workers")
    if actors:
        sums = sums and options.buffer is None
        return HostedEngine(job, acceptance, sums, stacks, actors, population, options.timeout)
    if wanted is None:
        stacks = stacks and len(clients) > 1 and clients.are_local
    return StackedEngine() if stacks else Engine()


def find_actor(client: Client) -> Actor | None:
    """Return the actor that hosts the worker of a client, if one does."""
    location = client.location
    return location.actor if isinstance(location, RayLocation) else None


class TrainingAgent:
    """Trains clients in an actor, for a trainer in another process."""

    def __init__(self, place: AgentPlace, value: Kwargs, population: Population | None) -> None:
        self._place, self._population = place, population
        job = self._job = Job(Programs(value["train"]), value["fixed"], Settings(), value["parts"])
        self._engine = (StackedEngine if value["stacks"] else Engine)()
        layout = ModelForms(job.train.all[0], len(job.fixed), job.parts).layout
        self._acceptance = Acceptance(layout, value["max_norm"])
        self._sums = value["sums"]
        self._clients: dict[Id, tuple[Nested, Client]] = {}

    def run(self, task: Nested, shared: Tensor) -> Kwargs:
        """Train clients; return what is known of each, and the mean of the updates, or all of them."""
        settings, described = task
        collected = _Sum(shared, self._acceptance.layout.counts) if self._sums else _All(shared, len(described))
        job = replace(self._job, settings=Settings.read(settings))
        rows: list[Nested] = [None] * len(described)
        for place, (id, ids, seed, correction) in enumerate(described):
            try:
                self._engine.submit(Assignment(self._find(id, ids), lambda: shared, seed, correction, job, place))
            except Exception as error:  # noqa: BLE001, PERF203  # it is reported, and the others continue
                rows[place] = self._acceptance.explain(error), 0, 0.0, 0
        while len(self._engine):
            done, outcome = self._engine.take()
            yield_turn()  # A sign of life: the training itself may have been too short for one.
            why = self._acceptance.explain(outcome)
            if isinstance(outcome, Update) and why is None:
                collected.add(done.version, outcome)
                rows[done.version] = None, outcome.samples, outcome.loss, outcome.steps
            else:
                rows[done.version] = why, 0, 0.0, 0
        return {"rows": rows, **collected.finish()}

    def _find(self, id: Id, ids: Nested) -> Client:
        if self._population is not None:
            return PopulationClient(self._population, int(str(id).removeprefix("client-")), self._place.client)
        known = self._clients.get(id)
        if known is None or known[0] != ids:
            location = self._place.workers[id].make_location(self._place.client)
            client = Client(location, [point_to(location, parts) for parts in ids])
            client.describe()
            known = self._clients[id] = ids, client
        return known[1]


class _Sum:
    """The mean of updates, weighted by samples, with the sums of their counts; needs memory for one update."""

    def __init__(self, weights: Tensor, counts: slice = slice(0, 0)) -> None:
        self._dtype, self._total, self._samples = weights.dtype, torch.zeros_like(weights, dtype=torch.float64), 0
        self._where = counts
        self._counts = self._total[self._where].clone()

    def add(self, _place: int, update: Update) -> None:
        self._total.add_(update.difference, alpha=update.samples)
        self._counts.add_(update.difference[self._where])
        self._samples += update.samples

    def finish(self) -> Kwargs:
        mean = self._total / max(self._samples, 1)
        mean[self._where] = self._counts
        return {"mean": mean.to(self._dtype)}


class _All:
    """All updates, for strategies that need each."""

    def __init__(self, weights: Tensor, count: int) -> None:
        self._differences = weights.new_zeros(count, len(weights))

    def add(self, place: int, update: Update) -> None:
        self._differences[place] = update.difference

    def finish(self) -> Kwargs:
        return {"differences": self._differences}
