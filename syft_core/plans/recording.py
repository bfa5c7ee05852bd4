"""Record the commands of a function while it runs: its pointers refer to objects at the location of a Recorder.

The recorder has its own worker, which executes every command, so the function runs as on any worker. Anything that
commands alone cannot repeat is refused, naming the line of the user's program: reading values, or anything that makes
two runs of the function differ.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NoReturn

from syft_core.exceptions import SyftError
from syft_core.hook.attributes import FrameworkAttributes, Op
from syft_core.hook.dispatch import framework_of
from syft_core.hook.forms import Form, form
from syft_core.hook.hook import FrameworkHook, attached_hooks, find_line_of_program
from syft_core.hook.hook_args import is_framework_tensor
from syft_core.hook.rules import leaves, map_leaves, signature
from syft_core.location import Location
from syft_core.messages import Lease, Message, Placed, Run, Store
from syft_core.peer import Id
from syft_core.plans.errors import PlanError
from syft_core.plans.program import CONSTANT, FACT, GUARD, ITEM, NUMBERS, Program, Routine, Slot, Step
from syft_core.plans.tapes import CodeLine, Ref, Tape
from syft_core.plans.traced import Number, is_traced, loosen, make_number, make_types, read_traced, to_plain
from syft_core.pointers.object_pointer import ObjectPointer
from syft_core.pointers.pointer_tensor import PointerTensor
from syft_core.pointers.travel import send_copy, wrap
from syft_core.serde import SerdeError, serialize
from syft_core.values import Args, Kwargs, Nested, Outcome, Tensor
from syft_core.workers.road.execution import Execution
from syft_core.workers.road.failures import answer_failure
from syft_core.workers.road.keeping import keep


class Recorder(Location):
    """The location of a worker in this process; it executes commands and records them."""

    records = True

    def __init__(
        self,
        hook: FrameworkHook,
        plan: str,
        where: CodeLine,
        any_length: Sequence[frozenset[int]] | None = None,
        has_zeros: bool = False,
    ) -> None:
        super().__init__(hook.local_worker, f"the recording of {plan}")
        self._any_length = any_length
        """The dimensions of each argument that may have any length; None if no argument has one."""
        self.has_any_length = any_length is not None
        self.traces_lengths = self.has_any_length
        """Whether lengths are traced, as they are except within ``plain_lengths``."""
        self._kinds = _find_kinds()
        self.plan = plan
        self.has_zeros = has_zeros
        """Whether an argument or a part of the state has zeros in place of its values."""
        self.where = where
        self.worker = hook.worker_type(hook, id=self.id, auto_add=False, serialize=False)
        self._inner = self.worker.make_location(self.client)
        self.state: dict[Id, int] = {}
        self.earlier: dict[Id, tuple[int, int]] = {}
        """The run and the number of each result of an earlier run, by id."""
        self.tapes: list[Tape] = []
        self.tape = Tape(self.plan)
        self._storing: dict[Id, int] | None = None

    # --- the objects of a run

    def send_state(self, tensor: Tensor) -> Tensor:
        """Copy a tensor as part of the state, and return a wrapped pointer to the copy."""
        return self._send(tensor, self.state)

    def begin(self) -> None:
        """Start a new run, and record the current state."""
        self.tape = Tape(self.plan)
        for id in (*self.state, *self.earlier):
            plain = self.peek(id) if self.worker.object_store.get(id) is not None else None
            if plain is not None:
                framework = framework_of(plain)
                known = framework.form_of(plain)
                if known is not None:
                    self.tape.before[id] = form(known.shape, None, known.dtype, None, known.requires_grad)
                    if framework.autograd is not None and known.is_leaf and self.has_gradient(id, framework.gradient):
                        self.tape.gradients.add(id)

    def send_input(self, value: object, place: int) -> Tensor:
        """Return the function's argument: a pointer to a copy of a tensor, or a traced float."""
        if type(value) is float:
            return make_number(self._kinds, value, self.tape, Ref("input", place), follows=False)
        if not is_framework_tensor(type(value)):
            problem = f"has an argument of type {type(value).__name__}"
            self.refuse(problem, "pass tensors and floats, and refer to everything else in the function", self.where)
        before = len(self.tape.inputs)
        sent = self._send(value, self.tape.inputs)
        if len(self.tape.inputs) > before:
            self.tape.inputs[next(reversed(self.tape.inputs))] = place
            self.tape.shapes[place] = tuple(value.shape)  # type: ignore[attr-defined]  # a tensor
        return sent

    def read(self, given: Nested) -> Nested:
        """Replace traced numbers in arguments, for code that cannot trace them; guard their values."""
        return map_leaves(read_traced, loosen(given))

    def to_plain(self, given: Nested) -> Nested:
        """Replace traced numbers in arguments by plain numbers, but continue to trace them."""
        return map_leaves(to_plain, loosen(given))

    def end(self, answer: Nested) -> None:
        """End a run that returned ``answer``."""
        if self.tape.failure is not None:
            self._refuse_caught(*self.tape.failure)
        self.tape.answer = map_leaves(self._to_returned, answer)
        self.tape.state = "closed"
        self.tapes.append(self.tape)
        run = len(self.tapes) - 1
        self.earlier.update({id: (run, number) for id, number in self.tape.results.items()})

    def _send(self, tensor: Tensor, numbers: dict[Id, int]) -> Tensor:
        self._storing = numbers
        try:
            return wrap(send_copy(tensor, self.client, self))  # type: ignore[arg-type]  # it is the local worker
        finally:
            self._storing = None

    def _to_returned(self, leaf: Tensor) -> Nested:
        pointer = getattr(leaf, "child", None)
        if isinstance(pointer, ObjectPointer):
            ref = self._ref(pointer)
            if ref.kind in ("input", "result") and ref.attr is None:
                return ref
            self.refuse("returns a part of its state", "return a copy, e.g. `x.clone()`", self.where)
        if is_traced(leaf):
            self.refuse("returns a number", "return the tensor that it was computed from", self.where)
        return leaf

    # --- as a location

    def ask(self, message: Message) -> Outcome:
        """Execute a command and record it."""
        if type(message) is Run:
            return self._run(message)
        if type(message) is Store:
            return self._store(message)
        if type(message) is Lease:
            return self._inner.ask(message)
        return self.refuse(
            f"sends a {type(message).__name__}", "a plan contains only operations; fetch and move things outside of it"
        )

    tell = ask

    def flush(self) -> None:
        """Do nothing: every command was executed immediately."""

    def drop(self, id: Id, lender: Id | None = None) -> None:
        """Queue the release of a dropped pointer's lease."""
        self._inner.drop(id, lender)

    def describe(self, ids: Sequence[Id], attr: str | None = None) -> list[Form | None]:
        """Read the forms from the objects."""
        forms: list[Form | None] = self._inner.describe(ids, attr)
        return forms

    def peek(self, id: Id, attr: str | None = None) -> Tensor:
        """Return a plain tensor to read its form from."""
        return self._inner.peek(id, attr)

    def has_gradient(self, id: Id, attr: str) -> bool:
        """Return whether an object has a gradient."""
        return bool(self._inner.has_gradient(id, attr))

    def identify(self, object_id: Id) -> Hashable:
        """Return the identity of the object."""
        key: Hashable = self._inner.identify(object_id)
        return key

    def read_number(self, pointer: PointerTensor) -> Number:
        """Return the number in a tensor as a traced number: the plan reads it again in each call."""
        place = self.tape.add(Step("", ITEM, (self._ref(pointer),), {}, 1), find_line_of_program())
        value = float(self.peek(pointer._id_at_location, pointer.point_to_attr).item())
        return make_number(self._kinds, value, self.tape, Ref("result", place), follows=False)

    def refuse(self, problem: str, advice: str, line: CodeLine | None = None) -> NoReturn:
        """Raise an error that names the line of the user's program."""
        self.tape.refuse(problem, advice, line)

    def _refuse_caught(self, error: Exception, line: CodeLine) -> NoReturn:
        """Refuse a function that caught an error and continued."""
        if isinstance(error, PlanError):
            raise error
        problem = f"raises a {type(error).__name__}, which the function catches"
        self.refuse(problem, "a plan would always do what it did then; test the form before the call", line)

    def find_line(self, id: Id) -> CodeLine:
        """Return the line that made an object in an earlier run."""
        run, number = self.earlier[id]
        tape = self.tapes[run]
        lines = [line for step, line in zip(tape.steps, tape.lines, strict=True) for _ in range(step.count)]
        return lines[number]

    def finish(self) -> None:
        """End the recording; the traced numbers that the function has kept become plain."""
        for tape in (*self.tapes, self.tape):
            tape.state = "over"
        self.worker.clear_objects()  # Immediately: the worker is part of a cycle, and has a copy of the state.

    # --- facts

    def note_fact(self, op: Op, pointer: PointerTensor, args: Args, kwargs: Kwargs, fact: Nested) -> Nested:
        """Return a fact about a tensor's form, which may differ in other calls, as the function receives it.

        A size that depends on the lengths of arguments becomes a traced number. Strides and the like seldom differ, so
        a guard is recorded for them.
        """
        ref = self._ref(pointer)
        is_layout = op.attr in pointer.framework.facts_of_layout
        if not is_layout and not self._may_differ(ref, op, args, kwargs, fact):
            return fact
        given, named = map_leaves(self._template, (loosen(args[1:]), loosen(kwargs)))

        def trace(place: int | None, value: Nested) -> Nested:
            made = self.tape.add(Step("", FACT, (pointer.framework.ALIAS, op.name, place, ref, *given), named, 1))
            self.tape.facts[made] = value
            return make_number(self._kinds, value, self.tape, Ref("result", made), follows=True)

        if not isinstance(fact, tuple):
            number = trace(None, fact)
            return number.read() if is_layout else number
        fixed = () if is_layout else self._find_fixed(ref)
        parts = [value if place in fixed else trace(place, value) for place, value in enumerate(fact)]
        if is_layout:
            return type(fact)([part.read() for part in parts])
        return type(fact)(parts)

    def _may_differ(self, ref: Ref, op: Op, args: Args, kwargs: Kwargs, fact: Nested) -> bool:
        parts = fact if isinstance(fact, tuple) else (fact,)
        if (
            not self.traces_lengths
            or ref.kind not in ("input", "result")
            or not all(type(part) is int for part in parts)
        ):
            return False
        fixed = self._find_fixed(ref)
        if not fixed:
            return True
        if op.attr == "__len__":
            return 0 not in fixed
        if op.attr == "size" and type(fact) is int and len(args) + len(kwargs) > 1:
            (dimension,) = (*args[1:], *kwargs.values())
            return dimension % len(self.tape.shapes[ref.key]) not in fixed
        return len(fixed) < len(self.tape.shapes[ref.key]) and op.attr not in _RANKS

    def _find_fixed(self, ref: Ref) -> Sequence[int]:
        any_length = self._any_length
        if any_length is None or ref.kind != "input" or ref.attr is not None:
            return ()
        id = next(id for id, place in self.tape.inputs.items() if place == ref.key)
        shape = self.tape.shapes[ref.key]
        if tuple(self.peek(id).shape) != shape:  # It was changed in place.
            return ()
        return [place for place in range(len(shape)) if place not in any_length[ref.key]]

    @contextmanager
    def plain_lengths(self) -> Iterator[None]:
        """Return a context in which the function gets lengths as plain Python numbers."""
        self.traces_lengths = False
        try:
            yield
        finally:
            self.traces_lengths = True

    def require_same_without_tracing(self) -> None:
        """Raise if the last run, with plain lengths, differs from the previous one; then discard it."""
        traced, plain = map(fill_in_lengths, self.tapes[-2:])
        found = _find_difference(self, traced, plain, {})
        self.tapes.pop()
        if found is not None:
            self.refuse("does something else with a number that is not an `int` itself", LENGTHS, found[1])

    def _store(self, message: Store) -> None:
        if self._storing is None:  # A constant that the function sends: each call gets its own copy.
            number = self.tape.add(Step("", CONSTANT, (_copy(message.value),), {}, 1), find_line_of_program())
            self.tape.results[message.id] = number
        else:
            self._storing[message.id] = len(self._storing)
        self._inner.ask(message)

    def _run(self, message: Run) -> Any:
        framework: FrameworkAttributes = self.client.attributes_of(message.framework)
        line = find_line_of_program()
        op = framework.command(message.op)
        given = loosen((message.args, message.kwargs or {}))
        args, kwargs = map_leaves(self._template, given)
        if op.disclosure(*map_leaves(self._value, given)) == "form":
            advice = f"use `{op.instead}`" if op.instead else "use operations of fixed shapes, e.g. `torch.where`"
            self.refuse(f"calls {op.attr!r}, whose result has a shape that depends on values", advice, line)
        message.args, message.kwargs = map_leaves(to_plain, given)
        try:
            reply = self._inner.ask(message)
        except Exception as error:  # noqa: BLE001  # a framework may raise any error
            try:
                reply = self._stand_in(framework, op, message, error)
            except Exception:  # noqa: BLE001  # the first one is that of the user's call
                self.tape.failure = self.tape.failure or (error, line)
                raise error from None
        made = [leaf.id for leaf in leaves(reply) if type(leaf) is Placed]
        if made or reply is None:
            step = Step(message.framework, message.op, args, kwargs, len(made), framework.modes())
            first = self.tape.add(step, line)
            self.tape.results.update({id: first + place for place, id in enumerate(made)})
        elif op.states_fact and isinstance(given[0][0], PointerTensor):
            return self.note_fact(op, given[0][0], given[0], given[1], reply)
        return reply

    def _stand_in(self, framework: FrameworkAttributes, op: Op, message: Run, error: Exception) -> Any:
        """Return the reply to a command that failed for the zeros of a recording, as if they were private.

        The results are stand-ins of the right forms. Raise if other values would not help.
        """
        if not (self.has_zeros and op.partial) or op.differentiates or isinstance(error, SyftError):
            raise error
        execution = Execution(self.worker, framework, op, self.client.peer)
        execution.read(message)
        return keep(lambda task: answer_failure(task, error), execution)

    def _template(self, leaf: object) -> Nested:
        if isinstance(leaf, PointerTensor):
            return self._ref(leaf)
        if is_traced(leaf):
            return leaf.ref if leaf.tape is self.tape else leaf.refuse("uses a number of an earlier call")
        return _copy(leaf)

    def _ref(self, pointer: ObjectPointer) -> Ref:
        id, attr = pointer._id_at_location, pointer.point_to_attr
        if pointer._location is not self:
            self.refuse("mixes tensors of the plan with those of a worker", "pass them as arguments or as state")
        for kind, numbers in (("state", self.state), ("input", self.tape.inputs), ("result", self.tape.results)):
            if id in numbers:
                return Ref(kind, numbers[id], attr)
        if id in self.earlier:
            return Ref("earlier", id, attr)
        return self.refuse("uses an argument of an earlier call", "pass everything that a call needs to that call")

    def _value(self, leaf: object) -> Nested:
        if not isinstance(leaf, PointerTensor):
            return to_plain(leaf)
        return self.peek(leaf._id_at_location, leaf.point_to_attr)


