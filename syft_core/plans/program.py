"""Program: the recorded operations of a plan, as they are sent, checked, printed and replayed.

A program works on *slots*: the arguments of a call, then the state of the plan, then the results of its steps in order.
A step is an operation of an op table, a step of Python's arithmetic on numbers, or a constant.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any, ClassVar, NamedTuple

from syft_core.exceptions import SerdeError
from syft_core.hook.attributes import FrameworkAttributes, Op
from syft_core.hook.dispatch import dispatch, framework_of, is_form_only
from syft_core.hook.forms import Form
from syft_core.hook.hook import attached_hook
from syft_core.hook.hook_args import is_framework_tensor
from syft_core.hook.rules import build_rule, leaves, map_leaves
from syft_core.hook.signatures import Memo
from syft_core.messages import MAX_RESULTS, make_codec
from syft_core.pictures.boxes import form_of
from syft_core.plans.errors import PlanError
from syft_core.printing import printable
from syft_core.serde import codecs
from syft_core.values import Args, Nested, Tensor

MAX_STEPS = 1 << 15
MAX_SLOTS = 1 << 17
PART_BYTES = 256
"""The approximate memory in bytes of a step, or of one of its arguments."""
ITEM, CONSTANT = "read number", "copy constant"
FACT, GUARD = "read fact", "guard"
"""A fact about a tensor's form, such as its length; a comparison whose outcome determines the steps."""
_BITS = 63


def _apply(function: Callable[..., Any], operands: tuple[float, ...]) -> int | float:
    """Compute like Python with integers of up to 64 bits if all operands are integers, otherwise with floats."""
    whole = all(type(operand) is int for operand in operands)
    if whole and function is operator.pow:
        base, exponent = operands
        whole = exponent >= 0
        if whole and base.bit_length() * exponent > 4 * _BITS:  # type: ignore[attr-defined]  # an integer
            raise ValueError("cannot compute a number of a plan: it is too large; use floats")
    result = function(*(operands if whole else map(float, operands)))
    if type(result) is int and result.bit_length() > _BITS:
        raise ValueError("cannot compute a number of a plan: it is too large; use floats")
    if type(result) not in (int, float):
        raise ValueError("cannot compute a number of a plan: the result is complex; use a positive base")
    return result  # type: ignore[no-any-return]  # checked


def _on_numbers(function: Callable[..., Any]) -> Callable[..., int | float]:
    return lambda *operands: _apply(function, operands)


NUMBERS: Mapping[str, Callable[..., int | float]] = {
    **{
        name: _on_numbers(getattr(operator, name))
        for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "neg", "abs")
    },
    **{name: _on_numbers(getattr(math, name)) for name in ("floor", "ceil", "trunc")},
    "round": _on_numbers(round),
}
"""Python's arithmetic that a program may perform on numbers."""
_UNARY = frozenset({"neg", "abs", "floor", "ceil", "trunc", "round"})
COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    name: getattr(operator, name) for name in ("lt", "le", "eq", "ne", "gt", "ge")
}
"""Python's comparisons that a program may guard."""
_SIGNS = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**"}
_COMPARED = {"lt": "<", "le": "<=", "eq": "==", "ne": "!=", "gt": ">", "ge": ">="}


def read_fact(framework: str, op: str, place: int | None, tensor: Tensor, *args: object, **kwargs: object) -> Any:
    """Return a number or a flag that follows from the form of a tensor; ``place`` selects one of several."""
    found = dispatch(_look_up_fact(framework, op), (tensor, *args), kwargs)
    return found if place is None else found[place]


def _look_up_fact(framework: str, name: str) -> Op:
    op = attributes_of(framework).command(name)
    _require(op.states_fact, f"{name!r} is not a fact about a form")
    return op


def require_outcome(name: str, left: object, right: object, outcome: bool) -> None:
    """Raise if a comparison has another outcome than when the plan was recorded."""
    if bool(COMPARISONS[name](left, right)) is not outcome:
        raise PlanError.other_lengths(f"{left} {_COMPARED[name]} {right}", outcome)


