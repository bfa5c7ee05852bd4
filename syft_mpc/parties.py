"""The handlers of messages about protocols: a worker as one party of several that compute on shares."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial

from syft_core.exceptions import OperationNotAllowedError, SyftError, TicketError, ValueRefusedError
from syft_core.hook.dispatch import framework_of
from syft_core.hook.hook_args import is_framework_tensor
from syft_core.location import Location
from syft_core.messages import Placed
from syft_core.peer import Id, Peer, acting_for
from syft_core.values import Nested, Tensor
from syft_core.workers.addresses.local import LocalLocation
from syft_core.workers.party.reservations import Reservation
from syft_core.workers.party.store import Lineage, Maker, Operand, Stored, lineage_of
from syft_core.workers.party.turns import yield_turn
from syft_core.workers.party.worker import Worker
from syft_core.workers.running.execution import Operands
from syft_core.workers.running.failures import require_success
from syft_core.workers.running.keeping import keep_tensor
from syft_core.workers.running.memory import guard_results
from syft_core.workers.seeing.ledger import Departure, record
from syft_core.workers.seeing.permissions import may_leave, require_permission, require_right_to_use
from syft_mpc import authenticated as _authenticated  # noqa: F401  # registers protocols
from syft_mpc import comparison as _comparison  # noqa: F401  # registers protocols
from syft_mpc import functions as _functions  # noqa: F401  # registers protocols
from syft_mpc import pooling as _pooling  # noqa: F401  # registers protocols
from syft_mpc import securenn as _securenn  # noqa: F401  # registers protocols
from syft_mpc import spdz as _spdz  # noqa: F401  # registers protocols
from syft_mpc import truncation as _truncation  # noqa: F401  # registers protocols
from syft_mpc.channel import SETUP, Channel, Channels, measure_mask, start_protocol
from syft_mpc.errors import PartyFailedError, ProtocolError
from syft_mpc.kernels import RINGS, Kernels, dtype_name, size_of
from syft_mpc.messages import Deposit, OpenChannel, Prepare, RunProtocol
from syft_mpc.payloads import PartyPayload, is_failure, pack, split, unpack
from syft_mpc.protocol import MASK, PROTOCOLS, PROVIDER, Correlation, Rehearsal, Spec, rehearse, spec_of
from syft_mpc.run import Finish, ProtocolRun

PATIENCE = 2.0
"""Seconds after which a worker checks whether the parties that it waits for can be reached."""
LIMIT = 600.0
"""Seconds after which a worker gives up waiting for parties that can be reached."""
OPENING = 60.0
"""Seconds after which a worker gives up waiting for a channel to open."""
MAX_HELD = 1 << 30
"""How many bytes of one client may wait for its runs, if the client has no smaller quota."""
MAX_TIMES = 1 << 16
"""How many correlations of a form may be prepared at once."""
MAX_PARTIES = 64
_MAX_OPTION = 16
"""How many numbers an option may have."""


def open_channel(worker: Worker, message: OpenChannel, sender: Peer) -> bool:
    """Join a group of parties: connect to the others, and exchange seeds with them."""
    names = (*message.parties, "" if message.provider is None else message.provider)
    position = message.rank if message.rank != PROVIDER else len(message.parties)
    if not 2 <= len(message.parties) <= MAX_PARTIES or len(set(names)) != len(names) or not 0 <= position < len(names):
        raise ProtocolError(f"cannot open channel {message.id!r}: its parties are not valid (malformed message)")
    if names[position] not in {worker.id, *worker.aliases}:
        raise ProtocolError(f"cannot open channel {message.id!r}: worker {worker.id!r} is not {names[position]!r}")
    kernels = worker.attributes_of(message.framework).kernels
    if kernels is None:
        raise OperationNotAllowedError.no_kernels(message.framework)
    keys = None
    if message.keys != message.id:
        group = (message.parties, message.provider, message.rank)
        keys = worker.part(Channels).find_keys(sender.original, message.keys, group)
        if keys is None:
            return False
    links = _Links(worker, message.id, sender.original, names, message.rank, kernels.arrays)
    channel = Channel(message.parties, message.provider, message.rank, kernels, links.post, links.ping, keys)
    worker.part(Channels).add(sender.original, message.id, channel)
    with worker.waiting():
        _join(channel)
    if keys is None:  # Only now: a provider without all seeds must not claim to have the keys.
        worker.part(Channels).keep_keys(sender.original, message.id, channel.keys)
    return True


def _join(channel: Channel) -> None:
    """Connect to all other parties while the tickets are valid, and share seeds."""
    for rank in channel.others:
        channel.ping(rank)
    channel.share_seeds(OPENING)


@dataclass(frozen=True)
class _Links:
    """The other parties of a channel, as a worker reaches them on behalf of the client."""

    worker: Worker
    id: Id
    client: Peer
    names: tuple[Id, ...]
    """The ids of the parties, and of the provider."""
    rank: int
    kernels: Kernels

    def post(self, rank: int, number: int, payload: PartyPayload) -> None:
        """Send a payload to the party of a rank."""
        location = self.worker.location_of(self.names[rank])
        if isinstance(location, LocalLocation):  # Arrays are never changed, so parties of one process may share them.
            channel = location.worker.part(Channels).find(self.client, self.id)
            _advance(channel.receive(self.rank, number, payload))
            return
        if is_failure(payload) or isinstance(payload, bytes):
            sent = payload if isinstance(payload, bytes) else None
            self._use(location, lambda: location.tell(Deposit(self.id, number, sent)))
            return
        for piece, left in split(pack(self.kernels, payload)):
            self._use(location, partial(location.tell, Deposit(self.id, number, piece, left)))

    def ping(self, rank: int) -> None:
        """Raise if a party cannot be reached, or has refused what was sent to it."""
        location = self.worker.location_of(self.names[rank])
        self._use(location, location.flush)

    def _use(self, location: Location, function: Callable[[], None]) -> None:
        try:
            with acting_for((self.client,)):
                function()
        except (ConnectionError, TicketError) as error:
            raise ProtocolError.unreachable(location.id, type(error).__name__) from None
        except SyftError as error:
            raise ProtocolError.refused(location.id, str(error)) from None


def run_protocol(worker: Worker, message: RunProtocol, sender: Peer) -> Nested:
    """Run a protocol with the other parties, and store the results."""
    channel = worker.part(Channels).find(sender.original, message.id)
    parents: list[Stored] = []
    try:
        operands, held = _admit(worker, message, channel, parents, sender)
        lineage = lineage_of(parents)
        if PROTOCOLS[message.name].reveals:
            to = ", ".join(map(str, channel.parties))
            leaving = [Departure(entry, entry.value) for entry in parents]
            record(worker, leaving, sender, to, "opened at all parties")
    except Exception as error:
        with worker.waiting():
            channel.refuse(message.number, error)
        raise
    worker.stats.operations += 1
    ended: list[tuple[Nested, Exception | None]] = []

    def finish(result: Nested, error: Exception | None) -> None:
        if error is None and PROTOCOLS[message.name].keeps_mask and channel.rank != PROVIDER:
            channel.masked[message.number] = _note_masked(operands[0], parents[0].id, lineage, sender)
        if error is None and not message.waits:
            result = _keep(worker, message, channel, parents, lineage, sender, result)
        if not message.waits:
            held.release()
        ended.append((result, error))

    with held if message.waits else nullcontext():
        with worker.waiting():
            _run(channel, message, operands, finish)
        if not ended:
            return None  # The other parties, which the client starts next, will end it.
        result, failure = ended[0]
        if failure is not None:
            if not isinstance(failure, SyftError) and not may_leave(worker, parents, sender):
                raise ValueRefusedError.failed(message.name, str(worker.id), type(failure).__name__)
            raise failure
        return _keep(worker, message, channel, parents, lineage, sender, result) if message.waits else result


def abandon_protocol(worker: Worker, message: RunProtocol, sender: Peer) -> None:
    """Tell the other parties that this one will not run a protocol, because an earlier command of the client failed."""
    channel = worker.part(Channels).find(sender.original, message.id)
    with worker.waiting():
        channel.refuse(message.number, PartyFailedError.by(worker.id))


def prepare(worker: Worker, message: Prepare, sender: Peer) -> None:
    """Prepare the correlations of a protocol for later runs."""
    channel = worker.part(Channels).find(sender.original, message.id)
    try:
        _require_options(message)
        if not 0 < message.times <= MAX_TIMES:
            raise ProtocolError(f"cannot prepare {message.name!r} {message.times} times: the limit is {MAX_TIMES}")
        specs = tuple(map(_spec, message.args))
        with worker.reserve(sender, message.name, size=_bytes_of(specs)), worker.waiting():  # Before it is rehearsed.
            demands = _rehearse(channel, message, specs).demands
        size = message.times * _bytes_of(_dealt(demands)) if channel.rank == PROVIDER else 0
        with worker.reserve(sender, message.name, size=size), worker.waiting():
            channel.prepare(message.number, demands, message.times)
    except Exception as error:
        with worker.waiting():
            channel.refuse(message.number, error)
        raise


def accept_deposit(worker: Worker, message: Deposit, sender: Peer) -> None:
    """Take what another party sends, and continue the run that waits for it."""
    channel = worker.part(Channels).find(sender.original, message.id)
    rank = channel.rank_of(sender.id)
    if rank is None or rank == channel.rank or not sender.behalf:
        raise ProtocolError(f"cannot accept a deposit from {sender.id!r}: it is not a party of channel {message.id!r}")
    payload = message.payload
    try:
        if isinstance(payload, bytearray):
            _require_room_for_deposit(worker, message, sender.original)
            whole = channel.join(rank, message.number, payload, message.left)
            if whole is None:
                return
            payload = unpack(channel.arrays, whole)
        elif not (payload is None or (isinstance(payload, bytes) and message.number == SETUP)):
            raise ProtocolError("cannot accept a deposit: its payload has a wrong type (malformed message)")
    except ProtocolError as error:
        if message.number != SETUP:  # The run for which a party sent what cannot be used would wait for it.
            unusable = ProtocolError.unusable(channel.name_of(rank), str(error))
            with worker.waiting():
                _advance(channel.receive(rank, message.number, unusable))
        raise
    if message.number == SETUP:  # The answer to a seed is sent while the lock is not held.
        with worker.waiting():
            _advance(channel.receive(rank, message.number, payload))
    elif runs := channel.receive(rank, message.number, payload):
        with worker.waiting():
            _advance(runs)


def _require_room_for_deposit(worker: Worker, message: Deposit, client: Peer) -> None:
    size, held = len(message.payload) + max(message.left, 0), worker.part(Channels).count_bytes(client)
    limit = _limit_bytes(worker, client)
    if held + size > limit:
        raise ProtocolError.too_many_bytes(size, held, limit)


def _limit_bytes(worker: Worker, client: Peer) -> int:
    """Return how many bytes of a client may wait for its runs, and how many its kept masks may take."""
    quota = None if worker.guard is None else worker.guard.limit_message(client.user or "")
    return MAX_HELD if quota is None else min(quota, MAX_HELD)


def _advance(runs: Sequence[ProtocolRun]) -> None:
    for run in runs:
        run.advance()


# --- what may run


def _admit(
    worker: Worker, message: RunProtocol, channel: Channel, parents: list[Stored], sender: Peer
) -> tuple[list[Tensor], Reservation]:
    """Return the operands of a protocol, and room for it; raise unless the sender may run it on them."""
    _require_options(message)
    if channel.rank == PROVIDER:
        operands: list[Tensor] = list(map(_spec, message.args))
    else:
        operands = _find_shares(worker, message, channel, parents, sender)
        if PROTOCOLS[message.name].keeps_mask:
            _require_room_for_mask(worker, operands[0], sender.original)
    if _keeps_results(channel, message):
        worker.object_store.require_free(message.expected)
    if worker.guard is None:
        return operands, worker.reserve(sender, message.name)
    specs = tuple([spec_of(part) for part in operands])
    copied = _bytes_of(specs)
    with worker.reserve(sender, message.name, size=copied):  # Before it is rehearsed.
        size = _bytes_of(_find_needs(channel, message, specs)) + (copied if channel.rank != PROVIDER else 0)
    return operands, worker.reserve(sender, message.name, len(message.expected), size)


def _require_room_for_mask(worker: Worker, operand: Tensor, client: Peer) -> None:
    size = measure_mask(spec_of(operand))
    kept, limit = worker.part(Channels).count_kept(client), _limit_bytes(worker, client)
    if kept + size > limit:
        raise ProtocolError.too_many_masks(size, kept, limit)


def _rehearse(channel: Channel, message: RunProtocol | Prepare, specs: tuple[Spec, ...]) -> Rehearsal:
    options = tuple(sorted(message.options.items()))
    return rehearse(channel.kernels, message.name, specs, options, len(channel.parties))


def _find_needs(channel: Channel, message: RunProtocol, specs: tuple[Spec, ...]) -> Sequence[Spec]:
    """Return the forms of a party's results, or of what the provider has to deal."""
    found = _rehearse(channel, message, specs)
    return found.results if _keeps_results(channel, message) else _dealt(found.demands)