_RANKS = frozenset({"dim", "ndim", "ndimension"})


def _find_kinds() -> tuple[type[Number], type[Number]]:
    found = [hook.attributes.number_types for hook in attached_hooks()]
    return make_types(next((types for types in found if types != (object, object)), (object, object)))


def _copy(leaf: object) -> Nested:
    return framework_of(leaf).transfer(leaf) if is_framework_tensor(type(leaf)) else leaf


# --- from tapes to a program


def is_settled(recorder: Recorder) -> bool:
    """Return whether the first two runs are equal."""
    return _find_difference(recorder, recorder.tapes[0], recorder.tapes[1], {}) is None


def assemble(recorder: Recorder, inputs: tuple[object, ...]) -> tuple[Program, list[int], list[Id]]:
    """Return the program of the recorded runs, the state that it uses, and the ids of the state that it creates.

    The last two runs must be equal; the first may differ.
    """
    before, last = recorder.tapes[-2:]
    carried: dict[Id, int] = {}
    if (found := _find_difference(recorder, before, last, carried)) is not None:
        problem, line = found
        recorder.refuse(problem, LENGTHS if recorder.has_any_length else _REPEATS, line)
    used = list(dict.fromkeys(_find_keys("state", *recorder.tapes)))
    made = list(dict.fromkeys(_find_keys("earlier", before)))
    numbers: dict[Any, int] = {key: place for place, key in enumerate([*used, *made])}
    start = len(inputs) + len(numbers)
    before.gradients |= last.gradients  # The steps are the same with and without them.
    ids = {number: id for id, number in recorder.state.items()}
    state = [*[ids[number] for number in used], *made]
    later = _routine(
        before, len(inputs), start, numbers, {numbers[id]: number for id, number in carried.items()}, state
    )
    routines = [later]
    if before is not recorder.tapes[0] and not is_settled(recorder):
        if len(_find_results(recorder.tapes[0].answer)) != len(_find_results(last.answer)):
            recorder.refuse(_OTHER_ANSWER, _REPEATS, recorder.where)
        created = {numbers[id]: recorder.earlier[id][1] for id in made}
        routines.insert(0, _routine(recorder.tapes[0], len(inputs), start, numbers, created, state))
    return Program(recorder.plan, inputs, (0,) * len(numbers), len(made), tuple(routines)), used, made


