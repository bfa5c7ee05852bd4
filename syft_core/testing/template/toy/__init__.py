"""toy: vectors in plain Python; a minimal framework that does not depend on syft-core."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

__version__ = "1.2"

overridable: list[Callable[..., Any]] = []
"""The functions that defer to ``__toy_function__`` of an argument."""


def _overridable(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def public(*args: Any, **kwargs: Any) -> Any:
        for argument in (*args, *kwargs.values()):
            for candidate in argument if isinstance(argument, list | tuple) else (argument,):
                if hasattr(candidate, "__toy_function__"):
                    return candidate.__toy_function__(public, args, kwargs)
        return function(*args, **kwargs)

    overridable.append(public)
    return public


class Vector:
    """A row of numbers; a single number is a row of one."""

    def __init__(self, values: Sequence[Any]) -> None:
        self._values = list(values)

    shape = property(lambda self: (len(self._values),))
    dtype = property(lambda self: type(self._values[0]) if self._values else float)
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"Vector({self._values})"

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Vector]:
        return iter([Vector([v]) for v in self._values])

    def __contains__(self, value: Any) -> bool:
        return value in self._values

    def __getitem__(self, index: Any) -> Vector:
        return Vector([self._values[i] for i in self._positions(index)])

    def __setitem__(self, index: Any, value: Any) -> None:
        new = value._values if isinstance(value, Vector) else [value]
        where = self._positions(index)
        for i, v in zip(where, new * len(where) if len(new) == 1 else new, strict=True):
            self._values[i] = v

    def _positions(self, index: Any) -> list[int]:
        if isinstance(index, Vector):
            chosen = index._values
            return [i for i, yes in enumerate(chosen) if yes] if index.dtype is bool else [int(i) for i in chosen]
        if isinstance(index, slice):
            parts = [int(p) if isinstance(p, Vector) else p for p in (index.start, index.stop, index.step)]
            return list(range(len(self._values)))[slice(*parts)]
        if isinstance(index, tuple | list):
            return [i for part in index for i in self._positions(part)]
        return list(range(len(self._values))) if index is ... else [range(len(self._values))[index]]

    def item(self) -> Any:
        (value,) = self._values
        return value

    __bool__ = lambda self: bool(self.item())  # noqa: E731
    __int__ = lambda self: int(self.item())  # noqa: E731
    __float__ = lambda self: float(self.item())  # noqa: E731
    __index__ = lambda self: operator.index(self.item())  # noqa: E731
    __neg__ = lambda self: self.map(operator.neg)  # noqa: E731
    __abs__ = lambda self: self.map(abs)  # noqa: E731
    __invert__ = lambda self: self.map(operator.not_ if self.dtype is bool else operator.invert)  # noqa: E731
    exp = lambda self: self.map(math.exp)  # noqa: E731
    log = lambda self: self.map(math.log)  # noqa: E731
    tanh = lambda self: self.map(math.tanh)  # noqa: E731
    sigmoid = lambda self: self.map(lambda v: 1 / (1 + math.exp(-v)))  # noqa: E731

    def map(self, f: Callable[[Any], Any]) -> Vector:
        return Vector([f(v) for v in self._values])

    def zip(self, other: Any, f: Callable[[Any, Any], Any]) -> Any:
        if not isinstance(other, Vector | int | float):
            return NotImplemented
        left, right = self._values, other._values if isinstance(other, Vector) else [other]
        n = max(len(left), len(right))
        pairs = zip(left * n if len(left) == 1 else left, right * n if len(right) == 1 else right, strict=True)
        return Vector([f(a, b) for a, b in pairs])

    def __matmul__(self, other: Any) -> Any:
        return self.zip(other, operator.mul).sum() if isinstance(other, Vector) else NotImplemented

    def add(self, other: Any, *, alpha: Any = 1) -> Vector:
        return self + other * alpha

    def add_(self, other: Any) -> Vector:
        self += other
        return self

    def same(self) -> Vector:
        """Return the vector itself, like ``contiguous`` in other frameworks."""
        return self

    def copy(self) -> Vector:
        return Vector(self._values)

    def tolist(self) -> list[Any]:
        return list(self._values)

    def sum(self) -> Vector:
        return Vector([sum(self._values)])

    def mean(self) -> Vector:
        return Vector([sum(self._values) / len(self._values)])

    def any(self) -> Vector:
        return Vector([any(self._values)])

    def all(self) -> Vector:
        return Vector([all(self._values)])

    def clip(self, low: float, high: float = math.inf) -> Vector:
        return self.map(lambda v: type(v)(min(max(v, low), high)))

    def max(self, other: Any = None) -> Any:
        """Return the maximum, with ``other=0`` also its index, or the elementwise maximum of two vectors."""
        if isinstance(other, Vector):
            return self.zip(other, lambda a, b: type(a)(max(a, b)))
        top = max(self._values)
        return Vector([top]) if other is None else Max(Vector([top]), Vector([self._values.index(top)]))


class Max(NamedTuple):
    values: Vector
    indices: Vector


class MinMax(NamedTuple):
    low: Vector
    high: Vector


def _operator(f: Callable[[Any, Any], Any]) -> Callable[[Vector, Any], Any]:
    return lambda self, other: self.zip(other, f)


def _reflected(f: Callable[[Any, Any], Any]) -> Callable[[Vector, Any], Any]:
    return lambda self, other: self.zip(other, lambda a, b: f(b, a))


def _inplace(f: Callable[[Any, Any], Any]) -> Callable[[Vector, Any], Any]:
    def change(self: Vector, other: Any) -> Any:
        new = self.zip(other, f)
        if new is not NotImplemented:
            self[:] = new
        return new if new is NotImplemented else self

    return change


for _name in ("add", "sub", "mul", "truediv", "pow", "and_", "or_"):
    _f = getattr(operator, _name)
    for _prefix, _make in (("", _operator), ("r", _reflected), ("i", _inplace)):
        setattr(Vector, f"__{_prefix}{_name.rstrip('_')}__", _make(_f))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Vector, f"__{_name}__", _operator(getattr(operator, _name)))


@_overridable
def add(x: Vector, y: Any, *, out: Vector | None = None) -> Vector:
    result = x + y
    if out is not None:
        out[:] = result
    return result if out is None else out


@_overridable
def sub(x: Vector, y: Any) -> Vector:
    return x - y


@_overridable
def subtract(x: Vector, y: Any) -> Vector:
    """Do what ``sub`` does, under the name that other frameworks give it."""
    return x - y


@_overridable
def mul(x: Vector, y: Any) -> Vector:
    return x * y


@_overridable
def tanh(x: Vector) -> Vector:
    return x.tanh()


@_overridable
def cat(vectors: Sequence[Vector]) -> Vector:
    return Vector([v for vector in vectors for v in vector.tolist()])


@_overridable
def split(x: Vector, size: int) -> list[Vector]:
    return [x[i : i + size] for i in range(0, len(x), size)]


@_overridable
def unbind(x: Vector) -> tuple[Vector, ...]:
    return tuple(x)


@_overridable
def minmax(x: Vector) -> MinMax:
    return MinMax(Vector([min(x.tolist())]), Vector([max(x.tolist())]))


@_overridable
def summary(x: Vector) -> dict[str, Any]:
    return {"sum": x.sum(), "length": len(x), "ends": (x[0], x[-1])}


def zeros(shape: Sequence[int], dtype: type = float) -> Vector:
    (length,) = shape
    return Vector([dtype(0)] * length)


def arange(length: int) -> Vector:
    return Vector(range(length))


@_overridable
def save(x: Vector, path: str) -> None:
    """Write a file, which must not run on a chain."""
    Path(path).write_text(repr(x))


from toy import nn  # noqa: E402, F401  # as frameworks have it: `toy.nn` needs no import of its own
