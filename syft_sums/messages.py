"""The messages with which a client has results of several workers summed: three a round, and one before a study."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from syft_core.messages import Message, MessageFacts
from syft_core.values import Args


def _describe(verb: str, masks: bool = False) -> MessageFacts:
    return MessageFacts(text=lambda message: f"{verb} round {message.round}", is_personal=True, returns_masked=masks)


@dataclass(slots=True)
class AskMember(Message):
    """Return the key of a worker, for how many sums it has masked, and its last round of a study for the sender."""

    code: ClassVar[int] = 385
    facts: ClassVar[MessageFacts] = MessageFacts(text=lambda _m: "ask the key for sums", is_personal=True)
    study: bytes = b""


@dataclass(slots=True)
class JoinSum(Message):
    """Keep results for a round of a study, and return a signed ``Ready``."""

    code: ClassVar[int] = 382
    facts: ClassVar[MessageFacts] = MessageFacts(
        text=lambda message: f"join round {message.round} of sums",
        uses=lambda message, _receiver: message.results,
        is_personal=True,
    )
    name: str
    """The name of the study."""
    roster: tuple[bytes, ...]
    """The keys of its workers, in order."""
    colluding: int
    round: int
    results: tuple[int | str, ...]
    weights: str
    """How results that are means are weighted: "samples" or "equal"."""


@dataclass(slots=True)
class MaskSum(Message):
    """Mask the results of a round for a list of workers; the answer is a ``MaskedVector``, and the departure."""

    code: ClassVar[int] = 383
    facts: ClassVar[MessageFacts] = _describe("mask", masks=True)
    study: bytes
    round: int
    statements: Args
    """The ``Ready`` of each worker of the list, in the order of the keys."""


@dataclass(slots=True)
class RevealSum(Message):
    """Reveal the mask of a list for which all its workers have masked; the answer is a ``Revealed``."""

    code: ClassVar[int] = 384
    facts: ClassVar[MessageFacts] = _describe("reveal")
    study: bytes
    round: int
    list: bytes
    proofs: Args
    """The ``Proof`` of each worker of the list, in the order of the keys."""
    gone: tuple[bytes, ...] = ()
    """The keys of those who do not answer any more."""
    sealed: tuple[bytes, ...] = ()
    """Their shares for the receiver."""
