"""The handlers of messages about protocols: a worker as one party of several that compute on shares."""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import Any

from syft_core.crypto import comparison as _comparison  # noqa: F401  # registers protocols
from syft_core.crypto import functions as _functions  # noqa: F401  # registers protocols
from syft_core.crypto import pooling as _pooling  # noqa: F401  # registers protocols
from syft_core.crypto import securenn as _securenn  # noqa: F401  # registers protocols
from syft_core.crypto import spdz as _spdz  # noqa: F401  # registers protocols
from syft_core.crypto import truncation as _truncation  # noqa: F401  # registers protocols
from syft_core.crypto.kernels import RINGS, dtype_name
from syft_core.crypto.protocol import PROTOCOLS, PROVIDER, Spec, rehearse
from syft_core.crypto.run import Channel, ProtocolRun, is_failure, start_protocol
from syft_core.exceptions import OperationNotAllowedError, ProtocolError, SyftError
from syft_core.hook.hook_args import is_framework_tensor
from syft_core.messages import Deposit, OpenChannel, Prepare, RunProtocol
from syft_core.peer import Id, Peer, acting_for
from syft_core.values import Nested, Tensor
from syft_core.workers.ledger import record
from syft_core.workers.local import LocalLocation
from syft_core.workers.permissions import may_leave, require_permission, require_right_to_use
from syft_core.workers.requests import Elsewhere, Process
from syft_core.workers.running import keep, resolve
from syft_core.workers.store import Stored, lineage_of
from syft_core.workers.worker import Worker

PATIENCE = 2.0
"""Seconds after which a worker checks whether the parties that it waits for can be reached."""
LIMIT = 600.0
"""Seconds after which a worker gives up waiting for parties that can be reached."""


def open_channel(worker: Worker, message: OpenChannel, sender: Peer) -> Process:
    """Join a group of parties, and send seeds to those that follow in rank."""
    own = {worker.id, *worker.aliases}
    names = (*message.parties, message.provider)
    position = message.rank if message.rank != PROVIDER else len(message.parties)
    if len(message.parties) < 2 or len(set(names)) != len(names) or not 0 <= position < len(names):
        raise ProtocolError(f"cannot open channel {message.id!r}: its parties are not valid (malformed message)")
    if names[position] not in own:
        raise ProtocolError(f"cannot open channel {message.id!r}: worker {worker.id!r} is not {names[position]!r}")
    kernels = worker.attributes_of(message.framework).kernels
    if kernels is None:
        raise OperationNotAllowedError.no_kernels(message.framework)
    post = partial(_post, worker, message.id, sender.original, names)
    channel = Channel(message.parties, message.provider, message.rank, kernels, post)
    worker.channels.add(sender.original, message.id, channel)
    yield Elsewhere(channel.share_seeds)


def run_protocol(worker: Worker, message: RunProtocol, sender: Peer) -> Process:
    """Run a protocol with the other parties, and store the results."""
    channel = worker.channels.find(sender.original, message.id)
    parents: list[Stored] = []
    if channel.rank == PROVIDER:
        operands: list[Tensor] = list(map(_spec, message.args))
    else:
        operands = _find_shares(worker, message, channel, parents, sender)
    lineage = lineage_of(parents)
    worker.stats.operations += 1
    ended, errors = threading.Event(), []

    def finish(result: Nested, error: Exception | None) -> None:
        if error is None and channel.rank != PROVIDER:
            parts = result if isinstance(result, tuple) else (result,)
            with worker.lock:
                for place, part in enumerate(parts):
                    keep(worker, part, message.result + place, sender, lineage)
        elif error is not None:
            errors.append(error)
        ended.set()

    run = yield Elsewhere(
        partial(start_protocol, channel, message.number, message.name, operands, message.options, finish)
    )
    if message.waits and not ended.is_set():
        yield Elsewhere(partial(_wait, channel, run, ended))
    if errors:
        raise errors[0]


