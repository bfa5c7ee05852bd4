"""FederatedTrainer: train one model on the data of many workers, none of which leaves its worker."""

from __future__ import annotations

import copy
import hashlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Literal

import torch
from torch import nn, optim

from syft_core.hook.forms import Form
from syft_core.location import Location
from syft_core.peer import Id
from syft_core.values import Function, Kwargs, Nested, Tensor
from syft_ray.workers import RayWorkers
from syft_torch.federated import checkpoint as checkpoints
from syft_torch.federated.averages import Average
from syft_torch.federated.clients import Client, Clients, Job, Measurement, PopulationClients, make_clients
from syft_torch.federated.dataset import FederatedDataset, is_remote
from syft_torch.federated.departures import Departures
from syft_torch.federated.engines import (
    Acceptance,
    ClientOutcome,
    Engine,
    StackedEngine,
    Task,
    can_stack,
    explain,
    run_on_each,
)
from syft_torch.federated.errors import FederatedError
from syft_torch.federated.evaluation import (
    Evaluation,
    choose_metrics,
    compute_loss,
    compute_metrics,
    evaluation_mode,
    find_averages,
)
from syft_torch.federated.history import History, Row, write_report
from syft_torch.federated.hosted import HostedEngine, find_actor
from syft_torch.federated.layout import Layout, Remade
from syft_torch.federated.loops import Batches, Settings, is_size
from syft_torch.federated.losses import Recorded, record
from syft_torch.federated.population import Population
from syft_torch.federated.progress import RunLine
from syft_torch.federated.schedules import RoundOptimizer
from syft_torch.federated.stopping import EarlyStopping, Watch
from syft_torch.federated.strategies import (
    FedAvg,
    Strategy,
    Update,
    combine,
    goes_by_parts,
    is_finite,
    merge,
    require_ageless,
    require_updates,
    uses_mean,
)

PART = 1 << 20
"""How many weights are combined at once, if the strategy goes by parts."""


