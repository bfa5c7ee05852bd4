"""What a backward pass changes: gradients of objects that nobody named, and of the objects they were copied from."""

from __future__ import annotations

from typing import Any

from syft_core.exceptions import WriteNotPermittedError
from syft_core.hook.chain import plain_end
from syft_core.hook.dispatch import framework_of
from syft_core.messages import Run
from syft_core.peer import Peer
from syft_core.pointers.object_pointer import new_id
from syft_core.tensors.private import restrict
from syft_core.workers.changes import change, change_count
from syft_core.workers.execution import Execution
from syft_core.workers.ledger import record
from syft_core.workers.memory import Compute, keeps_gradient
from syft_core.workers.permissions import may_change, require_permission
from syft_core.workers.requests import Ask, Process
from syft_core.workers.store import Stored, lineage_of
from syft_core.workers.transfer import hand_over


class _Learner:
    """An object before a backward pass, with its gradient, if it keeps one."""

    def __init__(self, entry: Stored, end: Any, may_change: bool) -> None:
        self.entry, self.end, self.version, self.may_change = entry, end, change_count(end), may_change
        self.grad = grad = end.grad if keeps_gradient(end) else None
        self.grad_version = None if grad is None else change_count(grad)
        needed = grad is not None and (entry.origin is not None or not may_change)
        self.copy = framework_of(end).copy(grad) if needed else None

    def take_back(self) -> None:
        """Give it the gradient that it had before."""
        if self.grad is not None:
            self.grad.detach().copy_(self.copy)
        self.end.grad = self.grad

    def got_gradient(self) -> bool:
        """Return whether it has another gradient now, or the same one was changed."""
        grad = self.end.grad if keeps_gradient(self.end) else None
        return grad is not self.grad or (grad is not None and change_count(grad) != self.grad_version)


def run_backward(execution: Execution, compute: Compute) -> Any:
    """Run a backward pass; return its result, or the process that sends gradients back to where copies came from."""
    worker, parents = execution.worker, execution.parents
    starters, learners = _starters(execution), worker.object_store.learners()
    ends = [entry.value if entry.is_plain else plain_end(entry.value) for entry in learners]
    before = [
        _Learner(entry, end, any(may_change(worker, entry, peer) for peer in starters))
        for entry, end in zip(learners, ends, strict=True)
        if end is not None
    ]
    changed: list[_Learner] = []
    refused: list[_Learner] = []
    try:
        result = compute()
    finally:  # What fails may have changed some gradients before.
        worker.note_gradient_change(execution.message, execution.peer)
        for old in before:
            if not old.may_change:
                if old.got_gradient():
                    old.take_back()
                    refused.append(old)
                continue
            if old.got_gradient():
                changed.append(old)
            elif change_count(old.end) == old.version:  # It is not a gradient itself either, of a tensor that is gone.
                continue
            change(worker, old.entry, lineage_of([old.entry, *parents]))
    if refused:
        why = "a backward pass would change its gradient, and it is published or somebody else's"
        raise WriteNotPermittedError.to(str(execution.peer), refused[0].entry.id, str(worker.id), why)
    copies = [old for old in changed if old.entry.origin is not None]
    return result if not copies else _give_back(execution, copies, result)


def _starters(execution: Execution) -> list[Peer]:
    """Return the peers, one of whom must have the right to change the gradients.

    A gradient that comes back from a copy was started by whoever sent the copy away, as was noted then.
    """
    peer, parents = execution.peer, execution.parents
    lent = [sent for worker, sent in parents[0].lent if worker == peer.id] if parents else []
    return [sent._replace(behalf=(peer.original,)) for sent in lent] or [peer]


def _give_back(execution: Execution, copies: list[_Learner], result: Any) -> Process:
    """Send the gradients that copies just got to the objects that they are copies of; backward goes on there."""
    worker = execution.worker
    for old in copies:
        origin = old.entry.origin
        receiver = origin._location
        gradient = old.end.grad if old.copy is None else old.end.grad - old.copy
        peer = getattr(receiver.face, "peer", Peer(receiver.id))
        require_permission(worker, "read", old.entry, peer, gradient)
        named = peer._replace(behalf=execution.peer.chain) if peer.id != execution.peer.original.id else peer
        record(worker, old.entry, named, str(receiver.id), "its gradient went back", gradient)
        framework = origin.framework
        # A failure is not disclosed to who started the pass, so its result goes on, but is for nobody there.
        users = frozenset() if old.entry.failures and old.entry.access is not None else old.entry.access
        sent = restrict(hand_over(gradient.detach(), worker), users)
        backward = framework.method(framework.autograd.backward).name
        yield Ask(receiver, Run(framework.ALIAS, backward, (origin, sent), {}, new_id()))
    return result