@dataclass(frozen=True, slots=True)
class Slot:
    """The value in a slot, or an attribute of the value that pointers may refer to."""

    code: ClassVar[int] = 331
    number: int
    attr: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One operation; slots stand for its operands, and its results get the next ``count`` slots."""

    code: ClassVar[int] = 332
    framework: str
    """The framework of the op table; empty for arithmetic, for reading a number, and for a constant."""
    op: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    count: int
    modes: str | None = None
    """The caller's modes from this step on; None if they are those of the previous step."""


@dataclass(frozen=True, slots=True)
class Routine:
    """The steps of one call, its return value, and the state it replaces."""

    code: ClassVar[int] = 333
    steps: tuple[Any, ...]
    answer: Any
    """The returned value, with slots for tensors."""
    carry: tuple[Any, ...] = ()
    """Pairs of a state slot and the slot whose value becomes the state of the next call."""
    before: tuple[Any, ...] = ()
    """The form of each part of the state before the call; None if it does not exist yet, or was not recorded."""
    gradients: tuple[Any, ...] = ()
    """The positions of state parts that have a gradient before the call."""


@dataclass(eq=False, repr=False)
class Program:
    """A recorded plan.

    The first call may differ from later ones, for instance if an optimizer creates its state; a second routine covers
    it.
    """

    code: ClassVar[int] = 334
    name: str
    inputs: tuple[Any, ...]
    """The form of each tensor argument, with -1 for any length; None for a number."""
    state: tuple[int | str, ...]
    made: int
    """The number of state objects, at the end, that the first call creates."""
    routines: tuple[Any, ...]
    """The routine of the first call, if it differs, and the routine of all others."""
    begun: bool = False

    def __post_init__(self) -> None:
        """Check everything a sender could get wrong, without executing anything."""
        _require(all(entry is None or type(entry) is Form for entry in self.inputs), "an input is not a form")
        _require(0 <= self.made <= len(self.state), "its state has a wrong size")
        _require(len(self.routines) in (1, 2), "it has no routine, or too many")
        _require(all(type(routine) is Routine for routine in self.routines), "a routine has a wrong type")
        counts = {self._check(routine) for routine in self.routines}
        _require(len(counts) == 1, "its routines return different numbers of tensors")

    @cached_property
    def results(self) -> int:
        """The number of tensors that a call returns."""
        return len(self.find_returned(self.routines[-1]))

    @cached_property
    def bytes(self) -> int:
        """The approximate memory in bytes, including tensors."""
        steps = [step for routine in self.routines for step in routine.steps]
        parts = leaves([(step.args, step.kwargs) for step in steps] + [routine.answer for routine in self.routines])
        tensors = [part for part in parts if is_framework_tensor(type(part))]
        return sum([framework_of(part).bytes_of(part) for part in tensors]) + PART_BYTES * (len(steps) + len(parts))

    def _check(self, routine: Routine) -> int:
        """Raise unless every step refers only to earlier slots; return the number of results."""
        _require(len(routine.steps) <= MAX_STEPS, f"it has more than {MAX_STEPS} steps")
        start = known = len(self.inputs) + len(self.state)
        numbers: set[int] = set()
        for step in routine.steps:
            _require(type(step) is Step, "a step has a wrong type")
            _require(0 <= step.count <= MAX_RESULTS, "a step has too many results")
            for leaf in leaves((step.args, step.kwargs)):
                _require(type(leaf) is not Slot or 0 <= leaf.number < known, "a step uses a later result")
                _require(_is_data(leaf), "a constant is a pointer, another layer, or a tensor without data")
            if not step.framework:
                _require(_is_valid_number(step), f"{step.op!r} is not arithmetic")
                numbers.update([known] if step.op not in (CONSTANT, GUARD) else [])
            known += step.count
            _require(known <= MAX_SLOTS, "its steps have too many results")
        tensors = {*range(start, known)} - numbers
        for leaf in leaves(routine.answer):
            is_slot = type(leaf) is Slot
            _require(_is_data(leaf), "a constant is a pointer, another layer, or a tensor without data")
            _require(not is_slot or leaf.attr is None, "it returns an attribute of a tensor")
            _require(
                not is_slot or leaf.number in tensors or 0 <= leaf.number < len(self.inputs), "its answer is wrong"
            )
        for pair in routine.carry:
            is_pair = type(pair) is tuple and len(pair) == 2 and all(type(part) is int for part in pair)
            _require(is_pair and len(self.inputs) <= pair[0] < start and pair[1] in tensors, "its carry is wrong")
        are_forms = all(entry is None or type(entry) is Form for entry in routine.before)
        _require(are_forms and len(routine.before) in (0, len(self.state)), "its state has a wrong form")
        _require(all(type(place) is int for place in routine.gradients), "its gradients are wrong")
        return len(self.find_returned(routine))

    def find_returned(self, routine: Routine) -> list[int]:
        """Return the slots of the tensors that a call returns, each once, without arguments."""
        found = dict.fromkeys(leaf.number for leaf in leaves(routine.answer) if type(leaf) is Slot)
        return [number for number in found if number >= len(self.inputs)]

    @cached_property
    def kept(self) -> dict[int, list[int]]:
        """The result of ``find_returned``, by identity of the routine."""
        return {id(routine): self.find_returned(routine) for routine in self.routines}

    @property
    def routine(self) -> Routine:
        """The routine of the next call."""
        return self.routines[-1] if self.begun else self.routines[0]  # type: ignore[no-any-return]  # checked

    @cached_property
    def prepared(self) -> dict[int, list[Segment]]:
        """The routines, prepared for replay, by identity."""
        return {id(routine): list(_prepare(self, routine)) for routine in self.routines}

    @cached_property
    def made_by_steps(self) -> dict[int, int]:
        """The number of results of a routine's steps, by identity of the routine."""
        return {id(routine): sum(step.count for step in routine.steps) for routine in self.routines}

    @cached_property
    def decisive(self) -> dict[int, Op | None]:
        """The operation of each routine, by identity, whose results depend most on numbers.

        None if the routine itself computes numbers that do not follow from forms, or has constants.
        """
        found = {}
        follow = {FACT, GUARD, *(() if None in self.inputs else NUMBERS)}
        for routine in self.routines:
            steps = [step for step in routine.steps if step.framework or step.op not in follow]
            ops = [look_up(step) if step.framework else None for step in steps]
            exact = [op for op in ops if op is not None and op.shape_depends_on_floats]
            found[id(routine)] = None if None in ops else [*exact, *ops][0] if ops else None
        return found

    @cached_property
    def memos(self) -> dict[object, list[Memo | None]]:
        """Memos about the steps of earlier calls; see ``Schedule``."""
        return {}

    @cached_property
    def gradients_cleared_first(self) -> dict[int, frozenset[int]]:
        """The slots whose gradients a routine removes before anything depends on them, by identity of the routine."""
        return {id(routine): frozenset(_find_gradients_cleared_first(routine)) for routine in self.routines}

    @cached_property
    def gradients_read_first(self) -> dict[int, frozenset[int]]:
        """The slots whose gradients a routine reads before its first backward pass, by identity of the routine."""
        return {id(routine): frozenset(_find_gradients_read_first(routine)) for routine in self.routines}

    @cached_property
    def changes_gradients(self) -> bool:
        """Whether a call may add or remove gradients."""
        ops = {look_up(step) for routine in self.routines for step in routine.steps if step.framework}
        return any(op.accumulates or op.alters_autograd for op in ops)

    def __repr__(self) -> str:
        return f"<Program {printable(self.name)}: {len(self.routines[-1].steps)} steps>"

    # --- text

    def describe(self, routine: Routine, place: int) -> str:
        """Return one step as a line of code."""
        known = len(self.inputs) + len(self.state) + sum(step.count for step in routine.steps[:place])
        return self._line(routine.steps[place], known)

    @property
    def text(self) -> str:
        """The program as readable code, one line per operation."""
        names = ", ".join(self._name(place) for place in range(len(self.inputs)))
        blocks = []
        for routine in self.routines:
            first = len(self.routines) == 2 and routine is self.routines[0]
            title = f"def {self.name}({names}):" + ("  # the first call" if first else "")
            known = len(self.inputs) + len(self.state)
            lines = []
            for step in routine.steps:
                if step.modes is not None:
                    lines.append(f"# modes: {step.modes}")
                lines.append(self._line(step, known))
                known += step.count
            lines += [f"{self._name(state)} = {self._name(made)}" for state, made in routine.carry]
            lines.append(f"return {self._show(routine.answer)}")
            blocks.append("\n".join([title, *[f"    {line}" for line in lines]]))
        return "\n\n".join(blocks)

    def _line(self, step: Step, known: int) -> str:
        made = ", ".join(self._name(known + place) for place in range(step.count))
        args = [*map(self._show, step.args), *[f"{name}={self._show(arg)}" for name, arg in step.kwargs.items()]]
        if step.op in _SIGNS and not step.framework:
            called = f" {_SIGNS[step.op]} ".join(args)
        elif not step.framework:
            called = self._write_number(step, args)
        else:
            called = f"{step.op}({', '.join(args)})"
        return f"{made} = {called}" if made else called

    def _write_number(self, step: Step, args: list[str]) -> str:
        if step.op == GUARD:
            name, _, _, outcome = step.args
            return f"assert {'' if outcome else 'not '}{args[1]} {_COMPARED[name]} {args[2]}"
        if step.op == FACT:
            _, op, place, *_ = step.args
            return f"{op}({', '.join(args[3:])}){'' if place is None else f'[{place}]'}"
        if step.op in NUMBERS and step.op != "neg":
            return f"{step.op}({', '.join(args)})"
        return {"neg": "-{}", ITEM: "{}.item()", CONSTANT: "{}"}[step.op].format(*args)

    def _name(self, number: int) -> str:
        if number < len(self.inputs):
            return f"x{number}"
        number -= len(self.inputs)
        return f"s{number}" if number < len(self.state) else f"v{number - len(self.state)}"

    def _show(self, part: Nested) -> str:
        cls = type(part)
        if cls is Slot:
            return self._name(part.number) + (f".{part.attr}" if part.attr else "")
        if cls is list or cls is tuple:
            shown = ", ".join(map(self._show, part))
            return f"[{shown}]" if cls is list else f"({shown}{',' if len(part) == 1 else ''})"
        if cls is dict:
            return "{" + ", ".join(f"{key!r}: {self._show(value)}" for key, value in part.items()) + "}"
        if cls is slice:
            return "slice(" + ", ".join(map(self._show, (part.start, part.stop, part.step))) + ")"
        return form_of(part) if is_framework_tensor(cls) else repr(part)


