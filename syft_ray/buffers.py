"""Frames as arguments and results of Ray's calls; large ones are read from its object store without a copy."""

from __future__ import annotations

from collections.abc import Sequence
from pickle import PickleBuffer  # only marks a buffer: nothing is pickled or unpickled here

from syft_core.serde.layout import Frame

SMALL = 4096
"""Frames of up to this many bytes are passed inline."""


def pack(frames: Sequence[Frame]) -> list[bytes | PickleBuffer]:
    """Return frames to pass to a call, which copies them before it returns."""
    return [bytes(frame) if len(frame) <= SMALL else PickleBuffer(frame) for frame in frames]


def unpack(received: Sequence[Frame]) -> list[Frame]:
    """Return the frames of a call; large ones are read-only views of the object store."""
    return [frame if type(frame) is bytes else memoryview(frame).toreadonly() for frame in received]
