"""The messages of groups of parties that compute on shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import msgpack

from syft_core.messages import MAX_RESULTS, Message, MessageFacts


@dataclass(slots=True)
class OpenChannel(Message):
    """Join a group of parties that compute on shares; the ``rank`` of the provider is -1.

    The answer is False, and there is no channel, if the worker does not have the keys of an earlier one, or does not
    use them any more.
    """

    code: ClassVar[int] = 350
    facts: ClassVar[MessageFacts] = MessageFacts(
        text=lambda m: f"open a channel of {', '.join(map(str, m.parties))}", is_personal=True, waits=True
    )
    id: int | str
    framework: str
    parties: tuple[int | str, ...]
    provider: int | str | None
    rank: int
    keys: int | str
    """The channel of the same group whose keys for tags it uses: an earlier one, or itself, which has new keys."""


@dataclass(slots=True)
class RunProtocol(Message):
    """Run a protocol with the other parties of a channel: on shares, or on their forms if the provider receives it."""

    code: ClassVar[int] = 351
    facts: ClassVar[MessageFacts] = MessageFacts(
        text=lambda m: f"run {m.name}",
        creates=lambda m, _receiver: (m.result,),
        is_personal=True,
        is_urgent=True,
        waits=True,
    )
    id: int | str
    number: int
    """The number of the run; all parties use the same, and each number once."""
    name: str
    args: tuple[Any, ...]
    options: dict[str, Any]
    result: int
    count: int
    waits: bool
    """Whether to wait for the other parties; a worker in the client's process continues when they are started."""

    @property
    def expected(self) -> range:
        """The ids of the results."""
        return range(self.result, self.result + self.count) if 0 < self.count <= MAX_RESULTS else range(0)


@dataclass(slots=True)
class Prepare(Message):
    """Prepare the correlations of a protocol for later runs on operands of these forms: the provider deals them now."""

    code: ClassVar[int] = 352
    facts: ClassVar[MessageFacts] = MessageFacts(text=lambda m: f"prepare {m.name}", is_personal=True, waits=True)
    id: int | str
    number: int
    """The number of a run, in which nothing else happens."""
    name: str
    args: tuple[Any, ...]
    options: dict[str, Any]
    times: int


@dataclass(slots=True)
class Deposit(Message):
    """Pass a payload from one party of a channel to another, for the run of a number."""

    code: ClassVar[int] = 353
    facts: ClassVar[MessageFacts] = MessageFacts(
        text=lambda m: f"deposit for run {m.number}",
        mandate=lambda m, _receiver: (m.id,),
        is_urgent=True,
        is_note=True,
        waits=True,
    )
    id: int | str
    number: int
    payload: Any
    """A buffer of ``payloads.py`` or a piece of one, half a seed, or None if the sender has failed."""
    left: int = 0
    """Bytes of the buffer that follow in further deposits."""

    def to_frames(self) -> list[Any]:
        """Return the deposit as frames, for a transport that sends it without the envelope of other messages."""
        seed = self.payload if type(self.payload) is bytes else None
        head = msgpack.packb((self.code, self.id, self.number, seed, self.left))
        return [head] if seed is not None or self.payload is None else [head, self.payload]

    @classmethod
    def from_frames(cls, fields: list[Any], rest: Sequence[Any]) -> Deposit:
        """Invert ``to_frames``."""
        id, number, seed, left = fields
        fits = type(id) in (int, str) and type(number) is type(left) is int and type(seed) in (bytes, type(None))
        if not fits or len(rest) > 1:
            raise ValueError("a field has a wrong type")
        return cls(id, number, rest[0] if rest else seed, left)
