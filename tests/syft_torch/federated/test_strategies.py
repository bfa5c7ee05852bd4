"""Each strategy on a model with one weight, computed by hand."""

from __future__ import annotations

from typing import Any

import pytest

import syft_core as sy

torch = pytest.importorskip("torch")

from syft_torch import federated as fl  # noqa: E402  # torch may be missing
from syft_torch.federated import strategies  # noqa: E402
from syft_torch.federated.layout import Layout  # noqa: E402

from .trainers import gather_options  # noqa: E402  # torch may be missing

LR = 0.1


def update(name: str, difference: float, samples: int = 1, steps: int = 1) -> Any:
    return fl.Update(name, torch.tensor([difference], dtype=torch.float64), samples, 0.0, steps, LR)


def combine(strategy: Any, weight: float, *differences: float, samples: tuple[int, ...] = ()) -> float:
    counts = samples or (1,) * len(differences)
    found = [update(f"w{n}", d, counts[n]) for n, d in enumerate(differences)]
    return float(strategy.aggregate(torch.tensor([weight], dtype=torch.float64), found))


def test_fedavg_weighs_by_samples() -> None:
    # 1 + (3 * 4 + 1 * 8) / 4
    assert combine(fl.FedAvg(), 1.0, 4.0, 8.0, samples=(3, 1)) == pytest.approx(6.0)


def test_the_median_ignores_an_outlier() -> None:
    assert combine(fl.Median(), 1.0, 1.0, 100.0, 3.0) == pytest.approx(4.0)
    assert combine(fl.Median(), 0.0, 1.0, 2.0, 4.0, 1000.0) == pytest.approx(3.0)


def test_the_trimmed_mean_drops_both_ends() -> None:
    # Of five updates, a fifth on each side: (2 + 3 + 4) / 3.
    assert combine(fl.TrimmedMean(share=0.2), 1.0, 2.0, -500.0, 4.0, 3.0, 500.0) == pytest.approx(4.0)
    assert combine(fl.TrimmedMean(share=0.0), 0.0, 1.0, 3.0) == pytest.approx(2.0)


def test_krum_chooses_the_update_next_to_the_others() -> None:
    # n = 5, f = 1: the two nearest count. Scores: 0 -> 1 + 4, 1 -> 1 + 1, 2 -> 1 + 4 (to 1 and 0), 10 and 50 far away.
    assert combine(fl.Krum(byzantine=1), 0.0, 0.0, 1.0, 2.0, 10.0, 50.0) == pytest.approx(1.0)
    # The three with the lowest scores: 0, 1 and 2.
    assert combine(fl.Krum(byzantine=1, keep=3), 5.0, 0.0, 1.0, 2.0, 10.0, 50.0) == pytest.approx(6.0)


def test_krum_needs_enough_updates() -> None:
    with pytest.raises(fl.FederatedError, match="it needs 5 updates, and there are 3"):
        combine(fl.Krum(byzantine=1), 0.0, 0.0, 1.0, 2.0)


@pytest.mark.parametrize(("byzantine", "count"), [(1, 4), (2, 5), (2, 6), (0, 2)])
def test_krum_needs_two_updates_for_each_wrong_one_and_three_more(byzantine: int, count: int) -> None:
    with pytest.raises(fl.FederatedError, match=f"it needs {2 * byzantine + 3} updates, and there are {count};"):
        combine(fl.Krum(byzantine), 0.0, *range(count))


def test_krum_resists_as_many_equal_updates_as_it_expects() -> None:
    # n = 7, f = 2: three neighbours count. 100 -> 0 + 98² + 99², 1 -> 0 + 0 + 1, 0 and 2 -> 1 + 1 + 1.
    assert combine(fl.Krum(byzantine=2), 0.0, 0.0, 1.0, 2.0, 1.0, 1.0, 100.0, 100.0) == pytest.approx(1.0)


def test_multi_krum_keeps_no_more_updates_than_are_right() -> None:
    with pytest.raises(fl.FederatedError, match="it needs 6 updates, and there are 5"):
        combine(fl.Krum(byzantine=1, keep=5), 0.0, 0.0, 1.0, 2.0, 3.0, 4.0)


@pytest.mark.parametrize(("strategy", "count", "needed"), [
    (fl.Median(), 1, 3), (fl.Median(), 2, 3), (fl.TrimmedMean(0.1), 9, 10), (fl.TrimmedMean(0.3), 3, 4),
])  # fmt: skip
def test_strategies_refuse_rounds_in_which_one_wrong_update_would_count(strategy: Any, count: int, needed: int) -> None:
    with pytest.raises(fl.FederatedError, match=f"it needs {needed} updates, and there are {count}"):
        combine(strategy, 0.0, *[1.0] * count)

    assert combine(strategy, 0.0, *[1.0] * (needed - 1), 1e6) == pytest.approx(1.0)


