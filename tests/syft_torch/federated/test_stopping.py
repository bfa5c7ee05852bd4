from __future__ import annotations

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn, optim  # noqa: E402  # torch may be missing

import syft_core as sy  # noqa: E402  # the same
from syft_torch import federated as fl  # noqa: E402  # the same

from .trainers import make_data, make_samples, make_trainer  # noqa: E402  # the same


@pytest.fixture
def held_out(hook: Any) -> Any:
    workers = [sy.VirtualWorker(hook, id=f"clinic{number}") for number in range(2)]
    return fl.BaseDataset(*make_samples(50, seed=99)).federate(workers)


@pytest.mark.parametrize("options", [{}, {"engine": "workers"}, {"buffer": 3}, {"clients_per_round": 2}])
def test_the_model_is_evaluated_after_rounds_on_data_that_nobody_trains_on(
    hook: Any, held_out: Any, options: Any
) -> None:
    trainer = make_trainer(hook, **options)

    history = trainer.fit(5, evaluate_every=2, held_out=held_out)

    assert [row.round for row in history if row.evaluation] == [2, 4, 5]
    x, y = make_samples(50, seed=99)
    with torch.no_grad():
        output = trainer.model(x)
    assert history[4].evaluation["loss"] == pytest.approx(nn.functional.cross_entropy(output, y).item(), rel=1e-5)
    assert history[4].evaluation["accuracy"] == pytest.approx((output.argmax(1) == y).float().mean().item())


def test_evaluations_do_not_change_the_training(hook: Any, held_out: Any) -> None:
    plain, watched = make_trainer(hook), make_trainer(hook)

    plain.fit(4)
    watched.fit(4, evaluate_every=1, held_out=held_out)

    assert torch.equal(plain.weights, watched.weights)


def test_a_population_keeps_the_lengths_of_its_batches(hook: Any, held_out: Any) -> None:
    population = fl.Population(4, lambda number: make_samples(37, number))

    history = make_trainer(hook, population, batch_size=16, clients_per_round=2).fit(3, held_out=held_out)

    assert [len(row.workers) for row in history] == [2, 2, 2]


def _diverge(parameters: Any) -> Any:
    return optim.SGD(parameters, lr=8.0)


def _run(hook: Any, held_out: Any, rounds: int = 30, checkpoint: Any = None, **options: Any) -> Any:
    trainer = make_trainer(hook, make_data(hook, [40, 40]), optimizer=_diverge)
    trainer.fit(rounds, checkpoint, held_out=held_out, stopping=fl.EarlyStopping(**options))
    return trainer


def test_a_run_ends_when_nothing_gets_better_and_has_its_best_weights(hook: Any, held_out: Any) -> None:
    trainer = _run(hook, held_out, patience=2)

    losses = [row.evaluation["loss"] for row in trainer.history]
    best = losses.index(min(losses))
    assert len(losses) == best + 3 < 30
    assert trainer.evaluate(held_out)["loss"] == pytest.approx(losses[best])


def test_the_last_weights_are_kept_if_that_is_wanted(hook: Any, held_out: Any) -> None:
    trainer = _run(hook, held_out, patience=2, restore=False)

    assert trainer.evaluate(held_out)["loss"] == pytest.approx(trainer.history[-1].evaluation["loss"])


def test_a_run_that_ends_without_stopping_has_its_best_weights_too(hook: Any, held_out: Any) -> None:
    trainer = _run(hook, held_out, rounds=8, patience=100)

    losses = [row.evaluation["loss"] for row in trainer.history]
    assert len(losses) == 8
    assert trainer.evaluate(held_out)["loss"] == pytest.approx(min(losses))


def test_the_accuracy_is_better_if_it_is_larger(hook: Any, held_out: Any) -> None:
    trainer = _run(hook, held_out, metric="accuracy", patience=2)

    found = [row.evaluation["accuracy"] for row in trainer.history]
    assert trainer.evaluate(held_out)["accuracy"] == pytest.approx(max(found))


@pytest.mark.parametrize("rounds", [1, 2, 3, 30])
def test_an_interrupted_run_stops_where_it_would_have_stopped(
    hook: Any, held_out: Any, tmp_path: Any, rounds: int
) -> None:
    whole = _run(hook, held_out, patience=2)
    path = tmp_path / "run"

    trainer = make_trainer(hook, make_data(hook, [40, 40]), optimizer=_diverge)
    stopping = fl.EarlyStopping(patience=2, restore=rounds == 30)  # One that is killed does not get to restoring.
    trainer.fit(rounds, path, held_out=held_out, stopping=stopping)
    again = _run(hook, held_out, checkpoint=path, patience=2)

    assert again.history.losses == whole.history.losses
    assert torch.equal(again.weights, whole.weights)


def test_a_further_call_trains_again(hook: Any, held_out: Any) -> None:
    trainer = _run(hook, held_out, patience=1)
    before = len(trainer.history)

    trainer.fit(1, stopping=fl.EarlyStopping(patience=1))

    assert len(trainer.history) == before + 1


@pytest.mark.parametrize(
    ("options", "value", "best", "expected"),
    [
        ({}, 0.5, None, True),
        ({}, 0.5, 0.6, True),
        ({}, 0.6, 0.6, False),
        ({"min_delta": 0.2}, 0.5, 0.6, False),
        ({}, math.nan, 0.6, False),
        ({}, math.nan, None, False),
        ({"metric": "accuracy"}, 0.5, 0.6, False),
        ({"metric": "auc", "larger_is_better": True}, 0.7, 0.6, True),
        ({"metric": "error", "larger_is_better": False}, 0.7, 0.6, False),
    ],
)
def test_what_is_better(options: Any, value: float, best: float | None, expected: bool) -> None:
    assert fl.EarlyStopping(**options).is_better(value, best) is expected


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"evaluate_every": 0}, "evaluate_every is 0"),
        ({"evaluate_every": True}, "evaluate_every is True"),
        ({"held_out": torch.zeros(3)}, "the held-out data is a Tensor"),
        ({"held_out": fl.FederatedDataset([])}, "the dataset has no workers"),
        ({"stopping": "loss"}, "stopping is 'loss'"),
        ({"stopping": fl.EarlyStopping("auc", larger_is_better=True)}, "the evaluation has loss, accuracy"),
        ({"metrics": {"root": lambda o, t: nn.functional.cross_entropy(o, t).sqrt()}}, "cannot combine the metric"),
    ],
)
def test_what_cannot_be_watched_is_refused_before_the_first_round(hook: Any, options: Any, words: str) -> None:
    trainer = make_trainer(hook)

    with pytest.raises(fl.FederatedError, match=words):
        trainer.fit(3, **options)

    assert not trainer.history.rows


@pytest.mark.parametrize(
    ("options", "words"),
    [({"patience": 0}, "patience is 0"), ({"min_delta": -1}, "min_delta"), ({"metric": "auc"}, "larger_is_better=")],
)
def test_a_wrong_rule_is_refused_when_it_is_made(options: Any, words: str) -> None:
    with pytest.raises(fl.FederatedError, match=words):
        fl.EarlyStopping(**options)


def test_a_worker_that_cannot_evaluate_is_named_in_the_row(hook: Any, held_out: Any) -> None:
    worker = hook.local_worker.get_worker("clinic1")
    worker.object_store.entry(held_out["clinic1"].data.child.id_at_location).value[0] = math.nan

    history = make_trainer(hook).fit(1, held_out=held_out)

    assert history[0].not_evaluated == {"clinic1": "its metric 'loss' is not finite"}
    assert "clinic1, in the evaluation" in str(history)