_OTHER_ANSWER = "returns something else in each run"
_REPEATS = "a plan repeats what it recorded; pass what changes as an argument"
LENGTHS = (
    "a plan for any length repeats what it recorded; compute with `x.shape[0]`, e.g. `x[: x.shape[0] // 2]`, without "
    "`len`, `range` or a branch, or record it for one length"
)


def _find_keys(kind: str, *tapes: Tape) -> list[Any]:
    steps = [step for tape in tapes for step in tape.steps]
    refs = [leaf for step in steps for leaf in leaves((step.args, step.kwargs)) if type(leaf) is Ref]
    return [ref.key for ref in refs if ref.kind == kind]


def _find_results(answer: Nested) -> set[int]:
    return {leaf.key for leaf in leaves(answer) if _is_result(leaf)}


def _routine(
    tape: Tape, inputs: int, start: int, numbers: dict[Id, int], carry: dict[int, int], state: list[Id]
) -> Routine:
    """Return a run's steps with slots in place of references; ``start`` is the slot of the first result."""
    kept, places = _drop_unused(tape)

    def to_slot(leaf: object) -> Nested:
        if type(leaf) is not Ref:
            return leaf
        if leaf.kind == "input":
            return Slot(leaf.key, leaf.attr)
        if leaf.kind == "result":
            return Slot(start + places[leaf.key], leaf.attr)
        return Slot(inputs + numbers[leaf.key], leaf.attr)

    steps, modes = [], None
    for step in kept:
        args, kwargs = map_leaves(to_slot, (step.args, step.kwargs))
        changed = step.modes if step.modes != modes else None
        modes = step.modes if step.modes is not None else modes
        steps.append(replace(step, args=args, kwargs=kwargs, modes=changed))
    pairs = tuple([(inputs + number, start + places[result]) for number, result in carry.items()])
    forms = tuple([tape.before.get(id) for id in state])
    gradients = tuple([place for place, id in enumerate(state) if id in tape.gradients])
    return Routine(tuple(steps), map_leaves(to_slot, tape.answer), pairs, forms, gradients)


