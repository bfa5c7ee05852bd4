"""Record the commands of a function while it runs: a Recorder is the location that its pointers lead to.

The recorder has a worker of its own, which executes every command, so the function runs as on any worker. What cannot
be repeated by commands alone is refused, with the line of the user's program: reading values, or anything that makes
two runs of the function differ.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from syft_core.hook.attributes import FrameworkAttributes, words
from syft_core.hook.dispatch import framework_of
from syft_core.hook.forms import Form, form
from syft_core.hook.hook import FrameworkHook, find_line_of_program
from syft_core.hook.hook_args import is_framework_tensor
from syft_core.hook.rules import leaves, map_leaves, signature
from syft_core.location import Location
from syft_core.messages import Lease, Message, Placed, Run, Store
from syft_core.peer import Id
from syft_core.plans.errors import PlanError
from syft_core.plans.program import CONSTANT, ITEM, NUMBERS, Program, Routine, Slot, Step
from syft_core.pointers.object_pointer import ObjectPointer
from syft_core.pointers.pointer_tensor import PointerTensor
from syft_core.pointers.travel import send_copy, wrap
from syft_core.serde import SerdeError, serialize
from syft_core.values import Nested, Outcome, Tensor

CodeLine = tuple[str, int]


@dataclass(frozen=True)
class Ref:
    """A tensor or number in a recorded step: an argument, a part of the state, or the result of a step."""

    kind: str
    """``input``, ``state``, ``result``, or ``earlier`` for an object made by an earlier run."""
    key: Any
    attr: str | None = None


@dataclass
class Tape:
    """The steps of one run of the function."""

    plan: str
    steps: list[Step] = field(default_factory=list)
    lines: list[CodeLine] = field(default_factory=list)
    """The line of the user's program that each step comes from."""
    inputs: dict[Id, int] = field(default_factory=dict)
    results: dict[Id, int] = field(default_factory=dict)
    """The number of each result, by id."""
    count: int = 0
    before: dict[Id, Form | None] = field(default_factory=dict)
    """The forms of the state before the run, by id."""
    gradients: set[Id] = field(default_factory=set)
    """The parts of the state that had a gradient before the run."""
    answer: Any = None
    is_open: bool = True

    def add(self, step: Step, line: CodeLine) -> int:
        """Append a step, and return the number of its first result."""
        self.steps.append(step)
        self.lines.append(line)
        self.count += step.count
        return self.count - step.count


class Recorder(Location):
    """Leads to a worker in this process that executes commands, and records them."""

    records = True

    def __init__(self, hook: FrameworkHook, plan: str, where: CodeLine) -> None:
        super().__init__(hook.local_worker, f"the recording of {plan}")
        self.plan = plan
        self.where = where
        """The place of the function in the user's program."""
        self.worker = hook.worker_type(hook, id=self.id, auto_add=False, serialize=False)
        self._inner = self.worker.make_location(self.client)
        self.state: dict[Id, int] = {}
        """The number of each object of the state, by id."""
        self.earlier: dict[Id, tuple[int, int]] = {}
        """The run and the number of each result of an earlier run, by id."""
        self.tapes: list[Tape] = []
        self.tape = Tape(self.plan)
        self._storing: dict[Id, int] | None = None

    # --- the objects of a run

    def send_state(self, tensor: Tensor) -> Tensor:
        """Return a wrapper of a pointer to a copy of a tensor, which is part of the state."""
        return self._send(tensor, self.state)

    def begin(self) -> None:
        """Start a new run, and note what the state is like."""
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
        """Return what the function gets for an argument: a pointer to a copy of a tensor, a traced float."""
        if type(value) is float:
            return Number(value, self.tape, Ref("input", place))
        if not is_framework_tensor(type(value)):
            problem = f"has an argument of type {type(value).__name__}"
            self.refuse(problem, "pass tensors and floats, and refer to everything else in the function", self.where)
        before = len(self.tape.inputs)
        sent = self._send(value, self.tape.inputs)
        if len(self.tape.inputs) > before:
            self.tape.inputs[next(reversed(self.tape.inputs))] = place
        return sent

    def end(self, answer: Nested) -> None:
        """End a run, which returned ``answer``."""
        self.tape.answer = map_leaves(self._to_returned, answer)
        self.tape.is_open = False
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
        if isinstance(leaf, Number):
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
        """Queue the lease of a dropped pointer for release."""
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

    def read_number(self, pointer: PointerTensor) -> float:
        """Return the number in a tensor as a traced number: the plan reads it again in each call."""
        place = self.tape.add(Step("", ITEM, (self._ref(pointer),), {}, 1), find_line_of_program())
        value = float(self.peek(pointer._id_at_location, pointer.point_to_attr).item())
        return Number(value, self.tape, Ref("result", place))

    def refuse(self, problem: str, advice: str, line: CodeLine | None = None) -> NoReturn:
        """Raise an error that names the line of the user's program."""
        file, number = line or find_line_of_program()
        raise PlanError.at(self.plan, file, number, problem, advice)

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
        args, kwargs = map_leaves(self._template, (message.args, message.kwargs or {}))
        values = map_leaves(self._value, (message.args, message.kwargs or {}))
        if op.disclosure(*values) == "form":
            self.refuse(
                f"calls {op.attr!r}, whose result has a shape that depends on values",
                "use operations whose shapes are fixed, e.g. `torch.where`",
                line,
            )
        message.args, message.kwargs = map_leaves(_to_plain, (message.args, message.kwargs))
        reply = self._inner.ask(message)
        made = [leaf.id for leaf in leaves(reply) if type(leaf) is Placed]
        if made or reply is None:
            step = Step(message.framework, message.op, args, kwargs, len(made), framework.modes())
            first = self.tape.add(step, line)
            self.tape.results.update({id: first + place for place, id in enumerate(made)})
        return reply

    def _template(self, leaf: object) -> Nested:
        """Return what a step contains for an argument of a command."""
        if isinstance(leaf, PointerTensor):
            return self._ref(leaf)
        if isinstance(leaf, Number):
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
            return leaf
        return self.peek(leaf._id_at_location, leaf.point_to_attr)


