"""The handler of ``RunPlan``: run a stored plan, with the permissions of single operations.

A plan whose objects are all plain and not private, and whose steps need little tracking, runs in one loop. Otherwise
each step runs as a command of its own, with all of its checks, and its results are stored until the call ends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from time import monotonic
from types import GeneratorType
from typing import Any
from weakref import ReferenceType, ref

from syft_core.exceptions import PlanError, ValueRefusedError
from syft_core.hook.dispatch import framework_of
from syft_core.hook.hook import attached_hook
from syft_core.hook.hook_args import is_framework_tensor
from syft_core.hook.rules import leaves, map_leaves
from syft_core.messages import Placed, Run, RunPlan
from syft_core.peer import Id, Peer
from syft_core.plans.pointer import require_arguments
from syft_core.plans.program import (
    ITEM,
    NUMBERS,
    Operation,
    Program,
    Routine,
    Slot,
    count_error,
    explaining,
    look_up,
    replay,
)
from syft_core.pointers.object_pointer import Here, id_here, new_id
from syft_core.values import Kwargs, Nested, Tensor
from syft_core.workers.changes import change
from syft_core.workers.execution import Execution, restore_if_failed, snapshot_forms
from syft_core.workers.memory import guard, is_seen_elsewhere, memory_of
from syft_core.workers.permissions import (
    may_change,
    may_leave,
    require_permission,
    require_right_to_change,
    require_right_to_use,
)
from syft_core.workers.requests import Elsewhere, Process
from syft_core.workers.running import (
    form_of,
    keep,
    require_command,
    require_writable,
    run,
    run_tracked,
)
from syft_core.workers.store import NOTHING, Lineage, Stored, is_leaf, keeps_gradient, key_of, lineage_of
from syft_core.workers.turns import TURN_SECONDS
from syft_core.workers.worker import Worker


def require_known_operations(worker: Worker, program: Program) -> None:
    """Raise unless every operation of a plan may run on a worker."""
    for routine in program.routines:
        for step in routine.steps:
            if step.framework:
                require_command(worker, look_up(step), worker.attributes_of(step.framework))
    program.prepared  # noqa: B018  # Looks up all operations.


def run_plan(worker: Worker, message: RunPlan, sender: Peer) -> Process:
    """Run a plan on stored objects and numbers, and store the tensors that it returns."""
    entry = worker.object_store.entry(message.id)
    program = entry.value
    if not isinstance(program, Program):
        raise ValueRefusedError.only_local("run", str(worker.id), f"object {message.id!r} is not a plan")
    require_permission(worker, "call", entry, sender, program)
    routine = program.routine
    if routine is not program.routines[-1]:  # The first call creates the state of the plan.
        require_right_to_change(worker, entry, sender, program)
    stored = [_find(worker, arg) for arg in message.args]
    stored += _find_state(worker, entry)
    require_right_to_use(worker, [entry for entry in stored if isinstance(entry, Stored)], sender)
    require_arguments(program, [_look(entry) for entry in stored[: len(program.inputs)]])
    worker.object_store.require_free(range(message.result, message.result + program.results))
    if not program.begun:
        worker.object_store.require_free(program.state[len(program.state) - program.made :])
    worker.stats.operations += len(routine.steps)
    call = _Call(worker, message, sender, program, routine, stored)
    kept = call.replay() if call.is_simple() else (yield from call.run_each())
    if not program.begun:
        program.begun = True
        bind_state(worker, entry)
        worker.object_store.note(entry)
    if message.count >= 0:
        return None
    return map_leaves(lambda leaf: kept.get(leaf.number, leaf) if type(leaf) is Slot else leaf, routine.answer)


def _find(worker: Worker, arg: Any) -> Any:
    """Return the stored object of an argument, or a number."""
    if type(arg) in (int, float):
        return float(arg)
    id = id_here(arg, worker.id)
    if id is None or arg.point_to_attr is not None:
        raise PlanError("cannot run a plan: its arguments must be numbers and tensors of this worker; send them first")
    return worker.object_store.entry(id)


def bind_state(worker: Worker, plan: Stored) -> dict[Id, ReferenceType[Stored]]:
    """Remember which objects are the state of a plan."""
    found = [entry for id in plan.value.state if (entry := worker.object_store.get(id)) is not None]
    plan.state = {entry.id: ref(entry) for entry in found}
    return plan.state


def _find_state(worker: Worker, plan: Stored) -> list[Stored | None]:
    program: Program = plan.value
    ids = program.state if program.begun else program.state[: len(program.state) - program.made]
    bound = bind_state(worker, plan) if plan.state is None else plan.state
    entries = [worker.object_store.entry(id) for id in ids]
    for entry in entries:
        if entry.id not in bound or bound[entry.id]() is not entry:
            raise PlanError.replaced(program.name, entry.id)
    return [*entries, *[None] * (len(program.state) - len(ids))]


def _look(entry: object) -> Any:
    """Return something with the shape and the dtype of an argument, or the number."""
    if not isinstance(entry, Stored):
        return entry
    return entry.value if entry.is_plain else form_of(entry.value)


def _isolate(routine: Routine) -> Any:
    """Return a context without the caller's modes, which must not see the worker's tensors."""
    for step in routine.steps:
        if step.framework and (hook := attached_hook(step.framework)) is not None:
            return hook.attributes.isolate() or nullcontext()
    return nullcontext()


class _Call:
    """One call of a plan."""

    def __init__(
        self, worker: Worker, message: RunPlan, sender: Peer, program: Program, routine: Routine, stored: list[Any]
    ) -> None:
        self.worker, self.message, self.sender = worker, message, sender
        self.program, self.routine, self.stored = program, routine, stored
        self.entries: list[Stored] = [entry for entry in stored if isinstance(entry, Stored)]
        self.returned = program.kept[id(routine)]
        self.foreign: list[Stored] = []
        """The objects that the sender may not change."""
        self.own: set[Any] = set()
        """The sources that the sender has sent or created; their values disclose nothing to it."""

    # --- in one loop

    def is_simple(self) -> bool:
        """Return whether no step can meet private objects, chains, or memory and gradients outside of its operands."""
        worker = self.worker
        if worker.custom_policy is not None or worker.guard is not None or self.sender.behalf:
            return False
        for entry in self.entries:
            if not entry.is_plain or entry.access is not None or entry.origin is not None:
                return False
        facts = self.program.facts[id(self.routine)]
        if facts.needs_tracking or (worker.object_store.has_private and not facts.is_reviewed):
            return False
        self.foreign = [entry for entry in self.entries if not may_change(worker, entry, self.sender)]
        return not facts.accumulates or self._reaches_only_own()

    def replay(self) -> dict[int, Placed]:
        """Run all steps on the values; every result and every changed object has the lineage of the whole call."""
        self.lineage: Lineage = lineage_of(self.entries)
        slots: list[Any] = [entry.value if isinstance(entry, Stored) else entry for entry in self.stored]
        slots += [None] * sum(step.count for step in self.routine.steps)
        with _isolate(self.routine):
            replay(self.program, self.routine, slots, self._execute)
        return self._keep({number: (slots[number], self.lineage, None) for number in self._find_kept()})

    def _execute(self, operation: Operation, args: Any, kwargs: Kwargs) -> Nested:
        """Run a step that changes something, or reads a number."""
        op, step = operation.op, operation.step
        if op is None:
            return float(args[0].item())
        if op.only_computes and all(map(self._is_own, operation.written)):
            return self._change(operation, args, kwargs)
        if op.accumulates:
            return self._run_backward(operation, args, kwargs)
        if op.clears_gradient(args) and not self.foreign:
            self.worker.note_gradient_change(_UNPREDICTED, self.sender)
            return operation.run(*args)
        parents, operands = [], []
        for leaf, value in zip(leaves((step.args, step.kwargs)), leaves((args, kwargs)), strict=True):
            if type(leaf) is Slot and (entry := self._entry_of(leaf, value)) is not None:
                parents.append(entry)
                operands.append(value)
        message = Run(step.framework, step.op, tuple(map(self._to_pointer, step.args)), None, 0)
        execution = Execution(
            self.worker, op, message, self.sender, args, kwargs, parents, operands, self.lineage, bool(self.foreign)
        )
        if self.foreign:
            require_writable(execution)
            self._require_own_memory(execution)
        return run_tracked(execution)

    def _entry_of(self, slot: Slot, value: Tensor) -> Stored | None:
        """Return the stored object in a slot, or a new entry for a result, which may be a view of one."""
        if slot.number < len(self.stored):
            entry = self.stored[slot.number]
            return entry if isinstance(entry, Stored) else None
        if not is_framework_tensor(type(value)):
            return None
        entry = Stored(value, self.sender.id)
        entry.key = key_of(value)
        entry.access, entry.sources = self.lineage
        return entry

    def _is_own(self, slot: Slot) -> bool:
        """Return whether the sender may change the object in a slot, which is stored or a new result."""
        entry = self.stored[slot.number] if slot.number < len(self.stored) else None
        return isinstance(entry, Stored) and not any(entry is other for other in self.foreign)

    def _change(self, operation: Operation, args: Any, kwargs: Kwargs) -> Nested:
        """Run a step that changes stored objects of the sender."""
        entries = [self.stored[slot.number] for slot in operation.written]
        targets = [entry.value for entry in entries]
        forms = snapshot_forms(targets)
        try:
            with restore_if_failed(targets):
                return operation.run(*args, **kwargs)
        finally:  # A failing operation may have changed something first.
            change(self.worker, entries, self.lineage, is_seen_elsewhere(self.worker, entries, targets))
            if forms != snapshot_forms(targets):
                self.worker.note_form_change(_UNPREDICTED, self.sender)

    def _reaches_only_own(self) -> bool:
        """Return whether a backward pass can only reach leaves of this call that the sender may change."""
        if any(getattr(entry.value, "requires_grad", False) for entry in self.foreign):
            return False
        return all(keeps_gradient(value) or not getattr(value, "requires_grad", False) for value in self._values())

    def _run_backward(self, operation: Operation, args: Any, kwargs: Kwargs) -> None:
        try:
            operation.run(*args, **kwargs)
        finally:  # A failing pass may have changed some gradients first.
            self.worker.note_gradient_change(_UNPREDICTED, self.sender)
            changed = [entry for entry in self.entries if getattr(entry.value, "requires_grad", False)]
            written = [entry.value.grad for entry in changed if entry.value.grad is not None]
            change(self.worker, changed, self.lineage, is_seen_elsewhere(self.worker, changed, written))

    def _values(self) -> Iterator[Any]:
        """Yield the objects of the call, and their gradients, which may be part of other graphs."""
        for entry in self.entries:
            yield entry.value
            if is_leaf(entry.value) and entry.value.grad is not None:
                yield entry.value.grad

    def _to_pointer(self, part: object) -> Tensor:
        entry = self.stored[part.number] if type(part) is Slot and part.number < len(self.stored) else None
        return _point_to(entry.id) if isinstance(entry, Stored) else part

    def _require_own_memory(self, execution: Execution) -> None:
        """Raise if a step would change a view of an object that the sender may not change."""
        for target in execution.written:
            memory = set(memory_of(target))
            for entry in self.foreign:
                if not memory.isdisjoint(memory_of(entry.value)):
                    require_right_to_change(self.worker, entry, self.sender, target)

    # --- step by step

    def run_each(self) -> Process:
        """Run every step as a command; its results are stored until the call ends.

        Commands of others may be executed in between, as with single operations.
        """
        slots: list[Any] = [_point_to(entry.id) if isinstance(entry, Stored) else entry for entry in self.stored]
        slots += [None] * sum(step.count for step in self.routine.steps)
        self._note_own(self.entries)
        turn = monotonic() + TURN_SECONDS
        try:
            for segment in self.program.prepared[id(self.routine)]:
                for operation in segment.operations:
                    if monotonic() > turn:
                        yield Elsewhere(_let_others_go_first)
                        turn = monotonic() + TURN_SECONDS
                    with explaining(self.program, self.routine, operation.place):
                        made = yield from self._run(operation, segment.modes, slots)
                    slots[operation.first : operation.first + len(made)] = made
                    self._drop([slots[number] for number in operation.dead])
            entries = {
                number: self.worker.object_store.entry(slots[number]._id_at_location) for number in self._find_kept()
            }
            for entry in self.entries:
                if entry.root is not None and entry.sources <= self.own:
                    entry.sources = entry.root  # The other sources were temporary.
            return self._keep(
                {number: (entry.value, (entry.access, entry.sources), entry.guard) for number, entry in entries.items()}
            )
        finally:
            self._drop(slots[len(self.stored) :])

    def _run(self, operation: Operation, modes: str | None, slots: list[Any]) -> Process:
        """Run one step; return pointers to its results, or a number."""
        step = operation.step
        args, kwargs = map_leaves(lambda leaf: _fill(slots, leaf), (step.args, step.kwargs))
        if step.op == ITEM and operation.op is None:
            return [self._read_number(self.worker.object_store.entry(args[0]._id_at_location))]
        if step.op in NUMBERS and operation.op is None:
            return [operation.run(*args)]
        first = new_id()
        if operation.op is None:
            entry = Stored(args[0], self.sender.id)
            entry.giver = self.sender
            self.worker.object_store.put(first, entry)
            self._note_own([entry])
            return [_point_to(first)]
        reply = run(self.worker, Run(step.framework, step.op, args, kwargs or None, first, modes), self.sender)
        if type(reply) is GeneratorType:
            reply = yield from reply
        made = [_point_to(leaf.id) for leaf in leaves(reply) if type(leaf) is Placed]
        if len(made) != step.count:
            self._drop(made)
            raise count_error(len(made), step.count)
        self._note_own([self.worker.object_store.entry(pointer._id_at_location) for pointer in made])
        return made

    def _note_own(self, entries: Sequence[Stored]) -> None:
        for entry in entries:
            if entry.root is not None and entry.holder == self.sender.id and entry.giver in (None, self.sender):
                self.own |= entry.root

    def _read_number(self, entry: Stored) -> float:
        """Return the number in a tensor that the sender may read, or that was computed only from what it sent."""
        if not (may_leave(self.worker, [entry], self.sender) or entry.sources <= self.own):
            raise ValueRefusedError.of(ITEM, str(self.worker.id))
        return float(entry.value.item())

    def _drop(self, pointers: Sequence[object]) -> None:
        ids = [pointer._id_at_location for pointer in pointers if type(pointer) is Here]
        self.worker.object_store.release(deque([(id, self.sender.id) for id in ids]))

    # --- results

    def _find_kept(self) -> list[int]:
        return [*self.returned, *[made for _, made in self.routine.carry]]

    def _keep(self, made: dict[int, tuple[Any, Lineage, Stored | None]]) -> dict[int, Placed]:
        """Store results, with their lineage and guard, and the state that replaces other state."""
        replaced = [(self.stored[number], result) for number, result in self.routine.carry]
        for entry, result in replaced:
            if entry is not None:
                require_right_to_change(self.worker, entry, self.sender, made[result][0])
        kept = {}
        for place, number in enumerate(self.returned):
            kept[number] = placed = self._store(self.message.result + place, *made[number])
            if self.message.count < 0:
                value = made[number][0]
                placed.form, placed.framework = form_of(value), framework_of(value).ALIAS
        for number, result in self.routine.carry:
            entry = self.stored[number]
            if entry is None:
                value, (access, sources), guarded = made[result]
                lineage = access, NOTHING if sources <= self.own else sources
                id = self.program.state[number - len(self.program.inputs)]
                self._store(id, value, lineage, guarded)
                plan = self.worker.object_store.entry(self.message.id)
                if plan.published:
                    self.worker.object_store.entry(id).publish(plan.publisher)
                continue
            value, lineage, guarded = made[result]
            self.worker.object_store.replace(entry, value)
            self._guard(entry, guarded)
            change(self.worker, [entry], lineage)
        return kept

    def _store(self, id: Any, value: Any, lineage: Lineage, guarded: Stored | None) -> Placed:
        placed = keep(self.worker, value, id, self.sender, lineage)
        self._guard(self.worker.object_store.entry(id), guarded)
        return placed

    def _guard(self, entry: Stored, guarded: Stored | None) -> None:
        entry.guard = guarded
        if self.foreign:
            guard(entry, self.foreign)


def _let_others_go_first() -> None:
    """Do nothing: the lock of the worker is not held meanwhile."""


_UNPREDICTED = Run("", "", (), None, 0)
"""A command whose effects on forms and gradients the sender has not predicted."""


def _point_to(id: Id) -> Here:
    return Here(_id_at_location=id, point_to_attr=None)


def _fill(slots: list[Any], leaf: object) -> Tensor:
    if type(leaf) is not Slot:
        return framework_of(leaf).transfer(leaf) if is_framework_tensor(type(leaf)) else leaf
    value = slots[leaf.number]
    return value if leaf.attr is None else Here(_id_at_location=value._id_at_location, point_to_attr=leaf.attr)