@pytest.mark.parametrize("share", [0.1, 0.2, 0.25, 1 / 3, 0.49, 0.4999999999])
@pytest.mark.parametrize("more", range(4))
def test_a_trimmed_mean_leaves_out_one_on_each_side_and_keeps_one(share: float, more: int) -> None:
    strategy = fl.TrimmedMean(share)
    count = strategy.needed + more

    assert combine(strategy, 0.0, 1e6, -1e6, *[2.0] * (count - 2)) == pytest.approx(2.0)


ROBUST = [fl.Median, lambda: fl.TrimmedMean(0.2), lambda: fl.Krum(1), lambda: fl.Krum(1, keep=2)]


@pytest.mark.parametrize("make", ROBUST)
def test_one_worker_cannot_set_the_running_statistics(make: Any) -> None:
    layout = Layout([torch.zeros(1), torch.zeros(2)], 1)
    honest = [[1.0, 0.5, 0.25], [1.1, 0.4, 0.25], [0.9, 0.6, 0.25], [1.0, 0.5, 0.25]]
    updates = [fl.Update(f"w{n}", torch.tensor(d), 1, 0.0) for n, d in enumerate([[1.0, 1e6, -1e6], *honest])]
    if isinstance(make(), fl.Krum):
        updates[0].difference[0] = 1e6

    found = strategies.combine(make(), layout, torch.zeros(3), updates)

    assert torch.allclose(found, torch.tensor([1.0, 0.5, 0.25]), atol=0.1)


@pytest.mark.parametrize("make", [fl.FedAdam, fl.FedYogi, fl.FedAdagrad, fl.Scaffold, fl.FedAvg])
def test_running_statistics_are_averaged_by_samples_and_counts_are_added_up(make: Any) -> None:
    layout = Layout([torch.zeros(1), torch.zeros(1), torch.zeros((), dtype=torch.int64)], 1)
    updates = [
        fl.Update("a", torch.tensor([1.0, 1.0, 3.0]), 3, 0.0, 3, LR),
        fl.Update("b", torch.tensor([1.0, 5.0, 1.0]), 1, 0.0, 1, LR),
    ]

    found = strategies.combine(make(), layout, torch.tensor([0.0, 10.0, 7.0]), updates)

    assert found[1:].tolist() == pytest.approx([10 + (3 * 1 + 5) / 4, 7 + 4])


def test_scaffold_needs_one_learning_rate() -> None:
    strategy = fl.Scaffold()
    with pytest.raises(fl.FederatedError, match="it needs one learning rate"):
        strategy.aggregate(torch.zeros(1), [fl.Update("a", torch.ones(1), 1, 0.0, 1, None)])


def test_fedadam_has_no_bias_correction() -> None:
    strategy = fl.FedAdam(lr=0.5, betas=(0.9, 0.99), tau=0.1)
    # Mean 2: m = 0.2, v = 0.99 * 0.01 + 0.01 * 4 = 0.0499.
    first = 1 + 0.5 * 0.2 / (0.0499**0.5 + 0.1)
    # Mean 1: m = 0.9 * 0.2 + 0.1 = 0.28, v = 0.99 * 0.0499 + 0.01.
    second = first + 0.5 * 0.28 / ((0.99 * 0.0499 + 0.01) ** 0.5 + 0.1)

    assert combine(strategy, 1.0, 1.0, 3.0) == pytest.approx(first)
    assert combine(strategy, first, 1.0, 1.0) == pytest.approx(second)


def test_fedyogi_moves_its_second_moment_by_the_sign() -> None:
    strategy = fl.FedYogi(lr=0.5, betas=(0.9, 0.99), tau=0.1)
    # v = 0.01 - 0.01 * 4 * sign(0.01 - 4) = 0.05
    first = 1 + 0.5 * 0.2 / (0.05**0.5 + 0.1)
    # Mean 0.1: m = 0.18 + 0.01 = 0.19, v = 0.05 - 0.01 * 0.01 * sign(0.05 - 0.01) = 0.0499.
    second = first + 0.5 * 0.19 / (0.0499**0.5 + 0.1)

    assert combine(strategy, 1.0, 2.0) == pytest.approx(first)
    assert combine(strategy, first, 0.1) == pytest.approx(second)


def test_fedadagrad_adds_squares_and_has_no_momentum() -> None:
    strategy = fl.FedAdagrad(lr=0.5, tau=0.1)
    first = 1 + 0.5 * 2 / (4.01**0.5 + 0.1)
    second = first + 0.5 * 1 / (5.01**0.5 + 0.1)

    assert combine(strategy, 1.0, 2.0) == pytest.approx(first)
    assert combine(strategy, first, 1.0) == pytest.approx(second)


def test_scaffold_corrects_by_control_variates() -> None:
    strategy = fl.Scaffold(lr=1.0)
    strategy.begin(1, 4, "SGD", {"lr": LR})
    weight = torch.tensor([1.0], dtype=torch.float64)

    # Two of four workers, K = 2 steps: c_i = -d / (K lr) = -0.2 / 0.2 and -0.6 / 0.2; c = (-1 - 3) / 4.
    weight = strategy.aggregate(weight, [update("a", 0.2, steps=2), update("b", 0.6, steps=2)])

    assert float(weight) == pytest.approx(1.4)
    assert float(strategy.c) == pytest.approx(-1.0)
    assert float(strategy.correct("a")) == pytest.approx(-1.0 + 1.0)
    assert float(strategy.correct("b")) == pytest.approx(-1.0 + 3.0)
    assert float(strategy.correct("c")) == pytest.approx(-1.0)
    # Then a alone: c_a' = -1 - (-1) - 0.2 / 0.2 = -1, so nothing changes but the weight.
    weight = strategy.aggregate(weight, [update("a", 0.2, steps=2)])
    assert float(weight) == pytest.approx(1.6)
    assert float(strategy.c) == pytest.approx(-1.0)


