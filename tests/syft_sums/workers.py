"""Workers whose private results are summed: three hospitals by default, each with a ledger file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import syft_core as sy
from syft_core.peer import Peer
from syft_core.pointers.object_pointer import new_id
from syft_core.workers.party.derivations import Maker, Operand
from syft_core.workers.party.store import Stored
from syft_core.workers.road.derivation import derive_program
from syft_core.workers.seeing.ledger import Ledger
from syft_sums.client import SumStudy, find_locations
from syft_sums.studies import release_only_aggregates, studies_of

PROGRAM = "ab" * 32
NAMES = ("north", "south", "east", "west", "coast")


class Hospitals:
    """Workers of one study, and a client called dana."""

    def __init__(self, hook: Any, folder: Path, size: int = 3, **rule: Any) -> None:
        hook.local_worker.user = "dana"
        self.hook, self.folder = hook, folder
        self.workers = [self.start(name) for name in NAMES[:size]]
        self.fingerprints = {worker.id: studies_of(worker).fingerprint for worker in self.workers}
        self.rule = {"any_program": True, **rule}
        for worker in self.workers:
            self.allow(worker, **self.rule)

    def start(self, name: str) -> Any:
        ledger = Ledger(name, self.folder / f"{name}.jsonl")
        worker = sy.VirtualWorker(self.hook, id=name, serialize=True, ledger=ledger)
        worker.load_data([torch.zeros(60, 4).private_tensor([]).tag("#x")])
        return worker

    def allow(self, worker: Any, **rule: Any) -> None:
        release_only_aggregates(worker, computed_from=["#x"], user="dana", members=self.fingerprints, **rule)

    def study(self, workers: list[Any] | None = None, name: str = "icu", colluding: int = 1) -> SumStudy:
        found = self.workers if workers is None else workers
        return SumStudy(name, find_locations(self.hook.local_worker, found), colluding)

    def put(self, worker: Any, values: Any, **changes: Any) -> list[int]:
        """Store a result as the worker's own loop would have computed it."""
        (data,) = worker.object_store.find_reserved(["#x"])
        value = torch.as_tensor(values)
        entry = Stored(value, self.hook.local_worker.id, data[1].lineage)
        entry.derivation = derive_program(make_maker(worker, **changes), [])
        id = new_id()
        worker.object_store.put(id, entry)
        return [id]

    def put_all(self, values: list[Any], **changes: Any) -> dict[str, list[int]]:
        pairs = zip(self.workers, values, strict=True)
        return {worker.id: self.put(worker, value, **changes) for worker, value in pairs}

    def restart(self, name: str) -> Any:
        """End a worker as a crash would, and start it again with its ledger and its key."""
        old = self.hook.local_worker.get_worker(name)
        old.ledger.close()
        self.hook.local_worker._known_workers.pop(name)
        worker = self.start(name)
        studies_of(worker)._key = studies_of(old)._key
        self.allow(worker, **self.rule)
        self.workers = [worker if each.id == name else each for each in self.workers]
        return worker


def make_maker(worker: Any, **changes: Any) -> Maker:
    options = {
        "clip": None,
        "parameters": 4,
        "privacy": None,
        "program": PROGRAM,
        "samples": 60,
        "supplied": "00" * 32,
        "weighted": True,
    }
    operand = Operand(("#x",), (60, 4), changes.pop("is_whole", True), changes.pop("arrangement", ""))
    protocol = changes.pop("protocol", "train")
    return Maker(protocol, tuple(sorted({**options, **changes}.items())), (worker.id,), (operand,))


def peer_of(hook: Any) -> Peer:
    found: Peer = hook.local_worker.peer
    return found


Make = Callable[..., Hospitals]
