"""Identity: who has authenticated on a connection."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Identity:
    """The authenticated user, and the method of authentication."""

    user: str
    admin: bool = False
    """Whether they may see the worker's page, and decide about releases."""
    name: str = ""
    """The name of the token, if it has one."""
