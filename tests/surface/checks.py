"""Call an operation on plain tensors and on chains, and compare."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True)
class Case:
    """One call of one operation."""

    op: str
    call: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    form_only: bool = False
    """The values are arbitrary, e.g. those of ``empty_like``: compare only types and forms."""
    guess: bool = False
    """The arguments are those of an operation of the same name; ignore the case if the framework refuses them."""


class Backend(Protocol):
    """What the check must know about a framework."""

    def is_tensor(self, x: Any) -> bool:
        """Return whether ``x`` is a plain tensor or a wrapper of the framework."""

    def copy(self, tensor: Any) -> Any:
        """Return an independent plain tensor with the same values, layout and autograd flags."""

    def other_values(self, tensor: Any) -> Any:
        """Return a plain tensor of the same form with different values, if that is safe."""

    def chain(self, tensor: Any) -> Any:
        """Return ``Wrapper > LoggingTensor > tensor``."""

    def end(self, chain: Any) -> Any:
        """Return the plain tensor under ``chain``, which must be exactly ``Wrapper > LoggingTensor > tensor``."""

    def run(self, call: Callable[[], Any]) -> tuple[Any, set[str]]:
        """Run ``call`` with a fixed seed; return its result and the operations that reached a chain."""

    def compare(self, expected: Any, chain: Any, *, form_only: bool) -> None:
        """Fail unless ``chain`` has the values, dtype, shape and metadata of ``expected``."""


class DifferenceError(AssertionError):
    """The chain behaves differently than the plain tensor."""


@dataclass(frozen=True)
class Raised:
    """An exception in place of a result."""

    kind: type
    text: str


@dataclass(frozen=True)
class Passed:
    """The chain behaved like the plain tensor; ``reached`` are the operations that were dispatched to it."""

    reached: frozenset[str]
    raised: bool
    """Both raised the same error."""


def check(case: Case, backend: Backend) -> Passed | None:
    """Fail unless ``case`` has the same results, identities and changed arguments on chains as on plain tensors."""
    plain = map_tensors(backend, backend.copy, (case.args, case.kwargs))
    if not any(True for _ in tensors(backend, plain)):
        return None
    twins = map_tensors(backend, backend.copy, plain)
    expected, _ = backend.run(lambda: attempt(case.call, *plain))
    if case.guess and isinstance(expected, Raised):
        return None
    chains = map_tensors(backend, backend.chain, twins)
    actual, reached = backend.run(lambda: attempt(case.call, *chains))
    same_result(case, backend, expected, actual)
    if isinstance(expected, Raised):
        return Passed(frozenset(reached), raised=True)
    same_identities(backend, plain, chains, expected, actual)
    same_result(case, backend, plain, chains)
    return Passed(frozenset(reached), raised=False)


def attempt(call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of the call, or the error that it raised."""
    try:
        return call(*args, **kwargs)
    except Exception as error:  # noqa: BLE001  # whatever a framework raises, the chain must raise too
        return Raised(type(error), str(error).split("\n")[0])


def same_result(case: Case, backend: Backend, expected: Any, actual: Any) -> None:
    """Fail unless both have the same structure, with chains where there were tensors."""
    if backend.is_tensor(expected) and backend.is_tensor(actual):
        backend.compare(expected, actual, form_only=case.form_only)
    elif type(expected) is not type(actual):
        raise DifferenceError(f"expected {expected!r:.300}, got {actual!r:.600}")
    elif (parts := parts_of(expected)) is not None:
        same_parts(case, backend, parts, parts_of(actual))
    elif not case.form_only and not same_value(expected, actual):
        raise DifferenceError(f"expected {expected!r:.300}, got {actual!r:.600}")


def parts_of(obj: Any) -> list[Any] | None:
    """Return the keys and items of a container, or None for anything else."""
    if isinstance(obj, (tuple, list)):
        return list(obj)
    if isinstance(obj, dict):
        return [*obj.keys(), *obj.values()]
    if isinstance(obj, slice):
        return [obj.start, obj.stop, obj.step]
    return None


def same_parts(case: Case, backend: Backend, expected: list[Any], actual: list[Any]) -> None:
    """Fail unless both have the same parts in the same order."""
    if len(expected) != len(actual):
        raise DifferenceError(f"expected {len(expected)} parts, got {len(actual)}")
    for one, other in zip(expected, actual, strict=True):
        same_result(case, backend, one, other)


def same_value(expected: Any, actual: Any) -> bool:
    """Compare two values that are not tensors; objects that compare by identity are always equal."""
    if type(expected).__eq__ is object.__eq__:
        return True
    equal = expected == actual
    if hasattr(equal, "all"):
        return bool(equal.all())
    return bool(equal) or (expected != expected and actual != actual)  # NaN


def same_identities(backend: Backend, plain: Any, chains: Any, expected: Any, actual: Any) -> None:
    """Fail unless results that are arguments on plain tensors are the same arguments on chains."""
    arguments = list(zip(tensors(backend, plain), tensors(backend, chains), strict=True))
    for one, other in zip(tensors(backend, expected), tensors(backend, actual), strict=True):
        if any(one is argument and other is not chain for argument, chain in arguments):
            raise DifferenceError("the result is an argument of the call, but the chain's result is a new object")
        if any(other is chain and one is not argument for argument, chain in arguments):
            raise DifferenceError("the result is a new tensor, but the chain's result is an argument of the call")


def map_tensors(backend: Backend, f: Callable[[Any], Any], obj: Any) -> Any:
    """Apply ``f`` once to every tensor in ``obj``, also if it occurs several times."""
    made: dict[int, Any] = {}

    def visit(x: Any) -> Any:
        if backend.is_tensor(x):
            if id(x) not in made:
                made[id(x)] = f(x)
            return made[id(x)]
        if isinstance(x, dict):
            return type(x)((key, visit(value)) for key, value in x.items())
        if isinstance(x, slice):
            return slice(visit(x.start), visit(x.stop), visit(x.step))
        if type(x) in (tuple, list):
            return type(x)(map(visit, x))
        if isinstance(x, tuple) and hasattr(x, "_fields"):
            return type(x)(*map(visit, x))
        return x

    return visit(obj)


def by_operation(cases: Iterable[Case]) -> dict[str, list[Case]]:
    """Group ``cases`` by operation."""
    table: dict[str, list[Case]] = {}
    for case in cases:
        table.setdefault(case.op, []).append(case)
    return table


def tensors(backend: Backend, obj: Any) -> Iterator[Any]:
    """Yield every tensor in ``obj``."""
    if backend.is_tensor(obj):
        yield obj
    else:
        for part in parts_of(obj) or ():
            yield from tensors(backend, part)