class Number(float):
    """A float whose arithmetic is recorded: the plan computes it again in each call.

    It cannot be compared, printed or converted, because the plan would keep the outcome.
    """

    tape: Tape
    ref: Ref

    def __new__(cls, value: float, tape: Tape, ref: Ref) -> Number:
        """Create a number that stands for ``ref``."""
        number = super().__new__(cls, value)
        number.tape, number.ref = tape, ref
        return number

    def compute(self, name: str, *operands: object) -> Nested:
        """Record one step of arithmetic, and return its result."""
        if not all(isinstance(operand, int | float) for operand in operands):
            return NotImplemented
        if not self.tape.is_open:
            self.refuse("uses a number of an earlier call")
        args = tuple([leaf.ref if isinstance(leaf, Number) else leaf for leaf in operands])
        value = NUMBERS[name](*[_to_plain(operand) for operand in operands])
        place = self.tape.add(Step("", name, args, {}, 1), find_line_of_program())
        return Number(value, self.tape, Ref("result", place))

    def refuse(self, problem: str) -> NoReturn:
        """Raise an error that names the line of the user's program."""
        advice = "the plan would keep this outcome for all calls; compute with the number only"
        file, number = find_line_of_program()
        raise PlanError.at(self.tape.plan, file, number, problem, advice)

    def __neg__(self) -> Nested:
        return self.compute("neg", self)


def _operator(name: str, swapped: bool) -> Any:
    def method(self: Number, other: object) -> Nested:
        return self.compute(name, other, self) if swapped else self.compute(name, self, other)

    return method


def _refusal(name: str) -> Any:
    def method(self: Number, *_args: object) -> NoReturn:
        self.refuse(f"reads a number that changes from call to call, with {name!r}")

    return method


for _name in NUMBERS:
    if _name != "neg":
        setattr(Number, f"__{_name}__", _operator(_name, swapped=False))
        setattr(Number, f"__r{_name}__", _operator(_name, swapped=True))
for _name in words(
    "abs bool ceil divmod eq float floor floordiv format ge gt hash int le lt mod ne pos rdivmod repr rfloordiv rmod "
    "round str trunc"
):
    setattr(Number, f"__{_name}__", _refusal(f"__{_name}__"))


def _to_plain(leaf: object) -> Nested:
    return float.__pos__(leaf) if isinstance(leaf, Number) else leaf


def _copy(leaf: object) -> Nested:
    return framework_of(leaf).transfer(leaf) if is_framework_tensor(type(leaf)) else leaf


# --- from tapes to a program


def is_settled(recorder: Recorder) -> bool:
    """Return whether the first two runs are equal."""
    return _find_difference(recorder, recorder.tapes[0], recorder.tapes[1], {}) is None


