"""Unpredictable object ids: they cannot be guessed, and are unique in practice."""

from __future__ import annotations

import secrets
import struct
from collections.abc import Iterable

from syft_core.exceptions import IdNotUniqueError

ID_BITS = 62
BATCH = 256
"""How many ids are generated at once; a system call per id would cost more than creating the object."""


class IdProvider:
    """Generate ids; ``given_ids`` are used first, in order.

    No record is kept: with 62 random bits, a repetition is less likely than a hardware fault.

    >>> IdProvider([7]).pop()
    7
    """

    def __init__(self, given_ids: Iterable[int] = ()) -> None:
        self._given = list(given_ids)
        self._fresh: list[int] = []
        if len(set(self._given)) != len(self._given):
            raise IdNotUniqueError.of(next(i for i in self._given if self._given.count(i) > 1))

    def pop(self) -> int:
        """Return the next id."""
        if self._given:
            return self._given.pop(0)
        try:
            return self._fresh.pop()
        except IndexError:
            drawn = struct.unpack(f"<{BATCH}Q", secrets.token_bytes(8 * BATCH))
            self._fresh.extend([number >> (64 - ID_BITS) for number in drawn])
            return self._fresh.pop()