def _require(holds: bool, problem: str) -> None:
    if not holds:
        raise SerdeError(f"cannot read a plan: {problem} (malformed message)")


def _is_data(leaf: Nested) -> bool:
    """Return whether part of a step is plain data; pointers and layers would act with the worker's rights."""
    if is_framework_tensor(type(leaf)):
        return not is_form_only(leaf)
    return not (build_rule(leaf) or hasattr(leaf, "_id_at_location"))


def _is_valid_number(step: Step) -> bool:
    if step.op == FACT:
        return _is_valid_fact(step)
    if step.kwargs or step.count != (0 if step.op == GUARD else 1):
        return False
    if step.op in (ITEM, CONSTANT):
        return len(step.args) == 1 and (step.op == CONSTANT or type(step.args[0]) is Slot)
    if step.op == GUARD:
        return _is_valid_guard(step.args)
    is_operand = all(type(arg) in (Slot, int, float) for arg in step.args)
    return step.op in NUMBERS and is_operand and len(step.args) == (1 if step.op in _UNARY else 2)


def _is_valid_fact(step: Step) -> bool:
    kinds = tuple(map(type, step.args[:4]))
    return step.count == 1 and kinds in ((str, str, int, Slot), (str, str, type(None), Slot))


def _is_valid_guard(args: Args) -> bool:
    is_complete = len(args) == 4 and type(args[0]) is str and args[0] in COMPARISONS and type(args[3]) is bool
    return is_complete and all(type(arg) in (Slot, int, float, bool) for arg in args[1:3])