def assemble(recorder: Recorder, inputs: tuple[object, ...]) -> tuple[Program, list[int], list[Id]]:
    """Return the program of the recorded runs, the state that it uses, and the ids of the state that it makes.

    The last two runs must be equal; the first may differ.
    """
    before, last = recorder.tapes[-2:]
    carried: dict[Id, int] = {}
    if (found := _find_difference(recorder, before, last, carried)) is not None:
        problem, line = found
        recorder.refuse(problem, "a plan repeats what it recorded; pass what changes as an argument", line)
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
        created = {numbers[id]: recorder.earlier[id][1] for id in made}
        routines.insert(0, _routine(recorder.tapes[0], len(inputs), start, numbers, created, state))
    return Program(recorder.plan, inputs, (0,) * len(numbers), len(made), tuple(routines)), used, made


def _find_keys(kind: str, *tapes: Tape) -> list[Any]:
    """Return the keys of all references of a kind."""
    steps = [step for tape in tapes for step in tape.steps]
    refs = [leaf for step in steps for leaf in leaves((step.args, step.kwargs)) if type(leaf) is Ref]
    return [ref.key for ref in refs if ref.kind == kind]


def _routine(
    tape: Tape, inputs: int, start: int, numbers: dict[Id, int], carry: dict[int, int], state: list[Id]
) -> Routine:
    """Return the steps of a run with slots for references; ``start`` is the slot of the first result."""

    def to_slot(leaf: object) -> Nested:
        if type(leaf) is not Ref:
            return leaf
        if leaf.kind == "input":
            return Slot(leaf.key, leaf.attr)
        if leaf.kind == "result":
            return Slot(start + leaf.key, leaf.attr)
        return Slot(inputs + numbers[leaf.key], leaf.attr)

    steps, modes = [], None
    for step in tape.steps:
        args, kwargs = map_leaves(to_slot, (step.args, step.kwargs))
        changed = step.modes if step.modes != modes else None
        modes = step.modes if step.modes is not None else modes
        steps.append(replace(step, args=args, kwargs=kwargs, modes=changed))
    pairs = tuple([(inputs + number, start + result) for number, result in carry.items()])
    forms = tuple([tape.before.get(id) for id in state])
    gradients = tuple([place for place, id in enumerate(state) if id in tape.gradients])
    return Routine(tuple(steps), map_leaves(to_slot, tape.answer), pairs, forms, gradients)


def _find_difference(recorder: Recorder, one: Tape, two: Tape, carried: dict[Id, int]) -> tuple[str, CodeLine] | None:
    """Return how two consecutive runs differ, and the line that caused it.

    Add to ``carried`` the results of the first run that the second uses in place of state, by the id of that state.
    """
    for first, second, line in zip(one.steps, two.steps, two.lines, strict=False):
        if (first.op, first.count, first.modes) != (second.op, second.count, second.modes):
            return f"calls {_short(second)} in one run and {_short(first)} in another", line
        if signature((first.args, first.kwargs)) != signature((second.args, second.kwargs)):
            return f"calls {_short(second)} with other kinds of arguments in each run", line
        pairs = zip(leaves((first.args, first.kwargs)), leaves((second.args, second.kwargs)), strict=True)
        if not all(_is_same(recorder, *pair, carried) for pair in pairs):
            return f"calls {_short(second)} with other arguments in each run", line
    if len(one.steps) != len(two.steps):
        longer = max(one, two, key=lambda tape: len(tape.steps))
        place = min(len(one.steps), len(two.steps))
        return f"calls {_short(longer.steps[place])} in some runs only", longer.lines[place]
    if not _is_same_answer(one.answer, two.answer):
        return "returns something else in each run", recorder.where
    return None


def _is_same_answer(one: Nested, two: Nested) -> bool:
    if signature(one) != signature(two):
        return False
    pairs = zip(leaves(one), leaves(two), strict=True)
    return all(a == b if type(a) is Ref else _is_same_constant(a, b) for a, b in pairs)


def _is_same(recorder: Recorder, one: object, two: object, carried: dict[Id, int]) -> bool:
    """Return whether an argument is the same in two consecutive runs."""
    if type(one) is not Ref or type(two) is not Ref:
        return type(one) is type(two) and type(one) is not Ref and _is_same_constant(one, two)
    if one == two:
        return True
    if one.kind != "earlier" or two.kind != "earlier" or one.attr != two.attr:
        return False
    run, number = recorder.earlier[two.key]
    return run == len(recorder.tapes) - 2 and carried.setdefault(one.key, number) == number


def _is_same_constant(one: object, two: object) -> bool:
    if one is two or type(one) in (int, str, bool):
        return bool(one == two)
    try:
        return serialize(one) == serialize(two)
    except SerdeError:
        return bool(one == two)


def _short(step: Step) -> str:
    return repr(step.op.rsplit(".", 1)[-1].strip("_"))
