"""The op table: which operations of a framework may run on a chain, indexed by function and by name."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, Literal, TypeVar, cast, overload

from syft_core.exceptions import OperationNotAllowedError, PluginError
from syft_core.hook.facts import WRITES_FIRST, Discloses, Facts, Option, Places, Tier
from syft_core.hook.operators import (
    COMPARATORS,
    INPLACE_OPERATORS,
    OPERATORS,
    REFLECTED_OPERATORS,
    SYNONYMS,
    UNARY_OPERATORS,
)
from syft_core.hook.rules import leaves
from syft_core.values import Function

T = TypeVar("T")
Spelling = Literal["function", "method", "getter", "setter"]
_ACCESSORS = ("getter", "setter")


def words(text: str, prefix: str = "") -> frozenset[str]:
    """Return the words of ``text``, each with a prefix, for writing lists of names.

    >>> sorted(words("add sub", prefix="torch."))
    ['torch.add', 'torch.sub']
    """
    return frozenset(prefix + word for word in text.split())


class _Fact(Generic[T]):
    """A field of ``Op.facts``; the first access copies all facts into plain attributes of the operation."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, op: None, owner: type) -> _Fact[T]: ...

    @overload
    def __get__(self, op: Op, owner: type) -> T: ...

    def __get__(self, op: Op | None, owner: type) -> _Fact[T] | T:
        if op is None:
            return self
        vars(op).update(vars(op.facts))
        return cast("T", vars(op)[self.name])


@dataclass(frozen=True, eq=False)
class Op:
    """One operation of a framework: its wire name, the function that runs it, and the facts about it.

    ``operation`` is the name that all spellings share: ``x + y``, ``x.add(y)``, ``torch.add(x, y)`` and ``numpy.add``
    are all ``add``. A layer's rule for ``add`` applies to each of them.

    The facts are computed on first access, because a framework has thousands of operations and a program uses a few.
    ``Facts`` documents each of them.
    """

    name: str
    func: Function
    """The function as the framework passes it to its protocol."""
    spelling: Spelling
    operation: str
    run: Function
    """The function that computes the result on plain tensors; usually ``func`` itself."""
    inplace: bool = False
    """Whether its name marks it as in-place."""
    reflected: bool = False
    each: str | None = None
    """The operation that this one applies to each tensor of a list, if any."""
    describe: Callable[[Op], Facts] = lambda _op: Facts()
    process: Function | None = None
    """For a long operation: takes the ``Execution``, computes the result, and yields to other commands now and then.
    ``run`` then only determines the forms of results, on examples.
    """

    first = _Fact[str]()
    writes = _Fact[Places]()
    writes_if = _Fact[Mapping[int | str, Option]]()
    discloses = _Fact[Discloses]()
    reads_beyond = _Fact[bool]()
    uninitialized = _Fact[bool]()
    partial = _Fact[bool]()
    random = _Fact[bool]()
    tier = _Fact[Tier]()
    states_fact = _Fact[bool]()
    reveals = _Fact[bool]()
    local = _Fact[bool]()
    differentiates = _Fact[bool]()
    accumulates = _Fact[bool]()
    selects = _Fact[bool]()
    retains = _Fact[bool]()
    alters_autograd = _Fact[bool]()
    joins = _Fact[bool]()
    shape_depends_on_floats = _Fact[bool]()
    instead = _Fact[str]()

    @cached_property
    def facts(self) -> Facts:
        """The facts about the operation."""
        return self.describe(self)

    @cached_property
    def spare(self) -> int:
        """How many positional arguments a call may have without changing any; -1 for no limit.

        In numpy's functions the targets follow the operands: ``add(x, y, out)``.
        """
        writes = self.facts.writes
        places = [place for place in writes if type(place) is int]
        if places and writes <= {*places, "out"}:
            return min(places)
        return -1 if writes else sys.maxsize

    @cached_property
    def is_deterministic(self) -> bool:
        """Whether results follow from the operands: they are neither random nor uninitialized."""
        return not (self.facts.random or self.facts.uninitialized)

    @cached_property
    def is_special(self) -> bool:
        """Whether it may need more than a command whose results stay on the worker."""
        facts = self.facts
        needs_more = facts.tier == "off" or facts.reveals or facts.local or facts.accumulates
        return needs_more or self.inplace or self.spelling in _ACCESSORS

    @cached_property
    def targets(self) -> Callable[[Sequence[Any], Mapping[str, Any]], list[Any]]:
        """Return the argument objects that a call may change, as a flat list."""
        return self.facts.targets

    def disclosure(self, args: Sequence[object], kwargs: Mapping[str, object]) -> Discloses:
        """Return what the result of a call discloses."""
        return self.facts.disclosure(args, kwargs)

    def clears_gradient(self, args: Sequence[object]) -> bool:
        """Return whether a call does nothing but remove gradients."""
        return self.alters_autograd and self.spelling == "setter" and len(args) == 2 and args[1] is None

    @cached_property
    def attr(self) -> str:
        """The attribute name on a tensor or module: ``add_`` for ``torch.Tensor.add_``.

        An operation on lists has its own name, so that it is not mistaken for the one on a single tensor.
        """
        if self.each is not None:
            return f"{self.operation}_" if self.inplace else self.operation
        parts = self.name.split(".")
        return parts[-2] if self.spelling in ("getter", "setter") else parts[-1]


