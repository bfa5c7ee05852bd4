"""Ask the owners of workers once for everything that a study needs: one request, which makes one rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from syft_core.peer import Id
from syft_core.values import Tensor
from syft_torch.federated.aggregation import SecureAggregation
from syft_torch.federated.clients import Client, Clients, Job
from syft_torch.federated.dataset import FederatedDataset
from syft_torch.federated.engines import run_on_each
from syft_torch.federated.evaluation import Survey
from syft_torch.federated.loops import Settings
from syft_torch.federated.statistics import keep_statistic
from syft_worker.desk.handle import RequestHandle, describe_line


@dataclass(frozen=True)
class StudyPlan:
    """What a study lets leave each worker, and how often."""

    rounds: int
    evaluations: int
    statistics: int

    @property
    def count(self) -> int:
        """How often results leave, in all."""
        return self.rounds + self.evaluations + self.statistics


def ask_owners(
    clients: Clients,
    plan: StudyPlan,
    reason: str,
    job: Job,
    weights: Tensor,
    seeds: Mapping[Id, int | None],
    survey: Survey,
    data: FederatedDataset,
    aggregation: SecureAggregation | None,
) -> dict[Id, RequestHandle]:
    """Let each worker compute one result of each kind, which it keeps, and ask its owner for a rule for such results.

    Return the requests of the workers whose results may not leave without one.
    """
    line = describe_line()  # Workers on a network are asked in threads.
    is_shared = aggregation is not None
    sums = ("", 0, 0) if aggregation is None else (aggregation.study, len(clients), aggregation.colluding)

    def ask(client: Client) -> RequestHandle | None:
        training = client.keep_training(job, lambda: weights, seeds[client.id], is_shared)
        change = f"the change of the weights by {_describe_settings(job.settings)}"
        labels = [f"in each of {plan.rounds} rounds: {what}" for what in (change, "the loss")]
        examples: dict[Id, str] = dict(zip(training, labels, strict=False))  # With noise, there is no loss.
        if plan.evaluations:
            measured = survey.clients[client.id].keep_evaluation(survey.measurement, weights, is_shared)
            names = ", ".join(survey.metrics)
            when = "in one evaluation" if plan.evaluations == 1 else f"in each of {plan.evaluations} evaluations"
            examples.update(dict.fromkeys(measured, f"{when}: the sums of {names}"))
        if plan.statistics:
            _, summary = keep_statistic(data.by_worker[client.id])
            examples[summary] = f"{plan.statistics} times: count, sum and squares of each column"
        try:
            return RequestHandle.ask_study(client.location, examples, reason, plan.count, sums, line)
        finally:
            for id in examples:
                client.location.drop(id)

    found: dict[Id, RequestHandle] = {}
    for client, outcome in run_on_each(clients.values(), ask):
        if isinstance(outcome, Exception):
            raise outcome
        if outcome is not None:
            found[client.id] = outcome
    return found


def _describe_settings(settings: Settings) -> str:
    """Return the settings of a training in words."""
    numbers = ", ".join([f"{name}={value}" for name, value in sorted(settings.groups[0][0].items()) if value])
    batches = "one batch" if settings.batch_size is None else f"batches of {settings.batch_size}"
    return f"{settings.optimizer}({numbers}), epochs: {settings.epochs}, {batches}"