def _drop_unused(tape: Tape) -> tuple[list[Step], dict[int, int]]:
    used: set[int] = set()
    kept: list[tuple[int, Step]] = []
    first = tape.count
    for step in reversed(tape.steps):
        first -= step.count
        if step.framework or first in used or step.op not in (FACT, *NUMBERS):
            kept.append((first, step))
            used.update([leaf.key for leaf in leaves((step.args, step.kwargs)) if _is_result(leaf)])
    numbers = [first + place for first, step in reversed(kept) for place in range(step.count)]
    return [step for _, step in reversed(kept)], {number: place for place, number in enumerate(numbers)}


def fill_in_lengths(tape: Tape) -> Tape:
    """Return a tape with the numbers that follow from forms as constants, without the steps that compute them."""
    filled = Tape(tape.plan)
    known: dict[int, object] = {}

    def fill(leaf: Nested) -> Nested:
        found = known.get(leaf.key, leaf) if _is_result(leaf) else leaf
        return replace(found, attr=leaf.attr) if type(found) is Ref else found

    first = 0
    for step, line in zip(tape.steps, tape.lines, strict=True):
        args, kwargs = map_leaves(fill, (step.args, step.kwargs))
        given = [leaf for leaf in leaves((args, kwargs)) if type(leaf) is Ref]
        if step.op == FACT:
            known[first] = tape.facts[first]
        elif step.op in NUMBERS and not given:
            known[first] = NUMBERS[step.op](*args)
        elif step.op != GUARD:
            made = filled.add(replace(step, args=args, kwargs=kwargs), line)
            known.update({first + place: Ref("result", made + place) for place in range(step.count)})
        first += step.count
    filled.answer = map_leaves(fill, tape.answer)
    return filled


