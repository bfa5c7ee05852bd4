"""Memory limits of protocols, by client."""

from __future__ import annotations

from syft_core.peer import Peer
from syft_core.workers.party.worker import Worker

MAX_HELD = 1 << 30
"""Maximum bytes held for the runs of one client, unless its quota is smaller."""


def limit_bytes(worker: Worker, client: Peer) -> int:
    """Return the limits in bytes of what is held for a client's runs, and of its kept masks."""
    quota = None if worker.guard is None else worker.guard.limit_message(client.user or "")
    return MAX_HELD if quota is None else min(quota, MAX_HELD)
