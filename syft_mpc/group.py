"""Group: the workers among which values are shared, as a client sees them."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from syft_core.exceptions import OperationNotAllowedError, SyftError
from syft_core.hook.attributes import FrameworkAttributes
from syft_core.hook.forms import Form, form
from syft_core.location import Location, Party, WorkerLike
from syft_core.peer import Id
from syft_core.pointers.object_pointer import new_id
from syft_core.pointers.pointer_tensor import PointerTensor, pointer_at
from syft_core.printing import printable
from syft_core.values import Args, Function, Kwargs, Nested
from syft_mpc.channel import MAX_MASKS, Counted, counting
from syft_mpc.errors import CheatingError, PartyFailedError, ProtocolError
from syft_mpc.kernels import size_of
from syft_mpc.messages import OpenChannel, Prepare, RunProtocol
from syft_mpc.protocol import PROTOCOLS, PROVIDER, Rehearsal, Spec, rehearse, spec_of
from syft_mpc.spdz import spdz_mask, zero

Shares: TypeAlias = dict[Id, PointerTensor]
"""One pointer to a share for each party, in the order of the group."""
MAX_AHEAD = 1 << 28
"""Maximum bytes of corrections that the first party keeps before a client waits for it."""
MAX_DEALT = 1 << 26
"""Maximum bytes of random numbers in a run; above that, a protocol runs on one part of its operand at a time."""
MAX_MASKED = 1 << 27
"""Maximum bytes of a client's values opened under kept masks at a time; parties keep three times that."""
Progress: TypeAlias = Callable[[int, int], None]
"""Called with the number of steps done, and that of all steps."""


@dataclass(frozen=True, eq=False)
class Masked:
    """A shared value that was opened under a mask, which the parties have kept for products with it."""

    handle: Shares
    channel: Id
    number: int
    """The number of the run, under which the mask is known."""
    serial: int
    size: int


@dataclass
class PastRun:
    """A protocol that ran: its group and name, the forms of its operands, and options."""

    group: Group
    name: str
    forms: Args
    options: Kwargs
    repeat: Callable[[], PastRun | None] = lambda: None
    """Returns the call that runs in its place the next time, if that is a different one."""


