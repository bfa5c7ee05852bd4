"""The stage that runs an operation on private operands: neither its result nor its failure discloses their values."""

from __future__ import annotations

from syft_core.values import Nested
from syft_core.workers.party.worker import Stage
from syft_core.workers.road.execution import Execution
from syft_core.workers.road.failures import answer_failure
from syft_core.workers.seeing.disclosure import find_forms, infer_forms, require_forms, require_undisclosed


def conceal(proceed: Stage, execution: Execution) -> Nested:
    """Run an operation without disclosing values that the sender may not have."""
    op = execution.op
    if execution.is_readable or op.clears_gradient(execution.args):
        return proceed(execution)
    expected = find_forms(execution)
    require_undisclosed(execution, is_known=expected is not None)
    try:
        if expected is None:
            expected = infer_forms(execution)
        if op.random and op.process is None:  # A process protects each of its turns.
            with execution.framework.protect_rng(op):
                result = proceed(execution)
        else:
            result = proceed(execution)
        return result if expected is None else require_forms(execution, result, expected)
    except Exception as error:  # noqa: BLE001  # the sender may not be allowed to see it
        return answer_failure(execution, error)
