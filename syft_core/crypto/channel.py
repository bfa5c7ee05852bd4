"""Channels: the state of a party that computes with others, independent of how messages travel.

A ``Channel`` belongs to one worker and one group of parties. It holds the seeds that the worker shares with the others,
and the protocols that it is running for a client. ``receive`` takes what another party sent and continues the run that
waits for it: in the thread that delivered it if the parties are in one process, otherwise in the thread of the run.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from syft_core.crypto.kernels import Array, Kernels, dtype_name, size_of
from syft_core.crypto.payloads import Payload, Pieces, bytes_in, is_failure, weigh
from syft_core.crypto.prg import SEED_BYTES, Stream, join_seeds, new_seed
from syft_core.crypto.protocol import (
    MASKING,
    PROTOCOLS,
    PROVIDER,
    Correlation,
    Keep,
    Party,
    Recall,
    Spec,
    Steps,
    Verify,
    describe_call,
    expand,
    rehearse,
)
from syft_core.crypto.run import Call, Finish, ProtocolRun, forms_of, is_additive, join_shares
from syft_core.exceptions import CheatingError, PartyFailedError, ProtocolError, SyftError
from syft_core.hook.rules import map_leaves
from syft_core.peer import Id, Peer
from syft_core.values import Kwargs, Nested, Tensor

Post: TypeAlias = Callable[[int, int, Payload], None]
"""Sends to the party of a rank, for the run of a number, a payload."""
Ping: TypeAlias = Callable[[int], None]
"""Raises if the party of a rank cannot be reached."""
MAX_CHANNELS = 64
"""How many channels a client may have on a worker; the oldest is closed for one more."""
MAX_RUNS = 8
"""How many runs of a channel may wait for the other parties at the same time: each keeps its random numbers."""
MAX_STOCK = 1 << 18
"""How many correlations may be prepared and not used yet."""
MAX_AHEAD = 4096
"""How many runs a party may be ahead of another one."""
MAX_MASKS = 1 << 16
"""How many kept masks of a channel the provider remembers; a client uses the last half of them."""
MAX_VALUES = 1 << 24
"""How many bytes of their values it keeps, instead of computing them again."""
SETUP = 0
"""The number under which seeds are exchanged; runs start at 1."""


# Note [Halves of seeds]
# ~~~~~~~~~~~~~~~~~~~~~~
# The client gives every party tickets for the others, so it could use them itself and pose as one party towards
# another. If that party accepted a seed chosen by the sender, the client would know the masks of its shares. So each of
# two parties chooses one half, and sends it to the address of the other that its owner configured. Whoever poses as a
# party receives nothing, does not know the seed, and sees only values under masks that it cannot remove. So a protocol
# masks what it sends with numbers from seeds, never with numbers that it has received.
#
# The client may also describe the group differently to each worker. The seed depends on the description, so workers to
# which it is not the same have no random numbers in common, and none of them uses a mask that another one reveals.


@dataclass
class TagKeys:
    """The keys with which a party checks tags: they belong to a group of workers, and outlast its channels.

    So authenticated shares can be used after a run has failed. But if the party finds that another one has cheated, it
    never uses its key again: each attempt may reveal something about it.
    """

    group: tuple[tuple[Id, ...], Id | None, int]
    """The parties, the provider, and the rank of the worker."""
    seeds: dict[int, bytes] = field(repr=False)
    """Those of the group's first channel, by rank; a key comes from the seed of its party and the provider."""
    cheating: CheatingError | None = None


class _Mask(NamedTuple):
    """A mask that a party has kept."""

    share: Array
    opened: Array
    """What was opened under the mask."""
    handle: weakref.ref[Array]
    """What the worker has stored for the client."""


