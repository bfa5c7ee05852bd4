"""Peer: the authenticated sender of a message."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

Id: TypeAlias = int | str
"""The name of a worker, or of an object on one."""


class Peer(NamedTuple):
    """The sender of a message: a worker id, and the user on whose behalf the worker acts.

    A transport creates it from the authenticated connection, never from the content of a message. Worker ids and users
    are separate namespaces: a worker called "board" is not the user "board".
    """

    id: Id
    user: str | None = None

    def __str__(self) -> str:
        return self.user if self.user is not None else f"worker {self.id}"
