"""What private training has cost the data of a worker, counted by the worker and kept in its ledger."""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Sequence

from syft_core.ledgers.entry import Entry
from syft_core.peer import Id, Peer
from syft_core.values import Nested
from syft_core.workers.party.store import Sources
from syft_core.workers.party.worker import Worker
from syft_core.workers.seeing.ledger import describe_lineage
from syft_torch.federated.private_steps.accounting import PrivateStep, find_epsilon, write_epsilon
from syft_torch.federated.private_steps.sample_dp import Draws, SampleDP

_LINE = re.compile(r"(\d+) steps of SampleDP\(clip=\S+ multiplier=(\S+), rate=(\S+), delta=")


class Charges:
    """The private steps that each source of data on a worker has taken part in, over all users and for ever."""

    def __init__(self, worker: Worker) -> None:
        self._worker, self._lock = worker, threading.Lock()
        self._steps: dict[str, Counter[PrivateStep]] = {}
        while worker.ledger.charged:
            self._recall(worker.ledger.charged.pop())

    def forget(self, peer: Id) -> None:
        """Keep everything: what was charged stays charged when a client leaves."""

    def charge(self, peer: Peer, result: Id, sources: Sources, privacy: SampleDP, draws: Draws) -> tuple[Nested, ...]:
        """Charge a training to its data, before its first step; return the description that its results carry.

        The ε in it is that of all private steps so far on the source that has the most. The ledger has it on disk
        before this returns, so a training that is never fetched is charged, too.
        """
        step = PrivateStep(draws.rate, privacy.multiplier)
        lineage = describe_lineage(sources, "", "")
        keys = _list_keys(lineage["names"], lineage["sources"])
        with self._lock:
            after = {key: self._steps.get(key, Counter()) + Counter({step: draws.steps}) for key in keys}
            epsilon = max(find_epsilon(steps, privacy.delta) for steps in after.values())
            numbers = f"clip={privacy.clip!r}, multiplier={privacy.multiplier!r}, rate={draws.rate!r}"
            spent = f"with all before, {write_epsilon(epsilon, privacy.delta)} for a record left out"
            form = f"{draws.steps} steps of SampleDP({numbers}, delta={privacy.delta!r}): {spent}"
            entry = Entry(time.time(), str(peer), result, form, **lineage, peer=peer.id, event="charged")
            self._worker.ledger.record(entry)
            self._steps.update(after)
        return privacy.clip, privacy.multiplier, draws.rate, draws.steps, privacy.delta, epsilon

    def find_epsilon(self, source: str, delta: float) -> float:
        """Return the ε of all private steps on a source, which is named by its tags; 0 if there were none."""
        steps = self._steps.get(source)
        return 0.0 if steps is None else find_epsilon(steps, delta)

    def _recall(self, entry: Entry) -> None:
        found = _LINE.match(entry.form)
        if found is None:
            return
        count, multiplier, rate = found.groups()
        for key in _list_keys(entry.names, entry.sources):
            self._steps.setdefault(key, Counter())[PrivateStep(float(rate), float(multiplier))] += int(count)


def _list_keys(names: Sequence[str], sources: Sequence[Nested]) -> list[str]:
    """Return a name for each source: its tags, which outlive the process, or its id."""
    padded = [*names, *[""] * (len(sources) - len(names))]
    return list(dict.fromkeys([name or f"id {source}" for name, source in zip(padded, sources, strict=True)])) or [""]