def describe_op(
    name: str,
    func: Function,
    spelling: Spelling,
    *,
    inplace: bool = False,
    synonyms: Mapping[str, str] = SYNONYMS,
    run: Function | None = None,
    each: str | None = None,
    describe: Callable[[Op], Facts] | None = None,
    **facts: Any,
) -> Op:
    """Build the table entry for ``name`` and determine its operation.

    The facts are given as ``facts``, or computed on demand by ``describe``.
    """
    attr = name.split(".")[-2 if spelling in ("getter", "setter") else -1]
    reflected = attr in REFLECTED_OPERATORS
    for table in (OPERATORS, COMPARATORS, UNARY_OPERATORS, INPLACE_OPERATORS, REFLECTED_OPERATORS):
        if attr in table:
            operation = table[attr]
            break
    else:
        operation = attr.removesuffix("_") if inplace else attr
        operation = synonyms.get(operation, operation)
    if describe is None:
        known = Facts(**({"writes": WRITES_FIRST} if inplace or spelling == "setter" else {}) | facts)
        describe = lambda _op: known  # noqa: E731  # shorter than a def
    return Op(name, func, spelling, operation, run or func, inplace, reflected, each, describe)


class OpTable:
    """The operations that may run, looked up by function on the client and by name on the worker.

    The table is an allow-list: both sides refuse what is not in it.
    """

    def __init__(self, framework: str, ops: Iterable[Op] = ()) -> None:
        self.framework = framework
        self.by_func: dict[Function, Op] = {}
        self.by_name: dict[str, Op] = {}
        for op in ops:
            self.add(op)

    def add(self, op: Op) -> None:
        """Add ``op``. A function may have several names, but a name belongs to one function."""
        known = self.by_name.get(op.name)
        if known is not None and known.func != op.func:
            raise PluginError.broken(self.framework, f"its op table has two functions called {op.name!r}")
        self.by_name[op.name] = op
        self.by_func.setdefault(op.func, op)

    def of(self, func: Function) -> Op:
        """Return the entry for ``func``; raise if there is none."""
        op = self.by_func.get(func)
        if op is None:
            name = getattr(func, "__qualname__", None) or getattr(func, "__name__", repr(type(func)))
            raise self.refuse(_public_name(f"{getattr(func, '__module__', None) or self.framework}.{name}"))
        return op

    def look_up(self, name: str) -> Op:
        """Return the entry called ``name``; raise if there is none."""
        op = self.by_name.get(name)
        if op is None:
            raise self.refuse(name)
        return op

    def refuse(self, name: str) -> OperationNotAllowedError:
        """Return the error for a ``name`` that is not in the table."""
        last = name.rsplit(".", 1)[-1]
        near = [known for known in self.by_name if known.rsplit(".", 1)[-1] == last][:2]
        near = near or difflib.get_close_matches(name, list(self.by_name), n=2, cutoff=0.9)
        return OperationNotAllowedError.not_in_table(self.framework, name, near)

    def __contains__(self, name: object) -> bool:
        return name in self.by_name

    def __iter__(self) -> Iterator[Op]:
        return iter(self.by_name.values())

    def __len__(self) -> int:
        return len(self.by_name)


def _public_name(path: str) -> str:
    """Return the name that users know: ``torch.zeros`` for ``torch._VariableFunctionsClass.zeros``."""
    *places, last = path.split(".")
    public = [place for place in places if not place.startswith(("_", "pybind11_"))]
    return ".".join([*public, last.rpartition("::")[2]])


def creates(op: Op) -> Facts:
    """Return the facts about a function that creates a tensor from plain arguments."""
    return Facts(
        writes=frozenset(),
        discloses="nothing",
        form_depends=lambda args, kwargs: any(hasattr(leaf, "ndim") for leaf in leaves((args, dict(kwargs)))),
        reads_beyond=False,
        uninitialized=op.attr.startswith("empty"),
        random=op.attr.startswith("rand"),
        tier="reviewed",
    )
