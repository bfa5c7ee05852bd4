"""Schedule: facts about a call of a plan, learned from earlier calls on arguments and state of the same forms.

Such a call was accepted before, and its steps have the same signatures, by which the stages *meter* and *conceal* look
up known facts about an operation. The forms of results follow from those of the operands, unless an operation discloses
something through them: calls with such an operation have no schedule.
"""

from __future__ import annotations

from collections.abc import Sequence

from syft_core.hook.dispatch import framework_of
from syft_core.hook.forms import Form
from syft_core.hook.signatures import Memo, signature_of
from syft_core.plans.program import Program, Routine
from syft_core.values import Nested
from syft_core.workers.party.store import keeps_gradient
from syft_core.workers.road.execution import Execution
from syft_core.workers.road.procedure import execute

MAX_SCHEDULES = 64
"""The maximum number of schedules of a plan: peers choose the forms of its arguments."""


class Schedule:
    """The memos of the steps of one call, by position."""

    def __init__(self, program: Program, routine: Routine, key: object) -> None:
        self._known, self._key = program.memos, key
        found = self._known.get(key)
        self.is_new = found is None
        """Whether this is the first such call."""
        self._memos: list[Memo | None] = [None] * len(routine.steps) if found is None else found

    @classmethod
    def of(cls, program: Program, routine: Routine, values: Sequence[Nested]) -> Schedule | None:
        """Return the schedule of a call, or None if forms do not fully describe its arguments and its state."""
        decisive = program.decisive[id(routine)]
        if decisive is None:
            return None
        signature = signature_of(decisive, tuple(values), {})
        cleared = program.gradients_cleared_first[id(routine)]
        forms: list[object] = []
        for number, (value, part) in enumerate(zip(values, signature[1:], strict=True)):
            if type(part) is Form:
                name = framework_of(value).gradient if part.is_leaf or keeps_gradient(value) else ""
                gradient = getattr(value, name) if name else None
                is_used = gradient is not None and number not in cleared
                forms.append(framework_of(gradient).form_of(gradient) if is_used else gradient is not None)
                if forms[-1] is None:
                    return None
            elif type(value) is not float and value is not None:
                return None
        return cls(program, routine, (id(routine), signature, tuple(forms)))

    def execute(self, execution: Execution, place: int) -> Nested:
        """Run a step; in the first such call, store its memo."""
        if not self.is_new:
            execution.found_memo = self._memos[place]
            return execute(execution)
        if execution.op.disclosure(execution.args, execution.kwargs) != "nothing":
            self._key = None
        result = execute(execution)
        self._memos[place] = execution.found_memo
        return result

    def finish(self) -> None:
        """Keep the memos for further calls: all steps have succeeded."""
        if self.is_new and self._key is not None:
            if len(self._known) >= MAX_SCHEDULES:
                self._known.clear()
            self._known[self._key] = self._memos
