"""What a codec may know while it works: who reads, within which limits, and what the reader allows."""

from __future__ import annotations

import mmap
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from syft_core.exceptions import SerdeError
from syft_core.serde.memory import copy_writable

if TYPE_CHECKING:
    from syft_core.serde.layout import Frame


@dataclass(frozen=True)
class Limits:
    """What one message may ask of its reader; every bound is checked before memory is taken for it.

    ``max_structure`` bounds the part that becomes Python objects, which take up to some sixty times the bytes
    that describe them; ``max_bytes`` bounds everything together, and ``max_expanded`` what compressed parts become.
    ``max_range`` bounds the values that all ranges together stand for: a few bytes describe any number of them. None
    means no bound, for readers that walk none.
    """

    max_depth: int = 128
    max_nodes: int = 4_000_000
    max_frames: int = 100_000
    max_structure: int = 64 * 2**20
    max_bytes: int = 16 * 2**30
    max_expanded: int = 2**30
    max_range: int | None = None

    def check_header(self, buffers: int, structure: int) -> None:
        """Refuse a message with too many buffers or too long a structure."""
        self.check("buffers", buffers, self.max_frames)
        self.check("bytes of structure", structure, self.max_structure)

    def check(self, what: str, found: int, allowed: int) -> None:
        """Refuse ``found`` when it is more than ``allowed``."""
        if found > allowed:
            raise SerdeError(
                f"cannot take a message with {found} {what}: the limit is {allowed}; send it in parts, "
                f"or raise `Limits` at both ends"
            )


PEER_LIMITS = Limits(
    max_nodes=100_000,
    max_structure=8 * 2**20,
    max_bytes=64 * 2**20,
    max_expanded=64 * 2**20,
    max_range=100_000,
)
"""What a worker takes from its peers unless it was told otherwise."""


@dataclass(frozen=True)
class Context:
    """The surroundings of one ``serialize`` or ``deserialize``, handed to every codec.

    - ``worker``: who sends or receives; a codec may ask it for ``id`` and ``serializer``, it may be None.
    - ``receiver``: the id of the worker that a message goes to, if it is known: names of its own objects are shorter.
    - ``limits``: what a message may cost.
    - ``writable``: received arrays own writable memory; False gives views of the received bytes instead.
    - ``compression``: "none", "auto", "zlib" or "lz4"; only the writer looks at it.
    - ``device_fallback``: where a value goes whose device the receiver lacks; None refuses it.
    - ``allow_scripts``: whether compiled programs may be loaded; they run code, so the receiver must say yes.
    """

    worker: Any = None
    receiver: int | str | None = None
    limits: Limits = field(default_factory=Limits)
    writable: bool = True
    compression: str = "none"
    device_fallback: str | None = "cpu"
    allow_scripts: bool = False

    def take_ownership(self, data: Frame) -> Frame | mmap.mmap:
        """Return ``data`` as memory that the decoded object may keep: its own and writable, unless views will do.

        Received memory that is writable already belongs to the receiver and is taken over without a copy.
        """
        if not self.writable:
            return data
        if type(data) is bytes or memoryview(data).readonly:
            return copy_writable(data)
        return data


DEFAULT = Context()
VIEWS = Context(writable=False)


def resolve_context(context: Context | None, writable: bool | None) -> Context:
    """Return ``context`` (or the default) with ``writable`` as asked for."""
    chosen = DEFAULT if context is None else context
    if writable is None or writable == chosen.writable:
        return chosen
    if chosen is DEFAULT:
        return VIEWS
    return replace(chosen, writable=writable)