class FederatedTrainer:
    """Trains a model in rounds: sampled workers train it on their data, and a strategy combines what they return.

    The loss is recorded, and each worker runs it in a training loop of its own. Data stays where it is; what leaves a
    worker is the change of the weights and the mean loss, if its owner's rules allow that.

    Args:
        model: the model, here. ``fit`` updates it after each round.
        loss: a function of the model's output and the targets, that returns a mean, or an ``fl.WeightedMean``.
        optimizer: a function of parameters that returns the optimizer of the workers, e.g.
            ``lambda p: optim.SGD(p, lr=0.1)``. Its state is new in each round.
        scheduler: a function of that optimizer which returns a scheduler of its learning rate, e.g.
            ``lambda o: optim.lr_scheduler.StepLR(o, 10)``. It makes a step after each round, with the loss of the round
            if it is ``ReduceLROnPlateau``.
        data: a ``FederatedDataset`` or a ``Population``.
        strategy: how updates are combined.
        epochs: how often a worker goes through its data in a round.
        batch_size: how many samples a batch has; None means all of a worker.
        clients_per_round: how many workers are sampled for each round; None means all.
        min_results: how many updates a round needs; None means half of the workers that were asked.
        engine: "workers", "stacked", or None to choose; or ``sy.RayWorkers``, in whose actors the clients of a
            ``Population`` are made.
        drop_last: whether workers leave out a last batch that is not full, in each epoch. Otherwise, a last batch of
            one sample joins the batch before.
        shuffle: whether workers shuffle their samples in each epoch.
        seed: the seed of samples and orders.
        clip: the largest norm of an update; workers scale larger ones down.
        clip_grad: the largest norm of a gradient.
        max_norm: the norm above which an update is rejected.
        timeout: seconds without a sign of life after which a worker on a network, or an actor of Ray, counts as lost;
            None means those with which it was connected, and any number on Ray.
        buffer: how many updates make a round, if rounds are asynchronous; None means that they are not. Workers then
            train all the time, and get the newest weights.
        staleness: a function of the number of rounds since an update began that returns its weight; by default
            1 / √(1 + age), as in FedBuff.
        reason: why owners should release updates that may not leave. If given, each is asked for, and waited for.
        patience: how many seconds to wait for the decision of an owner.

    """

    def __init__(
        self,
        model: nn.Module,
        loss: Function,
        optimizer: Callable[[Nested], optim.Optimizer],
        data: FederatedDataset | Population,
        strategy: Strategy | None = None,
        epochs: int = 1,
        batch_size: int | None = 32,
        clients_per_round: int | None = None,
        min_results: int | None = None,
        engine: Literal["workers", "stacked"] | RayWorkers | None = None,
        *,
        drop_last: bool = False,
        scheduler: Callable[[optim.Optimizer], Nested] | None = None,
        shuffle: bool = True,
        seed: int = 0,
        clip: float | None = None,
        clip_grad: float | None = None,
        max_norm: float | None = None,
        timeout: float | None = None,
        buffer: int | None = None,
        staleness: Callable[[int], float] | None = None,
        reason: str = "",
        patience: float = 600.0,
    ) -> None:
        self.model, self.loss, self.data = model, loss, data
        self.strategy = FedAvg() if strategy is None else strategy
        self.history = History()
        self._departures, self._watch = Departures(), Watch()
        self._is_free = threading.Lock()
        """Held while the trainer trains."""
        self._starts = 0
        """How many trainings of asynchronous rounds have been started."""
        self._order: tuple[int, list[int]] = -1, []
        """The order in which workers have their turns in asynchronous rounds, and the number of turns before."""
        self._shuffle, self._seed, self._timeout = shuffle, seed, timeout
        self._buffer, self._staleness = buffer, staleness or (lambda age: (1 + age) ** -0.5)
        self._reason, self._patience = reason, patience
        self._require_arguments()
        self._require_options(epochs, batch_size, engine, max_norm)
        self.clients = make_clients(data)
        self.clients_per_round = self._limit(clients_per_round)
        self._min_results = min_results
        self._require_results(min_results)
        if buffer is not None:
            require_ageless(self.strategy)
        self._forms = self._find_forms()
        self._settings: Kwargs = {"epochs": epochs, "batch_size": batch_size, "clip": clip, "clip_grad": clip_grad}
        self._settings |= {"drop_last": drop_last, "proximal": float(self.strategy.proximal)}
        self._max_norm, self._engine_choice = max_norm, engine
        self._evaluation: Evaluation | None = None
        self._prepare(self._record())
        self._schedule = RoundOptimizer(optimizer, scheduler, model)
        self._job = self._make_job()
        Settings.read(self._job.settings)
        require_updates(self.strategy, self.clients_per_round if buffer is None else buffer)
        self._begin_strategy()
        self._engine = self._make_engine(engine)

    def _record(self) -> Recorded:
        lengths = self._find_lengths(self._settings["batch_size"], self._settings["drop_last"])
        return _record_loss(self.model, self.loss, self._forms, lengths)

    def _prepare(self, recorded: Recorded) -> None:
        """Prepare to train what a recorded loss uses of the model."""
        self._recorded, self._layout = recorded, Layout(recorded.trained, recorded.parameters)
        self._names = self._identify()["model"]
        self._acceptance = Acceptance(self._layout, self._max_norm)
        self._measurements: dict[object, tuple[Measurement, list[Average]]] = {}

    def _make_job(self) -> Job:
        name, groups = self._schedule.describe()
        settings = {**self._settings, "optimizer": name, "groups": groups}
        recorded, parts = self._recorded, len(self._forms)
        asking = self._reason, self._patience
        return Job(recorded.programs, recorded.fixed, settings, parts, *asking, self._departures)

    def _begin_strategy(self) -> None:
        settings = self._job.settings
        self.strategy.begin(self._layout.parameters, len(self.clients), settings["optimizer"], settings["groups"][0][0])

    def _refresh(self) -> None:
        """Record again what has changed since the last round: settings, parts of the model, tensors that stay fixed.

        Describe the optimizer again, too: its function may read other numbers, and a scheduler changes them.
        """
        if self._recorded.has_changed():
            before = self._names
            self._prepare(self._record())
            self._schedule.begin(self.history.losses)
            self._job = self._make_job()
            if self._names != before:
                self._begin_strategy_again()
            self._engine.cancel()
            self._engine = self._make_engine(self._engine_choice)
        elif (job := self._make_job()).settings != self._job.settings:
            self._job = job
        if not isinstance(self.clients, PopulationClients):
            self._counts = {client.samples for client in self.clients.values() if client.samples}
            self._recorded.programs.find(self._find_lengths(self._settings["batch_size"], self._settings["drop_last"]))

    def _begin_strategy_again(self) -> None:
        """Prepare the strategy for other parameters, of which it must not have a state."""
        if checkpoints.dump_strategy(self.strategy)[0]:
            name = type(self.strategy).__name__
            why = f"the model has other parameters to train than before, of which {name} keeps a state"
            raise FederatedError.trainer(why, "make another trainer")
        self._begin_strategy()

    def _make_engine(self, engine: str | RayWorkers | None) -> Engine:
        stacks = engine != "workers" and can_stack(self._job, engine if isinstance(engine, str) else None)
        population = self.data if isinstance(self.data, Population) else None
        found = [] if population is not None else [find_actor(client) for client in self.clients.values()]
        actors = [actor for actor in dict.fromkeys(found) if actor is not None]
        if isinstance(engine, RayWorkers):
            if population is None and not set(actors) & set(engine.actors):
                raise FederatedError.trainer(
                    "the data is not on these workers of Ray", "send it to them, e.g. `dataset.federate(workers)`"
                )
            actors = engine.actors
        if actors:
            sums = self._buffer is None and uses_mean(self.strategy)
            return HostedEngine(self._job, self._acceptance, sums, stacks, actors, population, self._timeout)
        if engine is None:
            stacks = stacks and len(self.clients) > 1 and self.clients.are_local
        return StackedEngine() if stacks else Engine()

    # --- checks

    def _require_arguments(self) -> None:
        if not isinstance(self.model, nn.Module):
            raise FederatedError.trainer(f"the model is a {type(self.model).__name__}", "pass a torch module")
        if any(is_remote(tensor) for tensor in (*self.model.parameters(), *self.model.buffers())):
            raise FederatedError.trainer("the model is on a worker", "fetch it first: `model.get()`")
        if not callable(self.loss):
            raise FederatedError.trainer(f"the loss is a {type(self.loss).__name__}", "pass a function")
        if not isinstance(self.data, FederatedDataset | Population):
            raise FederatedError.trainer(
                f"the data is a {type(self.data).__name__}", "pass a FederatedDataset, e.g. `dataset.federate(workers)`"
            )
        if not isinstance(self.strategy, Strategy):
            raise FederatedError.trainer(
                f"the strategy is a {type(self.strategy).__name__}", "pass an instance of a subclass of `fl.Strategy`"
            )

    def _require_options(self, epochs: object, batch_size: object, engine: object, max_norm: object) -> None:
        if not _is_count(epochs):
            raise FederatedError.trainer(f"epochs is {epochs!r}", "pass a positive integer")
        if batch_size is not None and not _is_count(batch_size):
            raise FederatedError.trainer(f"batch_size is {batch_size!r}", "pass a positive integer, or None for all")
        if engine not in (None, "workers", "stacked") and not isinstance(engine, RayWorkers):
            raise FederatedError.trainer(f"there is no engine {engine!r}", 'use "workers", "stacked" or None')
        if self._buffer is not None and not _is_count(self._buffer):
            raise FederatedError.trainer(f"buffer is {self._buffer!r}", "pass a positive integer, or None")
        if type(self._seed) is not int:
            raise FederatedError.trainer(f"seed is {self._seed!r}", "pass an integer")
        for name, value in (("max_norm", max_norm), ("timeout", self._timeout), ("patience", self._patience)):
            if not is_size(value):
                raise FederatedError.trainer(f"{name} is {value!r}", "pass a positive number")

    def _limit(self, clients_per_round: int | None) -> int:
        if not self.clients:
            raise FederatedError.trainer("the dataset has no workers", "send data to at least one")
        if clients_per_round is None:
            return len(self.clients)
        if not _is_count(clients_per_round) or clients_per_round > len(self.clients):
            why = f"clients_per_round is {clients_per_round!r}, and there are {len(self.clients)} workers"
            raise FederatedError.trainer(why, "pass a positive integer that is not larger")
        return clients_per_round

    def _require_results(self, needed: int | None) -> None:
        most = self.clients_per_round if self._buffer is None else self._buffer
        if needed is not None and (not _is_count(needed) or needed > most):
            raise FederatedError.trainer(f"min_results is {needed!r}", f"pass a positive integer up to {most}")

    def _find_forms(self) -> list[Form]:
        """Return the forms of the parts of the data; raise unless all workers have data of one form."""
        first: tuple[Id, list[Form]] | None = None
        self._counts = set[int]()
        is_population = isinstance(self.clients, PopulationClients)
        for client in [self.clients.at(0)] if is_population else self.clients.values():
            with client.open():
                for forms in client.forms or client.describe():
                    _require_known(client.id, forms)
                    if first is None:
                        first = client.id, forms
                    elif list(map(_row, forms)) != list(map(_row, first[1])):
                        raise FederatedError.form(client.id, _describe(forms), first[0], _describe(first[1]))
                if not client.samples:
                    raise FederatedError.operands(client.id, "it has no samples", "leave this worker out")
                self._counts.add(client.samples)
        return first[1] if first is not None else []

    def _find_lengths(self, batch_size: int | None, drop_last: bool = False) -> list[int]:
        """Return all lengths of batches that may occur."""
        found = {length for count in self._counts for length in Batches.of(count, batch_size, drop_last).lengths}
        return sorted(found, reverse=True)

    # --- training

    def fit(
        self,
        rounds: int,
        checkpoint: str | Path | None = None,
        progress: bool | None = None,
        *,
        evaluate_every: int | None = None,
        held_out: FederatedDataset | Population | None = None,
        metrics: Mapping[str, Function] | None = None,
        stopping: EarlyStopping | None = None,
    ) -> History:
        """Train for some rounds, and return the history of all rounds.

        With ``checkpoint``, write the state of the run to this file after each round. If the file exists, the run
        continues where it ended, so a program that was interrupted is simply started again; the rounds that it has
        done count. ``progress`` is whether to show a line about each round; by default in a terminal or a notebook.

        With ``evaluate_every``, the model is evaluated after every so many rounds, and after the last one; on
        ``held_out``, which nobody trains on, or on the data of the trainer. ``metrics`` are those of ``evaluate``, and
        the history has what they were. ``stopping`` ends the run early. Any of these means to evaluate after each
        round, unless ``evaluate_every`` is given.
        """
        if type(rounds) is not int or rounds < 0:
            raise FederatedError.trainer(f"rounds is {rounds!r}", "pass an integer that is not negative")
        watch = Watch(evaluate_every, held_out, metrics, stopping)
        if not self._is_free.acquire(blocking=False):
            raise FederatedError.trainer("this trainer trains in another thread", "wait for it, or make another one")
        try:
            self._fit(rounds, checkpoint, progress, watch)
        finally:
            self._is_free.release()
        return self.history

    def _fit(self, rounds: int, checkpoint: str | Path | None, progress: bool | None, watch: Watch) -> None:
        self._refresh()
        self._watch = watch
        if watch.every is not None:
            watch.require_metric(list(self._prepare_evaluation(watch.held_out, watch.metrics)[2]))
        done = len(self.history)
        last = done + rounds
        path = None if checkpoint is None else Path(checkpoint)
        if path is not None:
            self._require_checkpoint(path)
            if path.exists():
                kept = self._restore(path)
                watch.begin(self.history.rows[done:], kept)
        show = RunLine(last, progress)
        with self._deadline(self.clients):
            for row in self._run_rounds(last, watch):
                self.history.rows.append(row)
                self._schedule.step(row.loss)
                watch.observe(row, row.round == last, self.evaluate, self._read_weights)
                if path is not None:
                    self._save(path)
                show.update(row)
        show.end()
        if watch.restore(self._set_weights) and path is not None:
            self._save(path)

    def _run_rounds(self, last: int, watch: Watch) -> Iterator[Row]:
        """Yield a row for each round; the model has its weights by then."""
        run = self._run_round if self._buffer is None else self._run_buffer
        try:
            while len(self.history) < last and not watch.has_ended:
                self._refresh()
                yield run(len(self.history) + 1)
        finally:
            self._engine.cancel()

    def _run_round(self, number: int) -> Row:
        began = time.perf_counter()
        weights = Remade(self._read_weights)
        chosen = self._sample(number)
        kept = None if type(self._engine) is Engine and not self.clients.are_local else weights()
        for client in chosen:
            self._engine.submit(self._make_task(client, weights, number))
        outcomes = {client.id: outcome for client, outcome in [self._take() for _ in chosen]}
        found = [(client.id, outcomes[client.id]) for client in chosen]
        updates, left_out = self._sort_out(found)
        needed = self._min_results if self._min_results is not None else (len(chosen) + 1) // 2
        needed = max(needed, self.strategy.needed)
        del kept
        return self._finish(number, weights, updates, left_out, needed, began)

    def _run_buffer(self, number: int) -> Row:
        """Collect updates until there are enough; each worker that has ended trains again, with the newest weights."""
        began = time.perf_counter()
        weights = partial(_return, self._read_weights())
        wanted = self._buffer or 1
        found: list[tuple[Id, ClientOutcome]] = []
        updates: list[Update] = []
        left_out: dict[Id, str] = {}
        failures = 0
        while len(updates) < wanted and failures < max(2 * self.clients_per_round, wanted):
            self._fill(weights, number)
            task, outcome = self._engine.take()
            if isinstance(outcome, Update):
                outcome.weight = self._weigh(number - task.version)
            found = [(task.client.id, outcome)]
            good, bad = self._sort_out(found)
            updates += good
            left_out.update(bad)
            failures += len(bad)
        needed = max(self._min_results if self._min_results is not None else wanted, self.strategy.needed)
        return self._finish(number, weights, updates, left_out, needed, began)

    def _weigh(self, age: int) -> float:
        """Return the weight of an update that began some rounds ago."""
        weight = float(self._staleness(age))
        if not 0 < weight < float("inf"):
            raise FederatedError.trainer(f"`staleness({age})` returns {weight}", "return a positive number")
        return weight

    def _fill(self, weights: Callable[[], Tensor], number: int) -> None:
        """Start trainings until as many run as are wanted at the same time."""
        while len(self._engine) < self.clients_per_round:
            self._engine.submit(self._make_task(self._find_next(), weights, number, self._starts))

    def _take(self) -> tuple[Client, ClientOutcome]:
        task, outcome = self._engine.take()
        return task.client, outcome

    def _make_task(self, client: Client, weights: Callable[[], Tensor], number: int, turn: int = 0) -> Task:
        correction = self.strategy.correct(client.id)
        if correction is not None and len(correction) < self._layout.total:
            correction = torch.cat([correction, correction.new_zeros(self._layout.total - len(correction))])
        seed = _hash(self._seed, number, turn, client.id) if self._shuffle else None
        return Task(client, weights, seed, correction, self._job, number)

    def _sample(self, number: int) -> list[Client]:
        """Return the workers of a round, which depend on the seed and the round alone."""
        places: Sequence[int] = range(len(self.clients))
        if self.clients_per_round < len(places):
            places = Random(f"{self._seed}/{number}").sample(places, self.clients_per_round)  # noqa: S311  # no secret
        return [self.clients.at(place) for place in places]

    def _find_next(self) -> Client:
        """Return the next worker of asynchronous rounds: all have a turn, in an order that depends on the seed."""
        turn, place = divmod(self._starts, len(self.clients))
        if self._order[0] != turn:
            order = list(range(len(self.clients)))
            Random(f"{self._seed}/turn {turn}").shuffle(order)  # noqa: S311  # not a secret
            self._order = turn, order
        self._starts += 1
        return self.clients.at(self._order[1][place])

    def _sort_out(self, found: Sequence[tuple[Id, ClientOutcome]]) -> tuple[list[Update], dict[Id, str]]:
        """Return the updates that are usable, and why the others are not."""
        updates, left_out = [], {}
        for worker, outcome in found:
            why = self._acceptance.explain(outcome)
            if why is not None:
                left_out[worker] = why
            elif isinstance(outcome, Update):
                updates.append(outcome)
        return updates, left_out

    def _finish(
        self,
        number: int,
        weights: Callable[[], Tensor],
        updates: list[Update],
        left_out: dict[Id, str],
        needed: int,
        began: float,
    ) -> Row:
        """Combine the updates of a round, and set the weights of the model."""
        if len(updates) < needed or not updates:
            reasons = "; ".join([f"{worker}: {why}" for worker, why in list(left_out.items())[:3]])
            raise FederatedError.few_results(number, len(updates), max(needed, 1), reasons)
        samples = sum(update.samples for update in updates)
        loss = sum(update.loss * update.samples for update in updates) / samples
        self._combine(weights, updates)
        seconds = time.perf_counter() - began
        return Row(number, loss, [update.worker for update in updates], left_out, samples, seconds)

    def _combine(self, find_weights: Callable[[], Tensor], updates: list[Update]) -> None:
        """Let the strategy combine the updates, in parts if that is possible, and set the weights of the model."""
        is_plain = self._layout.parameters == self._layout.total
        if is_plain and goes_by_parts(self.strategy) and all(each.is_contiguous() for each in self._recorded.trained):
            self._combine_parts(merge(updates))
        else:
            self._set_weights(combine(self.strategy, self._layout, find_weights(), updates))

    def _combine_parts(self, updates: list[Update]) -> None:
        """Combine the parameters in parts, so that no further copy of them is needed; change none if one is wrong."""
        for is_trial in (True, False):
            for part, start in self._split_parts():
                moved = [replace(u, difference=u.difference[start : start + len(part)]) for u in updates]
                new = self.strategy.aggregate(part.to(self._layout.dtype), moved)
                if is_trial and not is_finite(new):
                    why = "`aggregate` returned values that are not finite"
                    raise FederatedError.strategy(repr(self.strategy), why)
                if not is_trial:
                    part.copy_(new)

    def _split_parts(self) -> Iterator[tuple[Tensor, int]]:
        """Yield views of the trained tensors, and where they begin in the flat tensor."""
        start = 0
        for tensor in self._recorded.trained:
            for part in tensor.detach().view(-1).split(PART):
                yield part, start
                start += part.numel()

    def train_apart(self) -> dict[Id, nn.Module]:
        """Let each worker train a model of its own, from the current weights; return the models, which stay there.

        Teachers for PATE are made in this way, and models that belong to one worker. Nothing leaves a worker.
        """
        if isinstance(self.data, Population):
            raise FederatedError.trainer("the clients of a population do not last", "pass a FederatedDataset")
        weights = self.weights
        seeds = {id: self._make_task(client, partial(_return, weights), 1).seed for id, client in self.clients.items()}
        found = [(each, each.train_there(self._job, weights, seeds[each.id])) for each in self.clients.values()]
        return {client.id: self._move_model(client.location, weights, difference) for client, difference in found}

    def _move_model(self, location: Location, weights: Tensor, difference: Tensor) -> nn.Module:
        """Return a copy of the model on a worker, with the weights that it has trained."""
        names = {id(tensor): name for name, tensor in _named_tensors(self.model)}
        model: nn.Module = copy.deepcopy(self.model).send(location)
        own = dict(_named_tensors(model))
        with torch.no_grad():
            values = self._layout.split(weights.send(location) + difference)
            for tensor, value in zip(self._recorded.trained, values, strict=True):
                own[names[id(tensor)]].copy_(value)
        return model

    @property
    def weights(self) -> Tensor:
        """A copy of the weights, as one flat tensor: the parameters, then the buffers that training changes."""
        self._refresh()
        return self._read_weights()

    def _read_weights(self) -> Tensor:
        return self._layout.join(self._recorded.trained)

    def _set_weights(self, flat: Tensor) -> None:
        with torch.no_grad():
            for tensor, value in zip(self._recorded.trained, self._layout.split(flat), strict=True):
                tensor.copy_(value)

    @contextmanager
    def _deadline(self, clients: Clients) -> Iterator[None]:
        """Use the timeout of the trainer for workers on a network."""
        changed = []
        for client in clients.values() if self._timeout is not None and not clients.are_local else ():
            if not client.is_local and hasattr(client.location, "timeout"):
                changed.append((client.location, client.location.timeout))
                client.location.timeout = self._timeout
        try:
            yield
        finally:
            for location, timeout in changed:
                location.timeout = timeout

    # --- evaluation

    def evaluate(
        self, data: FederatedDataset | Population | None = None, metrics: Mapping[str, Function] | None = None
    ) -> Evaluation:
        """Measure the model on the workers: on the data of the trainer, or on other data.

        ``metrics`` has functions of the model's output and the targets, by name, that return a mean, a sum, or an
        ``fl.WeightedMean``; or metrics from counts: ``fl.AUC()``, ``fl.ConfusionMatrix()``.
        By default, the loss, and the accuracy if targets are classes. Each is that of the pooled data. Only sums over
        all samples of a worker leave it; one whose sums are not finite is left out.
        """
        weights = self.weights
        clients, measurement, functions, averages = self._prepare_evaluation(data, metrics)
        found = Evaluation(functions, averages)

        def measure(client: Client) -> tuple[Tensor, int]:
            return client.evaluate(measurement, weights, self._reason, self._patience), client.samples

        with self._deadline(clients):
            for client, outcome in run_on_each(clients.values(), measure):
                if isinstance(outcome, Exception):
                    found.left_out[client.id] = explain(outcome)
                else:
                    self._departures.add_evaluation(client.id)
                    found.add(client.id, *outcome)
        if not found.samples:
            reasons = "; ".join([f"{worker}: {why}" for worker, why in list(found.left_out.items())[:3]])
            raise FederatedError.trainer(f"no worker could evaluate the model ({reasons})", "see the reasons")
        self._evaluation = found
        return found

    def _prepare_evaluation(
        self, data: FederatedDataset | Population | None, metrics: Mapping[str, Function] | None
    ) -> tuple[Clients, Measurement, dict[str, Function], list[Average]]:
        """Return who measures what: the clients, what they run, the metrics, and how those are combined."""
        clients, counts = self.clients if data is None else make_clients(data), self._counts
        try:
            forms = self._find_forms_of(clients)
            functions = {"loss": self.loss, **(choose_metrics(forms) if metrics is None else metrics)}
            measurement, averages = self._measure(functions, forms)
        finally:
            self._counts = counts  # The next round has batches of the data for training.
        return clients, measurement, functions, averages

    def _find_forms_of(self, clients: Clients) -> list[Form]:
        kept = self.clients
        self.clients = clients
        try:
            return self._find_forms()
        finally:
            self.clients = kept

    def _measure(self, functions: Mapping[str, Function], forms: list[Form]) -> tuple[Measurement, list[Average]]:
        """Record the metrics, with the model in evaluation mode."""
        size = 1024
        lengths = self._find_lengths(size)
        key = tuple(functions.items()), tuple(map(_row, forms)), tuple(lengths)
        known = self._measurements.get(key)
        with evaluation_mode(self.model):
            if known is not None and not known[0].recorded.has_changed():
                return known
            given, averages = tuple(functions.values()), find_averages(functions, self.model, forms)
            compute = partial(compute_metrics, given, averages)
            recorded = record(self.model, compute, forms, lengths, (*given, *averages), self._recorded)
        _require_numbers("metrics", recorded, len(functions), 1)
        settings = {"batch_size": size}
        made = Measurement(recorded, settings, len(forms)), averages
        self._measurements[key] = made
        return made

    # --- pages and files

    def report(self, path: str | Path) -> None:
        """Write a page: settings, losses and metrics by round, who took part, the last evaluation, and what left."""
        self._refresh()
        settings = self._job.settings
        facts = [
            ("model", f"{type(self.model).__name__}, {self._layout.total:,} weights"),
            ("workers", str(len(self.clients))),
            ("per round", str(self.clients_per_round)),
            ("strategy", repr(self.strategy)),
            ("optimizer", f"{settings['optimizer']} {settings['groups'][0][0]}"),
            ("epochs, batch size", f"{settings['epochs']}, {settings['batch_size']}"),
            ("last batch", "left out if not full" if settings["drop_last"] else "of one sample: joins the one before"),
            ("engine", self._engine.name),
            ("rounds", str(len(self.history))),
        ]
        found = self._evaluation
        evaluated = "<p>not evaluated yet: call `evaluate`, or `fit(..., evaluate_every=1)`</p>"
        sections = {
            "Last evaluation": evaluated if found is None else found._repr_html_(),
            "What has left each worker": self._departures.to_html(),
        }
        write_report(path, "Federated training", facts, self.history, sections)

    def _identify(self) -> Kwargs:
        """Return what a run must have in common with its checkpoint."""
        names = {id(tensor): name for name, tensor in _named_tensors(self.model)}
        shapes = [[names.get(id(t), ""), list(t.shape), str(t.dtype)] for t in self._recorded.trained]
        return {
            "model": shapes,
            "fixed": self._digest_fixed(),
            "strategy": type(self.strategy).__name__,
            "seed": self._seed,
        }

    def _digest_fixed(self) -> str:
        """Return a digest of the tensors of the model that training does not change, such as a frozen backbone."""
        trained = set(map(id, self._recorded.trained))
        return checkpoints.digest({name: t for name, t in _named_tensors(self.model) if id(t) not in trained})

    def _require_checkpoint(self, path: Path) -> None:
        """Raise before the first round if a checkpoint cannot be written after it."""
        checkpoints.dump_strategy(self.strategy)
        if not path.parent.is_dir():
            raise FederatedError.checkpoint(str(path), "its folder does not exist", "make it first")

    def _save(self, path: Path) -> None:
        tensors, numbers = checkpoints.dump_strategy(self.strategy)
        kept = {
            "weights": self._read_weights(),
            **self._watch.tensors,
            **{f"strategy/{name}": tensor for name, tensor in tensors.items()},
        }
        facts: Kwargs = {"run": self._identify(), "strategy": numbers, "history": self.history.dump()}
        facts |= {"starts": self._starts, "departures": self._departures.dump()}
        try:
            checkpoints.save(path, checkpoints.Checkpoint(kept, facts))
        except OSError as error:
            raise FederatedError.unwritten(str(path), error.strerror or str(error)) from None

    def _restore(self, path: Path) -> Mapping[str, Tensor]:
        """Continue from a checkpoint, unless this trainer has done its rounds itself; return its tensors."""
        found = checkpoints.load(path)
        run, here = found.facts["run"], self._identify()
        advice = "use the model, strategy and seed that it was made with, or another file"
        for name, what in _FACTS:
            if run[name] != here[name]:
                raise FederatedError.checkpoint(str(path), f"it has another {what}", advice)
        numbers = checkpoints.dump_strategy(self.strategy)[1]
        if any(numbers.get(name) != value for name, value in found.facts["strategy"].items()):
            raise FederatedError.checkpoint(str(path), "its strategy has other numbers", advice)
        prefix = "strategy/"
        tensors = {name[len(prefix) :]: t for name, t in found.tensors.items() if name.startswith(prefix)}
        checkpoints.load_strategy(self.strategy, tensors, found.facts["strategy"])
        self._set_weights(found.tensors["weights"])
        self.history.rows = History.load(found.facts["history"]).rows
        self._starts = found.facts["starts"]
        self._departures.load(found.facts.get("departures", {}))
        self._schedule.begin(self.history.losses)
        self._refresh()
        return found.tensors


