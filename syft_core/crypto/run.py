"""Channels and runs: the state of a party that computes with others, independent of how messages travel.

A ``Channel`` belongs to one worker and one group of parties. It holds the seeds that the worker shares with the others,
and the protocols that it is running for a client. ``receive`` takes what another party sent; a run that waited for it
goes on at once, in the thread that delivered it. So no thread waits for a message, in one process or across machines.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeAlias

from syft_core.crypto.kernels import Array, Kernels, Shape, dtype_name, size_of
from syft_core.crypto.prg import Stream, new_seed
from syft_core.crypto.protocol import (
    PROTOCOLS,
    PROVIDER,
    Common,
    Correlation,
    Draw,
    Open,
    OpenBits,
    Party,
    Receive,
    Request,
    Send,
    Spec,
    Steps,
    Verify,
    Zeros,
    rehearse,
)
from syft_core.exceptions import CheatingError, ProtocolError, SyftError
from syft_core.peer import Id, Peer

Post: TypeAlias = Callable[[int, int, Any], None]
"""Sends to the party of a rank, for the run of a number, a payload."""
Finish: TypeAlias = Callable[[Any, Exception | None], None]
"""Takes the result of a run, or its error."""
MAX_CHANNELS = 1024
SETUP = 0
"""The number under which seeds are exchanged; runs start at 1."""


def is_failure(payload: object) -> bool:
    """Return whether a payload says that its sender has failed: the error, or None from another process."""
    return payload is None or isinstance(payload, Exception)


class Channel:
    """One party's end of a group of parties: its rank, seeds, and current runs."""

    def __init__(self, parties: Sequence[Id], provider: Id | None, rank: int, kernels: Kernels, post: Post) -> None:
        self.parties, self.provider, self.rank, self.kernels = tuple(parties), provider, rank, kernels
        self.party = Party(rank, len(self.parties), kernels)
        self._post = post
        self._lock = threading.Lock()
        self._seeds: dict[int, bytes] = {}
        """The seed shared with each other party, by rank; the provider shares one with each party."""
        self._used: dict[bytes, int] = {}
        """How many correlations of each form have been used."""
        self._stock: dict[tuple[bytes, int], Any] = {}
        """Corrections that the provider has sent in advance, by form and number."""
        self._inboxes: dict[int, dict[int, deque[Any]]] = {}
        self._runs: dict[int, ProtocolRun] = {}
        self._last = SETUP
        self._cheating: CheatingError | None = None

    def name_of(self, rank: int) -> Id | None:
        """Return the worker of a rank."""
        return self.provider if rank == PROVIDER else self.parties[rank]

    def rank_of(self, worker: Id) -> int | None:
        """Return the rank of a worker, or None if it is not part of the group."""
        if worker in self.parties:
            return self.parties.index(worker)
        return PROVIDER if worker == self.provider and self.provider is not None else None

    def share_seeds(self) -> None:
        """Send a fresh seed to every party of a higher rank; the provider sends one to each party."""
        for rank in range(self.rank + 1, len(self.parties)):
            self._seeds[rank] = new_seed()
            self._post(rank, SETUP, self._seeds[rank])

    # --- runs

    def start(self, number: int, steps: Steps, finish: Finish) -> ProtocolRun:
        """Run a protocol under a number, which must be larger than all before: randomness is never used twice."""
        with self._lock:
            self._claim(number)
            run = self._runs[number] = ProtocolRun(self, number, steps, finish)
        if self._cheating is not None:
            run.fail(CheatingError(*self._cheating.args))
        run.advance()
        return run

    def skip(self, number: int) -> None:
        """Take note of a run in which the provider has no role."""
        with self._lock:
            self._claim(number)

    def accuse(self, rank: int) -> CheatingError:
        """End all later runs at once, because a party cheated: each attempt may reveal something about keys."""
        self._cheating = CheatingError.by(self.name_of(rank))
        return self._cheating

    def _claim(self, number: int) -> None:
        if number <= self._last:
            raise ProtocolError(f"cannot start run {number}: a later one was started already (malformed message)")
        self._last = number

    def deal(self, number: int, demands: Sequence[Correlation]) -> None:
        """Deal correlations for a run: send the corrections to the first party."""
        corrections = []
        for demand in demands:
            index = self._count(demand)
            if not self._stock.pop((demand.label, index), False):
                corrections.append(self._correct(demand, index))
        if corrections:
            self.post(0, number, tuple(corrections))

    def prepare(self, demand: Correlation, times: int) -> None:
        """Deal correlations before they are used: send their corrections to the first party's stock."""
        first = max([self._used.get(demand.label, 0), *(n + 1 for label, n in self._stock if label == demand.label)])
        for index in range(first, first + times):
            self._stock[demand.label, index] = True
            self._post(0, SETUP, (demand.label, index, self._correct(demand, index)))

    def receive(self, rank: int, number: int, payload: Any) -> None:
        """Take what another party sent, and continue the run that waits for it."""
        if number == SETUP:
            self._set_up(rank, payload)
            with self._lock:
                runs = list(self._runs.values())
        else:
            with self._lock:
                if number < self._last and number not in self._runs:
                    return  # It ended with an error here.
                self._inboxes.setdefault(number, {}).setdefault(rank, deque()).append(payload)
                run = self._runs.get(number)
            runs = [run] if run is not None else []
        for run in runs:
            run.advance()

    def _set_up(self, rank: int, payload: Any) -> None:
        if payload is None:
            return  # It only shows that the sender can reach this party.
        if type(payload) is bytes:
            if rank >= self.rank or rank in self._seeds:
                raise ProtocolError("cannot accept a seed: the sender may not choose it (malformed message)")
            self._seeds[rank] = payload
        elif rank == PROVIDER and self.rank == 0:
            label, index, correction = payload
            self._stock[label, index] = correction
        else:
            raise ProtocolError("cannot accept a correction: only the provider sends them (malformed message)")

    def end(self, number: int) -> None:
        """Forget a run that has ended."""
        with self._lock:
            self._runs.pop(number, None)
            self._inboxes.pop(number, None)

    def abort(self, error: Exception) -> None:
        """End all runs with an error."""
        for run in list(self._runs.values()):
            run.fail(error)

    # --- what runs ask for

    def post(self, rank: int, number: int, payload: Any) -> None:
        """Send a payload to a party, for a run."""
        counted = counting.get()
        if counted is not None and type(payload) is tuple:
            counted.note(self.rank, rank, _bytes_in(payload))
        self._post(rank, number, payload)

    def ping(self, rank: int) -> None:
        """Raise if a party cannot be reached."""
        self._post(rank, SETUP, None)

    def inbox(self, number: int, rank: int) -> deque[Any]:
        """Return what a party has sent for a run."""
        return self._inboxes.setdefault(number, {}).setdefault(rank, deque())

    def has_seeds(self) -> bool:
        """Return whether all seeds have arrived."""
        others = len(self.parties) - (self.rank != PROVIDER) + (self.provider is not None and self.rank != PROVIDER)
        return len(self._seeds) == others

    def draw(self, demand: Correlation, correction: Sequence[Array] | None, index: int) -> list[Array]:
        """Return this party's shares of a correlation."""
        stream = Stream(self._seeds[PROVIDER], demand.label, index)
        free = self._expand(stream, demand.free())
        return [*free, *(self._expand(stream, demand.dependent()) if correction is None else correction)]

    def _count(self, demand: Correlation) -> int:
        index = self._used.get(demand.label, 0)
        self._used[demand.label] = index + 1
        return index

    def find_correction(self, number: int, demand: Correlation) -> tuple[int, Any]:
        """Return the number of the next correlation of a form, and the first party's correction, which has arrived."""
        if self.rank != 0:
            return self._count(demand), None
        index = self._used.get(demand.label, 0)
        if (demand.label, index) in self._stock:
            return self._count(demand), self._stock.pop((demand.label, index))
        inbox = self.inbox(number, PROVIDER)
        payload = inbox.popleft()
        if is_failure(payload):
            return -1, payload
        first, *rest = payload  # The provider sends the corrections of a run together.
        if [Spec(tuple(x.shape), dtype_name(x)) for x in first] != list(demand.dependent()):
            raise ProtocolError.malformed(self.provider)
        if rest:
            inbox.appendleft(tuple(rest))
        return self._count(demand), first

    def _correct(self, demand: Correlation, index: int) -> tuple[Array, ...]:
        """Return the first party's shares of the dependent arrays of a correlation."""
        streams = [Stream(self._seeds[rank], demand.label, index) for rank in range(len(self.parties))]
        free = [
            _join(arrays) for arrays in zip(*[self._expand(stream, demand.free()) for stream in streams], strict=True)
        ]
        values = demand.derive(self.kernels, *free)
        others = zip(*[self._expand(stream, demand.dependent()) for stream in streams[1:]], strict=True)
        return tuple(_subtract(value, _join(shares)) for value, shares in zip(values, others, strict=True))

    def common(self, other: int, label: bytes, number: int, specs: Sequence[Spec]) -> list[Array]:
        """Return random arrays that this party and another one know."""
        return self._expand(Stream(self._seeds[other], b"common" + label, number), specs)

    def zeros(self, number: int, step: int, specs: Sequence[Spec]) -> list[Array]:
        """Return shares of zeros: each pair of parties adds and subtracts the same random numbers."""
        totals: list[Array] | None = None
        for other in range(len(self.parties)):
            if other == self.rank:
                continue
            stream = Stream(self._seeds[other], b"zeros", number << 16 | step)
            arrays = self._expand(stream, specs)
            if other < self.rank:
                arrays = [-x if spec.is_additive else x for spec, x in zip(specs, arrays, strict=True)]
            totals = arrays if totals is None else [_join(pair) for pair in zip(totals, arrays, strict=True)]
        return totals or []

    def _expand(self, stream: Stream, specs: Sequence[Spec]) -> list[Array]:
        return [spec.expand(self.kernels, stream) for spec in specs]