class Channel:
    """One party's end of a group of parties: its rank, seeds, and current runs.

    A run that fails ends the channel: the parties may have used different numbers of correlations since.
    """

    def __init__(
        self,
        parties: Sequence[Id],
        provider: Id | None,
        rank: int,
        kernels: Kernels,
        post: Post,
        ping: Ping = lambda _rank: None,
        keys: TagKeys | None = None,
    ) -> None:
        self.parties, self.provider, self.rank = tuple(parties), provider, rank
        self.kernels, self.arrays = kernels, kernels.arrays
        self.party = Party(rank, len(self.parties), self.arrays)
        self.opponents = [other for other in range(len(self.parties)) if other != rank]
        """The ranks of the other parties, without the provider."""
        self._post, self.ping = post, ping
        self._lock = threading.Lock()
        self._seeds: dict[int, bytes] = {}
        """The seed shared with each other party, by rank; the provider shares one with each party."""
        self.keys = keys or TagKeys((self.parties, provider, rank), self._seeds)
        self._halves: dict[int, bytes] = {}
        """Halves of seeds that were sent to parties of higher ranks, which have not answered."""
        self._answered = threading.Event()
        self._failure: Exception | None = None
        """Why a run has failed, so that no other can be started."""
        self.held = 0
        """How many bytes wait for runs: what other parties have sent, and corrections for later."""
        self.kept = 0
        """How many bytes the masks take that this party has kept."""
        self._used: dict[bytes, int] = {}
        """How many correlations of each form have been used."""
        self._corrected: dict[bytes, int] = {}
        """For how many of them the first party has taken the corrections."""
        self._stock: dict[tuple[bytes, int], Payload] = {}
        """Corrections that the provider has sent in advance, by form and number."""
        self._pieces = Pieces()
        self._masks: dict[int, _Mask] = {}
        """The masks that this party has kept, by the number of the run that opened a value under each."""
        self.masked: dict[int, Any] = {}
        """For the worker: what was opened under each of them, with its restrictions."""
        self._forgotten: deque[tuple[int, int]] = deque()
        """The numbers and sizes of masks that are gone, because their handles are."""
        self._labels: dict[int, set[bytes]] = {}
        """The forms of correlations that depend on each mask."""
        self._forms: dict[int, Spec] = {}
        """For the provider: the forms of the masks that the parties have kept."""
        self._values: dict[int, Array] = {}
        """For the provider: the values of the masks that it used last."""
        self._inboxes: dict[int, dict[int, deque[tuple[Payload, int]]]] = {}
        self._errors: dict[int, Exception] = {}
        """Failures of other parties in runs that this one has not started."""
        self._runs: dict[int, ProtocolRun] = {}
        self._last = SETUP

    @property
    def others(self) -> list[int]:
        """The ranks of all others, including the provider."""
        everybody = range(PROVIDER if self.provider is not None else 0, len(self.parties))
        return [rank for rank in everybody if rank != self.rank]

    def name_of(self, rank: int) -> Id | None:
        """Return the worker of a rank."""
        return self.provider if rank == PROVIDER else self.parties[rank]

    def rank_of(self, worker: Id) -> int | None:
        """Return the rank of a worker, or None if it is not part of the group."""
        if worker in self.parties:
            return self.parties.index(worker)
        return PROVIDER if worker == self.provider and self.provider is not None else None

    @property
    def joining(self) -> int:
        """How many bytes wait for the rest of a buffer."""
        return self._pieces.held

    def share_seeds(self, seconds: float = 0) -> None:
        """Send half a seed to every party of a higher rank, and wait for the others; see Note [Halves of seeds]."""
        for rank in range(self.rank + 1, len(self.parties)):
            self._halves[rank] = new_seed()
        for rank, half in list(self._halves.items()):
            self._post(rank, SETUP, half)
        if self._halves and not self._answered.wait(seconds):
            raise ProtocolError.silent(self.name_of(next(iter(self._halves))), seconds)

    def _accept_half(self, rank: int, half: bytes) -> None:
        with self._lock:
            mine = self._halves.get(rank) if rank > self.rank else new_seed()
            if mine is None or rank in self._seeds or len(half) != SEED_BYTES:
                raise ProtocolError("cannot accept a seed: it was not asked for, or sent before (malformed message)")
            self._halves.pop(rank, None)
            first, second = (mine, half) if rank > self.rank else (half, mine)
            group = (self.parties, self.provider, *sorted((rank, self.rank)))
            self._seeds[rank] = join_seeds(first, second, repr(group).encode())
        if rank < self.rank:
            self._post(rank, SETUP, mine)
        elif not self._halves:
            self._answered.set()

    # --- runs

    def start(self, number: int, steps: Steps, finish: Finish, waits: bool = False, call: Call = bytes) -> ProtocolRun:
        """Run a protocol under a number, which must be larger than all before: randomness is never used twice."""
        with self._lock:
            if len(self._runs) >= MAX_RUNS:
                raise ProtocolError.too_many_runs(len(self._runs))
            self._claim(number)
            run = self._runs[number] = ProtocolRun(self, number, steps, finish, waits, call)
            run.cancelled = self._errors.pop(number, None)
            if self.keys.cheating is not None:
                run.cancelled = CheatingError(*self.keys.cheating.args)
        run.advance(is_owner=True)
        return run

    def skip(self, number: int, mask: Spec | None) -> None:
        """Take note of a run in which the provider has no role, and of the mask that the parties keep in it."""
        with self._lock:
            self._claim(number)
            if mask is not None:
                self._forms[number] = mask
                if len(self._forms) > MAX_MASKS:
                    self._forget_mask(next(iter(self._forms)))

    def verify(self, request: Verify) -> None:
        """Raise if a party has cheated, in this run or another one, and use the key of this party no more."""
        if self.keys.cheating is None and not request.passed:
            self._failure = self.keys.cheating = CheatingError.by(self.name_of(request.sender))
        if self.keys.cheating is not None:
            raise CheatingError(*self.keys.cheating.args)

    def refuse(self, number: int, error: Exception) -> None:
        """Take note of a run that this party cannot start, and tell the others, which would wait for it."""
        with self._lock:
            if number <= self._last:
                return  # It is not the next run, so nobody waits.
            self._last, self._failure = number, self._failure or error
        self.notify(number, error)

    def notify(self, number: int, error: Exception) -> None:
        """Tell the other parties, as far as they can be reached, that a run has failed here."""
        for rank in self.others:
            with suppress(SyftError, OSError):  # It is the one that failed, or fails too.
                self.post(rank, number, error)

    def _claim(self, number: int) -> None:
        if number <= self._last:
            raise ProtocolError(f"cannot start run {number}: a later one was started already (malformed message)")
        if self._failure is not None and not isinstance(self._failure, CheatingError):
            raise ProtocolError.channel_failed(number)
        self._last = number
        while self._forgotten:
            old, size = self._forgotten.popleft()
            self.kept -= size
            self._forget_mask(old)
        known = {*self._inboxes, *self._errors, *self._pieces.numbers}
        for old in [old for old in known if SETUP < old < number and old not in self._runs]:
            self._drop_inbox(old)

    def _drop_inbox(self, number: int) -> None:
        self._errors.pop(number, None)
        self._pieces.drop_all(number)
        for inbox in self._inboxes.pop(number, {}).values():
            self.held -= sum([weight for _, weight in inbox])

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
        if len(self._stock) + times > MAX_STOCK:
            raise ProtocolError.too_many_prepared(len(self._stock), MAX_STOCK)
        first = max([self._used.get(demand.label, 0), *(n + 1 for label, n in self._stock if label == demand.label)])
        for index in range(first, first + times):
            self._stock[demand.label, index] = True
            self._post(0, SETUP, (demand.label, index, self._correct(demand, index)))

    def join(self, rank: int, number: int, piece: bytearray, left: int) -> bytearray | None:
        """Return a buffer of which the last piece has arrived, or None, also if its run has ended here."""
        with self._lock:
            if number != SETUP and number <= self._last and number not in self._runs:
                return None
            self._require_near(number)
            return self._pieces.join((number, rank), piece, left)

    def _require_near(self, number: int) -> None:
        if number > self._last + MAX_AHEAD:
            raise ProtocolError(f"cannot accept a deposit for run {number}: it is too far ahead (malformed message)")

    def receive(self, rank: int, number: int, payload: Payload) -> list[ProtocolRun]:
        """Take what another party sent; return the runs that wait for it, which the caller continues."""
        if number == SETUP:
            self._set_up(rank, payload)
            return list(self._runs.values())
        with self._lock:
            run = self._runs.get(number)
            if number <= self._last and run is None:
                return []  # It has ended here.
            self._require_near(number)
            if is_failure(payload):
                error = payload or PartyFailedError.by(self.name_of(rank))
                if run is None:
                    self._errors[number] = error
                else:
                    run.cancelled = error
            else:
                weight = weigh(payload)
                self.inbox(number, rank).append((payload, weight))
                self.held += weight
        return [] if run is None else [run]

    def _set_up(self, rank: int, payload: Payload) -> None:
        if isinstance(payload, bytes | bytearray):
            self._accept_half(rank, bytes(payload))
            return
        fits = type(payload) is tuple and len(payload) == 3 and isinstance(payload[0], bytes)
        if not fits or type(payload[1]) is not int or rank != PROVIDER or self.rank != 0:
            raise ProtocolError("cannot accept a correction: only the provider sends them (malformed message)")
        label, index, correction = payload
        with self._lock:
            if index < self._corrected.get(label, 0) or (label, index) in self._stock:
                raise ProtocolError("cannot accept a correction: it was sent before (malformed message)")
            self._stock[label, index] = correction
            self.held += weigh((label, correction))

    def end(self, number: int, error: Exception | None = None) -> None:
        """Forget a run that has ended, and start no more if it failed."""
        with self._lock:
            self._failure = self._failure or error
            self._runs.pop(number, None)
            self._drop_inbox(number)

    def close(self, error: Exception) -> None:
        """End all runs with an error."""
        self._failure = error
        for run in list(self._runs.values()):
            run.cancel(error)

    # --- kept masks

    def keep_mask(self, number: int, request: Keep) -> None:
        """Keep the share of a mask as long as its handle is stored."""
        size = measure_mask(Spec(tuple(request.mask.shape), dtype_name(request.mask)))

        def forget(_reference: object) -> None:  # Called by any thread, which may hold the lock.
            if self._masks.pop(number, None) is not None:
                self._forgotten.append((number, size))

        with self._lock:
            self._masks[number] = _Mask(request.mask, request.opened, weakref.ref(request.handle, forget))
            self.kept += size

    def recall_mask(self, request: Recall) -> tuple[Array, Array]:
        """Return the share of a mask, and what was opened under it; raise if it is a mask of another form."""
        found = self._masks.get(request.number)
        if found is None or forms_of((found.share,)) != forms_of((request.operand,)):
            raise ProtocolError.unknown_mask(request.number)
        return found.share, found.opened

    def _forget_mask(self, number: int) -> None:
        """Forget a mask. It cannot be used again, so neither can random numbers of correlations that depend on it.

        A run that draws them at this moment asks for the mask next, gets none, and sends nothing.
        """
        self._forms.pop(number, None)
        self._values.pop(number, None)
        self.masked.pop(number, None)
        for label in self._labels.pop(number, ()):
            self._used.pop(label, None)
            self._corrected.pop(label, None)
            for key in [key for key in self._stock if key[0] == label]:
                found = self._stock.pop(key)
                self.held -= weigh((label, found)) if self.rank == 0 else 0

    def _find_mask(self, number: int, spec: Spec) -> Array:
        """Return the value of a mask, which the provider can compute again."""
        if self._forms.get(number) != spec:
            raise ProtocolError.unknown_mask(number)
        value = self._values.pop(number, None)
        if value is None:
            call = describe_call(MASKING, [spec], {})
            shares = [self.common(rank, call, number << 32 | 1, [spec])[0] for rank in range(len(self.parties))]
            value = join_shares(shares)
        self._values[number] = value  # The last one is the one that was used last.
        while len(self._values) > 1 and sum(map(bytes_in, self._values.values())) > MAX_VALUES:
            del self._values[next(iter(self._values))]
        return value

    # --- what runs ask for

    def post(self, rank: int, number: int, payload: Payload) -> None:
        """Send a payload to a party, for a run."""
        counted = counting.get()
        if counted is not None and type(payload) is tuple:
            counted.note(self.rank, rank, bytes_in(payload))
        self._post(rank, number, payload)

    def inbox(self, number: int, rank: int) -> deque[tuple[Payload, int]]:
        """Return what a party has sent for a run: payloads, and what they weigh."""
        return self._inboxes.setdefault(number, {}).setdefault(rank, deque())

    def inboxes(self, number: int) -> Mapping[int, deque[tuple[Payload, int]]]:
        """Return what each party has sent for a run, if anything."""
        return self._inboxes.get(number) or {}

    @property
    def missing_seeds(self) -> list[int]:
        """The ranks of those with whom the seeds have not been exchanged."""
        count = len(self.parties) - (self.rank != PROVIDER and self.provider is None)
        return [] if len(self._seeds) == count else [rank for rank in self.others if rank not in self._seeds]

    def draw(self, demand: Correlation) -> tuple[Stream, int]:
        """Use the next correlation of a form: return the stream of this party's shares, and its number."""
        index = self._count(demand)
        return Stream(self._seeds[PROVIDER], demand.label, index), index

    def _count(self, demand: Correlation) -> int:
        with self._lock:  # Threads of different runs draw at the same time.
            index = self._used.get(demand.label, 0)
            self._used[demand.label] = index + 1
        for number, _ in demand.kept() if index == 0 else ():
            self._labels.setdefault(number, set()).add(demand.label)
        return index

    def has_stock(self, label: bytes, index: int) -> bool:
        """Return whether the provider has sent a correction in advance."""
        return (label, index) in self._stock

    def take_stock(self, label: bytes, index: int) -> Payload:
        """Take a correction that the provider has sent in advance; return None if there is none."""
        with self._lock:
            self._corrected[label] = index + 1
            found = self._stock.pop((label, index), None)
            if found is not None:
                self.held -= weigh((label, found))
        return found

    def take(self, number: int, rank: int) -> Payload:
        """Take the next payload that a party has sent for a run."""
        with self._lock:
            payload, weight = self.inbox(number, rank).popleft()
            self.held -= weight
        return payload

    def _correct(self, demand: Correlation, index: int) -> tuple[Array, ...]:
        """Return the first party's shares of the dependent arrays of a correlation."""
        free, dependent = demand.forms
        streams = [Stream(self._seeds[rank], demand.label, index) for rank in range(len(self.parties))]
        first, *others = [expand(self.arrays, stream, free) for stream in streams]
        with self.arrays.wrapping_around():
            for shares in others:
                first = [_add_in_place(total, share) for total, share in zip(first, shares, strict=True)]
            kept = [self._find_mask(number, spec) for number, spec in demand.kept()]
            values = list(demand.derive(self.arrays, *first, *kept))
            for stream in streams[1:]:
                shares = expand(self.arrays, stream, dependent)
                values = [_subtract_in_place(value, share) for value, share in zip(values, shares, strict=True)]
            return tuple(values)

    def common(
        self, other: int, label: bytes, number: int, specs: Sequence[Spec], lasting: bool = False
    ) -> list[Array]:
        """Return random arrays that this party and another one know, and that may outlast the channel."""
        seeds = self.keys.seeds if lasting else self._seeds
        return expand(self.arrays, Stream(seeds[other], b"common" + label, number), specs)

    def zeros(self, call: bytes, number: int, step: int, specs: Sequence[Spec]) -> list[Array]:
        """Return shares of zeros: each pair of parties adds and subtracts the same random numbers."""
        totals: list[Array] | None = None
        for other in range(len(self.parties)):
            if other == self.rank:
                continue
            stream = Stream(self._seeds[other], b"zeros" + call, number << 16 | step)
            arrays = expand(self.arrays, stream, specs)
            if other < self.rank:
                arrays = [-x if spec.is_additive else x for spec, x in zip(specs, arrays, strict=True)]
            totals = arrays if totals is None else [join_shares(pair) for pair in zip(totals, arrays, strict=True)]
        return totals or []