def _find_shares(
    worker: Worker, message: RunProtocol, channel: Channel, parents: list[Stored], sender: Peer
) -> list[Any]:
    """Return the shares on which a protocol runs; raise unless the sender may use them for it."""
    operands = list(resolve(worker, message.args, parents, []))
    for operand in operands:
        if not is_framework_tensor(type(operand)) or dtype_name(operand) not in RINGS:
            raise ProtocolError.not_a_share(message.name, type(operand).__name__)
    require_right_to_use(worker, parents, sender)
    _require_trust(worker, channel, parents, sender)
    if PROTOCOLS[message.name].reveals:
        to = ", ".join(map(str, channel.parties))
        for entry in parents:
            require_permission(worker, "read", entry, sender, entry.value)
            record(worker, entry, sender, to, "opened at all parties", entry.value)
    return operands


def prepare(worker: Worker, message: Prepare, sender: Peer) -> Process:
    """Deal the correlations of a protocol in advance."""
    channel = worker.channels.find(sender.original, message.id)
    if channel.rank != PROVIDER:
        raise ProtocolError(f"cannot prepare {message.name!r}: worker {worker.id!r} is not the provider of the group")
    specs, options = tuple(map(_spec, message.args)), tuple(sorted(message.options.items()))
    for demand in rehearse(channel.kernels, message.name, specs, options, len(channel.parties)).demands:
        yield Elsewhere(partial(channel.prepare, demand, message.times))


def accept_deposit(worker: Worker, message: Deposit, sender: Peer) -> Process:
    """Take what another party sends, and continue the run that waits for it."""
    channel = worker.channels.find(sender.original, message.id)
    rank = channel.rank_of(sender.id)
    if rank is None or rank == channel.rank or not sender.behalf:
        raise ProtocolError(f"cannot accept a deposit from {sender.id!r}: it is not a party of channel {message.id!r}")
    yield Elsewhere(partial(channel.receive, rank, message.number, message.payload))


def _post(worker: Worker, id: Id, client: Peer, names: tuple[Any, ...], rank: int, number: int, payload: Any) -> None:
    """Send a payload to the party of a rank, on behalf of the client."""
    location = worker.location_of(names[rank])
    with acting_for((client,)):
        if isinstance(location, LocalLocation):  # Arrays are never changed, so parties of one process may share them.
            channel = location.worker.channels.find(client, id)
            own = {worker.id, *worker.aliases}
            channel.receive(next(place for place in _ranks(names) if names[place] in own), number, payload)
        else:
            location.tell(Deposit(id, number, None if is_failure(payload) else payload))


def _ranks(names: tuple[Any, ...]) -> list[int]:
    return [*range(len(names) - 1), PROVIDER]


def _require_trust(worker: Worker, channel: Channel, parents: list[Stored], sender: Peer) -> None:
    """Raise unless the sender may read the operands, or the owner trusts all other parties with masked values."""
    own = {worker.id, *worker.aliases}
    others = [name for name in (*channel.parties, channel.provider) if name is not None and name not in own]
    if not worker.trusted.issuperset(others) and not may_leave(worker, parents, sender):
        raise ProtocolError.untrusted(str(worker.id), ", ".join(repr(name) for name in others))


def _spec(part: Any) -> Spec:
    """Return the form of an operand, as the provider receives it."""
    if type(part) is tuple and len(part) == 2:
        shape, dtype = part
        fits = type(shape) is tuple and all(type(length) is int and 0 <= length < 1 << 32 for length in shape)
        if fits and dtype in RINGS:
            return Spec(shape, dtype)
    raise ProtocolError("cannot read the form of a share: it has a wrong type (malformed message)")


def _wait(channel: Channel, run: ProtocolRun, ended: threading.Event) -> None:
    """Wait until a run has ended; end it with an error that names the party if one is gone."""
    started = time.monotonic()
    while not ended.wait(PATIENCE):
        for rank in run.waits_for:
            try:
                channel.ping(rank)
            except (SyftError, OSError) as error:
                run.fail(ProtocolError.unreachable(channel.name_of(rank), type(error).__name__))
                break
            if time.monotonic() > started + LIMIT:
                run.fail(ProtocolError.silent(channel.name_of(rank), LIMIT))
                break