class Channels:
    """The channels of a worker, by the client that opened them and their id."""

    def __init__(self) -> None:
        self._channels: dict[tuple[Peer, Id], Channel] = {}

    def add(self, client: Peer, id: Id, channel: Channel) -> None:
        """Add a channel, under an id that its client has not used; the oldest one is forgotten when there are many."""
        if (client, id) in self._channels:
            raise ProtocolError(f"cannot open channel {id!r}: it exists already; choose another id")
        if len(self._channels) >= MAX_CHANNELS:
            self._channels.pop(next(iter(self._channels)))
        self._channels[client, id] = channel

    def find(self, client: Peer, id: Id) -> Channel:
        """Return the channel of a client."""
        channel = self._channels.get((client, id))
        if channel is None:
            raise ProtocolError.unknown_channel(id)
        return channel


class ProtocolRun:
    """One party's run of a protocol. ``advance`` takes it as far as possible; it never waits."""

    def __init__(self, channel: Channel, number: int, steps: Steps, finish: Finish) -> None:
        self._channel, self._number, self._steps, self._finish = channel, number, steps, finish
        self._lock = threading.Lock()
        self._request: Request | None = None
        self._posted = False
        self._step = 0
        self._commons: dict[int, int] = {}
        """How often random arrays in common with each other rank were asked for; both ranks count the same."""
        self._started = False
        self._ended = False

    @property
    def waits_for(self) -> list[int]:
        """The ranks of the parties from which the run needs something to continue."""
        return self._missing()

    def advance(self) -> None:
        """Continue as long as everything that the protocol asks for is there."""
        while not self._ended and self._is_ready():
            if not self._lock.acquire(blocking=False):
                return  # Whoever is advancing it checks again before leaving.
            try:
                with self._channel.kernels.wrapping_around():
                    while not self._ended and self._is_ready():
                        self._take_step()
            finally:
                self._lock.release()

    def fail(self, error: Exception) -> None:
        """End the run with an error, and tell the others."""
        if self._ended:
            return
        self._ended = True
        self._channel.end(self._number)
        self._steps.close()
        for rank in range(PROVIDER if self._channel.provider is not None else 0, self._channel.party.count):
            if rank != self._channel.rank:
                try:
                    self._channel.post(rank, self._number, error)
                except (SyftError, OSError):
                    continue  # It is the one that failed, or fails too.
        self._finish(None, error)

    def _missing(self) -> list[int]:
        """Return the ranks of those whose contribution to the current request has not arrived."""
        channel, number = self._channel, self._number
        if not channel.has_seeds():
            return [
                rank
                for rank in range(PROVIDER, channel.party.count)
                if rank not in channel._seeds and rank != channel.rank
            ]
        request = self._request
        if isinstance(request, Open | OpenBits):
            senders = [rank for rank in range(channel.party.count) if rank != channel.rank]
        elif isinstance(request, Receive):
            senders = [request.sender]
        elif isinstance(request, Draw) and channel.rank == 0:
            label = request.correlation.label
            if (label, channel._used.get(label, 0)) in channel._stock:
                return []
            senders = [PROVIDER]
        else:
            return []
        return [rank for rank in senders if not channel.inbox(number, rank)]

    def _is_ready(self) -> bool:
        request = self._request
        if isinstance(request, Open | OpenBits) and not self._posted:
            return True  # Its own shares must be sent first.
        return not self._missing()

    def _take_step(self) -> None:
        try:
            answer = self._answer()
            if answer is _LATER:
                return
            self._posted = False
            self._step += 1
            self._request = self._steps.send(answer if self._started else None)
            self._started = True
        except StopIteration as end:
            self._ended = True
            self._channel.end(self._number)
            self._finish(end.value, None)
        except Exception as error:  # noqa: BLE001  # reported to the client
            self.fail(error)

    def _answer(self) -> Any:
        """Return the answer to the current request, which is ready; post shares to be opened first."""
        channel, number, request = self._channel, self._number, self._request
        answer: Any = None
        if isinstance(request, Open | OpenBits):
            answer = self._open(request)
        elif isinstance(request, Draw):
            answer = self._draw(request.correlation)
        elif isinstance(request, Send):
            channel.post(request.to, number, request.arrays)
        elif isinstance(request, Receive):
            answer = self._take(request.sender)
            forms = [(spec.shape, channel.kernels.dtype(spec.dtype)) for spec in request.specs]
            self._check([request.sender], forms, [answer])
        elif isinstance(request, Common):
            answer = self._find_common(request)
        elif isinstance(request, Zeros):
            answer = channel.zeros(number, self._step, request.specs)
        elif isinstance(request, Verify) and not request.passed:
            raise channel.accuse(request.sender)
        return answer

    def _open(self, request: Open | OpenBits) -> Any:
        channel, number = self._channel, self._number
        others = [rank for rank in range(channel.party.count) if rank != channel.rank]
        if not self._posted:
            self._posted = True
            for rank in others:
                channel.post(rank, number, request.shares)
            if self._missing():
                return _LATER
        received = [self._take(rank) for rank in others]
        self._check(others, [(tuple(x.shape), x.dtype) for x in request.shares], received)
        return [_join(parts) for parts in zip(request.shares, *received, strict=True)]

    def _draw(self, demand: Correlation) -> list[Array]:
        channel, number = self._channel, self._number
        if channel.rank == PROVIDER:
            channel.deal(number, [demand])
            return [None] * (len(demand.free()) + len(demand.dependent()))
        index, correction = channel.find_correction(number, demand)
        if is_failure(correction) and channel.rank == 0:
            raise correction or ProtocolError.party_failed(channel.provider)
        return channel.draw(demand, correction, index)

    def _find_common(self, request: Common) -> list[Array]:
        other = sum(request.ranks) - self._channel.rank
        if request.label:
            return self._channel.common(other, request.label, 0, request.specs)
        index = self._commons[other] = self._commons.get(other, 0) + 1
        return self._channel.common(other, b"", self._number << 32 | index, request.specs)

    def _take(self, rank: int) -> tuple[Array, ...]:
        payload = self._channel.inbox(self._number, rank).popleft()
        if is_failure(payload):
            raise payload or ProtocolError.party_failed(self._channel.name_of(rank))
        return payload  # type: ignore[no-any-return]  # arrays

    def _check(self, senders: Sequence[int], expected: Sequence[tuple[Shape, Any]], received: Sequence[Any]) -> None:
        """Raise if a party sent something other than arrays of the expected forms."""
        for rank, arrays in zip(senders, received, strict=True):
            if [(tuple(getattr(x, "shape", ())), getattr(x, "dtype", None)) for x in arrays] != expected:
                raise ProtocolError.malformed(self._channel.name_of(rank))


