"""ProtocolRun: one party's execution of a protocol; it advances whenever the messages it waits for have arrived."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import cached_property, reduce
from hmac import compare_digest
from operator import add, xor
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from syft_core.values import Nested
from syft_mpc.errors import ProtocolError
from syft_mpc.kernels import RINGS, Array, dtype_name
from syft_mpc.payloads import PartyPayload, bytes_in
from syft_mpc.prg import SEED_BYTES, derive_key
from syft_mpc.protocol import (
    PROVIDER,
    Common,
    Correlation,
    Draw,
    Keep,
    Need,
    Open,
    OpenBits,
    Recall,
    Receive,
    Rest,
    Send,
    Spec,
    Steps,
    Verify,
    Zeros,
    expand,
    spec_of,
)

if TYPE_CHECKING:
    from syft_mpc.channel import Channel

Finish: TypeAlias = Callable[[Nested, Exception | None], None]
"""Takes the result of a run, or its error."""
CallName: TypeAlias = Callable[[], bytes]
"""Returns what identifies a call; see Note [Calls] in protocol.py."""
Seeds: TypeAlias = dict[int, bytes]
"""The seed that a run has in common with each other rank."""
Drawn: TypeAlias = dict[bytes, int]
"""Number of correlations of each form that a run has used and that were not prepared."""
MAX_SMALL = 1 << 14
"""Bytes that fit into the buffers of a connection, so that sending them does not wait for the receiver."""


PROOF = Spec((SEED_BYTES,), "uint8")
"""The form of a proof of who sent a message."""


class PreparedAt(NamedTuple):
    """The run that prepared a correlation, and its place among all that the run prepared."""

    number: int
    offset: int


def count_draw(drawn: Drawn, demand: Correlation) -> int:
    """Return how many correlations of a form were used before, and count one more."""
    index = drawn.get(demand.label, 0)
    drawn[demand.label] = index + 1
    return index


class ProtocolRun:
    """One party's run of a protocol. ``advance`` continues it as far as possible, and never waits.

    With ``waits``, the run has a thread of its own, which calls ``wait`` between two advances. Threads that deliver
    what others sent advance it too, but leave it to its own thread to send what is large: they must go on reading, so
    that two parties cannot wait for each other to read.
    """

    def __init__(
        self,
        channel: Channel,
        number: int,
        seeds: Seeds,
        steps: Steps,
        finish: Finish,
        waits: bool = False,
        call: CallName = bytes,
        proves: bool = False,
    ) -> None:
        self._channel, self._number, self._steps, self._finish = channel, number, steps, finish
        self._seeds = seeds
        """Forgotten when the run ends; see Note [Forgotten seeds] in channel.py."""
        self._describe_call = call
        self._proves = proves
        self._proofs: dict[bytes, int] = {}
        """Number of messages that have been proved, by direction."""
        self._lock = threading.Lock()
        self._signals: SimpleQueue[None] | None = SimpleQueue() if waits else None
        self._request: Need | None = None
        self._unsent: Sequence[Array] | None = None
        """Shares of the current request that have not been sent, because they are large."""
        self.progress = 0
        """Number of requests that have been answered."""
        self._commons: dict[int, int] = {}
        """Number of requests for random arrays in common with each other rank; both ranks count the same."""
        self._drawn: Drawn = {}
        self._draws: deque[Draw] = deque()
        """The draws that were not prepared, and for which the first party has no corrections yet, in order."""
        self._corrections: deque[PartyPayload] = deque()
        self._started = False
        self.cancelled: Exception | None = None
        """Why the run cannot continue; it ends at the next advance."""
        self.has_ended = False

    @cached_property
    def _call(self) -> bytes:
        """Identifies the call; most protocols do not need it."""
        return self._describe_call()

    def wait(self, seconds: float) -> bool:
        """Wait until the thread of the run has something to do; return whether it has."""
        try:
            self._signals.get(timeout=seconds)  # type: ignore[union-attr]  # only runs with ``waits``
        except Empty:
            return False
        return True

    def cancel(self, error: Exception) -> None:
        """End the run with an error: in its own thread if it has one, or in the one that is advancing it."""
        self.cancelled = error
        if self._signals is None:
            self.advance()
        else:
            self._signals.put(None)

    @property
    def waits_for(self) -> list[int]:
        """The ranks of the parties from which the run needs something to continue."""
        channel, request = self._channel, self._request
        if type(request) is Rest:
            return [PROVIDER] if self._lacks_corrections(request.draw) else []
        arrived = channel.inboxes(self._number)
        return [rank for rank in self._senders(request) if not arrived.get(rank)]

    def advance(self, is_owner: bool = False) -> None:
        """Continue as long as everything that the protocol asks for is there."""
        is_owner = is_owner or self._signals is None
        while self._may_continue(is_owner):
            if not self._lock.acquire(blocking=False):
                return  # The thread that is advancing it checks again before leaving.
            try:
                with self._channel.arrays.wrapping_around():
                    while self._may_continue(is_owner):
                        self._take_step(is_owner)
            finally:
                self._lock.release()
        if not is_owner and (self.has_ended or self._unsent is not None):
            self._signals.put(None)  # type: ignore[union-attr]  # only runs with a thread have an owner

    def _fail(self, error: Exception) -> None:
        self._end(error)
        self._steps.close()
        self._channel.notify(self._number, error)
        self._finish(None, error)

    def _may_continue(self, is_owner: bool) -> bool:
        if self.has_ended:
            return False
        if self.cancelled is not None:
            return True
        if self._unsent is not None:
            return is_owner
        return not self.waits_for

    def _senders(self, request: Need | None) -> Sequence[int]:
        if type(request) is Open or type(request) is OpenBits:
            return self._channel.opponents
        return (request.sender,) if type(request) is Receive else ()

    def _take_step(self, is_owner: bool) -> None:
        try:
            if self.cancelled is not None:
                raise self.cancelled
            if self._unsent is not None:
                self._send_shares(self._unsent)
                return
            answer = _ANSWERS[type(self._request)](self, self._request) if self._started else None
            self._started = True
            self.progress += 1
            request = self._request = self._steps.send(answer)
            if type(request) is Open or type(request) is OpenBits:
                if is_owner or bytes_in(request.shares) <= MAX_SMALL:
                    self._send_shares(request.shares)
                else:
                    self._unsent = request.shares
        except StopIteration as end:
            self._end()
            self._finish(end.value, None)
        except Exception as error:  # noqa: BLE001  # reported to the client
            self._fail(error)

    def _end(self, error: Exception | None = None) -> None:
        self.has_ended = True
        self._seeds.clear()
        self._channel.end(self._number, error)

    def _send_shares(self, shares: Sequence[Array]) -> None:
        self._unsent = None
        for rank in self._channel.opponents:
            self._channel.post(rank, self._number, shares)

    def _open(self, request: Open | OpenBits) -> list[Array]:
        channel = self._channel
        received = [channel.take(self._number, rank) for rank in channel.opponents]
        self._check(channel.opponents, forms_of(request.shares), received)
        return [join_shares(parts) for parts in zip(request.shares, *received, strict=True)]

    def _send(self, request: Send) -> None:
        arrays = request.arrays
        if self._proves:
            proof = bytearray(self._prove(request.to, self._channel.rank, request.to))
            arrays = (*arrays, self._channel.arrays.from_bytes(proof, PROOF.dtype, PROOF.shape))
        self._channel.post(request.to, self._number, arrays)

    def _receive(self, request: Receive) -> PartyPayload:
        channel, sender = self._channel, request.sender
        received = channel.take(self._number, sender)
        self._check([sender], [*request.specs, *([PROOF] if self._proves else [])], [received])
        if not self._proves:
            return received
        *arrays, proof = received
        if not compare_digest(channel.arrays.to_bytes(proof), self._prove(sender, sender, channel.rank)):
            raise ProtocolError.foreign(channel.name_of(sender))
        return tuple(arrays)

    def _prove(self, other: int, sender: int, receiver: int) -> bytes:
        """Return a proof that only the sender and the receiver of a message can compute, if both run the same call.

        It differs for each message, so no party is accused of what another one sent, or of a message of another call.
        """
        label = b"proof" + repr((sender, receiver)).encode() + self._call
        index = self._proofs[label] = self._proofs.get(label, 0) + 1
        return derive_key(self._seeds[other], label, index)

    def _find_common(self, request: Common) -> list[Array]:
        other = sum(request.ranks) - self._channel.rank
        if request.label:
            return self._channel.lasting(other, request.label, request.specs)
        index = self._commons[other] = self._commons.get(other, 0) + 1
        return self._channel.common(self._seeds, other, self._call, index, request.specs)

    def _find_zeros(self, request: Zeros) -> list[Array]:
        return self._channel.zeros(self._seeds, self._call, self.progress, request.specs)

    def _check(self, senders: Sequence[int], expected: list[Spec] | None, received: Sequence[PartyPayload]) -> None:
        """Raise unless each party sent arrays of the expected forms."""
        for rank, arrays in zip(senders, received, strict=True):
            if forms_of(arrays) != expected:
                raise ProtocolError.malformed(self._channel.name_of(rank))

    # --- correlations

    def _draw(self, draw: Draw) -> list[Array]:
        channel, demand = self._channel, draw.correlation
        free, _ = demand.forms
        if channel.rank == PROVIDER:
            channel.deal(self._number, self._seeds, [demand], self._drawn)
            return [None] * len(free)
        stream, place = channel.draw(self._seeds, demand, self._drawn)
        draw.rest = stream
        if channel.rank == 0:
            draw.rest = place
            if place is None:
                self._draws.append(draw)
        return expand(channel.arrays, stream, free)

    def _lacks_corrections(self, draw: Draw) -> bool:
        """Return whether the first party has to wait for the provider; other threads may change the counts."""
        channel = self._channel
        if type(draw.rest) is PreparedAt:
            return not channel.has_stock(draw.rest)
        if channel.rank != 0 or draw.rest is not None:
            return False
        waiting = list(self._draws)
        needed = waiting.index(draw) + 1 if draw in waiting else 0
        arrived = [payload for payload, _ in list(channel.inbox(self._number, PROVIDER))]
        return len(self._corrections) + sum(map(len, map(_corrections_in, arrived))) < needed

    def _find_corrections(self, draw: Draw) -> None:
        """Give a draw the first party's corrections, and those before it: the provider sends them in this order."""
        if type(draw.rest) is PreparedAt:
            draw.rest = self._channel.take_stock(draw.rest)
        while draw.rest is None:
            while not self._corrections:
                self._corrections.extend(_corrections_in(self._channel.take(self._number, PROVIDER)))
            self._draws.popleft().rest = self._corrections.popleft() or ()

    def _take_rest(self, request: Rest) -> Sequence[Array]:
        channel, draw = self._channel, request.draw
        _, dependent = draw.correlation.forms
        if channel.rank == PROVIDER:
            return [None] * len(dependent)
        if channel.rank != 0:
            return expand(channel.arrays, draw.rest, dependent)
        self._find_corrections(draw)
        if forms_of(draw.rest) != list(dependent):
            raise ProtocolError.malformed(channel.provider)
        return draw.rest  # type: ignore[no-any-return]  # its forms were compared


