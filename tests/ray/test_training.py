"""Federated training in actors: the results of virtual workers, from one sum per actor."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import syft_core as sy

pytest.importorskip("ray")
torch = pytest.importorskip("torch")
from torch import nn, optim  # noqa: E402

from syft_torch import federated as fl  # noqa: E402
from tests.waiting import wait_until  # noqa: E402

COUNT = 12
STRATEGIES: dict[str, Any] = {
    "FedAvg": fl.FedAvg,
    "FedProx": fl.FedProx,
    "FedAdam": fl.FedAdam,
    "Scaffold": fl.Scaffold,
    "Median": fl.Median,
    "Krum": fl.Krum,
}


def make_model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))


def make_data() -> fl.BaseDataset:
    x = torch.randn(40 * COUNT + 5, 4, generator=torch.Generator().manual_seed(1))
    return fl.BaseDataset(x, (x[:, 0] > 0).long())


def make_trainer(data: Any, strategy: Any = None, model: Any = None, **options: Any) -> fl.FederatedTrainer:
    model = make_model() if model is None else model
    loss, make, chosen = nn.functional.cross_entropy, lambda p: optim.SGD(p, lr=0.1), fl.Options(**options)
    return fl.FederatedTrainer(model, loss, make, data, strategy, batch_size=16, options=chosen)


def load(number: int) -> tuple[Any, Any]:
    x = torch.randn(30 + number % 3, 4, generator=torch.Generator().manual_seed(number))
    return x, (x[:, 0] > 0).long()


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    """Return the weights that virtual workers give."""
    found = {}
    with sy.TorchHook(torch) as hook:
        data = make_data().federate([sy.VirtualWorker(hook, id=f"ray-{number}") for number in range(COUNT)])
        for name, strategy in STRATEGIES.items():
            trainer = make_trainer(data, strategy(), engine="workers", clients_per_round=COUNT - 2)
            trainer.fit(3)
            found[name] = trainer.weights, trainer.history.losses
    return found


@pytest.fixture(scope="module")
def module_hook(expected: Any) -> Iterator[Any]:
    with sy.TorchHook(torch) as hook:
        yield hook


@pytest.fixture(scope="module")
def workers(module_hook: Any) -> Iterator[Any]:
    with sy.RayWorkers(module_hook, COUNT, actors=2) as started:
        yield started


@pytest.fixture(scope="module")
def data(workers: Any) -> Any:
    return make_data().federate(workers)


@pytest.mark.parametrize("name", STRATEGIES)
def test_the_results_are_those_of_virtual_workers(expected: Any, data: Any, name: str) -> None:
    trainer = make_trainer(data, STRATEGIES[name](), clients_per_round=COUNT - 2)

    trainer.fit(3)

    weights, losses = expected[name]
    assert trainer._engine.name == "ray"
    assert torch.allclose(trainer.weights, weights, rtol=0, atol=1e-6)
    assert trainer.history.losses == pytest.approx(losses, abs=1e-6)
    assert all(len(row.workers) == COUNT - 2 and not row.left_out for row in trainer.history)


def test_stacked_clients_of_an_actor_give_the_same_results(data: Any) -> None:
    model = nn.Linear(4, 2)
    start = {name: value.clone() for name, value in model.state_dict().items()}
    alone, stacked = make_trainer(data, model=model, engine="workers"), None
    alone.fit(2)
    expected = alone.weights
    model.load_state_dict(start)

    stacked = make_trainer(data, model=model)
    stacked.fit(2)

    assert torch.allclose(stacked.weights, expected, rtol=0, atol=1e-6)


class Seen(fl.FedAvg):
    """Overrides what needs the mean alone."""

    def aggregate(self, weights: Any, updates: Any) -> Any:
        self.seen = [update.difference for update in updates]
        return super().aggregate(weights, updates)


class Mean(fl.FedAdam):
    """Does not override it."""

    def _accumulate(self, v: Any, square: Any) -> Any:
        return v + square


def test_an_actor_returns_one_sum_unless_the_strategy_needs_each_update(data: Any) -> None:
    strategy = Seen()
    make_trainer(data, strategy).fit(1)
    summed = make_trainer(data, Mean())
    taken = []
    take = summed._engine.take
    summed._engine.take = lambda: taken.append(take()) or taken[-1]  # type: ignore[method-assign,func-returns-value]
    summed.fit(1)

    assert len({tensor.data_ptr() for tensor in strategy.seen}) == COUNT
    assert len(taken) == COUNT
    assert len({id(outcome.difference) for _, outcome in taken}) == 2


def test_unusable_updates_are_left_out_of_the_sum(data: Any, workers: Any) -> None:
    bad = fl.BaseDataset(torch.full((20, 4), float("nan")), torch.zeros(20).long()).send(workers[3])
    mixed = fl.FederatedDataset([*[each for each in data if each.location.id != "ray-3"], bad])

    trainer = make_trainer(mixed, model=nn.Linear(4, 2))
    trainer.fit(1)
    limited = make_trainer(data, max_norm=1e-9)

    assert trainer.history[0].left_out == {"ray-3": "its update has values that are not finite"}
    assert bool(trainer.weights.isfinite().all())
    with pytest.raises(fl.FederatedError, match="the norm of its update is larger than 1e-09"):
        limited.fit(1)


def test_asynchronous_rounds_run_in_actors(data: Any) -> None:
    trainer = make_trainer(data, buffer=4, clients_per_round=8)

    trainer.fit(5)

    assert [len(row.workers) for row in trainer.history] == [4] * 5


def test_a_run_continues_from_a_checkpoint_bit_for_bit(data: Any, tmp_path: Path) -> None:
    straight = make_trainer(data)
    straight.fit(3)
    path = tmp_path / "run.safetensors"
    make_trainer(data).fit(2, checkpoint=path)

    resumed = make_trainer(data)
    resumed.fit(3, checkpoint=path)

    assert torch.equal(resumed.weights, straight.weights)


def test_the_model_is_evaluated_on_workers_in_actors(data: Any) -> None:
    trainer = make_trainer(data)
    trainer.fit(5)

    found = trainer.evaluate()

    assert found["accuracy"] > 0.7
    assert len(found.workers) == COUNT


def test_an_update_of_private_data_stays_in_its_actor(module_hook: Any) -> None:
    def setup(worker: Any) -> None:
        x, y = load(0)
        worker.load_data([x.private_tensor(["dr-noor"]).tag("#x"), y.tag("#y")])

    with sy.RayWorkers(module_hook, ids=["clinic"], setup=setup) as clinic:
        trainer = make_trainer(fl.find("#x", "#y", workers=clinic), model=nn.Linear(4, 2))

        with pytest.raises(fl.FederatedError, match="clinic: cannot get object .* it is private"):
            trainer.fit(1)


def test_the_actor_of_an_allowed_user_returns_a_sum(module_hook: Any) -> None:
    def setup(worker: Any) -> None:
        x, y = load(0)
        worker.load_data([x.private_tensor(["dr-noor"]).tag("#x"), y.tag("#y")])

    module_hook.local_worker.user = "dr-noor"
    try:
        with sy.RayWorkers(module_hook, ids=["clinic", "ward"], setup=setup) as clinic:
            history = make_trainer(fl.find("#x", "#y", workers=clinic), model=nn.Linear(4, 2)).fit(1)
    finally:
        module_hook.local_worker.user = None

    assert history[0].workers == ["clinic", "ward"]


# --- a population


def test_a_population_trains_in_actors_as_it_does_here(module_hook: Any, workers: Any) -> None:
    population = fl.Population(1000, load)
    here = make_trainer(population, clients_per_round=20, engine="workers")
    here.fit(3)

    there = make_trainer(population, clients_per_round=20, engine=workers)
    there.fit(3)

    assert torch.allclose(here.weights, there.weights, rtol=0, atol=1e-6)
    assert [row.workers for row in here.history] == [row.workers for row in there.history]


def test_data_that_is_elsewhere_is_not_trained_on_ray(module_hook: Any, workers: Any) -> None:
    data = make_data().federate([sy.VirtualWorker(module_hook, id="bob")])

    with pytest.raises(fl.FederatedError, match="the data is not on these workers of Ray; send it to them"):
        make_trainer(data, engine=workers)


def test_clients_on_ray_and_in_this_process_train_in_one_round(module_hook: Any, data: Any) -> None:
    x, y = load(0)
    mixed = fl.FederatedDataset([*data, fl.BaseDataset(x, y).send(sy.VirtualWorker(module_hook, id="alice"))])

    history = make_trainer(mixed).fit(1)

    assert len(history[0].workers) == COUNT + 1


# --- lost actors


def test_a_round_names_the_clients_of_a_killed_actor_and_goes_on(module_hook: Any, ray: Any) -> None:
    ids = [f"doomed-{number}" for number in range(4)]
    with sy.RayWorkers(module_hook, ids=ids, actors=2) as doomed:
        trainer = make_trainer(make_data().federate(doomed))
        trainer.fit(1)
        ray.kill(doomed.actors[0].handle)
        history = trainer.fit(2)

    assert history[0].workers == ids
    for row in history[1:]:
        assert row.workers == ["doomed-1", "doomed-3"]
        assert list(row.left_out) == ["doomed-0", "doomed-2"]
        assert "actor 1 of 2 has ended" in row.left_out["doomed-0"]


def test_an_actor_that_ends_in_mid_round_is_named_and_others_take_its_clients(module_hook: Any, tmp_path: Path) -> None:
    once = tmp_path / "once"

    def load_or_end(number: int) -> Any:
        if number == 7 and not once.exists() and os.getpid() != driver:
            once.touch()
            os._exit(1)
        return load(number)

    driver = os.getpid()
    with sy.RayWorkers(module_hook, 0, actors=2) as workers:
        trainer = make_trainer(fl.Population(20, load_or_end), engine=workers)
        history = trainer.fit(2)

    assert len(history[0].workers) == 10
    assert all("has ended" in why for why in history[0].left_out.values())
    assert "client-7" in history[0].left_out
    assert len(history[1].workers) == 20


# --- actors that hang


def test_the_clients_of_an_actor_that_hangs_are_left_out_until_it_goes_on(module_hook: Any, tmp_path: Path) -> None:
    once, wakes = tmp_path / "once", tmp_path / "wakes"

    def load_or_sleep(number: int) -> Any:
        if number == 7 and not once.exists() and os.getpid() != driver:
            once.touch()
            wait_until(wakes.exists, pause=0.05)
        return load(number)

    driver = os.getpid()
    with sy.RayWorkers(module_hook, 0, actors=2) as workers:
        trainer = make_trainer(fl.Population(20, load_or_sleep), engine=workers, timeout=5.0)
        history = trainer.fit(2)
        wakes.touch()
        wait_until(lambda: not any(actor.is_stuck for actor in workers.actors), pause=0.05)
        history = trainer.fit(1)

    assert [len(row.workers) for row in history] == [10, 20, 20]
    assert "client-7" in history[0].left_out
    assert "has made no progress for 5 seconds" in history[0].left_out["client-7"]


def test_a_round_goes_on_without_an_actor_whose_process_is_stopped(module_hook: Any) -> None:
    ids = [f"frozen-{number}" for number in range(4)]
    with sy.RayWorkers(module_hook, ids=ids, actors=2, setup=load_with_process) as workers:
        process = int(fl.find("#process", "#process", workers=workers[:1])[ids[0]].targets.get())
        trainer = make_trainer(fl.find("#x", "#y", workers=workers), timeout=5.0)
        trainer.fit(1)
        os.kill(process, signal.SIGSTOP)
        try:
            history = trainer.fit(2)
            found = trainer.evaluate()
        finally:
            os.kill(process, signal.SIGCONT)

    assert history[0].workers == ids
    assert [row.workers for row in history[1:]] == [["frozen-1", "frozen-3"]] * 2
    assert "actor 1 of 2 has not answered for 5 seconds" in history[1].left_out["frozen-0"]
    assert "has not finished what it began before" in history[2].left_out["frozen-0"]
    assert list(found.workers) == ["frozen-1", "frozen-3"]


def load_with_process(worker: Any) -> None:
    x, y = load(0)
    worker.load_data([x.tag("#x"), y.tag("#y"), torch.tensor([os.getpid()]).tag("#process")])


def test_an_actor_that_takes_longer_than_the_timeout_and_makes_progress_is_not_left_out(module_hook: Any) -> None:
    def load_slowly(number: int) -> Any:
        time.sleep(1.0 if os.getpid() != driver else 0.0)
        return load(number)

    driver = os.getpid()
    with sy.RayWorkers(module_hook, 0, actors=1) as workers:
        history = make_trainer(fl.Population(10, load_slowly), engine=workers, timeout=5.0).fit(1)

    assert len(history[0].workers) == 10
    assert history[0].seconds > 10


def test_private_steps_are_not_trained_in_actors(data: Any) -> None:
    with pytest.raises(fl.FederatedError, match="actors of Ray"):
        fl.FederatedTrainer(
            nn.Linear(4, 2), nn.functional.cross_entropy, lambda p: optim.SGD(p, lr=0.1), data,
            privacy=fl.SampleDP(clip=1.0, multiplier=1.1, delta=1e-5),
        )  # fmt: skip
