"""FederatedTrainer: train one model on the data of many workers, none of which leaves its worker."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import torch
from torch import nn, optim

from syft_core.peer import Id
from syft_core.values import Function, Kwargs, Nested, Tensor
from syft_torch.federated import checkpoint as checkpoints
from syft_torch.federated.arguments import require_arguments, require_options, require_privacy, require_sizes
from syft_torch.federated.asking import StudyPlan, ask_owners
from syft_torch.federated.asynchronous import make_rounds
from syft_torch.federated.clients import Client, Job, PopulationClients, make_clients
from syft_torch.federated.dataset import FederatedDataset
from syft_torch.federated.departures import Departures
from syft_torch.federated.engines import Acceptance, Assignment, Engine
from syft_torch.federated.errors import FederatedError
from syft_torch.federated.evaluation import Evaluation, Measurements, Survey, choose_metrics
from syft_torch.federated.forms import DataForms
from syft_torch.federated.history import History, Row
from syft_torch.federated.hosted import choose_engine
from syft_torch.federated.loops import Settings
from syft_torch.federated.losses import digests
from syft_torch.federated.makers import describe_program, digest
from syft_torch.federated.options import Options
from syft_torch.federated.population import Population
from syft_torch.federated.private_steps.accounting import write_epsilon
from syft_torch.federated.private_steps.loop import require_apart
from syft_torch.federated.private_steps.sample_dp import SampleDP
from syft_torch.federated.progress import RunLine
from syft_torch.federated.recorded_model import RecordedModel
from syft_torch.federated.reports import write_report
from syft_torch.federated.schedules import RoundOptimizer
from syft_torch.federated.stopping import EarlyStopping, Watch
from syft_torch.federated.strategies import FedAvg, Strategy, require_ageless, require_updates, uses_mean
from syft_worker.desk.handle import RequestHandle

if TYPE_CHECKING:
    from syft_torch.federated.aggregation import SecureAggregation


class FederatedTrainer:
    """Trains a model in rounds: sampled workers train it on their data, and a strategy combines what they return.

    The loss is recorded, and each worker runs it in a training loop of its own. Data stays where it is; what leaves a
    worker is the change of the weights and the mean loss, if its owner's rules allow that.

    Args:
        model: the model, here. ``fit`` updates it after each round.
        loss: a function of the model's output and the targets, that returns a mean, or an ``fl.WeightedMean``.
        optimizer: a function of parameters that returns the optimizer of the workers, e.g.
            ``lambda p: optim.SGD(p, lr=0.1)``. Its state is new in each round.
        data: a ``FederatedDataset`` or a ``Population``.
        strategy: how updates are combined.
        epochs: how often a worker goes through its data in a round.
        batch_size: how many samples a batch has; None means all of a worker.
        options: everything else: ``fl.Options(clip=1.0, seed=3)``.
        aggregation: how results are summed so that no single one leaves its worker:
            ``fl.SecureAggregation(study="icu")``.
        privacy: an ``fl.SampleDP``: workers clip the gradient of each sample, add noise, and return no loss.
        misplaced: options that were passed here are refused.

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
        options: Options | None = None,
        aggregation: SecureAggregation | None = None,
        privacy: SampleDP | None = None,
        **misplaced: NoReturn,
    ) -> None:
        self.options = require_options(options, misplaced)
        strategy = FedAvg() if strategy is None else strategy
        require_arguments(model, loss, data, strategy)
        require_sizes(epochs, batch_size)
        require_privacy(privacy, data)
        self.model, self.loss, self.data, self.strategy = model, loss, data, strategy
        self.history = History()
        self._departures, self._watch = Departures(), Watch()
        self._is_free = threading.Lock()
        """Held while the trainer trains."""
        self.clients = make_clients(data)
        self.clients_per_round = self.options.count_clients(len(self.clients))
        self.aggregation = aggregation
        self._rounds = make_rounds(self.options, self.clients, strategy, aggregation)
        if self.options.buffer is not None:
            require_ageless(strategy)
        self._forms = DataForms(self.clients)
        self._settings = Settings(
            epochs, batch_size, clip=self.options.clip, clip_grad=self.options.clip_grad,
            drop_last=self.options.drop_last, proximal=float(strategy.proximal),
            privacy=privacy,
        )  # fmt: skip
        self._evaluation: Evaluation | None = None
        self._record()
        self._schedule = RoundOptimizer(optimizer, self.options.scheduler, model)
        self._job = self._make_job()
        self._job.settings.require_valid()
        require_updates(strategy, self.options.buffer or self.clients_per_round)
        self._begin_strategy()
        self._engine = self._make_engine()

    # --- sending

    def _record(self) -> None:
        lengths = self._forms.find_lengths(self._settings)
        self._recorded = RecordedModel(self.model, self.loss, self._forms.parts, lengths)
        has_losses = self._settings.privacy is None
        self._acceptance = Acceptance(self._recorded.layout, self.options.max_norm, has_losses)
        self._measurements = Measurements()

    def _make_job(self) -> Job:
        name, groups = self._schedule.describe()
        settings = replace(self._settings, optimizer=name, groups=groups)
        recorded, parts, options = self._recorded.recorded, len(self._forms.parts), self.options
        asking = options.reason, options.patience
        return Job(recorded.programs, recorded.fixed, settings, parts, *asking, self._departures)

    def _make_engine(self) -> Engine:
        require_apart(self._job.train, len(self._job.fixed), self._job.parts, self._job.settings)
        sums = uses_mean(self.strategy)
        return choose_engine(self._job, self._acceptance, self.options, sums, self.clients, self.data)

    def _begin_strategy(self) -> None:
        settings, parameters = self._job.settings, self._recorded.layout.parameters
        self.strategy.begin(parameters, len(self.clients), settings.optimizer, settings.groups[0][0])

    def _refresh(self) -> None:
        """Record again what has changed since the last round: settings, parts of the model, tensors that stay fixed.

        Describe the optimizer again, too: its function may read other numbers, and a scheduler changes them.
        """
        if self._recorded.recorded.has_changed():
            before = self._recorded.shapes
            self._record()
            self._schedule.begin(self.history.losses)
            self._job = self._make_job()
            if self._recorded.shapes != before:
                checkpoints.require_stateless(self.strategy)
                self._begin_strategy()
            self._engine.cancel()
            self._engine = self._make_engine()
        elif (job := self._make_job()).settings != self._job.settings:
            self._job = job
        if self._forms.refresh():
            self._job.train.find(self._forms.find_lengths(self._settings))

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
        the history has their values. ``stopping`` ends the run early. Any of these means to evaluate after each
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
            watch.require_metric(list(self._survey(watch.held_out, watch.metrics).metrics))
        done = len(self.history)
        last = done + rounds
        path = None if checkpoint is None else Path(checkpoint)
        if path is not None:
            checkpoints.require_writable(path, self.strategy)
            if path.exists():
                self._restore(path, done)
        show = RunLine(last, progress)
        with self.clients.deadline(self.options.timeout):
            for row in self._run_rounds(last):
                self.history.rows.append(row)
                self._schedule.step(row.loss)
                watch.observe(row, row.round == last, self.evaluate, lambda: self.weights)
                if path is not None:
                    self._save(path)
                show.update(row)
        show.end()
        if watch.restore(self._recorded.set_weights) and path is not None:
            self._save(path)

    def _run_rounds(self, last: int) -> Iterator[Row]:
        try:
            while len(self.history) < last and not self._watch.has_ended:
                self._refresh()
                yield self._run_round(len(self.history) + 1)
        finally:
            self._engine.cancel()

    def _run_round(self, number: int) -> Row:
        began = time.perf_counter()
        recorded = self._recorded
        found = self._rounds.collect(number, self._engine, self._acceptance, self._make_task, recorded.read_weights)
        found.require(number, max(self.options.count_needed(found.expected), self.strategy.needed, 1))
        recorded.combine(self.strategy, found.weights, found.updates)
        if self.aggregation is not None:
            self._departures.add_sum(found.workers)
        row = found.describe(number, time.perf_counter() - began)
        if (privacy := self._settings.privacy) is not None:
            row.epsilon, row.delta = self._departures.find_epsilon(privacy.delta), privacy.delta
        return row

    def _make_task(self, client: Client, weights: Callable[[], Tensor], number: int, turn: int = 0) -> Assignment:
        correction, total = self.strategy.correct(client.id), self._recorded.layout.total
        if correction is not None and len(correction) < total:
            correction = torch.cat([correction, correction.new_zeros(total - len(correction))])
        seed = self.options.derive_seed(number, turn, client.id)
        return Assignment(client, weights, seed, correction, self._job, number)

    def train_apart(self) -> dict[Id, nn.Module]:
        """Let each worker train a model of its own, from the current weights; return the models, which stay there.

        Teachers for PATE are made in this way, and models that belong to one worker. Nothing leaves a worker.
        """
        if isinstance(self.clients, PopulationClients):
            raise FederatedError.trainer("the clients of a population do not last", "pass a FederatedDataset")
        weights = self.weights
        seeds = {id: self._make_task(client, lambda: weights, 1).seed for id, client in self.clients.items()}
        found = [(each, each.train_there(self._job, weights, seeds[each.id])) for each in self.clients.values()]
        return {each.id: self._recorded.copy_to(each.location, weights, difference) for each, difference in found}

    @property
    def weights(self) -> Tensor:
        """A copy of the weights, as one flat tensor: the parameters, then the buffers that training changes."""
        self._refresh()
        return self._recorded.read_weights()

    @property
    def program(self) -> str:
        """The digest of what workers run in a round, by which their owners approve it: loss, settings and roles."""
        self._refresh()
        job, recorded = self._job, self._recorded.recorded
        programs = [digests.of(program) for program in job.train.known]
        sizes = job.parts, len(job.fixed), recorded.parameters
        return digest(describe_program("train", programs, *sizes, job.settings.write(), self.options.shuffle))

    def request(
        self,
        reason: str,
        rounds: int,
        *,
        evaluations: int = 1,
        statistics: int = 2,
        held_out: FederatedDataset | None = None,
        metrics: Mapping[str, Function] | None = None,
    ) -> dict[Id, RequestHandle]:
        """Ask the owner of each worker once for all that a study needs: training, evaluations, statistics of columns.

        Each worker trains for one round, evaluates and summarizes, and keeps the results: its owner sees programs,
        settings, data and forms on one page, and makes a rule of it with one click. Nothing leaves with it. The rule
        covers ``rounds`` rounds, ``evaluations`` with these ``metrics`` (on ``held_out``, or the data of the trainer),
        and ``statistics`` for ``fl.Scaling.fit``, ``missing="mean"`` and ``fl.mean``: these programs, on this data.

        Return the request of each worker that needs one; ``request.wait()`` waits for its owner. A request that a rule
        covers already is granted at once.
        """
        numbers = rounds, evaluations, statistics
        if not all(type(number) is int and number >= 0 for number in numbers) or not rounds:
            raise FederatedError.trainer("a study has a number of rounds", "pass positive integers")
        if not isinstance(self.data, FederatedDataset) or isinstance(self.clients, PopulationClients):
            raise FederatedError.trainer("the clients of a population have no owners", "pass a FederatedDataset")
        weights = self.weights
        seeds = {id: self._make_task(client, lambda: weights, 1).seed for id, client in self.clients.items()}
        survey, plan = self._survey(held_out, metrics), StudyPlan(*numbers)
        given = reason, self._job, weights, seeds, survey, self.data, self.aggregation
        return ask_owners(self.clients, plan, *given)

    # --- evaluation, pages and files

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
        survey = self._survey(data, metrics)
        if self.aggregation is None:
            self._evaluation = survey.run(weights, self.options, self._departures)
        else:
            self._evaluation = survey.sum(weights, self.options, self._departures, self.aggregation)
        if (privacy := self._settings.privacy) is not None:
            self._evaluation.privacy = f"trained with {self._describe_spent(privacy)}"
        return self._evaluation

    def _survey(self, data: FederatedDataset | Population | None, metrics: Mapping[str, Function] | None) -> Survey:
        clients = self.clients if data is None else make_clients(data)
        forms = DataForms(clients)
        functions = {"loss": self.loss, **(choose_metrics(forms.parts) if metrics is None else metrics)}
        measured = self._measurements.find(self.model, functions, forms, self._recorded.recorded)
        return Survey(clients, functions, *measured)

    def evidence(self, path: str | Path) -> None:
        """Write what the workers have signed for each sum to a file; ``syft-core verify`` checks it, without them."""
        if self.aggregation is None:
            raise FederatedError.trainer("its results were not summed", "pass `aggregation=fl.SecureAggregation(...)`")
        self.aggregation.write_evidence(path)

    def report(self, path: str | Path) -> None:
        """Write a page: settings, losses and metrics by round, who took part, the last evaluation, and what left."""
        self._refresh()
        facts = {
            "model": f"{type(self.model).__name__}, {self._recorded.layout.total:,} weights",
            "workers": len(self.clients),
            "per round": self.clients_per_round,
            "strategy": repr(self.strategy),
            "engine": self._engine.name,
            **({} if self.aggregation is None else {"aggregation": repr(self.aggregation)}),
        }
        if (privacy := self._settings.privacy) is not None:
            facts["privacy"] = f"{privacy}: {self._describe_spent(privacy)}"
        write_report(path, facts, self._job.settings, self.history, self._evaluation, self._departures)

    def _describe_spent(self, privacy: SampleDP) -> str:
        spent = write_epsilon(self._departures.find_epsilon(privacy.delta), privacy.delta)
        return f"{spent}, the largest of all workers, for a record left out"

    def _identify(self) -> Kwargs:
        return {**self._recorded.identify(), "strategy": type(self.strategy).__name__, "seed": self.options.seed}

    def _save(self, path: Path) -> None:
        weights, departures = self._recorded.read_weights(), self._departures.dump()
        evidence = () if self.aggregation is None else self.aggregation.evidence
        done = self.history, departures, self._rounds.starts, self._watch.best_weights
        run = checkpoints.RunState(weights, *done, evidence)
        checkpoints.save_run(path, self._identify(), self.strategy, run)

    def _restore(self, path: Path, done: int) -> None:
        """Continue from a checkpoint, unless this trainer has done its rounds itself."""
        run = checkpoints.load_run(path, self._identify(), self.strategy)
        self._recorded.set_weights(run.weights)
        self.history.rows, self._rounds.starts = run.history.rows, run.starts
        self._departures.load(run.departures)
        if self.aggregation is not None:
            self.aggregation.restore(run.evidence)
        self._watch.begin(self.history.rows[done:], run.best)
        self._schedule.begin(self.history.losses)
        self._refresh()
