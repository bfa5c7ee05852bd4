"""The context that codecs receive: the worker, the limits and the options of one call."""

from __future__ import annotations

import mmap
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from syft_core.exceptions import SerdeError
from syft_core.peer import Owner
from syft_core.serde.received import copy_writable

if TYPE_CHECKING:
    from syft_core.serde.layout import Frame


@dataclass(frozen=True)
class Limits:
    """Bounds on one message, each checked before memory is allocated.

    ``max_structure`` bounds the part that becomes Python objects, which take up to about sixty times its bytes.
    ``max_bytes`` bounds the whole message, and ``max_expanded`` the compressed parts after decompression. ``max_range``
    bounds the total length of all ranges, because a few bytes can describe a range of any length; None means no bound,
    for readers that do not iterate over ranges.
    """

    max_depth: int = 128
    max_nodes: int = 4_000_000
    max_frames: int = 100_000
    max_structure: int = 64 * 2**20
    max_bytes: int = 16 * 2**30
    max_expanded: int = 2**30
    max_range: int | None = None

    def check_header(self, buffers: int, structure: int) -> None:
        """Raise if there are too many buffers or the structure is too long."""
        self.check("buffers", buffers, self.max_frames)
        self.check("bytes of structure", structure, self.max_structure)

    def check(self, what: str, found: int, allowed: int) -> None:
        """Raise if ``found`` exceeds ``allowed``."""
        if found > allowed:
            raise SerdeError(
                f"cannot accept a message with {found} {what}: the limit is {allowed}; send it in parts, "
                f"or raise `Limits` at both ends"
            )


PEER_LIMITS = Limits(
    max_nodes=100_000,
    max_structure=8 * 2**20,
    max_bytes=2**30,
    max_expanded=64 * 2**20,
    max_range=100_000,
)
"""The default limits of a worker for messages from peers."""


@dataclass(frozen=True)
class Context:
    """The options of one ``serialize`` or ``deserialize`` call, passed to every codec.

    - ``worker``: the sender or receiver, or None; codecs read its ``id`` and ``serializer``.
    - ``receiver``: the id of the receiving worker, if known; references to its own objects are then shorter.
    - ``limits``: bounds on the message.
    - ``writable``: whether received arrays own writable memory; if False they are views of the received bytes.
    - ``compression``: "none", "auto", "zlib" or "lz4"; only used for writing.
    - ``device_fallback``: the device for tensors whose device is missing here; None refuses them.
    - ``allow_scripts``: whether compiled programs, which run code, may be loaded.
    """

    worker: Owner | None = None
    receiver: int | str | None = None
    limits: Limits = field(default_factory=Limits)
    writable: bool = True
    compression: str = "none"
    device_fallback: str | None = "cpu"
    allow_scripts: bool = False

    def take_ownership(self, data: Frame) -> Frame | mmap.mmap:
        """Return memory that the decoded object may keep: writable, or a view of ``data`` if ``writable`` is False.

        Writable memory already belongs to the receiver, so it is not copied.
        """
        if not self.writable:
            return data
        if type(data) is bytes or memoryview(data).readonly:
            return copy_writable(data)
        return data


DEFAULT = Context()
VIEWS = Context(writable=False)


def resolve_context(context: Context | None, writable: bool | None) -> Context:
    """Return ``context``, or the default, with ``writable`` set unless it is None."""
    chosen = DEFAULT if context is None else context
    if writable is None or writable == chosen.writable:
        return chosen
    if chosen is DEFAULT:
        return VIEWS
    return replace(chosen, writable=writable)
