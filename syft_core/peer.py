"""Peer: who sent a message, as the transport knows it."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

Id: TypeAlias = int | str
"""The name of a worker, or of an object on one."""


class Peer(NamedTuple):
    """Who sent a message: the id of a worker, and the user on whose behalf it acts.

    A transport makes it from what it knows of the connection, never from what a message says. Worker ids and users
    are separate namespaces: a worker called "board" is not the user "board".
    """

    id: Id
    user: str | None = None

    def __str__(self) -> str:
        return self.user if self.user is not None else f"worker {self.id}"