class Channels:
    """The channels of a worker, by the client that opened them and their id."""

    def __init__(self) -> None:
        self._channels: dict[Peer, dict[Id, Channel]] = {}
        self._keys: dict[Peer, dict[Id, TagKeys]] = {}

    def keep_keys(self, client: Peer, id: Id, keys: TagKeys) -> None:
        """Keep the keys of a channel for later ones of the same group; those of as many groups as channels."""
        own = self._keys.setdefault(client, {})
        own[id] = keys
        if len(own) > MAX_CHANNELS:
            del own[next(iter(own))]

    def find_keys(self, client: Peer, id: Id, group: tuple[tuple[Id, ...], Id | None, int]) -> TagKeys | None:
        """Return the keys of an earlier channel of the same group, unless a party has cheated or they are forgotten."""
        keys = self._keys.get(client, {}).get(id)
        return keys if keys is not None and keys.group == group and keys.cheating is None else None

    def add(self, client: Peer, id: Id, channel: Channel) -> None:
        """Add a channel, under an id that its client has not used; close the oldest one of a client with many."""
        own = self._channels.setdefault(client, {})
        if id in own:
            raise ProtocolError(f"cannot open channel {id!r}: it exists already; choose another id")
        if len(own) >= MAX_CHANNELS:
            oldest = next(iter(own))
            own.pop(oldest).close(ProtocolError.unknown_channel(oldest))
        own[id] = channel

    def find(self, client: Peer, id: Id) -> Channel:
        """Return the channel of a client."""
        channel = self._channels.get(client, {}).get(id)
        if channel is None:
            raise ProtocolError.unknown_channel(id)
        return channel

    def count_bytes(self, client: Peer) -> int:
        """Return how many bytes wait for runs of a client."""
        return sum(channel.held + channel.joining for channel in list(self._channels.get(client, {}).values()))

    def count_kept(self, client: Peer) -> int:
        """Return how many bytes the kept masks of a client take."""
        return sum(channel.kept for channel in list(self._channels.get(client, {}).values()))

    def forget(self, client: Id) -> None:
        """Close the channels of a client that is gone, and forget its keys."""
        for peer in [peer for peer in self._keys if peer.id == client]:
            del self._keys[peer]
        for peer in [peer for peer in self._channels if peer.id == client]:
            for id, channel in self._channels.pop(peer).items():
                channel.close(ProtocolError.unknown_channel(id))


