"""What protocols may keep in memory for a client."""

from __future__ import annotations

from syft_core.peer import Peer
from syft_core.workers.party.worker import Worker

MAX_HELD = 1 << 30
"""How many bytes of one client may wait for its runs, if the client has no smaller quota."""


def limit_bytes(worker: Worker, client: Peer) -> int:
    """Return how many bytes of a client may wait for its runs, and how many its kept masks may take."""
    quota = None if worker.guard is None else worker.guard.limit_message(client.user or "")
    return MAX_HELD if quota is None else min(quota, MAX_HELD)
