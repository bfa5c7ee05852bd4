"""Schedule: what is known about a call of a plan from earlier calls on arguments and state of the same forms.

Such a call was accepted before, and its steps have the same signatures, by which the stages *meter* and *conceal* look
up what they know about an operation. The forms of results follow from those of the operands, unless an operation
discloses something by them: calls with such an operation have no schedule.
"""

from __future__ import annotations

from collections.abc import Sequence

from syft_core.hook.caches import remember
from syft_core.hook.dispatch import framework_of
from syft_core.hook.forms import Form
from syft_core.hook.signatures import Memo, signature_of
from syft_core.plans.program import Operation, Program, Routine
from syft_core.values import Nested
from syft_core.workers.party.store import keeps_gradient
from syft_core.workers.running.execution import Execution
from syft_core.workers.running.procedure import execute


class Schedule:
    """The memos of the steps of one call, by position."""

    def __init__(self, program: Program, routine: Routine, key: object) -> None:
        self._known, self._key = program.memos, key
        found = self._known.get(key)
        self.is_new = found is None
        """Whether no such call was made before."""
        self._memos: list[Memo | None] = [None] * len(routine.steps) if found is None else found

    @classmethod
    def of(cls, program: Program, routine: Routine, values: Sequence[Nested]) -> Schedule | None:
        """Return the schedule of a call, or None if forms do not say everything about its arguments and its state."""
        decisive = program.decisive[id(routine)]
        if decisive is None:
            return None
        signature = signature_of(decisive, tuple(values), {})
        forms: list[Form | None] = []
        for value, part in zip(values, signature[1:], strict=True):
            if type(part) is Form:
                gradient = value.grad if part.requires_grad and keeps_gradient(value) else None
                forms.append(None if gradient is None else framework_of(gradient).form_of(gradient))
                if gradient is not None and forms[-1] is None:
                    return None
            elif type(value) is not float and value is not None:
                return None
        return cls(program, routine, (id(routine), signature, tuple(forms)))

    def execute(self, execution: Execution, operation: Operation) -> Nested:
        """Run a step; its memo is looked up if a stage needs it and no such call was made before."""
        if self.is_new and execution.op.disclosure(execution.args, execution.kwargs) != "nothing":
            self._key = None
        execution.found_memo = self._memos[operation.place]
        result = execute(execution)
        self._memos[operation.place] = execution.found_memo
        return result

    def finish(self) -> None:
        """Keep the memos for further calls: all steps have succeeded."""
        if self.is_new and self._key is not None:
            remember(self._known, self._key, self._memos)
