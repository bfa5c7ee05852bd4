"""Clients of a run: a worker and its data, as the trainer uses them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from syft_core.exceptions import ConnectionLostError, GetNotPermittedError, ObjectNotFoundError, SessionLostError
from syft_core.hook.forms import Form
from syft_core.hook.hook import current_worker
from syft_core.location import Location
from syft_core.messages import FetchAll, Store
from syft_core.peer import Id
from syft_core.plans.program import Program
from syft_core.pointers.object_pointer import ObjectPointer, new_id
from syft_core.pointers.pointer_tensor import PointerTensor, pointer_at
from syft_core.pointers.travel import send_copy
from syft_core.tensors.private import remove_restriction
from syft_core.values import Args, Nested, Tensor
from syft_core.workers.party.base import BaseWorker
from syft_core.workers.party.virtual import VirtualWorker
from syft_torch.federated.dataset import BaseDataset, FederatedDataset
from syft_torch.federated.departures import Departures
from syft_torch.federated.errors import FederatedError
from syft_torch.federated.loops import Settings
from syft_torch.federated.losses import Programs, Recorded
from syft_torch.federated.population import Population
from syft_torch.federated.private_steps.accounting import PrivateStep
from syft_torch.federated.sums import take_released
from syft_torch.federated.training import Evaluate, OnData, Train
from syft_worker.desk.handle import RequestHandle


@dataclass(eq=False)
class Job:
    """The parts of a run that are the same for every client: recorded functions, and tensors that do not change."""

    train: Programs
    fixed: list[Tensor]
    settings: Settings
    parts: int
    reason: str = ""
    """Why owners should release updates that may not leave; "" means not to ask."""
    patience: float | None = 600.0
    """Seconds to wait for their decision."""
    departures: Departures = field(default_factory=Departures)
    """Counts the results that have left the workers, including those for which a round no longer waits."""


@dataclass(eq=False)
class Measurement:
    """A recorded evaluation."""

    recorded: Recorded
    settings: Settings
    parts: int


class Client:
    """A worker that has data."""

    def __init__(self, location: Location, datasets: Sequence[BaseDataset]) -> None:
        self.location, self.datasets = location, list(datasets)
        self.id: Id = location.id
        self._sent: dict[int, tuple[Programs, dict[int, ObjectPointer], list[PointerTensor]]] = {}
        """The programs and fixed tensors on the worker, for each loss, by the identity of the stored objects."""
        self.samples = 0
        self.forms: list[list[Form]] = []

    @property
    def is_local(self) -> bool:
        """Whether the worker is in this process."""
        return isinstance(self.location.face, BaseWorker)

    @property
    def pointers(self) -> tuple[PointerTensor, ...]:
        """Pointers to the parts of all datasets."""
        return tuple([part.child for dataset in self.datasets for part in dataset.parts])

    def describe(self) -> list[list[Form]]:
        """Ask for the forms of the data, those of each dataset in a list, and count the samples."""
        parts = len(self.datasets[0].parts)
        found: Nested = self.location.describe([pointer._id_at_location for pointer in self.pointers])
        self.forms = [found[start : start + parts] for start in range(0, len(found), parts)]
        self.samples = sum(int(known[-1].shape[0]) if known[-1].shape else 0 for known in self.forms)
        return self.forms

    @contextlib.contextmanager
    def open(self) -> Iterator[Client]:
        """Return a context in which the client can be used."""
        yield self

    def count_steps(self, settings: Settings) -> int:
        """Return how many steps a training makes."""
        return settings.count_steps(self.samples)

    # --- training

    def train(
        self, job: Job, weights: Callable[[], Tensor], seed: int | None, correction: Tensor | None
    ) -> tuple[Tensor, float]:
        """Train on the worker, and fetch the difference and the loss."""
        id = new_id()
        make = lambda: self.make_training(job, weights(), seed, correction, id)  # noqa: E731  # after a failure, too
        difference, loss = self._run(make, lambda: self._fetch((id, id + 1), job.reason, job.patience))
        return difference, float(loss)

    def keep_training(
        self, job: Job, weights: Callable[[], Tensor], seed: int | None, is_shared: bool = True
    ) -> tuple[int, ...]:
        """Train on the worker, which keeps the results; return their ids.

        All workers get the same programs, also those for lengths of batches that they do not have: a sum is over equal
        tasks.
        """
        id = new_id()
        make = lambda: self.make_training(job, weights(), seed, None, id, is_shared)  # noqa: E731  # the same
        self._run(make, lambda: self.location.describe([id, id + 1]))
        if job.settings.privacy is None:
            return id, id + 1
        self.location.drop(id + 1)  # There is no loss: it would need noise of its own.
        return (id,)

    def fetch_training(self, job: Job, id: int) -> tuple[Tensor, float]:
        """Fetch the difference and the loss of a training that has ended, by the id of its result."""
        difference, loss = self._fetch((id, id + 1), job.reason, job.patience)
        return difference, float(loss)

    def train_there(self, job: Job, weights: Tensor, seed: int | None) -> Tensor:
        """Train on the worker without waiting; return a pointer to the difference, which stays there."""
        id = new_id()
        self.location.tell(self.make_training(job, weights, seed, None, id))
        self.location.drop(id + 1)
        framework = self.location.client.attributes_of("torch")
        return framework.wrapper(pointer_at(self.location, id, framework, self.location.client))

    def make_training(
        self,
        job: Job,
        weights: Tensor,
        seed: int | None,
        correction: Tensor | None,
        id: int | None = None,
        is_shared: bool = False,
    ) -> Train:
        """Return the message that trains on the worker, after sending what it refers to."""
        plans, fixed = self._send(job.train, job.fixed, job.settings, is_shared)
        result = new_id() if id is None else id
        if (privacy := job.settings.privacy) is not None:
            draws = privacy.plan(self.samples, job.settings.epochs, job.settings.batch_size)
            job.departures.add_steps(self.id, PrivateStep(draws.rate, privacy.multiplier), draws.steps)
        return Train(plans, weights, fixed, self.pointers, job.parts, job.settings.write(), result, seed, correction)

    def evaluate(self, measurement: Measurement, weights: Tensor, reason: str, patience: float | None) -> Tensor:
        """Measure on the worker, and fetch the sums."""
        id = new_id()
        make = lambda: self._make_evaluation(measurement, weights, id)  # noqa: E731  # after a failure, too
        (sums,) = self._run(make, lambda: self._fetch((id,), reason, patience))
        return sums

    def keep_evaluation(self, measurement: Measurement, weights: Tensor, is_shared: bool = True) -> tuple[int, ...]:
        """Measure on the worker, which keeps the sums, like ``keep_training``."""
        id = new_id()
        make = lambda: self._make_evaluation(measurement, weights, id, is_shared)  # noqa: E731  # the same
        self._run(make, lambda: self.location.describe([id]))
        return (id,)

    def _make_evaluation(self, measurement: Measurement, weights: Tensor, id: int, is_shared: bool = False) -> Evaluate:
        recorded, settings = measurement.recorded, measurement.settings
        plans, fixed = self._send(recorded.programs, recorded.fixed, settings, is_shared)
        return Evaluate(plans, weights, fixed, self.pointers, measurement.parts, settings.write(), id)

    def _run(self, make: Callable[[], OnData], finish: Callable[[], list[Nested]]) -> list[Nested]:
        """Send a message and return what ``finish`` returns; try again if the worker has lost earlier objects."""
        try:
            self.location.tell(make())
            return finish()
        except (ConnectionLostError, ObjectNotFoundError) as error:
            self._sent.clear()
            if not self._has_forgotten(error):
                raise
        for dataset in self.datasets:
            dataset.find_again()
        self.describe()  # It may have other samples than before.
        self.location.tell(make())
        return finish()

    def _has_forgotten(self, error: Exception) -> bool:
        is_lost = isinstance(error, SessionLostError) and error.worker == self.location.id
        return is_lost or isinstance(error, ObjectNotFoundError)

    def _fetch(self, ids: tuple[int, ...], reason: str, patience: float | None) -> list[Nested]:
        try:
            return [remove_restriction(value) for value in self._fetch_released(ids, reason, patience)]
        except BaseException:
            for id in ids:
                self.location.drop(id)
            raise

    def _fetch_released(self, ids: tuple[int, ...], reason: str, patience: float | None) -> list[Nested]:
        """Fetch results; if they may not leave, ask the owner, if that is wanted, and wait for the decision."""
        try:
            found: list[Nested] = self.location.ask(FetchAll(ids, reason=reason))
        except GetNotPermittedError:
            if not reason:
                raise
        else:
            return found
        request = RequestHandle.ask(self.location, ids, None, reason)
        released = take_released(request, patience, reason, "options=fl.Options(patience=3600)")
        return released if isinstance(released, list) else [released]

    def _send(
        self, programs: Programs, fixed: Sequence[Tensor], settings: Settings, is_shared: bool = False
    ) -> tuple[tuple[Id, ...], Args]:
        """Send the parts of a job that the worker does not have; return the ids of its plans, and pointers."""
        owner = cast("BaseWorker", self.location.client)
        private = settings.privacy is not None  # One program serves all batches, whose lengths are random.
        if private or is_shared:
            needed = programs.all[:1] if private else programs.known
        else:
            needed = programs.find(settings.divide(self.samples).lengths)
        known = self._sent.get(id(programs))
        if known is None:
            tensors = [send_copy(tensor.detach(), owner, self.location) for tensor in fixed]
            known = self._sent[id(programs)] = programs, {}, tensors
        _, plans, tensors = known
        for program in needed:
            if id(program) not in plans:
                plans[id(program)] = self._send_program(program, owner)
        return tuple([plans[id(program)]._id_at_location for program in needed]), tuple(tensors)

    def _send_program(self, program: Program, owner: BaseWorker) -> ObjectPointer:
        plan = ObjectPointer(self.location, new_id(), owner=owner)
        try:
            self.location.tell(Store(plan._id_at_location, program))
        except BaseException:
            plan.gone = "it could not be sent"
            raise
        return plan

    def __repr__(self) -> str:
        return f"<Client {self.id!r}: {self.samples} samples>"


class PopulationClient(Client):
    """A client of a population: a worker that exists within ``open``."""

    def __init__(self, population: Population, number: int, owner: BaseWorker | None = None) -> None:
        self.id = f"client-{number}"
        self._population, self._number, self._owner = population, number, owner
        self.samples = 0
        self.forms = []

    @property
    def is_local(self) -> bool:
        """True: it is in this process."""
        return True

    @contextlib.contextmanager
    def open(self) -> Iterator[Client]:
        """Make the worker, load its data, and drop both at the end."""
        owner = self._owner or current_worker()
        worker = VirtualWorker(owner.hook, id=self.id, auto_add=False)
        self.location = worker.make_location(owner)
        ids = []
        for part in self._population.load(self._number).parts:
            worker.register_obj(part, id := new_id())
            ids.append(id)
        self.datasets = [point_to(self.location, ids)]
        self._sent = {}
        self.describe()
        try:
            yield self
        finally:
            del self.datasets, self.location
            self._sent.clear()
            worker.clear_objects()  # Now: a worker is part of a cycle, and lives until garbage is collected.


def point_to(location: Location, ids: Sequence[Id]) -> BaseDataset:
    """Return the dataset whose parts a worker keeps under these ids."""
    framework = location.client.attributes_of("torch")
    pointers = [pointer_at(location, id, framework, location.client) for id in ids]
    for pointer in pointers:
        pointer.garbage_collect_data = False
    *inputs, targets = map(framework.wrapper, pointers)
    return BaseDataset(inputs[0] if len(inputs) == 1 else tuple(inputs), targets)


class Clients(Mapping[Id, Client]):
    """The clients of a dataset, by id."""

    def __init__(self, data: FederatedDataset) -> None:
        owner = current_worker()
        self._clients = {id: Client(owner.location_of(id), found) for id, found in data.by_worker.items()}
        self._ids = list(self._clients)

    def at(self, place: int) -> Client:
        """Return the client at a place in the order of the dataset."""
        return self[self._ids[place]]

    @property
    def are_local(self) -> bool:
        """Whether all are in this process."""
        return all(client.is_local for client in self.values())

    @contextlib.contextmanager
    def deadline(self, timeout: float | None) -> Iterator[None]:
        """Return a context with another timeout, after which workers on a network count as lost."""
        changed = []
        for client in self.values() if timeout is not None and not self.are_local else ():
            if not client.is_local and hasattr(client.location, "timeout"):
                changed.append((client.location, client.location.timeout))
                client.location.timeout = timeout
        try:
            yield
        finally:
            for location, before in changed:
                location.timeout = before

    def __getitem__(self, id: Id) -> Client:
        return self._clients[id]

    def __iter__(self) -> Iterator[Id]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)


class PopulationClients(Clients):
    """The clients of a population, which are made when they are asked for."""

    def __init__(self, population: Population) -> None:
        self._population = population

    def at(self, place: int) -> Client:
        """Return a new client."""
        return PopulationClient(self._population, place)

    @property
    def are_local(self) -> bool:
        """True: all are in this process."""
        return True

    def __getitem__(self, id: Id) -> Client:
        digits = str(id).removeprefix("client-")
        number = int(digits) if digits.isdecimal() else len(self)
        if number >= len(self) or id != f"client-{number}":
            raise KeyError(id)
        return self.at(number)

    def __iter__(self) -> Iterator[Id]:
        return (f"client-{number}" for number in range(len(self)))

    def __len__(self) -> int:
        return self._population.size


def make_clients(data: FederatedDataset | Population) -> Clients:
    """Return the clients of a dataset or a population."""
    clients = PopulationClients(data) if isinstance(data, Population) else Clients(data)
    if not clients:
        raise FederatedError.trainer("the dataset has no workers", "send data to at least one")
    return clients