for _kind in (Slot, Step, Routine):
    codecs.register(make_codec(_kind))
codecs.register(make_codec(Program))


# --- replaying


def _find_gradients_read_first(routine: Routine) -> Iterator[int]:
    for step in routine.steps:
        if step.framework and look_up(step).accumulates:
            return
        for leaf in leaves((step.args, step.kwargs)):
            if type(leaf) is Slot and leaf.attr is not None:
                yield leaf.number


def _find_gradients_cleared_first(routine: Routine) -> Iterator[int]:
    for step in routine.steps:
        op = look_up(step) if step.framework else None
        if op is None or not op.clears_gradient(step.args):
            return
        yield from [leaf.number for leaf in leaves(step.args) if type(leaf) is Slot and leaf.attr is None]


class Operation(NamedTuple):
    """A step that is ready to run on the slots of a call."""

    place: int
    step: Step
    framework: FrameworkAttributes | None
    op: Op | None
    """The operation of the op table; None for arithmetic and constants."""
    run: Callable[..., Any]
    pick: Callable[[list[Any]], Sequence[Any]]
    """Returns the slots of its operands, in order."""
    attributes: tuple[tuple[int, str], ...]
    """The positions of operands that are an attribute of the slot's value, with the attribute."""
    args: Fill
    kwargs: Fill | None
    has_out: bool
    first: int
    """The slot of the first result."""
    dead: tuple[int, ...]
    """The slots that no later step needs."""


