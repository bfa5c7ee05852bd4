from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from syft_torch import federated as fl  # noqa: E402  # torch may be missing

from .trainers import make_trainer  # noqa: E402


def test_asynchronous_rounds_use_stale_updates_with_less_weight(hook: Any) -> None:
    ages: list[int] = []

    def weigh(age: int) -> float:
        ages.append(age)
        return 1 / (1 + age)

    trainer = make_trainer(hook, clients_per_round=4, buffer=2, staleness=weigh)

    history = trainer.fit(5)

    assert [len(row.workers) for row in history] == [2] * 5
    assert max(ages) >= 1
    assert ages[:2] == [0, 0]
    assert history.losses[-1] < history.losses[0]


@pytest.mark.parametrize(
    ("found", "shown"),
    [
        ("half", "a value of type str"), ("0.5", "a value of type str"), (b"1", "a value of type bytes"),
        (None, "a value of type NoneType"), (1j, "a value of type complex"), ([0.5], "a value of type list"),
        (torch.ones(2), "a value of type Tensor"), (torch.zeros(()), "a value of type Tensor"),
        (0, "0.0"), (-0.5, "-0.5"), (float("nan"), "nan"), (10**400, "inf"),
    ],
)  # fmt: skip
def test_a_weight_that_is_not_a_positive_number_is_refused(hook: Any, found: Any, shown: str) -> None:
    trainer = make_trainer(hook, buffer=2, staleness=lambda age: found)

    with pytest.raises(fl.FederatedError) as caught:
        trainer.fit(2)

    assert str(caught.value) == f"cannot train: `staleness(0)` returns {shown}; return a positive number"
    assert not len(trainer.history)


@pytest.mark.parametrize("found", [1, 0.5, True, torch.tensor(0.5), np.float32(0.5), Fraction(1, 2)])
def test_a_weight_may_be_any_positive_number(hook: Any, found: Any) -> None:
    assert len(make_trainer(hook, buffer=2, staleness=lambda age: found).fit(2)) == 2


def test_the_weight_of_a_stale_update_follows_fedbuff() -> None:
    updates = [
        fl.Update("a", torch.tensor([1.0]), 1, 0.0, weight=1.0),
        fl.Update("b", torch.tensor([4.0]), 1, 0.0, weight=0.5),
    ]

    # (1 * 1 + 0.5 * 4) / 2: divided by the number of updates, not by their weights.
    assert fl.FedAvg().aggregate(torch.zeros(1), updates).item() == pytest.approx(1.5)


@pytest.mark.parametrize("make", [fl.Median, lambda: fl.TrimmedMean(0.2), lambda: fl.Krum(1), fl.Scaffold])
def test_strategies_that_ignore_the_age_of_updates_refuse_asynchronous_rounds(hook: Any, make: Any) -> None:
    with pytest.raises(fl.FederatedError, match="ignores the weight of older ones; leave out `buffer`"):
        make_trainer(hook, strategy=make(), buffer=5)


def test_a_strategy_of_ones_own_says_whether_it_uses_the_age_of_updates(hook: Any) -> None:
    class Sum(fl.FedAvg):
        def aggregate(self, weights: Any, updates: Any) -> Any:
            return weights + sum(update.weight * update.difference for update in updates) / len(updates)

    class Aged(Sum):
        takes_stale = True

    with pytest.raises(fl.FederatedError, match="a strategy of your own .* says `takes_stale = True`"):
        make_trainer(hook, strategy=Sum(), buffer=2)
    assert len(make_trainer(hook, strategy=Aged(), buffer=2).fit(2)) == 2


def test_each_worker_has_its_turn_before_one_has_the_next(hook: Any) -> None:
    history = make_trainer(hook, clients_per_round=1, buffer=5).fit(3)

    for row in history:
        assert sorted(map(str, row.workers)) == ["w0", "w1", "w2", "w3", "w4"]
    assert len({tuple(row.workers) for row in history}) > 1