def _keeps_results(channel: Channel, message: RunProtocol) -> bool:
    return channel.rank != PROVIDER or PROTOCOLS[message.name].informs_client


def _dealt(demands: Iterable[Correlation]) -> list[Spec]:
    return [spec for demand in demands for specs in demand.forms for spec in specs]


def _bytes_of(specs: Iterable[Spec]) -> int:
    return sum([size_of(*spec) for spec in specs])


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


def _find_shares(
    worker: Worker, message: RunProtocol, channel: Channel, parents: list[Stored], sender: Peer
) -> list[Tensor]:
    """Return the shares on which a protocol runs; raise unless the sender may use them for it."""
    found = Operands(worker, sender.id)
    operands = list(found.resolve(message.args))
    parents.extend(found.parents)
    masked = _find_masked(message, channel)
    parents.extend(masked)
    for operand in operands:
        fits = is_framework_tensor(type(operand)) and dtype_name(operand) in RINGS
        if not fits or framework_of(operand).kernels is not channel.kernels:
            raise ProtocolError.not_a_share(message.name, type(operand).__name__)
    if len({dtype_name(operand) for operand in operands}) > 1:
        raise ProtocolError.mixed_rings(message.name)
    require_right_to_use(worker, parents, sender)
    _require_trust(worker, channel, parents, sender)
    if PROTOCOLS[message.name].checks_operands and not may_leave(worker, parents, sender):
        raise ProtocolError.checks_private(message.name)
    if masked and may_leave(worker, parents, sender):  # Otherwise, whether it is equal would reveal something.
        _require_unchanged(channel, masked[0].value, operands)
    if PROTOCOLS[message.name].reveals:
        for entry in parents:
            require_permission(worker, "read", entry, sender, entry.value)
            require_success(entry, entry.id, worker)
    return _copy_operands(operands, masked)


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
    """Return an entry, which is not stored, for what was opened under a mask: products with it are restricted too."""
    entry = Stored(value, sender.id, lineage)
    entry.id = id
    return entry


