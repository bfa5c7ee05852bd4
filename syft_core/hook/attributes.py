"""The op table: which operations of a framework may run on a chain, read by function and by name."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Generic, Literal, TypeVar, cast, overload

from syft_core.exceptions import OperationNotAllowedError, PluginError
from syft_core.hook.autograd import Autograd
from syft_core.hook.facts import WRITES_ALL, WRITES_FIRST, Discloses, Facts, Option, Places, Tier
from syft_core.hook.forms import Form, Inferred
from syft_core.hook.ranks import is_numeric
from syft_core.hook.rules import leaves

T = TypeVar("T")
Spelling = Literal["function", "method", "getter", "setter"]

# Python's operators, by the name of the operation they spell.
OPERATORS: Mapping[str, str] = {
    "__add__": "add",
    "__sub__": "sub",
    "__mul__": "mul",
    "__truediv__": "div",
    "__floordiv__": "floor_divide",
    "__mod__": "remainder",
    "__pow__": "pow",
    "__matmul__": "matmul",
    "__and__": "bitwise_and",
    "__or__": "bitwise_or",
    "__xor__": "bitwise_xor",
    "__lshift__": "bitwise_left_shift",
    "__rshift__": "bitwise_right_shift",
}
COMPARATORS: Mapping[str, str] = {
    "__eq__": "eq",
    "__ne__": "ne",
    "__lt__": "lt",
    "__le__": "le",
    "__gt__": "gt",
    "__ge__": "ge",
}
UNARY_OPERATORS: Mapping[str, str] = {
    "__neg__": "neg",
    "__pos__": "positive",
    "__abs__": "abs",
    "__invert__": "bitwise_not",
}
# The in-place operators by explicit list: `__index__`, `__int__` and `__invert__` also start with `__i`.
INPLACE_OPERATORS: Mapping[str, str] = {f"__i{name[2:]}": operation for name, operation in OPERATORS.items()}
REFLECTED_OPERATORS: Mapping[str, str] = {f"__r{name[2:]}": operation for name, operation in OPERATORS.items()}
# Other spellings of these operations, as frameworks have them.
SYNONYMS: Mapping[str, str] = {
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "true_divide": "div",
    "power": "pow",
    "negative": "neg",
    "absolute": "abs",
    "not_equal": "ne",
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
    "mod": "remainder",
    "invert": "bitwise_not",
}


def words(text: str) -> frozenset[str]:
    """Return the words of ``text``: how lists of names are written.

    >>> sorted(words("add sub"))
    ['add', 'sub']
    """
    return frozenset(text.split())


class _Fact(Generic[T]):
    """A field of ``Op.facts``: a plain attribute of the operation after its facts were asked for once."""

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
    """One operation of a framework: its wire name, the function that runs it, and what is known of it.

    ``operation`` is the plain name that all spellings share: ``x + y``, ``x.add(y)`` and ``torch.add(x, y)`` are
    all ``add``, and so is ``numpy.add``. A layer's rule for ``add`` holds for each of them.

    The facts are worked out when one of them is first asked for: a framework has thousands of operations, and a program
    uses a few. ``Facts`` says what each of them means.
    """

    name: str
    func: Callable[..., Any]
    """The function as the framework hands it to us."""
    spelling: Spelling
    operation: str
    run: Callable[..., Any]
    """What computes it on plain tensors; most often ``func`` itself."""
    inplace: bool = False
    """The name says that it changes its first argument."""
    reflected: bool = False
    each: str | None = None
    """The operation that this one applies to every tensor of a list, if it does."""
    describe: Callable[[Op], Facts] = lambda _op: Facts()
    """Return the facts about the operation."""

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
    retains = _Fact[bool]()
    alters_autograd = _Fact[bool]()
    shape_depends_on_floats = _Fact[bool]()

    @cached_property
    def facts(self) -> Facts:
        """What is known about the operation."""
        return self.describe(self)

    @cached_property
    def only_computes(self) -> bool:
        """Whether it only computes results, whose forms follow from those of its operands, or writes to targets."""
        facts = self.facts
        return not (
            facts.discloses != "nothing"
            or facts.form_depends is not None
            or facts.reads_beyond
            or facts.uninitialized
            or facts.differentiates
            or facts.alters_autograd
            or facts.retains
        )

    def targets(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """Return the argument objects that a call may change, flat: the one answer to what a call changes."""
        return self.facts.targets(args, kwargs)

    def disclosure(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Discloses:
        """Return what the answer to a call reveals."""
        return self.facts.disclosure(args, kwargs)

    @cached_property
    def attr(self) -> str:
        """The name under which a tensor or a module has it: ``add_`` of ``torch.Tensor.add_``.

        An operation on lists is not its namesake for one tensor, in whatever module it is.
        """
        if self.each is not None:
            return f"{self.operation}_" if self.inplace else self.operation
        parts = self.name.split(".")
        return parts[-2] if self.spelling in ("getter", "setter") else parts[-1]


def describe_op(
    name: str,
    func: Callable[..., Any],
    spelling: Spelling,
    *,
    inplace: bool = False,
    synonyms: Mapping[str, str] = SYNONYMS,
    run: Callable[..., Any] | None = None,
    each: str | None = None,
    describe: Callable[[Op], Facts] | None = None,
    **facts: Any,
) -> Op:
    """Build the entry for ``name``, finding out which operation it spells.

    The facts about it are ``facts``, or what ``describe`` returns for the entry when they are needed.
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
        describe = lambda _op: known  # noqa: E731  # one line says it
    return Op(name, func, spelling, operation, run or func, inplace, reflected, each, describe)


