"""Run backward passes, which change the gradients of objects that the command does not name."""

from __future__ import annotations

from collections.abc import Iterable

from syft_core.exceptions import WriteNotPermittedError
from syft_core.hook.chain import plain_end
from syft_core.hook.dispatch import framework_of
from syft_core.hook.rules import leaves
from syft_core.location import Location
from syft_core.messages import Message, Run
from syft_core.peer import Id, Peer
from syft_core.pointers.object_pointer import new_id
from syft_core.tensors.private import restrict
from syft_core.values import Nested, Tensor
from syft_core.workers.moving.departure import Leaving, hand_to, leave, withdraw
from syft_core.workers.party.store import UNRESTRICTED, Stored, keeps_gradient, lineage_of, restrictions_of
from syft_core.workers.party.worker import Stage, Worker
from syft_core.workers.road.changes import change
from syft_core.workers.road.derivation import note_backward
from syft_core.workers.road.execution import Execution
from syft_core.workers.road.memory import change_count
from syft_core.workers.seeing.ledger import Departure
from syft_core.workers.seeing.permissions import may_change


class _GradCandidate:
    """An object before a backward pass, with its gradient if it has one."""

    def __init__(self, entry: Stored, end: Tensor, may_change: bool) -> None:
        self.entry, self.end, self.version, self.may_change = entry, end, change_count(end), may_change
        self.derivation = entry.derivation
        self.keeps_gradient = keeps_gradient(end)
        self.grad = end.grad if self.keeps_gradient else None
        self.grad_version = self.copy = None
        if self.grad is not None:
            self.grad_version = change_count(self.grad)
            if entry.origin is not None or not may_change:
                self.copy = framework_of(end).copy(self.grad)

    def restore(self) -> None:
        """Restore the gradient from before the pass."""
        if self.grad is not None:
            self.grad.detach().copy_(self.copy)
        self.end.grad = self.grad

    def has_new_gradient(self) -> bool:
        """Return whether the gradient was replaced or changed; a pass also gives one to each tensor in ``inputs``."""
        grad = self.end.grad if self.keeps_gradient or keeps_gradient(self.end) else None
        return grad is not self.grad or (grad is not None and change_count(grad) != self.grad_version)


def track_gradients(proceed: Stage, execution: Execution) -> Nested:
    """Run a backward pass, and send the gradients of copies back to their origins."""
    worker = execution.worker
    try:
        result, copies = _accumulate(proceed, execution)
    finally:  # A failing pass may have changed some gradients first.
        worker.note_gradient_change(execution.count, execution.peer)
    if copies and worker.command is not None:
        _give_back(worker, worker.command[0], execution.peer, copies)
    return result


def _accumulate(proceed: Stage, execution: Execution) -> tuple[Nested, list[_GradCandidate]]:
    worker, peer, parents, lineage = execution.worker, execution.peer, execution.parents, execution.lineage
    before = _find_candidates(execution)
    restrictions, sources = restrictions_of(lineage), lineage[1]
    copies: list[_GradCandidate] = []
    refused: list[_GradCandidate] = []
    changed: list[Stored] = []
    written: list[Tensor] = []
    noted: list[_GradCandidate] = []
    try:
        result = proceed(execution)
    finally:  # A failing pass may have changed some gradients first.
        for old in before:
            if not old.may_change:
                if old.has_new_gradient():
                    old.restore()
                    refused.append(old)
                continue
            if old.has_new_gradient():
                written.append(old.end if old.end.grad is None else old.end.grad)
                if old.entry.origin is not None:
                    copies.append(old)
            elif change_count(old.end) != old.version:  # It is itself the gradient of a dropped tensor.
                written.append(old.end)
            else:
                continue
            entry = old.entry
            noted.append(old)
            if entry.restrictions == restrictions and entry.sources <= sources:
                changed.append(entry)
            else:
                is_seen = framework_of(old.end).is_shared(written[-1])
                change(worker, [entry], lineage_of([entry, *parents]), execution.derivation, is_seen)
        if changed:
            change(worker, changed, lineage, execution.derivation, framework_of(written[0]).is_shared(*written))
        note_backward([(old.entry, old.derivation, old.grad is not None) for old in noted], execution.derivation)
    if refused:
        why = "a backward pass would change its gradient, and it is published or belongs to someone else"
        raise WriteNotPermittedError.to(str(peer), refused[0].entry.id, str(worker.id), why)
    return result, copies


