"""The task of a party in a protocol: what may run, on which shares, and what becomes of its results."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import nullcontext

from syft_core.exceptions import SyftError, ValueRefusedError
from syft_core.hook.dispatch import framework_of
from syft_core.hook.hook_args import is_framework_tensor
from syft_core.messages import Placed
from syft_core.peer import Id, Peer
from syft_core.values import Nested, Tensor
from syft_core.workers.moving.departure import Leaving, leave
from syft_core.workers.party.derivations import Derivation, Maker
from syft_core.workers.party.reservations import Reservation
from syft_core.workers.party.status import FORM_ONLY, RESTRICTED
from syft_core.workers.party.store import NO_LINEAGE, Lineage, Stored, describe_operand, lineage_of
from syft_core.workers.party.turns import yield_turn
from syft_core.workers.party.worker import Stage, Worker
from syft_core.workers.road.derivation import derivation_of, derive_program
from syft_core.workers.road.keeping import keep_tensor
from syft_core.workers.road.memory import guard_results, require_data
from syft_core.workers.road.procedure import execute, register_stages, run_function
from syft_core.workers.road.task import Task
from syft_core.workers.seeing.ledger import Departure
from syft_core.workers.seeing.permissions import may_leave, require_right_to_use
from syft_mpc.channel import Channel, Channels, measure_mask, start_protocol
from syft_mpc.errors import ProtocolError
from syft_mpc.kernels import RINGS, dtype_name, size_of
from syft_mpc.limits import limit_bytes
from syft_mpc.messages import Prepare, RunProtocol
from syft_mpc.protocol import MASK, PROTOCOLS, PROVIDER, Correlation, Rehearsal, Spec, rehearse, spec_of
from syft_mpc.run import Finish, ProtocolRun

CHECK_SECONDS = 2.0
"""Seconds after which a worker checks whether the parties that it waits for can be reached."""
LIMIT = 600.0
"""Seconds after which a worker gives up waiting for parties that can be reached."""
MAX_TIMES = 1 << 16
"""Maximum number of correlations of a form that are prepared at once."""
_MAX_OPTION = 16
"""Maximum number of numbers in an option."""


class ProtocolTask(Task):
    """A task that a message gives to a party of a channel."""

    __slots__ = ("args", "channel", "has_started", "message")
    message: RunProtocol | Prepare

    def __init__(self, worker: Worker, message: RunProtocol | Prepare, sender: Peer, channel: Channel) -> None:
        super().__init__(worker, sender, "protocol", function=type(self).run)
        self.message, self.channel, self.name = message, channel, message.name
        self.has_started = False
        """Whether the other parties learn from the run itself that it fails."""
        self.args: list[Tensor] = []
        """The shares, or the forms of shares."""

    def find_operands(self) -> None:
        """Read the forms of the operands."""
        self.args = list(map(_spec, self.message.args))

    def authorize(self) -> None:
        """Raise unless the sender may ask for this."""
        _require_options(self.message)

    @abstractmethod
    def run(self) -> Nested:
        """Execute the task, and return the answer."""

    def rehearse(self) -> Rehearsal:
        """Infer the costs and results of the protocol from the forms of its operands."""
        channel, options = self.channel, tuple(sorted(self.message.options.items()))
        specs = tuple([part if isinstance(part, Spec) else spec_of(part) for part in self.args])
        return rehearse(channel.kernels, self.name, specs, options, len(channel.parties))


class Preparation(ProtocolTask):
    """The preparation of the correlations of a protocol, which has no operands yet."""

    __slots__ = ()
    message: Prepare

    def authorize(self) -> None:
        """Raise unless the options and the number are valid."""
        super().authorize()
        if not 0 < self.message.times <= MAX_TIMES:
            times = self.message.times
            raise ProtocolError(f"cannot prepare {self.name!r} {times} times: the limit is {MAX_TIMES}")

    def run(self) -> None:
        """Find the needs of the protocol, and let the provider deal them."""
        worker, channel, message = self.worker, self.channel, self.message
        with worker.reserve(self.peer, self.name, size=_bytes_of(self.args)), worker.waiting():
            demands = self.rehearse().demands
        size = message.times * _bytes_of(_dealt(demands)) if channel.rank == PROVIDER else 0
        with worker.reserve(self.peer, self.name, size=size), worker.waiting():
            channel.prepare(message.number, demands, message.times)


class Participation(ProtocolTask):
    """The part of this worker in a protocol, on its shares of the operands."""

    __slots__ = ("derivation", "described", "lineage", "masked")
    message: RunProtocol

    @property
    def is_party(self) -> bool:
        """Whether it has shares, unlike the provider."""
        return self.channel.rank != PROVIDER

    @property
    def keeps_results(self) -> bool:
        """Whether results are stored here."""
        return self.is_party or PROTOCOLS[self.name].informs_client

    def find_operands(self) -> None:
        """Find the shares, and the values opened of them under a mask; at the provider, read their forms."""
        self.lineage: Lineage = NO_LINEAGE
        self.masked: list[Stored] = []
        self.derivation: Derivation | None = None
        """How the results are computed, if something restricts an operand."""
        self.described: list[Derivation] = []
        """How the operands were computed when the protocol started."""
        if not self.is_party:
            super().find_operands()
            return
        self.args = list(self.resolve(self.message.args))
        self.masked = _find_masked(self.message, self.channel)  # The operands may be unrestricted copies.
        self.add_operands(self.masked, [entry.value for entry in self.masked])
        self.lineage = lineage_of(self.parents)
        protects = PROTOCOLS[self.name].protects
        if self.status & RESTRICTED or protects:
            message, operands = self.message, tuple(map(describe_operand, self.parents))
            options, parties = tuple(sorted(message.options.items())), tuple(self.channel.parties)
            maker = Maker(message.name, options, parties, operands)
            self.described = list(map(derivation_of, self.parents))
            self.derivation = derive_program(maker, self.described, is_named=protects)

    def authorize(self) -> None:
        """Raise unless the sender may run the protocol on these shares, and its results can be stored."""
        super().authorize()
        if self.is_party:
            _require_shares(self)
        if self.keeps_results:
            self.worker.object_store.require_free(self.message.expected)

    def run(self) -> Nested:
        """Run the protocol; return what replaces its results, or None if other parties will end it."""
        worker, channel, message = self.worker, self.channel, self.message
        held = self._reserve()
        if PROTOCOLS[self.name].reveals:
            _let_operands_leave(self)
        operands = _copy_operands(self.args, self.masked) if self.is_party else self.args
        worker.stats.operations += 1
        ended: list[tuple[Nested, Exception | None]] = []

        def finish(result: Nested, error: Exception | None) -> None:
            if error is None and PROTOCOLS[self.name].keeps_mask and self.is_party:
                masked = _note_masked(operands[0], self.parents[0].id, self.lineage, self.peer)
                masked.derivation = self.described[0] if self.described else None
                channel.masked[message.number] = masked
            if error is None and not message.waits:
                result = _keep(self, result)
            if not message.waits:
                held.release()
            ended.append((result, error))

        with held if message.waits else nullcontext():
            self.has_started = True
            with worker.waiting():
                _start(channel, message, operands, finish)
            if not ended:
                return None  # The other parties, which the client starts next, will end it.
            result, failure = ended[0]
            if failure is None:
                return _keep(self, result) if message.waits else result
            if not isinstance(failure, SyftError) and not may_leave(worker, self.parents, self.peer):
                raise ValueRefusedError.failed(self.name, str(worker.id), type(failure).__name__)
            raise failure

    def _reserve(self) -> Reservation:
        worker = self.worker
        if worker.guard is None:
            return worker.reserve(self.peer, self.name)
        copied = _bytes_of(self.args if not self.is_party else [spec_of(part) for part in self.args])
        with worker.reserve(self.peer, self.name, size=copied):  # Before it is rehearsed.
            found = self.rehearse()
        size = _bytes_of(found.results if self.keeps_results else _dealt(found.demands))
        return worker.reserve(self.peer, self.name, len(self.message.expected), size + copied * self.is_party)


def run_protocol(worker: Worker, message: RunProtocol, sender: Peer) -> Nested:
    """Run a protocol with the other parties, and store the results."""
    return _execute(Participation, worker, message, sender)


def prepare(worker: Worker, message: Prepare, sender: Peer) -> Nested:
    """Prepare the correlations of a protocol for later runs."""
    return _execute(Preparation, worker, message, sender)


def _execute(kind: type[ProtocolTask], worker: Worker, message: RunProtocol | Prepare, sender: Peer) -> Nested:
    """Execute a task; if it fails before it starts, tell the other parties, who would wait for this one."""
    channel = worker.part(Channels).find(sender.original, message.id)
    task = kind(worker, message, sender, channel)
    try:
        task.find_operands()
        return execute(task)
    except Exception as error:
        if not task.has_started:
            with worker.waiting():
                channel.refuse(message.number, error)
        raise


def _authorize(proceed: Stage, task: ProtocolTask) -> Nested:
    task.authorize()
    return proceed(task)


def _list_stages(_op: None, status: int, _framework: None) -> list[Stage | None]:
    return [_authorize, require_data if status & FORM_ONLY else None, run_function]


register_stages("protocol", _list_stages)


# --- authorize


def _require_options(message: RunProtocol | Prepare) -> None:
    """Raise unless all options are numbers, texts, or short tuples of them.

    True equals 1, but must not take its place: parties that remember different ones would use other random numbers.
    """
    flags = PROTOCOLS[message.name].flags
    for name, value in message.options.items():
        parts = value if type(value) is tuple else (value,)
        fits = all(type(part) in _OPTIONS for part in parts) or (type(value) is bool and name in flags)
        if len(parts) > _MAX_OPTION or not fits:
            raise ProtocolError(
                f"cannot run {message.name!r}: its option {name!r} has a wrong type (malformed message)"
            )
        if any(type(part) is int and part.bit_length() > 64 for part in parts):
            raise ProtocolError(f"cannot run {message.name!r}: its option {name!r} is too large (malformed message)")


_OPTIONS = frozenset({int, str, type(None)})


_OPTIONS = frozenset({int, str, type(None)})


def _require_shares(task: Participation) -> None:
    """Raise unless the operands are shares of one ring that the sender may use for the protocol."""
    worker, channel, protocol = task.worker, task.channel, PROTOCOLS[task.name]
    for operand in task.args:
        fits = is_framework_tensor(type(operand)) and dtype_name(operand) in RINGS
        if not fits or framework_of(operand).kernels is not channel.kernels:
            raise ProtocolError.not_a_share(task.name, type(operand).__name__)
    if len({dtype_name(operand) for operand in task.args}) > 1:
        raise ProtocolError.mixed_rings(task.name)
    require_right_to_use(worker, task.parents, task.peer)
    _require_trust(worker, channel, task.parents, task.peer)
    if protocol.checks_operands and not may_leave(worker, task.parents, task.peer):
        raise ProtocolError.checks_private(task.name)
    if task.masked and may_leave(worker, task.parents, task.peer):  # Else, whether it is equal would reveal something.
        _require_unchanged(channel, task.masked[0].value, task.args)
    if protocol.keeps_mask:
        _require_room_for_mask(worker, task.args[0], task.peer.original)


def _find_masked(message: RunProtocol, channel: Channel) -> list[Stored]:
    if MASK not in message.options:
        return []
    number = message.options[MASK]
    if number not in channel.masked:
        raise ProtocolError.unknown_mask(number)
    return [channel.masked[number]]


def _require_unchanged(channel: Channel, masked: Tensor, operands: Sequence[Tensor]) -> None:
    """Raise if the second operand, a share, has changed since it was opened under a mask."""
    for operand in operands[1:2]:
        if not channel.arrays.equal(*map(channel.kernels.to_array, (masked, operand))):
            raise ProtocolError.changed_operand()


def _require_trust(worker: Worker, channel: Channel, parents: list[Stored], sender: Peer) -> None:
    """Raise unless the sender may read the operands, or the owner trusts all other parties with masked values."""
    own = {worker.id, *worker.aliases}
    others = [name for name in (*channel.parties, channel.provider) if name is not None and name not in own]
    if not worker.trusted.issuperset(others) and not may_leave(worker, parents, sender):
        raise ProtocolError.untrusted(str(worker.id), ", ".join(repr(name) for name in others))


def _require_room_for_mask(worker: Worker, operand: Tensor, client: Peer) -> None:
    size = measure_mask(spec_of(operand))
    kept, limit = worker.part(Channels).count_kept(client), limit_bytes(worker, client)
    if kept + size > limit:
        raise ProtocolError.too_many_masks(size, kept, limit)


def _spec(part: object) -> Spec:
    if type(part) is tuple and len(part) == 2:
        shape, dtype = part
        fits = type(shape) is tuple and all(type(length) is int and 0 <= length < 1 << 32 for length in shape)
        if fits and dtype in RINGS:
            return Spec(shape, dtype)
    raise ProtocolError("cannot read the form of a share: it has a wrong type (malformed message)")


# --- run


def _dealt(demands: Iterable[Correlation]) -> list[Spec]:
    return [spec for demand in demands for specs in demand.forms for spec in specs]


def _bytes_of(specs: Iterable[Spec]) -> int:
    return sum([size_of(*spec) for spec in specs])


def _let_operands_leave(task: Participation) -> None:
    """Let shares leave that a protocol opens at all parties; rules are for objects that a client fetches."""
    leaving = Leaving(
        task.worker,
        "read",
        task.message,
        task.peer,
        [Departure(entry, entry.value) for entry in task.parents],
        to=", ".join(map(str, task.channel.parties)),
        reason="opened at all parties",
        asks_rules=False,
    )
    leave(leaving)


def _copy_operands(operands: Sequence[Tensor], masked: Sequence[Stored]) -> list[Tensor]:
    """Return copies: the lock is not held during the run, and private values may be written into the objects then.

    Of a value that was opened under a mask, return the copy that was kept.
    """
    copies: dict[int, Tensor] = {}
    found: list[Tensor] = []
    for place, operand in enumerate(operands):
        if place == 1 and masked:
            found.append(masked[0].value)
            continue
        if id(operand) not in copies:
            copies[id(operand)] = framework_of(operand).copy(operand)
        found.append(copies[id(operand)])
    return found


def _note_masked(value: Tensor, id: Id, lineage: Lineage, sender: Peer) -> Stored:
    """Return an entry, which is not stored, for a value opened under a mask: products with it are restricted too."""
    entry = Stored(value, sender.id, lineage)
    entry.id = id
    return entry


def _start(channel: Channel, message: RunProtocol, operands: Sequence[Tensor], finish: Finish) -> None:
    """Start a protocol; if the parties are in processes of their own, run it to its end."""
    try:
        run = start_protocol(
            channel, message.number, message.name, operands, message.options, finish, waits=message.waits
        )
    except Exception as error:
        channel.refuse(message.number, error)
        raise
    waited, progress = 0.0, 0
    while message.waits and run is not None and not run.has_ended:
        if run.wait(CHECK_SECONDS):
            run.advance(is_owner=True)
        else:
            waited = waited + CHECK_SECONDS if run.progress == progress else 0.0
            progress = run.progress
            _check_parties(channel, run, waited)


def _check_parties(channel: Channel, run: ProtocolRun, waited: float) -> None:
    """End a run with an error if nobody waits for it, or if a party that it waits for is gone; name that party."""
    try:
        yield_turn()
        for rank in run.waits_for:
            channel.ping(rank)
            if waited >= LIMIT:
                raise ProtocolError.silent(channel.name_of(rank), waited)
    except SyftError as error:
        run.cancel(error)


def _keep(task: Participation, result: Nested) -> tuple[Placed, ...]:
    if not task.keeps_results:
        return ()
    worker, sender, message = task.worker, task.peer, task.message
    parts = result if isinstance(result, tuple) else (result,)
    with worker.lock.of(sender):
        placed = tuple(
            [keep_tensor(worker, part, message.result + n, sender, task.lineage) for n, part in enumerate(parts)]
        )
        guard_results(worker, sender, task.parents, placed)
        if task.derivation is not None:
            for place, part in enumerate(placed):
                worker.object_store.entry(part.id).derivation = task.derivation.part(place)
    return placed
