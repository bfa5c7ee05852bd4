"""Reservations: resources of a worker that a running command needs, and that no other command may use meanwhile."""

from __future__ import annotations

from typing import NamedTuple


class Amounts(NamedTuple):
    """Amounts of a worker's resources that a command needs while it runs, or its results need."""

    objects: int = 0
    bytes: int = 0
    copies: int = 0
    """The size in bytes of copies that are being sent to other workers."""


class Reservation:
    """Holds amounts in a table until it is released: at the end of a ``with`` block, or when it is garbage collected.

    There are no counters, so the reserved amount is never negative, and nothing is left over by a forgotten command.
    """

    __slots__ = ("_held",)

    def __init__(self, held: dict[int, Amounts], amounts: Amounts) -> None:
        self._held = held
        held[id(self)] = amounts

    def release(self) -> None:
        """Give the resources back; repeated calls have no effect."""
        self._held.pop(id(self), None)

    def __enter__(self) -> Reservation:
        return self

    def __exit__(self, *_error: object) -> None:
        self.release()

    def __del__(self) -> None:
        self.release()