def _find_candidates(execution: Execution) -> list[_GradCandidate]:
    worker, peer = execution.worker, execution.peer
    lent = execution.parents[0].lent if execution.parents else ()
    initiators = _find_initiators(peer, lent) if lent else [peer]
    own = peer.id if initiators == [peer] and not peer.behalf else None
    found: list[_GradCandidate] = []
    for entry in worker.object_store.may_receive_grad(_find_leaves(execution)):
        end = entry.value if entry.is_plain else plain_end(entry.value)
        if end is not None:
            is_own = own is not None and entry.holder == own and not entry.published and entry.guard is None
            permitted = is_own or any(may_change(worker, entry, initiator) for initiator in initiators)
            found.append(_GradCandidate(entry, end, permitted))
    return found


def _find_leaves(execution: Execution) -> list[Tensor] | None:
    roots, inputs, _ = execution.framework.parse_backward(execution.op, execution.args, execution.kwargs)
    ends = [plain_end(leaf) for leaf in leaves((roots, inputs)) if leaf is not None]
    if any(end is None for end in ends):
        return None
    for target in leaves(inputs):  # A pass makes them retain their gradients.
        execution.worker.object_store.note_retained(plain_end(target))
    found = execution.framework.find_leaves(ends)
    return None if found is None else [*found, *ends]


def _find_initiators(peer: Peer, lent: Iterable[tuple[Id, Peer]]) -> list[Peer]:
    """Return the peers that may have started the pass; one of them must be permitted to change the gradients.

    A gradient that comes back from a copy counts as started by the peer that sent the copy away.
    """
    senders = [sent for worker, sent in lent if worker == peer.id]
    return [sent._replace(behalf=(*sent.behalf, peer.original)) for sent in senders] or [peer]


def _give_back(worker: Worker, message: Message, sender: Peer, copies: list[_GradCandidate]) -> None:
    """Send the new gradients of copies to their origins, where the backward pass continues.

    All are copied before the first is sent: other commands may run meanwhile and change them or their restrictions.
    """
    leaving = [_prepare_gradient(worker, message, sender, old) for old in copies]
    sent = [leave(task)[0] for task in leaving]
    try:
        for old, gradient in zip(copies, sent, strict=True):
            origin, task = old.entry.origin, leaving.pop(0)
            framework = origin.framework
            backward = framework.method(framework.autograd.backward).name
            # A failure must not be disclosed to the initiator, so the gradient is sent, but no user may read it.
            is_hidden = old.entry.failures and old.entry.restrictions != UNRESTRICTED
            value = restrict(gradient, frozenset()) if is_hidden else gradient
            hand_to(origin._location, Run(framework.ALIAS, backward, (origin, value), {}, new_id()), task)
    except BaseException as error:
        for task in leaving:
            withdraw(task, error)
        raise


def _prepare_gradient(worker: Worker, message: Message, sender: Peer, old: _GradCandidate) -> Leaving:
    receiver = old.entry.origin._location
    gradient = old.end.grad if old.copy is None else old.end.grad - old.copy
    peer = _peer_of(receiver)
    return Leaving(
        worker,
        "read",
        message,
        peer,
        [Departure(old.entry, gradient.detach())],
        to=receiver.id,
        reason="its gradient went back",
        named=peer._replace(behalf=sender.chain) if peer.id != sender.original.id else peer,
        asks_rules=False,
        hides_failures=True,
    )


def _peer_of(receiver: Location) -> Peer:
    return getattr(receiver.face, "peer", Peer(receiver.id))
