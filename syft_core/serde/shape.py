"""Validate received shapes, with Python's unbounded integers, before memory is allocated."""

from __future__ import annotations

from syft_core.exceptions import SerdeError

MAX_DIMENSIONS = 64


def count_elements(shape: object) -> int:
    """Return the number of elements of ``shape``; raise if no array can have it.

    >>> count_elements([3, 4])
    12
    """
    if not isinstance(shape, list | tuple):  # Iterating over a range may never end; a tensor may be remote.
        raise SerdeError(f"cannot rebuild an array: its shape is a {type(shape).__name__} (malformed message)")
    if len(shape) > MAX_DIMENSIONS:
        raise SerdeError(f"cannot rebuild an array: it has more than {MAX_DIMENSIONS} dimensions")
    count = 1
    for length in shape:
        if type(length) is not int or length < 0:
            raise SerdeError("cannot rebuild an array: its shape has an invalid length (malformed message)")
        count *= length
    if count >= 2**63:
        raise SerdeError("cannot rebuild an array: it has more than 2**63 elements")
    return count


def count_bytes(data: object) -> int:
    """Return the length of received bytes; raise for any other type."""
    if type(data) is not bytes and type(data) is not memoryview:
        raise SerdeError(f"cannot rebuild an array: expected bytes, got {type(data).__name__} (malformed message)")
    return len(data)