_ANSWERS: dict[type, Callable[..., PartyPayload]] = {
    Open: ProtocolRun._open,
    OpenBits: ProtocolRun._open,
    Draw: ProtocolRun._draw,
    Rest: ProtocolRun._take_rest,
    Keep: lambda run, request: run._channel.keep_mask(run._number, request),
    Recall: lambda run, request: run._channel.recall_mask(request),
    Send: ProtocolRun._send,
    Receive: ProtocolRun._receive,
    Common: ProtocolRun._find_common,
    Zeros: ProtocolRun._find_zeros,
    Verify: lambda run, request: run._channel.verify(request),
}
"""How each request is answered, when everything that it needs has arrived."""


def _corrections_in(payload: PartyPayload) -> Sequence[PartyPayload]:
    """Return the corrections that the provider has sent; a malformed payload counts as one, and is refused later."""
    return payload if type(payload) is tuple and payload else (None,)


def join_shares(arrays: Sequence[Array]) -> Array:
    """Return the value of shares: their sum, or their XOR if they are not integers of the ring."""
    return reduce(add if dtype_name(arrays[0]) in RINGS else xor, arrays)


def forms_of(arrays: PartyPayload) -> list[Spec] | None:
    """Return the forms of a tuple of arrays; None if it is something else."""
    if type(arrays) is not tuple:
        return None
    try:
        return list(map(spec_of, arrays))
    except AttributeError:
        return None