def _find_masked(message: RunProtocol, channel: Channel) -> list[Stored]:
    """Return what was opened under the kept mask that a protocol uses; its operands may be unrestricted copies."""
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


def _spec(part: object) -> Spec:
    """Return the form of an operand, as the provider receives it."""
    if type(part) is tuple and len(part) == 2:
        shape, dtype = part
        fits = type(shape) is tuple and all(type(length) is int and 0 <= length < 1 << 32 for length in shape)
        if fits and dtype in RINGS:
            return Spec(shape, dtype)
    raise ProtocolError("cannot read the form of a share: it has a wrong type (malformed message)")


# --- running


def _run(channel: Channel, message: RunProtocol, operands: Sequence[Tensor], finish: Finish) -> None:
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
        if run.wait(PATIENCE):
            run.advance(is_owner=True)
        else:
            waited = waited + PATIENCE if run.progress == progress else 0.0
            progress = run.progress
            _check_parties(channel, run, waited)


def _check_parties(channel: Channel, run: ProtocolRun, waited: float) -> None:
    """End a run with an error if nobody waits for it, or that names the party if one that it waits for is gone."""
    try:
        yield_turn()
        for rank in run.waits_for:
            channel.ping(rank)
            if waited >= LIMIT:
                raise ProtocolError.silent(channel.name_of(rank), waited)
    except SyftError as error:
        run.cancel(error)


def _describe_operand(entry: Stored) -> Operand:
    tags = tuple(sorted(entry.tags)) if entry.is_as_loaded else ()
    return Operand(tags, tuple(getattr(entry.value, "shape", ())))


def _keep(
    worker: Worker,
    message: RunProtocol,
    channel: Channel,
    parents: list[Stored],
    lineage: Lineage,
    sender: Peer,
    result: Nested,
) -> tuple[Placed, ...]:
    if not _keeps_results(channel, message):
        return ()
    parts = result if isinstance(result, tuple) else (result,)
    with worker.lock.of(sender):
        placed = tuple([keep_tensor(worker, part, message.result + n, sender, lineage) for n, part in enumerate(parts)])
        guard_results(worker, sender, parents, placed)
        if PROTOCOLS[message.name].protects:
            operands = tuple(map(_describe_operand, parents))
            maker = Maker(message.name, tuple(sorted(message.options.items())), tuple(channel.parties), operands)
            for part in placed:
                worker.object_store.entry(part.id).made_by = maker
    return placed
