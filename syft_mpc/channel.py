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
from copy import copy
from dataclasses import dataclass, field
from operator import iadd, isub, ixor
from typing import Any, NamedTuple, TypeAlias

from syft_core.exceptions import SyftError
from syft_core.hook.rules import map_leaves
from syft_core.peer import Id, Peer
from syft_core.values import Function, Kwargs, Nested, Tensor
from syft_mpc.errors import CheatingError, PartyFailedError, ProtocolError
from syft_mpc.kernels import RINGS, Array, Kernels, dtype_name, size_of
from syft_mpc.payloads import PartyPayload, Pieces, bytes_in, is_failure, weigh
from syft_mpc.prg import SEED_BYTES, Stream, advance_seed, derive_key, join_seeds, new_seed
from syft_mpc.protocol import (
    MASKING,
    PROTOCOLS,
    PROVIDER,
    Correlation,
    Keep,
    Recall,
    Role,
    Spec,
    Steps,
    Verify,
    describe_call,
    expand,
    rehearse,
    spec_of,
)
from syft_mpc.run import (
    CallName,
    Drawn,
    Finish,
    PreparedAt,
    ProtocolRun,
    Seeds,
    count_draw,
    forms_of,
    join_shares,
)

Post: TypeAlias = Callable[[int, int, PartyPayload], None]
"""Sends a payload to the party of this rank, for the run of this number."""
Ping: TypeAlias = Callable[[int], None]
"""Raises if the party of a rank cannot be reached."""
MAX_CHANNELS = 64
"""Maximum number of channels of a client on a worker; opening one more closes the oldest."""
MAX_RUNS = 8
"""Maximum number of runs of a channel that wait for other parties: each keeps its random numbers."""
MAX_STOCK = 1 << 18
"""Maximum number of correlations that are prepared and not used yet."""
MAX_AHEAD = 4096
"""Maximum number of runs that a party may be ahead of another one."""
MAX_MASKS = 1 << 16
"""Maximum number of kept masks of a channel at the provider; a client uses the last half of them."""
MAX_VALUES = 1 << 24
"""Maximum size in bytes of the mask values that the provider caches."""
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

# Note [Forgotten seeds]
# ~~~~~~~~~~~~~~~~~~~~~~
# An attacker who records the traffic and later breaks into a party or the provider must not find the masks. So
# both workers of a pair replace their seed when a run starts: one half of a digest is the seed of this run, the other
# half the seed of all later ones. The run forgets its seed when it ends. What outlasts a run has a seed of its own:
# - correlations that are prepared for later runs: one seed for each form, which is replaced with each use;
# - the key of a kept mask, at the provider, until the client drops its handle;
# - the seeds of keys for tags, which mask no value.


@dataclass
class TagKeys:
    """The keys with which a party checks tags: they belong to a group of workers, and outlast its channels.

    So authenticated shares can be used after a run has failed. But if the party finds that another one has cheated, it
    never uses its key again: each attempt may reveal something about it.
    """

    group: tuple[tuple[Id, ...], Id | None, int]
    """The parties, the provider, and the rank of the worker."""
    seeds: dict[int, bytes] = field(default_factory=dict, repr=False)
    """Agreed on in the group's first channel, by rank; a key comes from the seed of its party and the provider."""
    cheating: CheatingError | None = None


class _Mask(NamedTuple):
    """A kept mask, as a party knows it."""

    share: Array
    opened: Array
    """The value opened under the mask."""
    handle: weakref.ref[Array]
    """What the worker has stored for the client."""


class _Form(NamedTuple):
    """A kept mask, as the provider knows it."""

    spec: Spec
    keys: list[bytes]
    handle: weakref.ref[Array]


