from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from syft_core.exceptions import GetNotPermittedError
from syft_torch import federated as fl

from .owners import fill, find, owners


def exact_auc(scores: torch.Tensor, targets: torch.Tensor) -> float:
    ill, healthy = scores[targets == 1], scores[targets == 0]
    order = (ill.unsqueeze(1) > healthy).double() + (ill.unsqueeze(1) == healthy).double() / 2
    return float(order.mean())


@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_the_auc_of_counts_is_that_of_all_samples(workers: list[Any], scale: float) -> None:
    targets = [(torch.randn(200, generator=torch.Generator().manual_seed(n)) > 0).long() for n in range(3)]
    scores = [
        scale * (torch.randn(200, generator=torch.Generator().manual_seed(9 + n)) + t) for n, t in enumerate(targets)
    ]

    found = fl.AUC().of(
        [score.send(worker) for score, worker in zip(scores, workers, strict=True)],
        [target.send(worker) for target, worker in zip(targets, workers, strict=True)],
    )

    assert found == pytest.approx(exact_auc(torch.cat(scores), torch.cat(targets)), abs=2e-3)
    assert found == pytest.approx(fl.AUC().of(torch.cat(scores), torch.cat(targets)))


def test_the_auc_of_a_single_class_is_not_a_number() -> None:
    assert math.isnan(fl.AUC().of(torch.tensor([1.0, 2.0]), torch.tensor([1, 1])))


@pytest.mark.parametrize("shape", ["one score", "scores of classes"])
def test_a_confusion_matrix_counts_pairs(workers: list[Any], shape: str) -> None:
    targets, guesses = torch.tensor([0, 0, 1, 1, 1]), torch.tensor([0, 1, 1, 1, 0])
    output = (guesses - 0.5).unsqueeze(1) if shape == "one score" else torch.eye(2)[guesses]

    found = fl.ConfusionMatrix().of([output.send(workers[0])], [targets.send(workers[0])])

    assert found.tolist() == [[1, 1], [1, 2]]
    with pytest.raises(fl.FederatedError, match="there are 1 outputs and 2 targets"):
        fl.ConfusionMatrix().of(output, [targets, targets])


def test_counts_of_private_data_leave_only_if_the_owner_agrees(workers: list[Any]) -> None:
    secret = torch.tensor([3.0, -1.0, 2.0, 0.5]).private_tensor(["eve"])
    workers[0].load_data([secret.tag("#scores"), torch.tensor([1, 0, 1, 0]).private_tensor(["eve"]).tag("#truth")])
    (scores,), (truth,) = workers[0].search("#scores"), workers[0].search("#truth")
    hook = scores.owner.hook
    hook.local_worker.user = "mallory"

    for metric in (fl.AUC(), fl.ConfusionMatrix()):
        with pytest.raises(GetNotPermittedError):
            metric.of(scores, truth)
    with owners(workers):
        assert fl.AUC().of(scores, truth, reason="a study") == 1.0
        assert fl.ConfusionMatrix().of(scores, truth, reason="a study").tolist() == [[1, 1], [0, 2]]


def test_a_trainer_evaluates_metrics_from_counts(workers: list[Any]) -> None:
    fill(workers, users=["noor"], gaps=False)
    train, test = fl.train_test_split(find(workers, columns=["sex"]))
    model = torch.nn.Linear(1, 2)
    options = fl.Options(reason="a study")
    with owners(workers):
        trainer = fl.FederatedTrainer(
            model,
            torch.nn.functional.cross_entropy,
            lambda p: torch.optim.SGD(p, lr=0.1),
            train,
            batch_size=16,
            options=options,
        )
        trainer.fit(1)
        found = trainer.evaluate(test, {"auc": fl.AUC(), "confusion": fl.ConfusionMatrix()})

    assert 0 <= found["auc"] <= 1
    assert int(found["confusion"].sum()) == len(test) == found.samples
    assert sum(int(each["confusion"].sum()) for each in found.workers.values()) == len(test)
    assert "confusion" in str(found)
    assert "confusion" in found._repr_html_()