_LATER = object()


def _add(arrays: Sequence[Array]) -> Array:
    total = arrays[0]
    for array in arrays[1:]:
        total = total + array
    return total


def _xor(arrays: Sequence[Array]) -> Array:
    total = arrays[0]
    for array in arrays[1:]:
        total = total ^ array
    return total


def _is_additive(x: Array) -> bool:
    return dtype_name(x) in ("int64", "int32")


def _join(arrays: Sequence[Array]) -> Array:
    return _add(arrays) if _is_additive(arrays[0]) else _xor(arrays)


def _subtract(x: Array, y: Array) -> Array:
    return x - y if _is_additive(x) else x ^ y


# --- counting


@dataclass
class Counted:
    """What parties exchanged in a ``with count()`` block, as far as they are in this process."""

    rounds: int = 0
    """How often the first party waited for the others."""
    bytes: int = 0
    """What all parties sent to each other."""
    dealt: int = 0
    """What the provider sent."""

    def note(self, sender: int, receiver: int, size: int) -> None:
        """Add one payload."""
        if sender == PROVIDER:
            self.dealt += size
            return
        self.bytes += size
        self.rounds += sender == 0 and receiver in (1, PROVIDER)


counting: ContextVar[Counted | None] = ContextVar("counting", default=None)


def _bytes_in(payload: Any) -> int:
    if type(payload) is tuple:
        return sum(map(_bytes_in, payload))
    return size_of(tuple(payload.shape), dtype_name(payload)) if hasattr(payload, "shape") else 0


def start_protocol(
    channel: Channel, number: int, name: str, operands: Sequence[Any], options: dict[str, Any], finish: Finish
) -> ProtocolRun | None:
    """Start a protocol of the table. ``operands`` are this party's shares; for the provider, their forms."""
    entry = PROTOCOLS[name]
    if entry.parties is not None and entry.parties != len(channel.parties):
        raise ProtocolError.needs_parties(name, entry.parties, len(channel.parties))
    if channel.rank == PROVIDER and not entry.has_helper:
        found = rehearse(channel.kernels, name, tuple(operands), tuple(sorted(options.items())), len(channel.parties))
        channel.skip(number)
        channel.deal(number, found.demands)
        finish((), None)
        return None
    return channel.start(number, entry.function(channel.party, *operands, **options), finish)
