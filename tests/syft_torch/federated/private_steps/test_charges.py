from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("dp_accounting")

import syft_core as sy
from syft_core.ledgers.reading import read_ledger
from syft_core.peer import Peer
from syft_core.workers.party.store import Source
from syft_core.workers.seeing.ledger import Ledger
from syft_torch import federated as fl  # torch may be missing
from syft_torch.federated.private_steps.accounting import PrivateStep, find_epsilon
from syft_torch.federated.private_steps.charges import Charges

PRIVACY = fl.SampleDP(clip=1.0, multiplier=1.1, delta=1e-5)
EVE = Peer("me", "eve")


def make_worker(hook: Any, path: Path | None, name: str = "north") -> Any:
    worker = sy.VirtualWorker(hook, id=name, auto_add=False)
    worker.ledger = Ledger(name, path)
    return worker


def make_source(*tags: str) -> Source:
    source = Source(f"id of {tags}")
    source.tags = frozenset(tags)
    return source


def charge(charges: Charges, *sources: Source) -> Any:
    return charges.charge(EVE, 7, frozenset(sources), PRIVACY, PRIVACY.plan(200, 1, 16))


def test_a_charge_is_in_the_ledger_before_it_returns(hook: Any, tmp_path: Path) -> None:
    charges = Charges(make_worker(hook, tmp_path / "ledger"))

    cost = charge(charges, make_source("#x"))

    clip, multiplier, rate, steps, delta, epsilon = cost
    assert (clip, multiplier, rate, steps, delta) == (1.0, 1.1, 0.08, 12, 1e-5)
    assert epsilon == find_epsilon({PrivateStep(0.08, 1.1): 12}, 1e-5)
    entry = [entry for entry in read_ledger(tmp_path / "ledger") if entry.event == "charged"][-1]
    assert entry.user == "eve"
    assert entry.names == ("#x",)
    assert entry.form.startswith("12 steps of SampleDP(clip=1.0, multiplier=1.1, rate=0.08, delta=1e-05)")


def test_charges_of_a_source_add_up_over_trainings_and_users(hook: Any) -> None:
    charges = Charges(make_worker(hook, None))
    x, y, z = make_source("#x"), make_source("#y"), make_source("#z")
    charge(charges, x, y)
    charges.charge(Peer("you", "dana"), 8, frozenset([x]), PRIVACY, PRIVACY.plan(200, 1, 16))

    assert charges.find_epsilon("#x", 1e-5) == find_epsilon({PrivateStep(0.08, 1.1): 24}, 1e-5)
    assert charges.find_epsilon("#y", 1e-5) == find_epsilon({PrivateStep(0.08, 1.1): 12}, 1e-5)
    assert charges.find_epsilon("#z", 1e-5) == 0
    assert charge(charges, y, z)[-1] == find_epsilon({PrivateStep(0.08, 1.1): 24}, 1e-5)


def test_charges_survive_a_restart(hook: Any, tmp_path: Path) -> None:
    worker = make_worker(hook, tmp_path / "ledger")
    charge(Charges(worker), make_source("#x"))
    worker.ledger.close()

    again = Charges(make_worker(hook, tmp_path / "ledger"))

    assert again.find_epsilon("#x", 1e-5) == find_epsilon({PrivateStep(0.08, 1.1): 12}, 1e-5)


def test_charges_stay_when_a_client_leaves(hook: Any) -> None:
    charges = Charges(make_worker(hook, None))
    charge(charges, make_source("#x"))

    charges.forget("me")

    assert charges.find_epsilon("#x", 1e-5) > 0


def test_a_charge_that_cannot_be_written_is_not_made(hook: Any, tmp_path: Path) -> None:
    worker = make_worker(hook, tmp_path / "ledger")
    charges = Charges(worker)
    worker.ledger.close()

    with pytest.raises(Exception, match="ledger"):
        charge(charges, make_source("#x"))

    assert charges.find_epsilon("#x", 1e-5) == 0