@dataclass
class _Pool:
    """Correlations of one form that are prepared and not used yet."""

    demand: Correlation
    next: PreparedAt
    left: int
    chain: bytes = field(default=b"", repr=False)
    """The seed, shared with the provider, of the next one; the provider has dealt them all and forgotten it."""

    def covers(self, place: PreparedAt) -> bool:
        return place.number == self.next.number and 0 <= place.offset - self.next.offset < self.left


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
        self.party = Role(rank, len(self.parties), self.arrays)
        self.opponents = [other for other in range(len(self.parties)) if other != rank]
        """The ranks of the other parties, without the provider."""
        everybody = range(0 if provider is None else PROVIDER, len(self.parties))
        self.others = [other for other in everybody if other != rank]
        """The ranks of all others, including the provider."""
        self._post, self.ping = post, ping
        self._lock = threading.Lock()
        self._seeds: dict[int, bytes] = {}
        """The seed for the next run with each other party, by rank; see Note [Forgotten seeds]."""
        self.keys = keys or TagKeys((self.parties, provider, rank))
        self._halves: dict[int, bytes] = {}
        """Halves of seeds that were sent to parties of higher ranks, which have not answered."""
        self._answered = threading.Event()
        self._failure: type[Exception] | None = None
        """Why a run has failed, so that no other can be started."""
        self.held = 0
        """Bytes held for runs: payloads of other parties, and corrections for later."""
        self.kept = 0
        """Size in bytes of the masks that this party keeps."""
        self._pools: dict[bytes, deque[_Pool]] = {}
        self._stock: dict[PreparedAt, PartyPayload] = {}
        """Corrections for it that the provider has sent to the first party."""
        self._awaited: set[PreparedAt] = set()
        """The places of correlations that the first party has drawn, and whose corrections it has not used."""
        self._pieces = Pieces()
        self._masks: dict[int, _Mask] = {}
        """The masks that this party has kept, by the number of the run that opened a value under each."""
        self.masked: dict[int, Any] = {}
        """For the worker: what was opened under each of them, with its restrictions."""
        self._forgotten: deque[tuple[int, int]] = deque()
        """The numbers and sizes of masks that are gone, because their handles are."""
        self._forms: dict[int, _Form] = {}
        """For the provider: the masks that the parties have kept."""
        self._values: dict[int, Array] = {}
        """For the provider: the values of the masks that it used last."""
        self._inboxes: dict[int, dict[int, deque[tuple[PartyPayload, int]]]] = {}
        self._errors: dict[int, Exception] = {}
        """Failures of other parties in runs that this one has not started."""
        self._runs: dict[int, ProtocolRun] = {}
        self._last = SETUP

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
        """Bytes that wait for the rest of a buffer."""
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
            group = repr((self.parties, self.provider, *sorted((rank, self.rank)))).encode()
            self._seeds[rank] = join_seeds(first, second, group)
            self.keys.seeds.setdefault(rank, join_seeds(first, second, b"tag keys" + group))
        if rank < self.rank:
            self._post(rank, SETUP, mine)
        elif not self._halves:
            self._answered.set()

    # --- runs

    def start(
        self,
        number: int,
        steps: Steps,
        finish: Finish,
        waits: bool = False,
        call: CallName = bytes,
        proves: bool = False,
    ) -> ProtocolRun:
        """Run a protocol under a number, which must be larger than all before: randomness is never used twice."""
        with self._lock:
            if len(self._runs) >= MAX_RUNS:
                raise ProtocolError.too_many_runs(len(self._runs))
            seeds = self._claim(number)
            run = self._runs[number] = ProtocolRun(self, number, seeds, steps, finish, waits, call, proves)
            run.cancelled = self._errors.pop(number, None)
            if self.keys.cheating is not None:
                run.cancelled = CheatingError(*self.keys.cheating.args)
        run.advance(is_owner=True)
        return run

    def skip(self, number: int, mask: Spec | None = None, handle: Array = None) -> Seeds:
        """Claim a run in which the provider has no role, and note the mask that the parties keep in it; return seeds.

        The provider forgets the mask with its handle.
        """
        with self._lock:
            seeds = self._claim(number)
            if mask is not None:
                label = _label_common(describe_call(MASKING, [mask], {}))
                keys = [derive_key(seeds[rank], label, 1) for rank in range(len(self.parties))]
                forget = weakref.ref(handle, lambda _reference: self._forgotten.append((number, 0)))
                self._forms[number] = _Form(mask, keys, forget)
                if len(self._forms) > MAX_MASKS:
                    self._forget_mask(next(iter(self._forms)))
        return seeds

    def verify(self, request: Verify) -> None:
        """Raise if a party has cheated, in this run or another, and retire the key of this party."""
        if self.keys.cheating is None and not request.passed:
            self._failure, self.keys.cheating = CheatingError, CheatingError.by(self.name_of(request.sender))
        if self.keys.cheating is not None:
            raise CheatingError(*self.keys.cheating.args)

    def refuse(self, number: int, error: Exception) -> None:
        """Record that this party cannot start a run, and tell the others, which would wait for it."""
        with self._lock:
            if number <= self._last:
                return  # It is not the next run, so nobody waits.
            self._last = number
            self._fail(error)
        self.notify(number, error)

    def notify(self, number: int, error: Exception) -> None:
        """Tell the other parties, where they can be reached, that a run has failed here."""
        for rank in self.others:
            with suppress(SyftError, OSError):  # It is the one that failed, or fails too.
                self.post(rank, number, error)

    def _fail(self, error: Exception) -> None:
        """Record a failure: no other run can be started, so the seeds for them are forgotten.

        The error itself is not kept: its traceback refers to the variables of the run, and to its seeds.
        """
        self._failure = self._failure or type(error)
        self._seeds.clear()
        self._pools.clear()

    def _claim(self, number: int) -> Seeds:
        """Start a run under a number; return its seeds, and advance those of the channel."""
        if number <= self._last:
            raise ProtocolError(f"cannot start run {number}: a later one was started already (malformed message)")
        if self._failure is not None and not issubclass(self._failure, CheatingError):
            raise ProtocolError.channel_failed(number)
        if number > self._last + MAX_AHEAD:
            raise ProtocolError(f"cannot start run {number}: it is too far ahead (malformed message)")
        if self._failure is None and len(self._seeds) < len(self.others):
            raise ProtocolError(f"cannot start run {number}: a worker has not joined the group (malformed message)")
        seeds: Seeds = {}
        for rank, seed in self._seeds.items():
            for _ in range(number - self._last):
                seeds[rank], seed = advance_seed(seed)
            self._seeds[rank] = seed
        self._last = number
        while self._forgotten:
            old, size = self._forgotten.popleft()
            self.kept -= size
            self._forget_mask(old)
        known = {*self._inboxes, *self._errors, *self._pieces.numbers}
        for old in [old for old in known if SETUP < old < number and old not in self._runs]:
            self._drop_inbox(old)
        return seeds

    def _drop_inbox(self, number: int) -> None:
        self._errors.pop(number, None)
        self._pieces.drop_all(number)
        for inbox in self._inboxes.pop(number, {}).values():
            self.held -= sum([weight for _, weight in inbox])

    def deal(self, number: int, seeds: Seeds, demands: Sequence[Correlation], drawn: Drawn) -> None:
        """Deal correlations for a run: send the corrections to the first party."""
        corrections = []
        for demand in demands:
            if self._take_prepared(demand) is None:
                index = count_draw(drawn, demand)
                keys = [derive_key(seed, demand.label, index) for seed in self._by_party(seeds)]
                corrections.append(self._correct(demand, keys))
        if corrections:
            self.post(0, number, tuple(corrections))

    def _by_party(self, seeds: Seeds) -> list[bytes]:
        return [seeds[rank] for rank in range(len(self.parties))]

    def prepare(self, number: int, demands: Sequence[Correlation], times: int) -> None:
        """Prepare correlations for later runs: the provider sends the corrections to the first party's stock."""
        chains: list[Sequence[bytes]] = []
        with self._lock:
            waiting = sum([pool.left for pools in self._pools.values() for pool in pools])
            if waiting + times * len(demands) > MAX_STOCK:
                raise ProtocolError.too_many_prepared(waiting, MAX_STOCK)
            seeds = self._claim(number)
            for place, demand in enumerate(demands):
                label = b"prepared" + demand.label
                if self.rank == PROVIDER:
                    chains.append([derive_key(seed, label, place) for seed in self._by_party(seeds)])
                seed = b"" if self.rank == PROVIDER else derive_key(seeds[PROVIDER], label, place)
                pool = _Pool(demand, PreparedAt(number, place * times), times, seed)
                self._pools.setdefault(demand.label, deque()).append(pool)
        try:
            for place, chain in enumerate(chains):
                for offset in range(place * times, (place + 1) * times):
                    keys, chain = zip(*map(advance_seed, chain), strict=True)
                    self._post(0, SETUP, (number, offset, self._correct(demands[place], keys)))
        except Exception as error:
            self.end(number, error)
            raise

    def join(self, rank: int, number: int, piece: bytearray, left: int) -> bytearray | None:
        """Return the buffer if this piece completes it, else None; also None if its run has ended here."""
        with self._lock:
            if number != SETUP and number <= self._last and number not in self._runs:
                return None
            self._require_near(number)
            return self._pieces.join((number, rank), piece, left)

    def _require_near(self, number: int) -> None:
        if number > self._last + MAX_AHEAD:
            raise ProtocolError(f"cannot accept a deposit for run {number}: it is too far ahead (malformed message)")

    def receive(self, rank: int, number: int, payload: PartyPayload) -> list[ProtocolRun]:
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
                # A copy has no traceback, which refers to the variables of the sender.
                error = PartyFailedError.by(self.name_of(rank)) if payload is None else copy(payload)
                if run is None:
                    self._errors[number] = error
                else:
                    run.cancelled = error
            else:
                weight = weigh(payload)
                self.inbox(number, rank).append((payload, weight))
                self.held += weight
        return [] if run is None else [run]

    def _set_up(self, rank: int, payload: PartyPayload) -> None:
        if isinstance(payload, bytes | bytearray):
            self._accept_half(rank, bytes(payload))
            return
        fits = type(payload) is tuple and len(payload) == 3 and all(type(part) is int for part in payload[:2])
        if not fits or rank != PROVIDER or self.rank != 0:
            raise ProtocolError("cannot accept a correction: only the provider sends them (malformed message)")
        place, correction = PreparedAt(*payload[:2]), payload[2]
        with self._lock:
            self._require_near(place.number)
            if place in self._stock or not self._expects(place):
                raise ProtocolError("cannot accept a correction: it was sent before (malformed message)")
            self._stock[place] = correction
            self.held += weigh((correction,))

    def _expects(self, place: PreparedAt) -> bool:
        pools = [pool for pools in self._pools.values() for pool in pools]
        return place.number > self._last or place in self._awaited or any(pool.covers(place) for pool in pools)

    def end(self, number: int, error: Exception | None = None) -> None:
        """Forget a run that has ended, and start no more if it failed."""
        with self._lock:
            if error is not None:
                self._fail(error)
            self._runs.pop(number, None)
            self._drop_inbox(number)

    def close(self, error: Exception) -> None:
        """End all runs with an error."""
        with self._lock:
            self._fail(error)
        for run in list(self._runs.values()):
            run.cancel(error)

    # --- kept masks

    def keep_mask(self, number: int, request: Keep) -> None:
        """Keep the share of a mask as long as its handle is stored."""
        size = measure_mask(spec_of(request.mask))

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
        self._forms.pop(number, None)
        self._values.pop(number, None)
        self.masked.pop(number, None)
        for label, pools in list(self._pools.items()):
            if any(mask == number for mask, _ in pools[0].demand.kept()):
                del self._pools[label]
                for place in [place for place in self._stock if any(pool.covers(place) for pool in pools)]:
                    self.held -= weigh((self._stock.pop(place),))

    def _find_mask(self, number: int, spec: Spec) -> Array:
        """Return the value of a mask, recomputing it if it is no longer cached."""
        form = self._forms.get(number)
        if form is None or form.spec != spec:
            raise ProtocolError.unknown_mask(number)
        value = self._values.pop(number, None)
        if value is None:
            shares = [expand(self.arrays, Stream.of_key(key), [spec])[0] for key in form.keys]
            value = join_shares(shares)
        self._values[number] = value  # in order of use, the latest last
        while len(self._values) > 1 and sum(map(bytes_in, self._values.values())) > MAX_VALUES:
            del self._values[next(iter(self._values))]
        return value

    # --- what runs ask for

    def post(self, rank: int, number: int, payload: PartyPayload) -> None:
        """Send a payload to a party, for a run."""
        counted = counting.get()
        if counted is not None and type(payload) is tuple:
            counted.note(self.rank, rank, bytes_in(payload))
        self._post(rank, number, payload)

    def inbox(self, number: int, rank: int) -> deque[tuple[PartyPayload, int]]:
        """Return the payloads that a party has sent for a run, and their size in memory."""
        return self._inboxes.setdefault(number, {}).setdefault(rank, deque())

    def inboxes(self, number: int) -> Mapping[int, deque[tuple[PartyPayload, int]]]:
        """Return what each party has sent for a run, if anything."""
        return self._inboxes.get(number) or {}

    def draw(self, seeds: Seeds, demand: Correlation, drawn: Drawn) -> tuple[Stream, PreparedAt | None]:
        """Use a correlation, one that is prepared if possible: return the stream of this party's shares.

        For one that is prepared, also return the place of its correction in the stock.
        """
        prepared = self._take_prepared(demand)
        if prepared is None:
            return Stream(seeds[PROVIDER], demand.label, count_draw(drawn, demand)), None
        key, place = prepared
        return Stream.of_key(key), place

    def _take_prepared(self, demand: Correlation) -> tuple[bytes, PreparedAt] | None:
        """Take a correlation that is prepared: return its key and its place, or None if there is none."""
        with self._lock:  # Threads of different runs draw at the same time.
            pools = self._pools.get(demand.label)
            if not pools:
                return None
            pool = pools[0]
            place, pool.left = pool.next, pool.left - 1
            pool.next = PreparedAt(place.number, place.offset + 1)
            key = b""
            if pool.chain:
                key, pool.chain = advance_seed(pool.chain)
            if self.rank == 0:
                self._awaited.add(place)
            if not pool.left:
                pools.popleft()
            if not pools:
                del self._pools[demand.label]
            return key, place

    def has_stock(self, place: PreparedAt) -> bool:
        """Return whether the provider has sent the correction of a place."""
        return place in self._stock

    def take_stock(self, place: PreparedAt) -> PartyPayload:
        """Take a correction that the provider has sent in advance."""
        with self._lock:
            found = self._stock.pop(place)
            self._awaited.discard(place)
            self.held -= weigh((found,))
        return found

    def take(self, number: int, rank: int) -> PartyPayload:
        """Take the next payload that a party has sent for a run."""
        with self._lock:
            payload, weight = self.inbox(number, rank).popleft()
            self.held -= weight
        return payload

    def _correct(self, demand: Correlation, keys: Sequence[bytes]) -> tuple[Array, ...]:
        """Return the first party's shares of the dependent arrays of a correlation, from the key of each party."""
        free, dependent = demand.forms
        streams = [Stream.of_key(key) for key in keys]
        first, *others = [expand(self.arrays, stream, free) for stream in streams]
        with self.arrays.wrapping_around():
            for shares in others:
                first = [_combine(iadd, total, share) for total, share in zip(first, shares, strict=True)]
            kept = [self._find_mask(number, spec) for number, spec in demand.kept()]
            values = list(demand.derive(self.arrays, *first, *kept))
            for stream in streams[1:]:
                shares = expand(self.arrays, stream, dependent)
                values = [_combine(isub, value, share) for value, share in zip(values, shares, strict=True)]
            return tuple(values)

    def common(self, seeds: Seeds, other: int, call: bytes, index: int, specs: Sequence[Spec]) -> list[Array]:
        """Return random arrays that only this party and another one know."""
        return expand(self.arrays, Stream(seeds[other], _label_common(call), index), specs)

    def lasting(self, other: int, label: bytes, specs: Sequence[Spec]) -> list[Array]:
        """Return random arrays that only this party and another one know, and that outlast the channel."""
        return self.common(self.keys.seeds, other, label, 0, specs)

    def zeros(self, seeds: Seeds, call: bytes, step: int, specs: Sequence[Spec]) -> list[Array]:
        """Return shares of zeros: each pair of parties adds and subtracts the same random numbers."""
        totals: list[Array] | None = None
        for other in self.opponents:
            arrays = expand(self.arrays, Stream(seeds[other], b"zeros" + call, step), specs)
            if other < self.rank:
                arrays = [-x if spec.is_additive else x for spec, x in zip(specs, arrays, strict=True)]
            totals = arrays if totals is None else [join_shares(pair) for pair in zip(totals, arrays, strict=True)]
        return totals or []


