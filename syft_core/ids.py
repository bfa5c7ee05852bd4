"""Ids for objects: unpredictable, so that nobody can guess one, and practically unique."""

from __future__ import annotations

import secrets
from collections.abc import Iterable

from syft_core.exceptions import IdNotUniqueError

ID_BITS = 62


class IdProvider:
    """Give out ids; ids given in advance come first, in their order.

    Nothing is remembered: 62 random bits make a repetition less likely than a hardware fault.

    >>> IdProvider([7]).pop()
    7
    """

    def __init__(self, given_ids: Iterable[int] = ()) -> None:
        self._given = list(given_ids)
        if len(set(self._given)) != len(self._given):
            raise IdNotUniqueError.of(next(i for i in self._given if self._given.count(i) > 1))

    def pop(self) -> int:
        """Return the next id."""
        return self._given.pop(0) if self._given else secrets.randbits(ID_BITS)
