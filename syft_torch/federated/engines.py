"""Engines: how the trainings of a round are run.

Workers of this process train one after the other, or stacked; those on a network at the same time, in threads.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from math import isfinite

import torch

from syft_core.exceptions import GetNotPermittedError, ObjectNotFoundError, SyftError
from syft_core.peer import Id
from syft_core.values import Nested, Tensor
from syft_core.workers.party.turns import yield_turn
from syft_torch.federated import optimizers
from syft_torch.federated.clients import Client, Job
from syft_torch.federated.joint import MOST, train_together
from syft_torch.federated.layout import MAX_COUNT, Layout
from syft_torch.federated.losses import Loss, ModelForms
from syft_torch.federated.memory import uses_small_floats
from syft_torch.federated.strategies import Update, is_finite
from syft_torch.federated.training import Train
from syft_worker.desk.errors import ReleaseDeniedError, ReleasePendingError

_log = logging.getLogger(__name__)
MAX_STACKED_WEIGHTS = 300_000
"""Models with up to this many weights are stacked by default; measured by ``benchmarks/stacking.py``."""
MAX_THREADS = 64


@dataclass(eq=False)
class Assignment:
    """One training of one client."""

    client: Client
    find_weights: Callable[[], Tensor]
    """Returns the weights: they are not kept while the worker trains."""
    seed: int | None
    correction: Tensor | None
    job: Job
    version: int = 0
    """Number of updates of the weights before."""

    @property
    def weights(self) -> Tensor:
        """The weights before the training."""
        return self.find_weights()


ClientOutcome = Update | Exception


@dataclass(frozen=True)
class Acceptance:
    """Which updates are used."""

    layout: Layout
    max_norm: float | None
    has_losses: bool = True
    """Whether workers return the loss of the training; with ``SampleDP`` they do not."""

    def find_fault(self, update: Update) -> str | None:
        """Return why an update is rejected, or None."""
        difference = update.difference
        if type(difference) is not torch.Tensor or tuple(difference.shape) != (self.layout.total,):
            return "its update has another size than the model"
        if difference.layout is not torch.strided or difference.dtype != self.layout.dtype:
            return "its update has another dtype or layout than the model"
        return self._find_wrong_value(update)

    def _find_wrong_value(self, update: Update) -> str | None:
        difference = update.difference
        if not is_finite(difference):
            return "its update has values that are not finite"
        if self.has_losses and not isfinite(update.loss):
            return "its loss is not finite"
        if self.max_norm is not None:
            parameters = difference[: self.layout.parameters]
            if float(torch.linalg.vector_norm(parameters, dtype=torch.float64)) > self.max_norm:
                return f"the norm of its update is larger than {self.max_norm}"
        counts = difference[self.layout.counts]
        if bool((counts != counts.round()).any()) or bool((counts.abs() > MAX_COUNT).any()):
            return f"it counts in its buffers, and not with whole numbers up to {MAX_COUNT}"
        return None

    def explain(self, outcome: ClientOutcome) -> str | None:
        """Return why an outcome is not used, or None."""
        if isinstance(outcome, Update):
            return self.find_fault(outcome)
        return explain(outcome)

    def sort_out(self, found: Iterable[tuple[Id, ClientOutcome]]) -> tuple[list[Update], dict[Id, str]]:
        """Return the usable updates, and why the others are not."""
        updates, left_out = [], {}
        for worker, outcome in found:
            why = self.explain(outcome)
            if why is not None:
                left_out[worker] = why
            elif isinstance(outcome, Update):
                updates.append(outcome)
        return updates, left_out


def explain(error: Exception) -> str:
    """Return the text of an error, which a worker has limited to what the reader may know."""
    if isinstance(error, GetNotPermittedError) and not isinstance(error, ReleaseDeniedError | ReleasePendingError):
        return f'{error}, or let the trainer ask for each result: `options=fl.Options(reason="why")`'
    return str(error) if isinstance(error, SyftError) else f"{type(error).__name__}: {error}"


class Engine:
    """Runs trainings: those of workers on a network in threads, those of this process when a result is wanted."""

    name = "workers"

    def __init__(self) -> None:
        self._here: deque[Assignment] = deque()
        self._done: queue.SimpleQueue[tuple[Assignment, ClientOutcome, int]] = queue.SimpleQueue()
        self._waiting: deque[Assignment] = deque()
        self._elsewhere = 0
        """Number of trainings that run in threads."""
        self._run_number = 0
        """Changes when trainings are cancelled: the results of those that run are ignored."""

    def __len__(self) -> int:
        return len(self._here) + len(self._waiting) + self._elsewhere

    def submit(self, task: Assignment) -> None:
        """Start a training, or queue it."""
        if task.client.is_local:
            self._here.append(task)
        elif self._elsewhere < MAX_THREADS:
            self._elsewhere += 1
            threading.Thread(target=self._run_elsewhere, args=(task, self._run_number), daemon=True).start()
        else:
            self._waiting.append(task)

    def take(self) -> tuple[Assignment, ClientOutcome]:
        """Return a training that has ended, and its outcome."""
        if self._here and (not self._elsewhere or self._done.empty()):
            return self._run_here()
        number = -1
        while number != self._run_number:
            task, outcome, number = self._done.get()
        self._elsewhere -= 1
        if self._waiting:
            self.submit(self._waiting.popleft())
        return task, outcome

    def cancel(self) -> None:
        """Forget all trainings that were submitted."""
        self._here.clear()
        self._waiting.clear()
        self._elsewhere = 0
        self._run_number += 1

    def _run_elsewhere(self, task: Assignment, number: int) -> None:
        self._done.put((task, self._run(task), number))

    def _run_here(self) -> tuple[Assignment, ClientOutcome]:
        task = self._here.popleft()
        return task, self._run(task)

    def _run(self, task: Assignment) -> ClientOutcome:
        try:
            with task.client.open() as client:
                return self._train(task, client)
        except Exception as error:  # noqa: BLE001  # it is reported, and the round continues
            return error.with_traceback(None)

    def _train(self, task: Assignment, client: Client) -> Update:
        return _make_update(task, client.train(task.job, task.find_weights, task.seed, task.correction))


class StackedEngine(Engine):
    """Lets several clients of this process train together; see ``joint.py``."""

    name = "stacked"

    def __init__(self) -> None:
        super().__init__()
        self._ready: deque[tuple[Assignment, ClientOutcome]] = deque()

    def __len__(self) -> int:
        return super().__len__() + len(self._ready)

    def take(self) -> tuple[Assignment, ClientOutcome]:
        """Return a training that has ended; train the next chunk if there is none."""
        return self._ready.popleft() if self._ready else super().take()

    def cancel(self) -> None:
        """Forget all trainings that were submitted."""
        super().cancel()
        self._ready.clear()

    def _run_here(self) -> tuple[Assignment, ClientOutcome]:
        chunk = [self._here.popleft()]
        while self._here and len(chunk) < MOST and _are_alike(self._here[0], chunk[0]):
            chunk.append(self._here.popleft())
        with ExitStack() as stack:
            started = [(task, message) for task in chunk if (message := self._start(task, stack)) is not None]
            errors = train_together([(task.client.location, message) for task, message in started])
            for (task, message), error in zip(started, errors, strict=True):
                self._ready.append((task, self._finish(task, message, error)))
        return self._ready.popleft()

    def _start(self, task: Assignment, stack: ExitStack) -> Train | None:
        """Open a client, and return the message to its worker; None if that fails."""
        try:
            client = stack.enter_context(task.client.open())
            yield_turn()
            return client.make_training(task.job, task.find_weights(), task.seed, task.correction)
        except Exception as error:  # noqa: BLE001  # it is reported, and the round continues
            self._ready.append((task, error.with_traceback(None)))
            return None

    def _finish(self, task: Assignment, message: Train, error: Exception | None) -> ClientOutcome:
        """Fetch the result of a training; start it again if its worker has lost earlier objects."""
        try:
            if isinstance(error, ObjectNotFoundError):
                return self._train(task, task.client)
            if error is not None:
                return error
            return _make_update(task, task.client.fetch_training(task.job, message.result))
        except Exception as failure:  # noqa: BLE001  # the same
            return failure.with_traceback(None)


def _make_update(task: Assignment, trained: tuple[Tensor, float]) -> Update:
    client, settings, (difference, loss) = task.client, task.job.settings, trained
    task.job.departures.add_update(client.id)
    return Update(client.id, difference, client.samples, loss, client.count_steps(settings), settings.lr)


def _are_alike(one: Assignment, other: Assignment) -> bool:
    return one.weights is other.weights and one.job is other.job


def run_on_each(clients: Iterable[Client], function: Callable[[Client], Nested]) -> Iterator[tuple[Client, Nested]]:
    """Yield the result or the error of a function for each client; those on a network run in parallel, in threads."""
    waiting: deque[tuple[Client, list[Nested]]] = deque()
    found: list[tuple[Client, list[Nested]]] = []
    for client in clients:
        if client.is_local:
            yield client, _try(function, client)
        else:
            found.append((client, []))
    waiting.extend(found)

    def work() -> None:
        while waiting:
            with suppress(IndexError):  # Another thread has taken the last one.
                client, outcome = waiting.popleft()
                outcome.append(_try(function, client))

    threads = [threading.Thread(target=work, daemon=True) for _ in found[:MAX_THREADS]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    yield from [(client, outcome[0]) for client, outcome in found]


def _try(function: Callable[[Client], Nested], client: Client) -> Nested:
    try:
        with client.open():
            return function(client)
    except Exception as error:  # noqa: BLE001  # it is reported
        return error.with_traceback(None)


def can_stack(job: Job, wanted: str | None) -> bool:
    """Return whether stacking gives the same results and, unless it was asked for, is likely to be faster."""
    shape = ModelForms(job.train.all[0], len(job.fixed), job.parts)
    losses = [Loss(program, job.parts) for program in job.train.all]
    private = "each worker draws its own batches" if job.settings.privacy is not None else None
    obstacle = private or find_obstacle(shape, losses) or optimizers.find_obstacle(job.settings.optimizer)
    if wanted == "stacked" and obstacle is not None:
        _log.warning("cannot stack clients: %s; each trains alone", obstacle)
    return obstacle is None and (wanted == "stacked" or not _is_slow(job, shape.layout.parameters))


def find_obstacle(shape: ModelForms, losses: Sequence[Loss]) -> str | None:
    """Return why the models of several clients cannot be trained in one loop with the same results, or None."""
    if len(shape.forms) > len(shape.parameters):
        return "the model has running statistics, for instance batch norm"
    if any(loss.is_random for loss in losses):
        return "the model or the loss draws random numbers, for instance dropout"
    if any(loss.differentiates for loss in losses):
        return "the model or the loss computes gradients itself"
    if any(uses_small_floats(loss) for loss in losses):
        return "it computes with less than 32 bits, and its rounding would differ"
    return None


def _is_slow(job: Job, weights: int) -> bool:
    if weights > MAX_STACKED_WEIGHTS:
        return True
    names = [step.op for program in job.train.all for step in program.routines[0].steps if step.framework]
    return any(word in name for name in names for word in _SLOW_STACKED)


_SLOW_STACKED = ("conv", "lstm", "gru", "rnn")
"""Operations that are slower for several models at once than one after the other."""
