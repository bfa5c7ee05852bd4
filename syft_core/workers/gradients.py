"""Run backward passes, which change the gradients of objects that the command does not name."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from syft_core.exceptions import WriteNotPermittedError
from syft_core.hook.chain import plain_end
from syft_core.hook.dispatch import framework_of
from syft_core.messages import Run
from syft_core.peer import Id, Peer
from syft_core.pointers.object_pointer import new_id
from syft_core.tensors.private import restrict
from syft_core.values import Nested, Tensor
from syft_core.workers.changes import change, change_count
from syft_core.workers.execution import Execution
from syft_core.workers.ledger import record
from syft_core.workers.memory import Compute
from syft_core.workers.permissions import may_change, require_permission
from syft_core.workers.requests import Ask, Process
from syft_core.workers.store import Lineage, Stored, keeps_gradient, lineage_of
from syft_core.workers.transfer import hand_over
from syft_core.workers.worker import Worker


class _GradCandidate:
    """An object before a backward pass, with its gradient if it has one."""

    def __init__(self, entry: Stored, end: Tensor, may_change: bool) -> None:
        self.entry, self.end, self.version, self.may_change = entry, end, change_count(end), may_change
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


def run_backward(execution: Execution, compute: Compute) -> Nested:
    """Run a backward pass; return its result, or a process that sends the gradients of copies back to their origins."""
    try:
        return accumulate(execution.worker, execution.peer, execution.parents, execution.lineage, compute)
    finally:  # A failing pass may have changed some gradients first.
        execution.worker.note_gradient_change(execution.message, execution.peer)


def accumulate(worker: Worker, peer: Peer, parents: list[Stored], lineage: Lineage, compute: Compute) -> Nested:
    """Run a backward pass from ``parents``, and track which gradients it changes."""
    before = _find_candidates(worker, peer, parents[0].lent if parents else ())
    access, sources = lineage
    copies: list[_GradCandidate] = []
    refused: list[_GradCandidate] = []
    changed: list[Stored] = []
    written: list[Tensor] = []
    try:
        result = compute()
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
            if entry.access is access and entry.sources <= sources:
                changed.append(entry)
            else:
                change(worker, [entry], lineage_of([entry, *parents]), framework_of(old.end).is_shared(written[-1]))
        if changed:
            change(worker, changed, lineage, framework_of(written[0]).is_shared(*written))
    if refused:
        why = "a backward pass would change its gradient, and it is published or belongs to someone else"
        raise WriteNotPermittedError.to(str(peer), refused[0].entry.id, str(worker.id), why)
    return result if not copies else _give_back(worker, peer, copies, result)


def _find_candidates(worker: Worker, peer: Peer, lent: Collection[tuple[Id, Peer]]) -> list[_GradCandidate]:
    """Return the objects whose gradients a pass may change; ``lent`` is that of the object from which it starts."""
    initiators = _find_initiators(peer, lent) if lent else [peer]
    own = peer.id if initiators == [peer] and not peer.behalf else None
    found: list[_GradCandidate] = []
    for entry in worker.object_store.may_receive_grad():
        end = entry.value if entry.is_plain else plain_end(entry.value)
        if end is not None:
            is_own = own is not None and entry.holder == own and not entry.published and entry.guard is None
            permitted = is_own or any(may_change(worker, entry, initiator) for initiator in initiators)
            found.append(_GradCandidate(entry, end, permitted))
    return found


def _find_initiators(peer: Peer, lent: Iterable[tuple[Id, Peer]]) -> list[Peer]:
    """Return the peers that may have started the pass; one of them must be permitted to change the gradients.

    A gradient that comes back from a copy counts as started by the peer that sent the copy away.
    """
    senders = [sent for worker, sent in lent if worker == peer.id]
    return [sent._replace(behalf=(*sent.behalf, peer.original)) for sent in senders] or [peer]


def _give_back(worker: Worker, sender: Peer, copies: list[_GradCandidate], result: Nested) -> Process:
    """Send the new gradients of copies to their origins, where the backward pass continues."""
    for old in copies:
        origin = old.entry.origin
        receiver = origin._location
        gradient = old.end.grad if old.copy is None else old.end.grad - old.copy
        peer = getattr(receiver.face, "peer", Peer(receiver.id))
        require_permission(worker, "read", old.entry, peer, gradient)
        recipient = peer._replace(behalf=sender.chain) if peer.id != sender.original.id else peer
        record(worker, old.entry, recipient, str(receiver.id), "its gradient went back", gradient)
        framework = origin.framework
        # A failure must not be disclosed to the initiator, so the gradient is sent, but no user may read it.
        users = frozenset() if old.entry.failures and old.entry.access is not None else old.entry.access
        sent = restrict(hand_over(gradient.detach(), worker), users)
        backward = framework.method(framework.autograd.backward).name
        yield Ask(receiver, Run(framework.ALIAS, backward, (origin, sent), {}, new_id()))
    return result