def _is_result(leaf: object) -> bool:
    return type(leaf) is Ref and leaf.kind == "result"


def _find_difference(recorder: Recorder, one: Tape, two: Tape, carried: dict[Id, int]) -> tuple[str, CodeLine] | None:
    """Return how two consecutive runs differ, and the line that caused it.

    Add to ``carried``, by id, the state that the second run replaces with results of the first.
    """
    for first, second, line in zip(one.steps, two.steps, two.lines, strict=False):
        if (problem := _compare(recorder, first, second, carried)) is not None:
            return problem, line
    if len(one.steps) != len(two.steps):
        longer = max(one, two, key=lambda tape: len(tape.steps))
        place = min(len(one.steps), len(two.steps))
        return f"{_write(longer.steps[place])} in some runs only", longer.lines[place]
    if not _is_same_answer(one.answer, two.answer):
        return _OTHER_ANSWER, recorder.where
    return None


def _compare(recorder: Recorder, first: Step, second: Step, carried: dict[Id, int]) -> str | None:
    if (first.op, first.modes) != (second.op, second.modes):
        return f"{_write(second)} in one run and {_write(first)} in another"
    if first.count != second.count:
        return f"{_write(second)}, which returns {second.count} tensors in one run and {first.count} in another"
    if signature((first.args, first.kwargs)) != signature((second.args, second.kwargs)):
        return f"{_write(second)} with other kinds of arguments in each run"
    pairs = zip(leaves((first.args, first.kwargs)), leaves((second.args, second.kwargs)), strict=True)
    if all(_is_same(recorder, *pair, carried) for pair in pairs):
        return None
    return _BY_LENGTH if second.op == GUARD else f"{_write(second)} with other arguments in each run"