@pytest.mark.parametrize("make", [
    lambda: fl.FedProx(mu=-1), lambda: fl.TrimmedMean(share=0.5), lambda: fl.Krum(byzantine=-1),
    lambda: fl.FedAdam(lr=0), lambda: fl.FedYogi(betas=(1.0, 0.9)), lambda: fl.FedAdagrad(tau=0),
    lambda: fl.Scaffold(lr=0),
])  # fmt: skip
def test_numbers_without_sense_are_refused(make: Any) -> None:
    with pytest.raises(fl.FederatedError, match="cannot use"):
        make()


# --- on workers: the model w, the loss mean((w - y)²) / 2, whose gradient is w - mean(y)


class Weight(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))

    def forward(self, x: Any) -> Any:
        return x * self.w


def half_square(output: Any, target: Any) -> Any:
    return ((output - target) ** 2).mean() / 2


def train(hook: Any, strategy: Any, targets: dict[str, list[float]], rounds: int, **options: Any) -> Any:
    datasets = []
    for name, values in targets.items():
        ones = torch.ones(len(values), dtype=torch.float64)
        worker = sy.VirtualWorker(hook, id=name)
        datasets.append(fl.BaseDataset(ones, torch.tensor(values, dtype=torch.float64)).send(worker))
    given = {"batch_size": None, "epochs": 2, **options}
    make = lambda p: torch.optim.SGD(p, lr=LR)  # noqa: E731  # as a user writes it
    data = fl.FederatedDataset(datasets)
    trainer = fl.FederatedTrainer(Weight(), half_square, make, data, strategy, **gather_options(given))
    trainer.fit(rounds)
    return trainer


def descend(weight: float, mean: float, steps: int = 2, pull: float = 0.0, correction: float = 0.0) -> float:
    """Make steps of gradient descent by hand; return the difference."""
    found = weight
    for _ in range(steps):
        found -= LR * (found - mean + pull * (found - weight) + correction)
    return found - weight


@pytest.mark.parametrize("engine", ["workers", "stacked"])
def test_fedprox_draws_local_weights_to_the_global_one(hook: Any, engine: Any) -> None:
    trainer = train(hook, fl.FedProx(mu=0.5), {"a": [1.0], "b": [3.0, 3.0]}, 2, engine=engine)

    expected = 0.0
    for _ in range(2):
        expected += (descend(expected, 1.0, pull=0.5) + 2 * descend(expected, 3.0, pull=0.5)) / 3
    assert trainer.model.w.item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("engine", ["workers", "stacked"])
def test_scaffold_trains_as_its_paper_says(hook: Any, engine: Any) -> None:
    trainer = train(hook, fl.Scaffold(), {"a": [1.0], "b": [3.0]}, 3, engine=engine)

    weight, c, own = 0.0, 0.0, {"a": 0.0, "b": 0.0}
    for _ in range(3):
        found = {name: descend(weight, mean, correction=c - own[name]) for name, mean in (("a", 1.0), ("b", 3.0))}
        new = {name: own[name] - c - found[name] / (2 * LR) for name in own}
        weight += sum(found.values()) / 2
        c += sum(new[name] - own[name] for name in own) / 2
        own = new
    assert trainer.model.w.item() == pytest.approx(weight, rel=1e-12)


def test_scaffold_needs_plain_sgd(hook: Any, bob: Any) -> None:
    data = fl.BaseDataset(torch.ones(2, 1), torch.ones(2, 1)).federate([bob])
    for make in (lambda p: torch.optim.Adam(p), lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)):
        with pytest.raises(fl.FederatedError, match="it needs plain SGD"):
            fl.FederatedTrainer(torch.nn.Linear(1, 1), half_square, make, data, fl.Scaffold())


def test_a_strategy_of_ones_own_is_one_method(hook: Any) -> None:
    class Largest(fl.Strategy):
        def aggregate(self, weights: Any, updates: Any) -> Any:
            return weights + max([update.difference for update in updates], key=lambda d: d.abs().sum())

    trainer = train(hook, Largest(), {"a": [1.0], "b": [3.0]}, 1)

    assert trainer.model.w.item() == pytest.approx(descend(0.0, 3.0))


def test_a_strategy_that_returns_something_else_is_refused(hook: Any) -> None:
    class Wrong(fl.Strategy):
        def aggregate(self, weights: Any, updates: Any) -> Any:
            return weights.sum()

    with pytest.raises(fl.FederatedError, match="must return weights of the same size"):
        train(hook, Wrong(), {"a": [1.0]}, 1)
