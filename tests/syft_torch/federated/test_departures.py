from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("torch")

from syft_torch import federated as fl  # torch may be missing
from syft_torch.federated.departures import Departures  # the same

from .trainers import make_data, make_trainer  # the same


@pytest.mark.parametrize("options", [{}, {"engine": "workers"}, {"engine": "stacked"}, {"buffer": 2}])
def test_what_is_counted_is_what_the_ledgers_say(hook: Any, options: Any) -> None:
    trainer = make_trainer(hook, make_data(hook, [40, 40]), **options)

    trainer.fit(2, evaluate_every=2)

    left = trainer._departures
    for name in ("w0", "w1"):
        sums = [e for e in hook.local_worker.get_worker(name).ledger if e.form == "Tensor[] float64"]
        assert left.updates[name] == len(sums)
    assert dict(left.evaluations) == {"w0": 1, "w1": 1}


def test_an_update_that_was_rejected_here_has_left_its_worker(hook: Any) -> None:
    trainer = make_trainer(hook, max_norm=1e-9, min_results=1)

    with pytest.raises(fl.FederatedError, match="larger than"):
        trainer.fit(1)

    assert set(trainer._departures.updates.values()) == {1}


def test_the_counts_survive_a_checkpoint(hook: Any, tmp_path: Any) -> None:
    data = make_data(hook, [40, 40])
    make_trainer(hook, data).fit(2, checkpoint=tmp_path / "run")

    again = make_trainer(hook, data)
    again.fit(3, checkpoint=tmp_path / "run")

    assert dict(again._departures.updates) == {"w0": 3, "w1": 3}


def test_counts_survive_as_plain_data() -> None:
    left, again = Departures(), Departures()
    left.add_update("north")
    left.add_evaluation(3)

    again.load(json.loads(json.dumps(left.dump())))

    assert again.to_html() == left.to_html()
    assert "north" in again.to_html()