# --- the recorded functions


def _return(weights: Tensor) -> Tensor:
    return weights


def _record_loss(model: nn.Module, loss: Function, forms: list[Form], lengths: list[int]) -> Recorded:
    recorded = record(model, partial(compute_loss, loss), forms, lengths, (loss,))
    _require_numbers("loss", recorded, 1, 0)
    if not recorded.answer[0].requires_grad:
        raise FederatedError.trainer("the loss does not depend on the parameters", "compute it from the model's output")
    return recorded


def _require_numbers(what: str, recorded: Recorded, count: int, dimensions: int) -> None:
    """Raise unless a recorded function returns as many real tensors as are needed, with at most so many dimensions."""
    answer = recorded.answer
    if len(answer) != count or any(len(each.shape) > dimensions or not each.dtype.is_floating_point for each in answer):
        kinds = [f"{str(each.dtype).rpartition('.')[2]}{list(each.shape or ())}" for each in answer]
        raise FederatedError.loss(what, ", ".join(kinds) or "no tensor")


# --- small things

_FACTS = ("model", "model"), ("fixed", "frozen state of the model"), ("strategy", "strategy"), ("seed", "seed")
"""What a run and its checkpoint must have in common."""


def _named_tensors(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    return itertools.chain(model.named_parameters(), model.named_buffers())


def _is_count(value: object) -> bool:
    return type(value) is int and value > 0


def _row(known: Form) -> tuple[Nested, Nested]:
    return tuple(known.shape or ())[1:], known.dtype


def _require_known(worker: Id, forms: Sequence[Form | None]) -> None:
    for known in forms:
        if known is None or known.shape is None or known.dtype is None or not len(known.shape):
            raise FederatedError.operands(worker, "a part of its data is not a tensor with rows", "store tensors")


def _describe(forms: Sequence[Form]) -> str:
    return ", ".join(
        [f"{str(known.dtype).rpartition('.')[2]}{['n', *(known.shape or ())[1:]]}".replace("'", "") for known in forms]
    )


def _hash(*parts: object) -> int:
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:8], "little") >> 1
