"""Policies: what may leave a worker, and to whom. One function decides, on every road out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from syft_core.exceptions import GetNotPermittedError
from syft_core.workers.store import Stored

Policy: TypeAlias = Callable[[Stored, str], "str | None"]
"""Takes an object and a user, and returns None, or the reason why the object may not leave."""


def unless_private(stored: Stored, user: str) -> str | None:
    """Let everything leave but what is private, or was computed from something private; the default."""
    if stored.access is None or user in stored.access:
        return None
    return "it is private, or was computed from something private, and you are not among its allowed users"


def only_published(stored: Stored, user: str) -> str | None:
    """Let nothing leave but what the worker's owner has published, and that only to those it allows."""
    if not stored.published:
        return "this worker lets only published objects leave"
    return unless_private(stored, user)


def nothing(stored: Stored, user: str) -> str | None:
    """Let nothing leave."""
    return "this worker lets nothing leave"


def require_permission(policy: Policy, stored: Stored, user: str, id: Any, worker: str) -> None:
    """Raise unless ``policy`` lets ``stored`` leave to ``user``."""
    why = policy(stored, user)
    if why is not None:
        raise GetNotPermittedError.to(user, id, worker, why)