class OpTable:
    """The operations that may run, found by function at the caller and by name at the worker.

    Being in the table is the permission: what is not listed is refused on both sides.
    """

    def __init__(self, framework: str, ops: Iterable[Op] = ()) -> None:
        self.framework = framework
        self.by_func: dict[Callable[..., Any], Op] = {}
        self.by_name: dict[str, Op] = {}
        for op in ops:
            self.add(op)

    def add(self, op: Op) -> None:
        """Enter ``op``; two functions under one name are an error, two names of one function are not."""
        known = self.by_name.get(op.name)
        if known is not None and known.func != op.func:
            raise PluginError.broken(self.framework, f"its op table has two functions called {op.name!r}")
        self.by_name[op.name] = op
        self.by_func.setdefault(op.func, op)

    def of(self, func: Callable[..., Any]) -> Op:
        """Return the entry for ``func``, or refuse it."""
        op = self.by_func.get(func)
        if op is None:
            name = getattr(func, "__qualname__", None) or getattr(func, "__name__", repr(type(func)))
            raise self.refuse(_public_name(f"{getattr(func, '__module__', None) or self.framework}.{name}"))
        return op

    def named(self, name: str) -> Op:
        """Return the entry called ``name``, or refuse it."""
        op = self.by_name.get(name)
        if op is None:
            raise self.refuse(name)
        return op

    def refuse(self, name: str) -> OperationNotAllowedError:
        """Return the error that says ``name`` is not listed."""
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
    return ".".join([*[place for place in places if not place.startswith("_")], last])


def _creates(op: Op) -> Facts:
    """Return the facts about a function that makes a tensor out of plain arguments."""
    return Facts(
        writes=frozenset(),
        discloses="nothing",
        form_depends=lambda args, kwargs: any(hasattr(leaf, "ndim") for leaf in leaves((args, dict(kwargs)))),
        reads_beyond=False,
        uninitialized=op.attr.startswith("empty"),
        random=op.attr.startswith("rand"),
        tier="reviewed",
    )