Fill = Callable[[Sequence[Any]], Any]
"""A function of a step's operands that returns its arguments."""


class Segment(NamedTuple):
    """Consecutive steps with equal modes."""

    framework: FrameworkAttributes | None
    modes: str | None
    operations: list[Operation]


def note_step(error: Any, program: Program, routine: Routine, place: int) -> None:
    """Add a note to an error that names the failed step of the plan."""
    line = program.describe(routine, place)
    note = f"in step {place + 1} of {len(routine.steps)} of the plan {program.name!r}: {line}"
    error.__notes__ = [*getattr(error, "__notes__", ()), note]  # Python 3.10 has no `add_note`.


def count_error(found: int, expected: int) -> PlanError:
    """Return the error for a step whose results differ from the recorded ones."""
    return PlanError(f"cannot continue a plan: a step returned {found} tensors instead of {expected}; record it again")


def _prepare(program: Program, routine: Routine) -> Iterator[Segment]:
    modes: str | None = None
    found: list[tuple[str | None, Operation]] = []
    last = _last_uses(routine)
    known = len(program.inputs) + len(program.state)
    for place, step in enumerate(routine.steps):
        modes = step.modes if step.modes is not None else modes
        dead = tuple([number for number in last.get(place, ()) if number >= len(program.inputs) + len(program.state)])
        op = None if not step.framework else look_up(step)
        run = op.run if op is not None else _find_number(step)
        framework = attributes_of(step.framework) if step.framework else None
        slots = [leaf for leaf in leaves((step.args, step.kwargs)) if type(leaf) is Slot]
        places = iter(range(len(slots)))
        args, kwargs = _fill(step.args, places), _fill(step.kwargs, places) if step.kwargs else None
        pick = _pick([slot.number for slot in slots])
        attributes = tuple([(place, slot.attr) for place, slot in enumerate(slots) if slot.attr is not None])
        has_out = step.kwargs.get("out") is not None
        operation = Operation(place, step, framework, op, run, pick, attributes, args, kwargs, has_out, known, dead)
        found.append((modes, operation))
        known += step.count
    for modes, group in groupby(found, key=operator.itemgetter(0)):
        operations = [operation for _, operation in group]
        named = [operation.framework for operation in operations if operation.framework is not None]
        yield Segment(named[0] if named else None, modes, operations)


