"""Unpredictable object ids: they cannot be guessed, and are unique in practice."""

from __future__ import annotations

import secrets
import struct
from collections.abc import Callable, Iterable
from itertools import chain

from syft_core.exceptions import IdNotUniqueError

ID_BITS = 62
BATCH = 256
"""The number of ids generated at once; a system call per id would cost more than creating the object."""


class IdProvider:
    """Generate ids; ``given_ids`` are used first, in order.

    No record is kept: with 62 random bits, a repetition is less likely than a hardware fault.

    >>> IdProvider([7]).pop()
    7
    """

    def __init__(self, given_ids: Iterable[int] = ()) -> None:
        given = list(given_ids)
        if len(set(given)) != len(given):
            raise IdNotUniqueError.of(next(i for i in given if given.count(i) > 1))
        self.pop: Callable[[], int] = chain(given, chain.from_iterable(iter(_draw, ()))).__next__
        """Return the next id; no Python code runs, except once per batch."""


def _draw() -> tuple[int, ...]:
    drawn = struct.unpack(f"<{BATCH}Q", secrets.token_bytes(8 * BATCH))
    return tuple([number >> (64 - ID_BITS) for number in drawn])
