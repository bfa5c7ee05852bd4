from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
import torch

from syft_core.exceptions import GetNotPermittedError
from syft_core.workers.party.virtual import VirtualWorker
from syft_core.workers.seeing.ledger import Ledger, read_ledger
from syft_worker.storage import Storage

SCANS = {"user": "eve", "computed_from": ["#scans"], "any_program": True}


def test_rules_and_their_uses_survive_a_restart(hook: Any, tmp_path: Path) -> None:
    me = hook.local_worker
    me.user = "eve"
    for keeps_store in (False, True):
        folder = tmp_path / str(keeps_store)
        folder.mkdir()
        for used in range(2):
            bob = VirtualWorker(hook, id="keeper", ledger=Ledger("keeper", folder / "ledger"))
            data = [torch.tensor([1.0, 3.0]).private_tensor([]).tag("#scans")]
            storage = Storage(folder / "store", bob, data) if keeps_store else None
            if storage is None:
                bob.load_data(data)
            if not used:
                bob.allow("study", count=2, by="noor", **SCANS)
                bob.allow("other", form="Tensor[9]", **SCANS)
                bob.revoke("other")
            (study,) = [approval for approval in bob.rules if approval.name == "study"]
            assert (study.uses.total, study.made_by, study.conditions["count"]) == (used, "noor", 2)
            assert all(approval.is_revoked for approval in bob.rules if approval.name == "other")
            bob.search("#scans")[0].mean().get()
            bob.ledger.close()
            if storage is not None:
                storage.close()
            me.remove_worker_from_registry("keeper")
        rules = [entry.rule for entry in read_ledger(folder / "ledger") if entry.event == "released"]
        assert rules == ["study", "study"]


def test_uses_of_rules_in_the_configuration_are_counted_across_restarts_and_removals(hook: Any, tmp_path: Path) -> None:
    me = hook.local_worker
    me.user = "eve"
    rules = {"study": {**SCANS, "count": 3}}
    for used in range(4):
        bob = VirtualWorker(hook, id="keeper", ledger=Ledger("keeper", tmp_path / "ledger"))
        bob.load_data([torch.tensor([1.0, 3.0]).private_tensor([]).tag("#scans")])
        for tables in (rules, {}, rules):
            bob.rules.configure(tables)
        assert bob.rules.find("study").uses.total == used
        mean = bob.search("#scans")[0].mean()
        if used < 3:
            mean.get()
        else:
            with pytest.raises(GetNotPermittedError, match="all of its 3 uses are used up"):
                mean.get()
        bob.ledger.close()
        me.remove_worker_from_registry("keeper")
