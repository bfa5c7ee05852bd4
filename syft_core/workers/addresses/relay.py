"""Run operations on stored pointers: their worker runs them, and pointers to the results are stored here."""

from __future__ import annotations

from syft_core.exceptions import ValueRefusedError
from syft_core.values import Nested
from syft_core.workers.party.store import lineage_of
from syft_core.workers.party.worker import Stage
from syft_core.workers.road.changes import note_changes
from syft_core.workers.road.execution import Execution
from syft_core.workers.road.keeping import keep_result
from syft_core.workers.seeing.disclosure import require_undisclosed


def relay(proceed: Stage, execution: Execution) -> Nested:
    """Run an operation without this worker's lock, as another worker computes it; store pointers to the results."""
    if not execution.is_readable:
        require_undisclosed(execution)
    try:
        with execution.worker.waiting():
            outcome = _try(proceed, execution)
    except BaseException:  # The operands changed meanwhile, but the operation has run.
        note_changes(execution, lineage_of(execution.parents))
        raise
    execution.lineage = lineage_of(execution.parents)
    if isinstance(outcome, Exception):
        if execution.is_readable:
            raise outcome
        raise ValueRefusedError.undecided(execution.op.name, str(execution.worker.id), execution.op.instead) from None
    note_changes(execution, execution.lineage)
    return keep_result(execution, outcome)


def _try(proceed: Stage, execution: Execution) -> Nested:
    try:
        return proceed(execution)
    except Exception as error:  # noqa: BLE001  # the caller decides what to disclose
        return error