class FrameworkAttributes:
    """What the core must know of one framework: its names, its op table, its wrapper and its guards."""

    ALIAS: str
    """The framework's import name, with which every command name starts."""
    exclude: frozenset[str] = frozenset()
    """Names that are no operations on a chain, whatever the framework says."""
    inplace_methods: frozenset[str] = frozenset(INPLACE_OPERATORS)
    """The names of all methods that change their tensor, by explicit list."""
    worker_methods: tuple[str, ...] = ()
    """The functions of the framework that a client may call on a worker to make tensors there."""
    result_types: ClassVar[Mapping[str, type]] = {}
    """The named tuples that operations return, by name: how they are written on a wire, and read from it."""
    facts_of_form: frozenset[str] = frozenset()
    """The operations that a form alone can answer: ``shape``, ``size`` …"""
    autograd: ClassVar[Autograd | None] = None
    """What the framework calls the parts of automatic differentiation, if it has that."""
    tensor_attributes: frozenset[str] = frozenset()
    """The attributes of a tensor that are tensors, to which a pointer may refer."""
    global_state_change_methods: frozenset[str] = frozenset()
    """Functions that change the framework for everybody; never in the table."""

    def __init__(
        self, framework: Any, wrapper: Callable[[Any], Any], numeric_wrapper: Callable[[Any], Any] | None = None
    ) -> None:
        self.framework = framework
        if self.autograd is not None:
            self.tensor_attributes = self.autograd.attributes
        self._wrapper = wrapper
        self._numeric_wrapper = numeric_wrapper
        self.ops = OpTable(self.ALIAS, self._collect())
        self.methods: dict[str, Op] = self._methods()
        self.creators: dict[str, Op] = {
            name: describe_op(f"{self.ALIAS}.{name}", self._creator(name), "function", describe=_creates)
            for name in self.worker_methods
        }
        """The operations that make tensors on a worker, out of nothing but their arguments."""

    def _collect(self) -> Iterable[Op]:
        """Yield the framework's operations."""
        raise NotImplementedError

    def _methods(self) -> dict[str, Op]:
        """Map attribute names of a tensor to the operations they spell."""
        raise NotImplementedError

    def _creator(self, name: str) -> Callable[..., Any]:
        """Return the function that makes tensors under ``name``."""
        function: Callable[..., Any] = getattr(self.framework, name)
        return function

    def wrapper(self, child: Any) -> Any:
        """Put a wrapper on ``child``: the numeric one if a layer encodes the values."""
        if not is_numeric(child):
            return self._wrapper(child)
        if self._numeric_wrapper is None:
            raise OperationNotAllowedError.no_numeric_wrapper(self.ALIAS)
        return self._numeric_wrapper(child)

    def command(self, name: str) -> Op:
        """Return what a worker runs under ``name``, or refuse it."""
        op = self.ops.by_name.get(name)
        if op is not None:
            return op
        prefix, _, last = name.rpartition(".")
        return self.creators[last] if prefix == self.ALIAS and last in self.creators else self.ops.named(name)

    def method(self, name: str) -> Op:
        """Return what a tensor's attribute called ``name`` spells, or refuse it."""
        op = self.methods.get(name)
        if op is None:
            raise self.ops.refuse(f"{self.ALIAS}.{name}")
        return op

    def copy(self, tensor: Any) -> Any:
        """Return a plain tensor with the same data in memory of its own."""
        raise NotImplementedError

    def transfer(self, tensor: Any) -> Any:
        """Return a plain tensor as another worker may keep it: the same data in memory of its own, without history."""
        return self.copy(tensor)

    def become(self, tensor: Any, other: Any) -> None:
        """Let ``tensor``, the object that a user holds, be what ``other`` is: a head, or plain data."""
        raise NotImplementedError

    def memory_of(self, tensor: Any) -> frozenset[int] | None:
        """Return the pieces of memory that a plain tensor shows; tensors that share memory have one in common.

        None when that cannot be said: a worker then refuses to compute on private tensors.
        """
        return None

    def own_memory(self, tensors: Sequence[Any]) -> None:
        """Let plain tensors that share memory share some that can be enlarged; what was received often cannot."""

    def is_part(self, tensor: Any) -> bool:
        """Say whether a plain tensor shows only a part of the memory that it holds."""
        return False

    def give(self, tensor: Any, references: int) -> Any:
        """Return what a receiver may keep of a plain tensor that its holder gives up; None if it must be copied.

        ``references`` is how often others refer to the tensor.
        """
        return None

    def is_part_of_model(self, tensor: Any) -> bool:
        """Return whether a plain tensor is a parameter, which is sent along with its model."""
        return False

    def outside_graph(self, tensor: Any) -> Any:
        """Return a plain tensor without the graph that it is a part of: the graph stays where it is."""
        return tensor

    def is_shared(self, tensor: Any) -> bool:
        """Say whether another tensor may show the memory of a plain tensor."""
        return True

    def modes(self) -> str | None:
        """Return the settings of the caller that change what an operation does, to be sent along with it."""
        return None

    def under(self, modes: str, args: Any, kwargs: Any) -> AbstractContextManager[Any]:
        """Return a context in which the settings of another process hold for a call; refuse what cannot be set."""
        return nullcontext()

    @staticmethod
    def isolated() -> AbstractContextManager[Any] | None:
        """Return a context in which nothing of the calling thread watches what a worker in the same process computes.

        None when nothing watches, which is the common case and must cost little.
        """
        return None

    def placing(self, location: Any) -> AbstractContextManager[Any]:
        """Return a context in which the framework makes new tensors at ``location``, where that is possible."""
        return nullcontext()

    def form_of(self, tensor: Any) -> Form | None:
        """Return the form of a plain tensor, or None where a form cannot say all that matters."""
        return None

    def form_of_copy(self, tensor: Any) -> Form | None:
        """Return the form that a copy has which another worker keeps, or None where that is not certain."""
        return None

    def warm_up(self) -> None:
        """Prepare whatever ``infer`` needs, and wait for it."""

    def state(self) -> Any:
        """Return what besides the arguments decides the form of a result, or None when that cannot be said."""
        return None

    def infer(self, op: Op, args: Any, kwargs: Any) -> Inferred | None:
        """Return what ``op`` gives for arguments with forms in the place of tensors, and their forms afterwards.

        None when that cannot be known without the values.
        """
        return None

    def form_of_gradient(self, known: Form) -> Form | None:
        """Return the form of the gradient that a leaf of this form gets, or None where that is not certain."""
        return None

    def differentiated(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, bool]:
        """Return what a backward pass starts from, what it is restricted to, and whether gradients are plain.

        Only for operations that accumulate gradients. Without a restriction, None, all leaves get gradients.
        """
        raise NotImplementedError

    def read_off(self, op: Op, form: Form, args: tuple[Any, ...]) -> Any:
        """Return what ``op``, one of ``facts_of_form``, answers for any tensor of this form."""
        raise NotImplementedError

    def shadow(self, argument: Any, device: Any) -> Any:
        """Return an argument of a call that is run without data, to find out the form of its result.

        For a ``Form``, a plain tensor of that form: without values, or with values that everybody knows; for the device
        of the others, that of such tensors; all else as it is. Without this method a worker refuses to compute on
        private tensors.
        """
        raise NotImplementedError("the backend has no shadows")

    def needs_data(self, error: Exception) -> bool:
        """Return whether a call on shadows failed only because they have no values."""
        return isinstance(error, NotImplementedError)

    def zeros(self, forms: Sequence[Form], operands: Sequence[Any]) -> list[Any]:
        """Return zeros of these forms, beside ``operands``, and computed from them as far as autograd is concerned."""
        raise NotImplementedError

    def clear(self, tensor: Any) -> None:
        """Set a plain tensor to zeros, outside of any graph."""
        tensor[...] = 0

    def overwrite(self, target: Any, value: Any) -> None:
        """Let a plain tensor have the values and the shape of another, as an operation in place would."""
        raise NotImplementedError

    def sealed(self, op: Op) -> AbstractContextManager[Any]:
        """Return a context in which ``op`` runs on private values, and leaves nothing that depends on them.

        Its random numbers come from a generator of its own, seeded by the system: nobody can relate them to others.
        """
        return nullcontext()

    def allow(
        self,
        function: Callable[..., Any],
        name: str | None = None,
        *,
        tier: Tier = "public",
        discloses: Discloses = "values",
        writes: Places = WRITES_ALL,
        reads_beyond: bool = True,
        partial: bool = True,
        random: bool = False,
        states_fact: bool = False,
        local: bool = False,
    ) -> Op:
        """Add ``function`` to the table under ``name``: it may then run wherever this table is used.

        What is left out is unknown, and unknown means refused on data that the sender may not see. To let it run there,
        say that it is reviewed and what it does; ``Facts`` explains each word::

            hook.attributes.allow(double, tier="reviewed", discloses="nothing", writes=frozenset(), reads_beyond=False)
        """
        name = name or f"{function.__module__}.{function.__qualname__}"
        if tier == "reviewed" and (discloses != "nothing" or writes is WRITES_ALL or reads_beyond):
            raise OperationNotAllowedError.reviewed_without_facts(name)
        facts = Facts(
            writes=writes,
            discloses=discloses,
            reads_beyond=reads_beyond,
            partial=partial,
            random=random,
            tier=tier,
            states_fact=states_fact,
            local=local,
        )
        op = describe_op(name, function, "function", describe=lambda _op: facts)
        self.ops.add(op)
        return op

    def tiers(self) -> dict[Tier, int]:
        """Count the operations of the table by tier."""
        counts = Counter(op.tier for op in self.ops)
        return {tier: counts[tier] for tier in ("reviewed", "public", "off")}

    @property
    def allowed_commands(self) -> frozenset[str]:
        """The names of all operations in the table."""
        return frozenset(self.ops.by_name)

    @property
    def native_commands(self) -> dict[str, str]:
        """Map each function's command name to the name of its original."""
        return {op.name: self.get_native_framework_name(op.name) for op in self.ops if op.spelling == "function"}

    def is_inplace_method(self, method_name: str) -> bool:
        """Say whether the method called ``method_name`` changes its tensor."""
        return method_name in self.inplace_methods

    @staticmethod
    def get_native_framework_name(attr: str) -> str:
        """Return the name of the original of a command.

        >>> FrameworkAttributes.get_native_framework_name("some.add")
        'some.native_add'
        """
        *path, last = attr.split(".")
        return ".".join([*path, f"native_{last}"])

    def _command_guard(self, command: str, get_native: bool = False) -> str:
        """Return ``command``, or the name of its original, if it may run; refuse it otherwise."""
        self.ops.named(command)
        return self.get_native_framework_name(command) if get_native else command

    def _is_command_valid_guard(self, command: str) -> bool:
        """Say whether ``command`` may run."""
        return command in self.ops