def _add_in_place(x: Array, y: Array) -> Array:
    """Add a share to the sum of others, which nobody else uses."""
    if is_additive(x):
        x += y
    else:
        x ^= y
    return x


def _subtract_in_place(x: Array, y: Array) -> Array:
    """Subtract a share from a value that nobody else uses."""
    if is_additive(x):
        x -= y
    else:
        x ^= y
    return x


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


def measure_mask(spec: Spec) -> int:
    """Return how many bytes a kept mask takes, with what was opened under it, and a copy of the share."""
    return 3 * size_of(*spec)


def start_protocol(
    channel: Channel,
    number: int,
    name: str,
    operands: Sequence[Tensor],
    options: Kwargs,
    finish: Finish,
    waits: bool = False,
) -> ProtocolRun | None:
    """Start a protocol of the table. ``operands`` are this party's shares; for the provider, their forms."""
    entry = PROTOCOLS[name]
    if entry.parties is not None and entry.parties != len(channel.parties):
        raise ProtocolError.needs_parties(name, entry.parties, len(channel.parties))
    if channel.rank == PROVIDER and not entry.has_helper:
        found = rehearse(channel.kernels, name, tuple(operands), tuple(sorted(options.items())), len(channel.parties))
        channel.skip(number, operands[0] if entry.keeps_mask else None)
        try:
            channel.deal(number, found.demands)
        except Exception as error:
            channel.end(number, error)
            channel.notify(number, error)
            raise
        finish((), None)
        return None
    kernels = channel.kernels
    arrays = operands if channel.rank == PROVIDER else [kernels.to_array(operand) for operand in operands]

    def call() -> bytes:
        return describe_call(name, [Spec(tuple(part.shape), dtype_name(part)) for part in operands], options)

    def convert(result: Nested, error: Exception | None) -> None:
        finish(map_leaves(lambda part: kernels.from_array(part) if hasattr(part, "dtype") else part, result), error)

    return channel.start(number, entry.function(channel.party, *arrays, **options), convert, waits, call)