def _find_number(step: Step) -> Callable[..., Any]:
    if step.op == FACT:
        _look_up_fact(step.args[0], step.args[1])
        return read_fact
    return require_outcome if step.op == GUARD else NUMBERS.get(step.op, _identity)


def look_up(step: Step) -> Op:
    """Return the operation of a step; raise if it is not in the op table."""
    return attributes_of(step.framework).command(step.op)


def attributes_of(framework: str) -> FrameworkAttributes:
    """Return the attributes of a hooked framework."""
    hook = attached_hook(framework)
    if hook is None:
        raise SerdeError(f"cannot read a plan: it uses {framework!r}, which is not hooked here; hook it first")
    return hook.attributes


def _last_uses(routine: Routine) -> dict[int, list[int]]:
    last: dict[int, int] = {}
    for place, step in enumerate(routine.steps):
        last.update({leaf.number: place for leaf in leaves((step.args, step.kwargs)) if type(leaf) is Slot})
    kept = {leaf.number for leaf in leaves(routine.answer) if type(leaf) is Slot} | {made for _, made in routine.carry}
    uses: dict[int, list[int]] = {}
    for number, place in last.items():
        if number not in kept:
            uses.setdefault(place, []).append(number)
    return uses


def _pick(numbers: list[int]) -> Callable[[list[Any]], Sequence[Any]]:
    if len(numbers) > 1:
        return operator.itemgetter(*numbers)
    return lambda items: [items[number] for number in numbers]


def _fill(part: Nested, places: Iterator[int]) -> Fill:
    cls = type(part)
    if cls is Slot:
        return operator.itemgetter(next(places))
    if is_framework_tensor(cls):  # A call may change or keep it.
        copy = framework_of(part).transfer
        return lambda _operands: copy(part)
    if not any(type(leaf) is Slot or is_framework_tensor(type(leaf)) for leaf in leaves(part)):
        return lambda _operands: part
    if cls is list or cls is tuple:
        return _fill_items(part, places)
    order = [next(places) for leaf in leaves(part) if type(leaf) is Slot]
    return lambda operands: _fill_any(part, iter([operands[place] for place in order]))


def _fill_items(items: Nested, places: Iterator[int]) -> Fill:
    cls = type(items)
    if cls is tuple and len(items) > 1 and all(type(item) is Slot for item in items):
        return operator.itemgetter(*[next(places) for _ in items])
    fills = [_fill(item, places) for item in items]
    return lambda operands: cls([fill(operands) for fill in fills])


def _fill_any(part: Nested, operands: Iterator[Any]) -> Nested:
    def fill(leaf: Tensor) -> Nested:
        if type(leaf) is Slot:
            return next(operands)
        return framework_of(leaf).transfer(leaf) if is_framework_tensor(type(leaf)) else leaf

    return map_leaves(fill, part)


def read_gradient(value: object, attr: str) -> Nested:
    """Return the gradient of a tensor."""
    framework = framework_of(value)
    if attr != framework.gradient:
        raise SerdeError(f"cannot run a plan: it reads {attr!r}, which is not a gradient (malformed message)")
    found = framework.method(attr).run(value)
    return None if found is None else framework.alias(found)


def _identity(value: object) -> Nested:
    return value