class Group:
    """Two or more parties that hold shares, and the provider of their correlated randomness, if they have one.

    Use ``find_group``: a client has one group for each set of workers, and opens its channel on first use.
    """

    def __init__(self, client: Party, parties: Sequence[Location], provider: Location | None, framework: Any) -> None:
        self.client, self.parties, self.provider = client, tuple(parties), provider
        self.framework: FrameworkAttributes = framework
        if framework.kernels is None:
            raise OperationNotAllowedError.no_kernels(framework.ALIAS)
        self.kernels = framework.kernels
        self.ids = tuple(location.id for location in parties)
        self.everybody = (*self.parties, *([] if provider is None else [provider]))
        self._waits = parties[0].is_parallel
        if any(location.is_parallel != self._waits for location in self.everybody):
            raise ProtocolError.mixed_locations()
        self._lock = threading.Lock()
        self._masks = 0
        """Number of values that were masked."""
        self._masked: weakref.WeakSet[Masked] = weakref.WeakSet()
        """Masked values that are still in use."""
        self._channel: Id = 0
        self._keys: Id = 0
        self._state: tuple[Any, ...] | None = None
        """Facts that must not have changed since the channel was opened."""
        self._open()

    def _open(self) -> None:
        """Open a channel at all workers, first at those that receive seeds; again after a failure of any of them."""
        for location in self.everybody if self._waits else ():
            self._settle(location)
        if not self._keys or not self._open_with(self._keys):
            self._open_with(None)
        self._state = self._observe()

    def _open_with(self, keys: Id | None) -> bool:
        """Open a channel with keys of an earlier one, or new ones; return False if a worker does not have them."""
        self._number, self._ahead, self._channel = 0, 0, new_id()
        self._keys = keys or self._channel
        for sender in self.everybody:
            for receiver in self.everybody:
                if sender is not receiver:
                    sender.introduce(receiver, (self._channel,))
        call = (self._channel, self.framework.ALIAS, self.ids, None if self.provider is None else self.provider.id)
        ranks = (*reversed(range(len(self.parties))), *([] if self.provider is None else [PROVIDER]))
        return all(self.everybody[rank].ask(OpenChannel(*call, rank, self._keys)) for rank in ranks)

    def _settle(self, location: Location) -> None:
        """Wait until a worker has executed everything; using a result of a run that failed raises its error again."""
        try:
            location.flush()
        except ConnectionError:
            raise
        except SyftError as error:
            if not self._channel and not isinstance(error, ProtocolError):
                raise

    def find_cause(self, error: Exception) -> Exception:
        """Return the error of the party that failed first, if a waiting call at one of the workers raises it."""
        for location in self.everybody:
            try:
                location.flush()
            except PartyFailedError:  # noqa: PERF203  # each of them may have failed
                continue
            except SyftError as found:
                return found
        return error

    @property
    def keys(self) -> Id:
        """The id of the keys for tags: after a failure, the group opens another channel, in most cases with them."""
        return self._keys

    def renew(self) -> None:
        """Open a new channel if a worker has failed since the last one was opened: it executes nothing until then."""
        with self._lock:
            self._renew()

    def _renew(self) -> None:
        if self._state != self._observe():
            self._open()

    def _observe(self) -> tuple[Any, ...]:
        return (self.client.peer, *[location.failures for location in self.everybody])

    def run(
        self, protocol: Function, *operands: Shares, keys: Id | None = None, **options: Nested
    ) -> tuple[Shares, ...]:
        """Run a protocol on shares; return the shares of its results. One message is sent to each worker.

        If it informs the client, there is also a pointer to the result of the provider. With ``keys``, the shares have
        tags: raise if the group has other keys since they were created.
        """
        return self._run(keys, protocol, operands, options)[0]

    def cut(
        self, protocol: Function, shares: Shares, count: int, options: Kwargs
    ) -> tuple[int, list[tuple[slice, ...]]]:
        """Return an axis of large operands, and the parts along it for which a protocol runs one after another.

        There are none if it is not large enough, or if the protocol needs all of it at once.
        """
        name, spec = protocol.__name__, spec_of(next(iter(shares.values())))
        if not PROTOCOLS[name].by_line or size_of(*spec) < MAX_DEALT >> 10:
            return 0, []
        whole = options["axis"] % len(spec.shape) if "axis" in options else None
        axes = [axis for axis in range(len(spec.shape)) if axis != whole]
        if not axes:
            return 0, []
        axis = max(axes, key=spec.shape.__getitem__)
        length = spec.shape[axis]
        few = min(length, 8)  # Comparisons pack the bits of eight elements.
        lines = Spec((*spec.shape[:axis], few, *spec.shape[axis + 1 :]), spec.dtype)
        found = rehearse(self.kernels, name, (lines,) * count, tuple(sorted(options.items())), len(self.parties))
        dealt = sum(size_of(*part) for demand in found.demands for parts in demand.forms for part in parts)
        step = max(1, few * MAX_DEALT // max(dealt, 1))
        starts = range(0, length, step) if step < length else ()
        return axis, [(*(slice(None),) * axis, slice(start, start + step)) for start in starts]

    def mask(self, shares: Shares) -> Masked | None:
        """Open shares under a mask that the parties keep, for products with them; None if they keep a lot already."""
        size = size_of(*spec_of(next(iter(shares.values()))))
        groups = list(_groups.get(self.client, {}).values())
        if size + sum([masked.size for group in groups for masked in list(group._masked)]) > MAX_MASKED:
            return None
        (handle,), channel, number = self._run(None, spdz_mask, (shares,), {})
        self._masks += 1
        masked = Masked(handle, channel, number, self._masks, size)
        self._masked.add(masked)
        return masked

    def has_mask(self, masked: Masked) -> bool:
        """Return whether the workers still have a mask."""
        self.renew()
        return masked.channel == self._channel and self._masks - masked.serial < MAX_MASKS // 2

    def _run(
        self, keys: Id | None, protocol: Function, operands: Sequence[Shares], options: Kwargs
    ) -> tuple[tuple[Shares, ...], Id, int]:
        specs = tuple([spec_of(next(iter(shares.values()))) for shares in operands])
        name, settings = protocol.__name__, tuple(sorted(options.items()))
        found = self._rehearse(name, specs, settings)
        results = found.results
        # No worker must know where the others store results: by default, users may fetch whatever they can name.
        firsts, count, dealt = [new_id() for _ in self.parties], len(results), new_id()
        informs = PROTOCOLS[name].informs_client
        forms = tuple([(spec.shape, spec.dtype) for spec in specs])
        with self._lock:
            self._renew()
            if keys not in (None, self._keys):
                raise ProtocolError.reopened()
            self._number += 1
            call, state = (self._channel, self._number, name), self._state
            self._state = None  # Unless all workers accept the run, they need a new channel.
            messages: list[tuple[Location, RunProtocol]] = []
            for location, first in zip(self.parties, firsts, strict=True):
                own = tuple([shares[location.id] for shares in operands])
                messages.append((location, RunProtocol(*call, own, options, first, count, self._waits)))
            if self.provider is not None:
                dealing = RunProtocol(*call, forms, options, dealt, count if informs else 0, self._waits)
                # Parties that run at the same time open values before they need what the provider deals.
                messages.insert(len(messages) if self._waits else 0, (self.provider, dealing))
            try:
                for location, message in messages:
                    location.tell(message)
            except PartyFailedError as error:
                raise (keys and operands and self._find_accusation(operands[0])) or error from None
            self._state = state
            self._limit_lead(found)
        recorded = _recording.get()
        if recorded is not None:
            recorded.append(PastRun(self, name, forms, options))
        pointers = tuple([self._point(firsts, place, spec) for place, spec in enumerate(results)])
        for place, shares in enumerate(pointers if informs else ()):
            helper = self._require_provider()
            shares[helper.id] = pointer_at(helper, dealt + place, self.framework, self.client)
        return pointers, call[0], call[1]

    def _find_accusation(self, shares: Shares) -> CheatingError | None:
        """Return a party's accusation that another one has cheated; it answers every later run of the channel with it.

        A party without a thread of its own has no other way to report what it detects while another one runs.
        """
        for location in self.parties:
            own, id = (shares[location.id],), new_id()
            try:
                location.tell(RunProtocol(self._channel, self._number + 1, zero.__name__, own, {}, id, 1, self._waits))
                pointer_at(location, id, self.framework, self.client)  # It is dropped at once, and the result with it.
            except CheatingError as found:  # each of them may have detected it
                return found
            except SyftError:
                continue
        return None

    def _limit_lead(self, found: Rehearsal) -> None:
        """Wait for the first party if it has to keep many corrections: the provider deals without waiting."""
        if self._waits:
            self._ahead += sum(size_of(*spec) for demand in found.demands for spec in demand.forms[1])
            if self._ahead > MAX_AHEAD:
                self.parties[0].flush()
                self._ahead = 0

    def _rehearse(self, name: str, specs: tuple[Spec, ...], settings: tuple[tuple[str, Any], ...]) -> Rehearsal:
        entry = PROTOCOLS[name]
        if entry.parties is not None and entry.parties != len(self.parties):
            raise ProtocolError.needs_parties(name, entry.parties, len(self.parties))
        found = rehearse(self.kernels, name, specs, settings, len(self.parties))
        if found.demands or entry.has_helper:
            self._require_provider()
        return found

    def _require_provider(self) -> Location:
        if self.provider is None:
            raise ProtocolError.no_provider()
        return self.provider

    def _point(self, firsts: Sequence[int], place: int, spec: Spec) -> Shares:
        known = _form_of(self.framework, spec)
        pointers = {}
        for location, first in zip(self.parties, firsts, strict=True):
            pointer = pointer_at(location, first + place, self.framework, self.client)
            if location.predicts:
                pointer.remember_form(known)
            pointers[location.id] = pointer
        return pointers

    def prepare(self, name: str, forms: Args, options: Kwargs, times: int = 1) -> None:
        """Let the provider deal in advance for ``times`` runs of a protocol; see the function ``prepare``."""
        if self.provider is None:
            return  # There is nothing to deal.
        with self._lock:
            self._renew()
            self._number += 1
            message, state = Prepare(self._channel, self._number, name, forms, options, times), self._state
            self._state = None  # Unless all workers accept it, they need a new channel.
            for location in self.parties:
                location.tell(message)
            self.provider.ask(message)
            self._state = state

    def __repr__(self) -> str:
        helper = "no provider" if self.provider is None else f"provider {self.provider.id}"
        return printable(f"<Group of {', '.join(map(str, self.ids))} with {helper}>")


_groups: weakref.WeakKeyDictionary[Any, dict[tuple[Any, ...], Group]] = weakref.WeakKeyDictionary()
_recording: ContextVar[list[PastRun] | None] = ContextVar("recording", default=None)
"""The protocols that run in ``prepare``."""


def find_group(client: Any, workers: Sequence[WorkerLike], provider: WorkerLike | None, framework: Any) -> Group:
    """Return the client's group of these workers; open it on first use."""
    parties = [client.location_of(worker) for worker in workers]
    helper = None if provider is None else client.location_of(provider)
    ids = [location.id for location in parties]
    if len(parties) < 2:
        raise ProtocolError.too_few_parties(len(parties))
    everybody = ids if helper is None else [*ids, helper.id]
    if len(set(everybody)) < len(everybody):
        raise ProtocolError.same_worker_twice()
    groups = _groups.setdefault(client, {})
    key = (framework.ALIAS, *map(id, parties), id(helper))
    found = groups.get(key)
    if found is None:
        found = groups[key] = Group(client, parties, helper, framework)
    found.renew()
    return found


def prepare(function: Function, times: int = 1, progress: Progress | None = None) -> Nested:
    """Call a function, and let the provider deal in advance what ``times`` more calls need; return the result.

    The next calls then wait less: nothing is dealt while they run. Each must use values of the same shapes.
    """
    if times < 1:
        raise ValueError(f"cannot prepare {times} calls: expected at least 1")
    calls: list[PastRun] = []
    token = _recording.set(calls)
    try:
        result = function()
    finally:
        _recording.reset(token)
    for place, recorded in enumerate(calls):
        call = recorded.repeat() or recorded
        call.group.prepare(call.name, call.forms, call.options, times)
        if progress is not None:
            progress(place + 1, len(calls))
    return result


def last_call() -> PastRun | None:
    """Return the protocol that ran last in ``prepare``; None outside of it."""
    calls = _recording.get()
    return calls[-1] if calls else None


@contextmanager
def count() -> Iterator[Counted]:
    """Count the rounds and the bytes of protocols between workers of this process, in a ``with`` block."""
    counted = Counted()
    token = counting.set(counted)
    try:
        yield counted
    finally:
        counting.reset(token)


@lru_cache(maxsize=8192)
def _form_of(framework: FrameworkAttributes, spec: Spec) -> Form | None:
    kernels = framework.kernels
    if kernels is None:
        return None
    plain = framework.form_of(kernels.zeros((0,), spec.dtype))
    if plain is None:
        return None
    strides, step = [], 1
    for length in reversed(spec.shape):
        strides.append(step)
        step *= max(length, 1)
    return form(type(plain.shape)(spec.shape), tuple(reversed(strides)), plain.dtype, plain.device)