def _label_common(call: bytes) -> bytes:
    return b"common" + call


class Channels:
    """The channels of a worker, by the client that opened them and their id."""

    def __init__(self, _worker: object) -> None:
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


def _combine(function: Function, x: Array, y: Array) -> Array:
    """Add a share to an array that has no other user, or subtract it, in place; XOR outside of the ring."""
    return (function if dtype_name(x) in RINGS else ixor)(x, y)  # type: ignore[no-untyped-call]  # by typeshed


# --- counting


@dataclass
class Counted:
    """Messages of the parties in this process during a ``with count()`` block."""

    rounds: int = 0
    """Number of times that the first party waited for the others."""
    bytes: int = 0
    """Bytes that all parties sent to each other."""
    dealt: int = 0
    """Bytes that the provider sent."""

    def note(self, sender: int, receiver: int, size: int) -> None:
        """Add one payload."""
        if sender == PROVIDER:
            self.dealt += size
            return
        self.bytes += size
        self.rounds += sender == 0 and receiver in (1, PROVIDER)


counting: ContextVar[Counted | None] = ContextVar("counting", default=None)


def measure_mask(spec: Spec) -> int:
    """Return the size of a kept mask: the value opened under it, and a copy of the share."""
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
        handle = channel.arrays.zeros((1,), operands[0].dtype) if entry.keeps_mask else None
        seeds = channel.skip(number, operands[0] if entry.keeps_mask else None, handle)
        try:
            channel.deal(number, seeds, found.demands, {})
        except Exception as error:
            channel.end(number, error)
            channel.notify(number, error)
            raise
        finish(() if handle is None else channel.kernels.from_array(handle), None)
        return None
    kernels = channel.kernels
    arrays = operands if channel.rank == PROVIDER else [kernels.to_array(operand) for operand in operands]

    def call() -> bytes:
        return describe_call(name, list(map(spec_of, operands)), options)

    def convert(result: Nested, error: Exception | None) -> None:
        finish(map_leaves(lambda part: kernels.from_array(part) if hasattr(part, "dtype") else part, result), error)

    steps = entry.function(channel.party, *arrays, **options)
    return channel.start(number, steps, convert, waits, call, entry.accuses)