_BY_LENGTH = "does something else for each length of its arguments"


def _is_same_answer(one: Nested, two: Nested) -> bool:
    if signature(one) != signature(two):
        return False
    pairs = zip(leaves(one), leaves(two), strict=True)
    return all(a == b if type(a) is Ref else _is_same_constant(a, b) for a, b in pairs)


def _is_same(recorder: Recorder, one: object, two: object, carried: dict[Id, int]) -> bool:
    if type(one) is not Ref or type(two) is not Ref:
        return type(one) is type(two) and type(one) is not Ref and _is_same_constant(one, two)
    if one == two:
        return True
    if one.kind != "earlier" or two.kind != "earlier" or one.attr != two.attr:
        return False
    run, number = recorder.earlier[two.key]
    return run == len(recorder.tapes) - 2 and carried.setdefault(one.key, number) == number


def _is_same_constant(one: object, two: object) -> bool:
    if one is two:  # also NaN, which does not equal itself
        return True
    if type(one) in (int, str, bool):
        return bool(one == two)
    try:
        return serialize(one) == serialize(two)
    except SerdeError:
        return bool(one == two)


def _write(step: Step) -> str:
    if step.op in (GUARD, FACT):
        return "decides by the length of an argument"
    return f"calls {step.op.rsplit('.', 1)[-1].strip('_')!r}"
