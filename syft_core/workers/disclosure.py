"""Keep the form of a result, and whether there is one, from disclosing values that the sender may not have."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from syft_core.exceptions import ValueRefusedError
from syft_core.hook.chain import plain_end
from syft_core.hook.rules import leaves
from syft_core.workers.execution import Execution
from syft_core.workers.memory import memory_of


def require_undisclosed(execution: Execution) -> None:
    """Refuse an operation whose result, or failure, would tell values that the sender may not have."""
    op, worker = execution.op, execution.worker
    if op.disclosure(execution.args, execution.kwargs) != "nothing":
        raise ValueRefusedError.form(op.name, str(worker.id))
    elsewhere = any(plain_end(stored.value) is None and not execution.may_read(stored) for stored in execution.parents)
    if elsewhere or execution.framework.needs_values(op, execution.args, execution.kwargs):
        raise ValueRefusedError.undecided(op.name, str(worker.id))


def compute_unread(execution: Execution) -> Any:
    """Run an operation that is refused if it reads values which the sender may not have to decide on a form."""
    with unread(execution, readable_by(execution)):
        return execution.compute()


def readable_by(execution: Execution) -> set[Any]:
    """Return the memory of all tensors in a call that the sender may have."""
    message, parents = execution.message, execution.parents
    own = [stored.value for stored in parents if execution.may_read(stored)]
    readable = {memory for value in [*own, *leaves((message.args, message.kwargs))] for memory in memory_of(value)}
    return readable - {
        memory for stored in parents if not execution.may_read(stored) for memory in memory_of(stored.value)
    }


def unread(execution: Execution, readable: set[Any]) -> AbstractContextManager[Any]:
    """Return a context in which an operation is refused if it reads anything else to decide on a form."""
    op, refusal = execution.op, ValueRefusedError.form(execution.op.name, str(execution.worker.id))
    return execution.framework.unread(op, execution.args, execution.kwargs, readable, refusal)
