"""Shapes that come from a message: counted in unbounded integers before anything believes them."""

from __future__ import annotations

from collections.abc import Sequence

from syft_core.exceptions import SerdeError

MAX_DIMENSIONS = 64


def element_count(shape: Sequence[object]) -> int:
    """Return how many elements ``shape`` declares; refuse what no array can have.

    >>> element_count([3, 4])
    12
    """
    count = 1
    for length in shape:
        if type(length) is not int or length < 0:
            raise SerdeError("cannot rebuild an array: its shape has a length that is no natural number; send it again")
        count *= length
    if len(shape) > MAX_DIMENSIONS or count >= 2**63:
        raise SerdeError(f"cannot rebuild an array: it has more than {MAX_DIMENSIONS} dimensions or 2**63 elements")
    return count
