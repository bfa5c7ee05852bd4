"""What a backward pass changes: gradients of objects that nobody named, and of the objects they were copied from."""

from __future__ import annotations

from typing import Any, NamedTuple

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
from syft_core.workers.permissions import require_permission
from syft_core.workers.requests import Ask, Process
from syft_core.workers.store import Stored, lineage_of
from syft_core.workers.transfer import hand_over


class _Learner(NamedTuple):
    """An object before a backward pass, with its gradient, if it keeps one."""

    entry: Stored
    end: Any
    version: int | None
    grad: Any
    grad_version: int | None
    copy: Any

    def got_gradient(self) -> bool:
        """Return whether it has another gradient now, or the same one was changed."""
        grad = self.end.grad if self.keeps_gradient else None
        return grad is not self.grad or (grad is not None and change_count(grad) != self.grad_version)

    @property
    def keeps_gradient(self) -> bool:
        """Whether a backward pass may give it a gradient."""
        return keeps_gradient(self.end)


def run_backward(execution: Execution, compute: Compute) -> Any:
    """Run a backward pass; return its result, or the process that sends gradients back to where copies came from."""
    worker, parents = execution.worker, execution.parents
    before = [found for entry in worker.object_store.learners() if (found := _learner(entry)) is not None]
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


def _learner(entry: Stored) -> _Learner | None:
    end = plain_end(entry.value)
    if end is None:
        return None
    grad = end.grad if keeps_gradient(end) else None
    if grad is None:
        return _Learner(entry, end, change_count(end), None, None, None)
    copy = framework_of(end).copy(grad) if entry.origin is not None else None
    return _Learner(entry, end, change_count(end), grad, change_count(grad), copy)


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
        sent = restrict(hand_over(gradient.detach(), worker), users)
        backward = framework.method("backward").name
        yield Ask(receiver, Run(framework.ALIAS, backward, (origin, sent), {}, new_id()))
    return result
