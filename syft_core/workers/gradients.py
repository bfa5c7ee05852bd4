"""What a backward pass changes: gradients of objects that nobody named, and of the objects they were copied from."""

from __future__ import annotations

from typing import Any

from syft_core.hook.chain import plain_end
from syft_core.hook.dispatch import framework_of
from syft_core.messages import Run
from syft_core.peer import Peer
from syft_core.pointers.object_pointer import new_id
from syft_core.tensors.private import restricted
from syft_core.workers.changes import change, change_count
from syft_core.workers.execution import Execution
from syft_core.workers.ledger import record
from syft_core.workers.memory import Compute, keeps_gradient
from syft_core.workers.permissions import require_permission
from syft_core.workers.requests import Ask, Process
from syft_core.workers.store import Stored, lineage_of
from syft_core.workers.transfer import hand_over


class _Learner:
    """An object before a backward pass, with its gradient, if it keeps one."""

    def __init__(self, entry: Stored, end: Any) -> None:
        self.entry, self.end, self.version = entry, end, change_count(end)
        self.grad = grad = end.grad if keeps_gradient(end) else None
        self.grad_version = None if grad is None else change_count(grad)
        self.copy = framework_of(end).copy(grad) if grad is not None and entry.origin is not None else None

    def got_gradient(self) -> bool:
        """Return whether it has another gradient now, or the same one was changed."""
        grad = self.end.grad if keeps_gradient(self.end) else None
        return grad is not self.grad or (grad is not None and change_count(grad) != self.grad_version)


def run_backward(execution: Execution, compute: Compute) -> Any:
    """Run a backward pass; return its result, or the process that sends gradients back to where copies came from."""
    worker, parents = execution.worker, execution.parents
    learners = worker.object_store.learners()
    ends = [entry.value if entry.is_plain else plain_end(entry.value) for entry in learners]
    before = [_Learner(entry, end) for entry, end in zip(learners, ends, strict=True) if end is not None]
    changed: list[_Learner] = []
    try:
        result = compute()
    finally:  # What fails may have changed some gradients before.
        worker.note_gradient_change(execution.message, execution.peer)
        for old in before:
            if old.got_gradient():
                changed.append(old)
            elif change_count(old.end) == old.version:  # It is not a gradient itself either, of a tensor that is gone.
                continue
            change(worker, old.entry, lineage_of([old.entry, *parents]))
    copies = [old for old in changed if old.entry.origin is not None]
    return result if not copies else _give_back(execution, copies, result)


def _give_back(execution: Execution, copies: list[_Learner], result: Any) -> Process:
    """Send the gradients that copies just got to the objects that they are copies of; backward goes on there."""
    worker = execution.worker
    for old in copies:
        origin = old.entry.origin
        receiver = origin._location
        gradient = old.end.grad if old.copy is None else old.end.grad - old.copy
        stored_as = getattr(old.end, "id", "?")
        peer = getattr(receiver.face, "peer", Peer(receiver.id))
        require_permission(worker.policy, old.entry, peer, stored_as, str(worker.id))
        record(worker, old.entry, stored_as, peer, str(receiver.id), "its gradient went back")
        framework = origin.framework
        # A failure is not disclosed to who started the pass, so its result goes on, but is for nobody there.
        users = frozenset() if old.entry.failures and old.entry.access is not None else old.entry.access
        sent = restricted(hand_over(gradient.detach(), worker), users)
        backward = framework.method("backward").name
        yield Ask(receiver, Run(framework.ALIAS, backward, (origin, sent), {}, new_id()))
    return result
