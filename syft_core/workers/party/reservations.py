"""Reservations: room on a worker that a running command needs, and that no other command may use meanwhile."""

from __future__ import annotations

from typing import NamedTuple


class Amounts(NamedTuple):
    """How much of a worker a command needs while it runs, or its results need."""

    objects: int = 0
    bytes: int = 0
    copies: int = 0
    """The bytes of copies that are being sent to other workers."""


class Reservation:
    """Holds amounts in a table until it is released: at the end of a ``with`` block, or when nobody refers to it.

    Nothing is counted up and down: what is reserved is never negative, and nothing stays when a command is forgotten.
    """

    __slots__ = ("_held",)

    def __init__(self, held: dict[int, Amounts], amounts: Amounts) -> None:
        self._held = held
        held[id(self)] = amounts

    def release(self) -> None:
        """Give the room back; doing it again has no effect."""
        self._held.pop(id(self), None)

    def __enter__(self) -> Reservation:
        return self

    def __exit__(self, *_error: object) -> None:
        self.release()

    def __del__(self) -> None:
        self.release()
