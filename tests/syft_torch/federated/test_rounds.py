from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_torch import federated as fl  # noqa: E402  # torch may be missing

from .trainers import make_trainer  # noqa: E402


def test_sampling_is_repeatable_and_partial(hook: Any) -> None:
    first, second = (make_trainer(hook, clients_per_round=2).fit(6) for _ in range(2))

    chosen = [row.workers for row in first]
    assert chosen == [row.workers for row in second]
    assert {len(names) for names in chosen} == {2}
    assert len({name for names in chosen for name in names}) > 2


def test_an_interrupted_round_is_forgotten(hook: Any) -> None:
    class Interrupted(fl.FedAvg):
        def __init__(self) -> None:
            self.is_on = True

        def aggregate(self, weights: Any, updates: Any) -> Any:
            if self.is_on:
                raise KeyboardInterrupt
            return super().aggregate(weights, updates)

    whole = make_trainer(hook)
    whole.fit(2)
    trainer = make_trainer(hook, strategy=Interrupted())
    with pytest.raises(KeyboardInterrupt):
        trainer.fit(2)
    trainer.strategy.is_on = False

    trainer.fit(2)

    assert torch.equal(trainer.weights, whole.weights)
