from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_torch import federated as fl  # noqa: E402

from .trainers import make_samples, make_trainer  # noqa: E402


def test_clients_of_a_population_with_data_of_another_form_are_named(hook: Any) -> None:
    def load(number: int) -> Any:
        return torch.randn(20, 4 + (number == 2)), torch.zeros(20).long()

    history = make_trainer(hook, fl.Population(4, load), engine="stacked").fit(1)

    assert history[0].workers == ["client-0", "client-1", "client-3"]
    assert "its data has the form torch.float32[20, 5]" in history[0].left_out["client-2"]


def test_clients_of_a_population_exist_while_they_train(hook: Any) -> None:
    loaded: list[int] = []

    def load(number: int) -> tuple[Any, Any]:
        loaded.append(number)
        return make_samples(30, number)

    known = len(hook.local_worker._known_workers)
    trainer = make_trainer(hook, fl.Population(1000, load), clients_per_round=10)

    history = trainer.fit(3)

    assert [len(row.workers) for row in history] == [10, 10, 10]
    assert len(loaded) == 31  # The first is looked at before.
    assert len(hook.local_worker._known_workers) == known
    assert len(hook.local_worker._locations) < 10
    assert trainer.history[0].workers[0].startswith("client-")


def test_a_population_gives_the_model_of_workers(hook: Any) -> None:
    trainer = make_trainer(hook, fl.Population(5, lambda number: make_samples(40, number)), shuffle=False)
    trainer.fit(2)
    other = make_trainer(hook, shuffle=False)
    other.fit(2)

    assert torch.allclose(trainer.weights, other.weights, atol=1e-6)


def test_a_population_of_a_million_costs_nothing_before_it_is_sampled(hook: Any) -> None:
    trainer = make_trainer(hook, fl.Population(10**6, lambda n: make_samples(20, n)), clients_per_round=3, buffer=None)

    history = trainer.fit(1)

    assert len(history[0].workers) == 3
    assert trainer.clients["client-999999"].id == "client-999999"
    with pytest.raises(KeyError):
        trainer.clients["client-1000000"]


@pytest.mark.parametrize("engine", ["workers", "stacked"])
def test_the_data_of_a_population_is_freed_with_each_client(hook: Any, engine: Any) -> None:
    loaded = []

    def load(number: int) -> Any:
        x, y = make_samples(20, number)
        loaded.append(weakref.ref(x))
        return x, y

    trainer = make_trainer(hook, fl.Population(5, load), engine=engine)
    gc.disable()
    try:
        trainer.fit(1)
        alive = [each for each in loaded if each() is not None]
    finally:
        gc.enable()

    assert len(loaded) > 5
    assert alive == []
