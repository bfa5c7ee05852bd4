"""Identity: who has authenticated on a connection."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Identity:
    """Who has authenticated, and how."""

    user: str
    admin: bool = False
    """Whether it may see the page of the worker, and decide about releases."""
    name: str = ""
    """The name of the token, if there is one."""
