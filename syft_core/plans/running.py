"""The handler of ``RunPlan``: run the steps of a stored plan, each with the stages of a single operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property, partial
from operator import is_
from time import monotonic
from typing import Any
from weakref import ReferenceType, ref

from syft_core.exceptions import ValueRefusedError
from syft_core.hook.chain import plain_below
from syft_core.hook.dispatch import framework_of
from syft_core.hook.hook import attached_hook
from syft_core.hook.hook_args import is_framework_tensor
from syft_core.hook.rules import map_leaves
from syft_core.messages import Placed
from syft_core.peer import Id, Peer
from syft_core.plans.errors import PlanError
from syft_core.plans.interpreter import fill, read, run_steps
from syft_core.plans.messages import RunPlan
from syft_core.plans.pointer import require_arguments
from syft_core.plans.program import (
    ITEM,
    Operation,
    Program,
    Routine,
    Segment,
    Slot,
    look_up,
    note_step,
)
from syft_core.plans.schedule import Schedule
from syft_core.pointers.object_pointer import id_here
from syft_core.tensors.private import remove_restriction
from syft_core.values import Kwargs, Nested, Tensor
from syft_core.workers.party.status import LAYERED, MODES, OUT
from syft_core.workers.party.store import NOTHING, Sources, Stored, is_leaf, lineage_of
from syft_core.workers.party.turns import TURN_SECONDS
from syft_core.workers.party.worker import Worker
from syft_core.workers.road.authorization import require_command
from syft_core.workers.road.changes import change
from syft_core.workers.road.execution import Execution
from syft_core.workers.road.keeping import form_of, keep_tensor
from syft_core.workers.road.procedure import execute
from syft_core.workers.seeing.permissions import (
    may_leave,
    require_permission,
    require_right_to_change,
    require_right_to_use,
)
from syft_core.workers.seeing.visibility import find_visible, require_choosable


def require_known_operations(worker: Worker, program: Program) -> None:
    """Raise unless every operation of a plan may run on a worker."""
    for routine in program.routines:
        for step in routine.steps:
            if step.framework:
                require_command(worker, look_up(step), worker.attributes_of(step.framework))
    program.prepared  # noqa: B018  # Looks up all operations.


def run_plan(worker: Worker, message: RunPlan, sender: Peer) -> Nested:
    """Run a plan on stored objects and numbers, and store the tensors that it returns.

    Only a long run takes turns with other commands.
    """
    entry = worker.object_store.entry(message.id)
    program = entry.value
    if not isinstance(program, Program):
        raise ValueRefusedError.only_local("run", str(worker.id), f"object {message.id!r} is not a plan")
    require_permission(worker, "call", entry, sender, program)
    routine = program.routine
    if routine is not program.routines[-1]:  # The first call creates the state of the plan.
        require_right_to_change(worker, entry, sender, program)
    stored = [_find(worker, arg) for arg in message.args]
    stored += _find_state(worker, entry, sender)
    entries = [entry for entry in stored if type(entry) is Stored]
    require_right_to_use(worker, entries, sender)
    values = list(map(_value_of, stored))
    schedule = Schedule.of(program, routine, values)
    if schedule is None or schedule.is_new:
        require_arguments(program, [_look(entry) for entry in stored[: len(program.inputs)]])
        _require_recorded_state(program, routine, stored[len(program.inputs) :])
    worker.object_store.require_free(range(message.result, message.result + program.results))
    if not program.begun:
        made = program.state[len(program.state) - program.made :]
        require_choosable(worker, made, sender)
        worker.object_store.require_free(made)
    worker.stats.operations += len(routine.steps)
    call = _Call(worker, message, sender, program, routine, stored, schedule)
    of_others = entry.giver != sender  # It may contain values that the sender does not know.
    for argument in entries if of_others else ():
        argument.disown()
    with _isolate(routine):
        kept = call.run()
    for placed in kept.values() if of_others else ():
        worker.object_store.entry(placed.id).disown()
    if not program.begun:
        program.begun = True
        bind_state(worker, entry)
        worker.object_store.note(entry)
    if message.count >= 0:
        return None
    return map_leaves(lambda leaf: kept.get(leaf.number, leaf) if type(leaf) is Slot else leaf, routine.answer)


def _find(worker: Worker, arg: Any) -> Any:
    if type(arg) in (int, float):
        return float(arg)
    id = id_here(arg, worker.id)
    if id is None or arg.point_to_attr is not None:
        raise PlanError("cannot run a plan: its arguments must be numbers and tensors of this worker; send them first")
    return worker.object_store.entry(id)


def _value_of(entry: object) -> Any:
    """Return the value of a stored object without its private layers; return a number unchanged."""
    if type(entry) is not Stored:
        return entry
    return remove_restriction(entry.value) if entry.status & LAYERED else entry.value


def bind_state(worker: Worker, plan: Stored) -> dict[Id, ReferenceType[Stored]]:
    """Store which objects are the state of a plan."""
    found = [entry for id in plan.value.state if (entry := worker.object_store.get(id)) is not None]
    plan.state = {entry.id: ref(entry) for entry in found}
    return plan.state


def _find_state(worker: Worker, plan: Stored, sender: Peer) -> list[Stored | None]:
    program: Program = plan.value
    ids = program.state if program.begun else program.state[: len(program.state) - program.made]
    bound = bind_state(worker, plan) if plan.state is None else plan.state
    entries = [find_visible(worker, id, sender) for id in ids]
    for entry in entries:
        if entry.id not in bound or bound[entry.id]() is not entry:
            raise PlanError.replaced(program.name, entry.id)
    return [*entries, *[None] * (len(program.state) - len(ids))]


def _require_recorded_state(program: Program, routine: Routine, state: list[Stored | None]) -> None:
    """Raise if the recorded steps no longer fit the plan's state, because a form or a gradient has changed.

    Gradients may have been cleared, except those that a step reads before a backward pass.
    """
    reads = program.gradients_read_first[id(routine)]
    for place, (entry, known) in enumerate(zip(state, routine.before, strict=False)):
        found = None if entry is None or known is None else plain_below(entry.value)
        if found is None:
            continue
        if (found.shape, found.dtype) != (known.shape, known.dtype):
            raise PlanError.other_state(program.name, place, "has another shape or dtype than")
        if getattr(found, "requires_grad", False) != known.requires_grad:
            need = "does not need" if known.requires_grad else "needs"
            raise PlanError.other_state(program.name, place, f"{need} gradients, unlike")
        has_gradient = is_leaf(found) and found.grad is not None
        if has_gradient and place not in routine.gradients:
            raise PlanError.other_state(program.name, place, "has a gradient, unlike")
        if not has_gradient and place in routine.gradients and len(program.inputs) + place in reads:
            raise PlanError.other_state(program.name, place, "has no gradient, unlike")


def _look(entry: object) -> Any:
    if not isinstance(entry, Stored):
        return entry
    return entry.value if entry.is_plain else form_of(entry.value)


def _isolate(routine: Routine) -> Any:
    """Return a context without the caller's modes, which must not see the worker's tensors."""
    for step in routine.steps:
        if step.framework and (hook := attached_hook(step.framework)) is not None:
            return hook.attributes.isolate() or nullcontext()
    return nullcontext()


class _StepExecution(Execution):
    """One step of a plan, on the slots of a call; its results are held until the call ends."""

    __slots__ = ()

    def store(self, value: Tensor, place: int) -> Stored:
        """Hold a result until the call ends."""
        entry = Stored(value, self.holder, self.lineage)
        if self.peer.behalf:
            entry.giver = self.peer
        if self.derivation is not None:
            entry.derivation = self.derivation.part(place)
        self.worker.object_store.hold(entry)
        return entry

    def find_result(self, placed: Nested) -> Stored:
        """Return the entry of a result."""
        entry: Stored = placed
        return entry

    def require_free(self, count: int) -> None:
        """Do nothing: results of steps have no ids."""


_IS_STORED: Callable[[type], object] = partial(is_, Stored)
_NO_CONTEXT = nullcontext()


class _Call:
    def __init__(
        self,
        worker: Worker,
        message: RunPlan,
        sender: Peer,
        program: Program,
        routine: Routine,
        stored: list[Any],
        schedule: Schedule | None,
    ) -> None:
        self.worker, self.message, self.sender = worker, message, sender
        self.program, self.routine, self.stored, self.schedule = program, routine, stored, schedule
        made = [None] * program.made_by_steps[id(routine)]
        self.slots: list[Any] = [*stored, *made]
        self.returned = program.kept[id(routine)]
        self.place, self.turn = 0, monotonic() + TURN_SECONDS
        self.modes: str | None = None
        self.differ = False
        """Whether the modes of the steps differ from those of this thread."""

    @cached_property
    def own(self) -> Sources:
        """The sources that the sender has sent; their values disclose nothing to the sender."""
        sender = self.sender
        entries = [entry for entry in self.stored if type(entry) is Stored]
        own = [entry for entry in entries if entry.holder == sender.id and entry.giver in (None, sender)]
        return NOTHING.union(*[entry.root or NOTHING for entry in own])

    def run(self) -> dict[int, Placed]:
        """Run all steps, each with the stages that its status requires.

        Other clients' commands may be executed in between, as with single operations.
        """
        try:
            run_steps(self.program, self.routine, self.slots, self._run_step, self._enter, _IS_STORED, self._drop)
            if self.schedule is not None:
                self.schedule.finish()
            return self._keep()
        except Exception as error:
            note_step(error, self.program, self.routine, self.place)
            raise
        finally:
            for entry in self.slots[len(self.stored) :]:
                self._drop(entry)

    def _enter(self, segment: Segment, _slots: Sequence[Any]) -> AbstractContextManager[Any]:
        """Remember the modes of the next steps; each step enters them itself."""
        framework, self.modes = segment.framework, segment.modes
        self.differ = framework is not None and self.modes is not None and self.modes != framework.modes()
        return _NO_CONTEXT

    def _run_step(self, operation: Operation, found: Sequence[Any]) -> Nested:
        self.place = operation.place
        if monotonic() > self.turn:
            self.worker.yield_turn()
            self.turn = monotonic() + TURN_SECONDS
        if self.worker.held is not None:  # Others went first, and may have changed a form.
            self.schedule = None
        values = [each.value if type(each) is Stored and each.is_plain else _value_of(each) for each in found]
        operands = read(operation, values)  # With gradients in place of their tensors: they are what a step changes.
        args, kwargs = fill(operation, operands)
        if operation.op is None:
            return self._compute_number(operation, args, kwargs)
        framework, op = operation.framework, operation.op
        execution = _StepExecution(self.worker, framework, op, self.sender)  # type: ignore[arg-type]  # it has both
        execution.args, execution.kwargs = args, kwargs  # type: ignore[assignment]  # a tuple, or what takes its place
        if operation.has_out:
            execution.status |= OUT
        execution.modes = self.modes
        if self.differ:
            execution.status |= MODES
        execution.add_operands(found, operands)
        execution.is_in_order = False
        execution.lineage = lineage_of(execution.parents)
        if self.schedule is None:
            return execute(execution)
        return self.schedule.execute(execution, operation.place)

    def _drop(self, entry: object) -> None:
        if type(entry) is Stored:
            self.worker.object_store.drop(entry)

    def _compute_number(self, operation: Operation, args: Sequence[Any], kwargs: Kwargs) -> Any:
        if operation.step.op == ITEM:
            return self._read_number(self.slots[operation.step.args[0].number], args[0])
        result = operation.run(*args, **kwargs)
        if not is_framework_tensor(type(result)):
            return result
        entry = Stored(result, self.sender.id)
        entry.giver = self.sender
        self.worker.object_store.hold(entry)
        return entry

    def _read_number(self, entry: Stored, value: Tensor) -> float:
        """Return the number in a tensor if the sender may read it, or if it depends only on what they sent."""
        if not (may_leave(self.worker, [entry], self.sender) or entry.sources <= self.own):
            raise ValueRefusedError.of(ITEM, str(self.worker.id))
        return float(value.item())

    # --- results

    def _keep(self) -> dict[int, Placed]:
        store, slots = self.worker.object_store, self.slots
        replaced = [(self.stored[number], slots[result]) for number, result in self.routine.carry]
        for entry, made in replaced:
            if entry is not None:
                require_right_to_change(self.worker, entry, self.sender, made.value)
        kept = {}
        for place, number in enumerate(self.returned):
            kept[number] = placed = self._store(self.message.result + place, slots[number])
            if self.message.count < 0:
                value = slots[number].value
                placed.form, placed.framework = form_of(value), framework_of(value).ALIAS
        for number, result in self.routine.carry:
            entry, made = self.stored[number], slots[result]
            if entry is None:
                id = self.program.state[number - len(self.program.inputs)]
                self._store(id, made, NOTHING if made.sources <= self.own else None)
                plan = store.entry(self.message.id)
                if plan.published:
                    store.entry(id).publish(plan.publisher)
                continue
            store.replace(entry, made.value)
            entry.share_memory_with(made.guard)
            change(self.worker, [entry], made.lineage, made.derivation)
        return kept

    def _store(self, id: Any, made: Stored, sources: Sources | None = None) -> Placed:
        access, found, inherited = made.lineage
        lineage = access, found if sources is None else sources, inherited
        placed = keep_tensor(self.worker, made.value, id, self.sender, lineage)
        entry = self.worker.object_store.entry(id)
        entry.derivation = made.derivation
        entry.share_memory_with(made.guard)
        return placed
