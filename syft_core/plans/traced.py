"""Traced numbers: numbers in a recorded function that the plan computes again in each call.

Arithmetic with a tensor's size, a float argument, or a number read from the state is recorded. Python's decisions, such
as ``if n > 4``, and conversions, such as in ``range(n)``, cannot be recorded. Instead, if the number follows from the
forms of arguments, a *guard* is recorded: a step that refuses calls for which the outcome differs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar, NoReturn, TypeGuard

from syft_core.plans.program import COMPARISONS, GUARD, NUMBERS, Step
from syft_core.plans.tapes import Ref, Tape
from syft_core.values import Function, Nested, Traced


class Number(Traced):
    """Stands for the result of a step, or an argument; ``make_types`` combines it with a framework's number type.

    It is not a Python number, because C code would read the value of one without a trace.
    """

    value: int | float
    tape: Tape
    ref: Ref
    follows: bool
    """Whether it follows from the forms of arguments."""
    kinds: ClassVar[tuple[type[Number], type[Number]]]
    """The classes of traced integers and floats."""

    def __init__(self, value: int | float, tape: Tape, ref: Ref, follows: bool) -> None:
        self.value, self.tape, self.ref, self.follows = value, tape, ref, follows

    @property
    def __class__(self) -> type:
        """The type of the number, for libraries that check it."""
        return type(self.value)

    @__class__.setter
    def __class__(self, _value: type) -> None:
        raise TypeError("cannot change the class of a traced number")

    def compute(self, name: str, *operands: object) -> Nested:
        """Record one step of arithmetic, and return its result."""
        if not all(isinstance(operand, int | float) for operand in operands):
            return NotImplemented
        values = [to_plain(operand) for operand in operands]
        if self.tape.state == "over":
            return NUMBERS[name](*values)
        traced = [operand for operand in operands if is_traced(operand)]
        self._require_open(traced)
        try:
            value = NUMBERS[name](*values)
        except (ArithmeticError, ValueError) as error:
            self.refuse(f"computes a number with {name!r}, and fails ({error})")
        args = tuple([operand.ref if is_traced(operand) else _normalize(operand) for operand in operands])
        place = self.tape.add(Step("", name, args, {}, 1))
        return make_number(self.kinds, value, self.tape, Ref("result", place), all(each.follows for each in traced))

    def compare(self, name: str, other: object) -> Nested:
        """Return the outcome of a comparison, and guard it."""
        if not isinstance(other, int | float):
            return NotImplemented
        outcome = COMPARISONS[name](self.value, to_plain(other))
        both = [self, other] if is_traced(other) else [self]
        if self.tape.state != "over" and not (len(both) == 2 and both[1].ref == self.ref and both[1].tape is self.tape):
            self._require_known(f"__{name}__", both)
            right = both[1].ref if len(both) == 2 else _normalize(other)
            self.tape.add(Step("", GUARD, (name, self.ref, right, bool(outcome)), {}, 0))
        return outcome

    def read(self, name: str = "__int__") -> Any:
        """Return the plain number, and guard that it stays the same."""
        if self.tape.state != "over":
            self._require_known(name, [self])
            self.tape.add(Step("", GUARD, ("eq", self.ref, self.value, True), {}, 0))
        return self.value

    def _require_known(self, name: str, traced: list[Any]) -> None:
        self._require_open(traced)
        if not all(each.follows for each in traced):
            self.refuse(f"reads a number that changes from call to call, with {name!r}")

    def _require_open(self, traced: list[Any]) -> None:
        if self.tape.state != "open" or any(each.tape is not self.tape for each in traced):
            self.refuse("uses a number of an earlier call")

    def refuse(self, problem: str) -> NoReturn:
        """Raise an error that names the line of the user's program."""
        self.tape.refuse(problem, "the plan would keep this outcome for all calls; compute with the number only")

    @property
    def node(self) -> NoReturn:
        """Refuse access to the symbolic number, which code in C asks for."""
        self.refuse("passes a length to a function that takes no traced numbers")

    def __array_ufunc__(self, function: Function, method: str, *operands: object, **options: object) -> Nested:
        """Compute with the plain number in numpy functions."""
        return getattr(function, method)(*map(read_traced, operands), **options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(self.value, name):
            raise AttributeError(name)
        return getattr(self.read(name), name)

    def __pos__(self) -> Nested:
        return self

    def __hash__(self) -> int:
        return hash(self.read("__hash__"))

    def __reduce_ex__(self, _protocol: object) -> Any:
        value = self.read("__reduce__")
        return type(value), (value,)

    def __deepcopy__(self, _memo: object) -> Number:
        return self

    __copy__ = __pos__

    def __round__(self, digits: int | None = None) -> Nested:
        return self.compute("round", self) if digits is None else round(self.read("__round__"), digits)

    def __divmod__(self, other: object) -> Nested:
        return self // other, self % other  # type: ignore[operator]  # added below

    def __rdivmod__(self, other: object) -> Nested:
        return other // self, other % self  # type: ignore[operator]  # the same


def is_traced(value: object) -> TypeGuard[Number]:
    """Return whether a value is a traced number, which its ``__class__`` hides."""
    return issubclass(type(value), Traced)


def to_plain(leaf: Nested) -> Nested:
    """Return the plain value of a traced number; return anything else unchanged."""
    return leaf.value if is_traced(leaf) else leaf


def read_traced(leaf: Nested) -> Nested:
    """Return the value of a traced number for code that cannot trace it; return anything else unchanged."""
    return leaf.read() if is_traced(leaf) else leaf


def _normalize(operand: Nested) -> int | float:
    """Return a flag, an enum member or a numpy number as the plain number that a step may contain."""
    return int(operand) if isinstance(operand, int) else float(operand)


def loosen(obj: Nested) -> Nested:
    """Replace shapes, which cannot hold references, by tuples."""
    cls = type(obj)
    if isinstance(obj, tuple) and cls is not tuple and not hasattr(cls, "_fields"):
        return tuple(map(loosen, obj))
    if cls is tuple or cls is list:
        return cls(map(loosen, obj))
    return {name: loosen(value) for name, value in obj.items()} if cls is dict else obj


def make_number(
    kinds: tuple[type[Number], type[Number]], value: int | float, tape: Tape, ref: Ref, follows: bool
) -> Number:
    """Return a traced integer or float."""
    return kinds[0 if type(value) is int else 1](value, tape, ref, follows)


@cache
def make_types(bases: tuple[type, type]) -> tuple[type[Number], type[Number]]:
    """Return the classes of traced integers and floats; a framework accepts instances of ``bases`` as numbers."""
    made: Any = tuple([
        type(name, (Number,) if base is object else (Number, base), {"__module__": __name__})
        for name, base in zip(("TracedInt", "TracedFloat"), bases, strict=True)
    ])  # fmt: skip
    for cls in made:
        cls.kinds = made
    return made  # type: ignore[no-any-return]  # a pair


# --- the methods of numbers


def _operator(name: str, swapped: bool) -> Callable[..., Any]:
    def method(self: Number, other: object) -> Nested:
        return self.compute(name, other, self) if swapped else self.compute(name, self, other)

    return method


def _unary(name: str) -> Callable[..., Any]:
    return lambda self: self.compute(name, self)


def _comparison(name: str) -> Callable[..., Any]:
    return lambda self, other: self.compare(name, other)


def _reader(name: str) -> Callable[..., Any]:
    def method(self: Number, *args: object) -> Nested:
        if not hasattr(self.value, name):
            raise TypeError(f"cannot call {name!r} of a {type(self.value).__name__}")
        return getattr(self.read(name), name)(*map(to_plain, args))

    return method


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    setattr(Number, f"__{_name}__", _operator(_name, swapped=False))
    setattr(Number, f"__r{_name}__", _operator(_name, swapped=True))
for _name in ("neg", "abs", "floor", "ceil", "trunc"):
    setattr(Number, f"__{_name}__", _unary(_name))
for _name in COMPARISONS:
    setattr(Number, f"__{_name}__", _comparison(_name))
for _name in ("int", "float", "index", "bool", "repr", "str", "format", "invert"):
    setattr(Number, f"__{_name}__", _reader(f"__{_name}__"))
for _name in ("and", "or", "xor", "lshift", "rshift"):
    setattr(Number, f"__{_name}__", _reader(f"__{_name}__"))
    setattr(Number, f"__r{_name}__", _reader(f"__r{_name}__"))
