"""The handlers of messages about protocols: a worker as one party of several that compute on shares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from syft_core.exceptions import OperationNotAllowedError, SyftError, TicketError
from syft_core.location import Location
from syft_core.peer import Id, Peer, acting_for
from syft_core.workers.addresses.local import LocalLocation
from syft_core.workers.party.worker import Worker
from syft_mpc import authenticated as _authenticated  # noqa: F401  # registers protocols
from syft_mpc import comparison as _comparison  # noqa: F401  # registers protocols
from syft_mpc import functions as _functions  # noqa: F401  # registers protocols
from syft_mpc import pooling as _pooling  # noqa: F401  # registers protocols
from syft_mpc import securenn as _securenn  # noqa: F401  # registers protocols
from syft_mpc import spdz as _spdz  # noqa: F401  # registers protocols
from syft_mpc import truncation as _truncation  # noqa: F401  # registers protocols
from syft_mpc.channel import SETUP, Channel, Channels
from syft_mpc.errors import PartyFailedError, ProtocolError
from syft_mpc.kernels import Kernels
from syft_mpc.limits import limit_bytes
from syft_mpc.messages import Deposit, OpenChannel, RunProtocol
from syft_mpc.payloads import PartyPayload, is_failure, pack, split, unpack
from syft_mpc.protocol import PROVIDER
from syft_mpc.run import ProtocolRun

OPENING = 60.0
"""Seconds after which a worker gives up waiting for a channel to open."""
MAX_PARTIES = 64


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


def abandon_protocol(worker: Worker, message: RunProtocol, sender: Peer) -> None:
    """Tell the other parties that an earlier command of the client failed, so this one will not run a protocol."""
    channel = worker.part(Channels).find(sender.original, message.id)
    with worker.waiting():
        channel.refuse(message.number, PartyFailedError.by(worker.id))


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
    limit = limit_bytes(worker, client)
    if held + size > limit:
        raise ProtocolError.too_many_bytes(size, held, limit)


def _advance(runs: Sequence[ProtocolRun]) -> None:
    for run in runs:
        run.advance()
