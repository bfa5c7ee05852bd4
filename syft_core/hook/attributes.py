"""The op table: which operations of a framework may run on a chain, indexed by function and by name."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar, cast, overload

from syft_core.exceptions import OperationNotAllowedError, PluginError
from syft_core.hook.autograd import Autograd
from syft_core.hook.facts import WRITES_ALL, WRITES_FIRST, Discloses, Facts, Option, Places, Tier
from syft_core.hook.forms import Form, Inferred
from syft_core.hook.ranks import is_numeric
from syft_core.hook.rules import leaves
from syft_core.values import Args, Function, Kwargs, Nested, Tensor

if TYPE_CHECKING:
    from syft_core.location import Location

if TYPE_CHECKING:
    from syft_core.crypto.kernels import Kernels

T = TypeVar("T")
Spelling = Literal["function", "method", "getter", "setter"]
_ACCESSORS = ("getter", "setter")

# Python's operators, mapped to the operations they stand for.
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
# An explicit list of the in-place operators: `__index__`, `__int__` and `__invert__` also start with `__i`.
INPLACE_OPERATORS: Mapping[str, str] = {f"__i{name[2:]}": operation for name, operation in OPERATORS.items()}
REFLECTED_OPERATORS: Mapping[str, str] = {f"__r{name[2:]}": operation for name, operation in OPERATORS.items()}
# Other names that frameworks give these operations.
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
    """Return the words of ``text``, for writing lists of names.

    >>> sorted(words("add sub"))
    ['add', 'sub']
    """
    return frozenset(text.split())


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
    """The function that the framework passes to its protocol."""
    spelling: Spelling
    operation: str
    run: Function
    """The function that computes it on plain tensors; usually ``func`` itself."""
    inplace: bool = False
    """Whether its name marks it as changing its first argument."""
    reflected: bool = False
    each: str | None = None
    """The operation that this one applies to every tensor of a list, if any."""
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
        """The facts about the operation."""
        return self.describe(self)

    @cached_property
    def only_computes(self) -> bool:
        """Whether it only writes to targets or computes results whose forms follow from those of its operands."""
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

    @cached_property
    def is_plain(self) -> bool:
        """Whether it only computes results or writes to targets, and may run on any data."""
        return self.only_computes and self.tier == "reviewed" and (self.inplace or not self.is_special)

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
        """Return whether a call only removes gradients."""
        return self.alters_autograd and self.spelling == "setter" and len(args) == 2 and args[1] is None

    @cached_property
    def attr(self) -> str:
        """The attribute name on a tensor or module: ``add_`` for ``torch.Tensor.add_``.

        For an operation on lists, the name of the operation, so that it is not mistaken for the one on a single tensor.
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

    The facts are given as ``facts``, or ``describe`` returns them when they are needed.
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
        """Add ``op``. A function may have several names, but a name only one function."""
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


def _creates(op: Op) -> Facts:
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


class FrameworkAttributes:
    """What the core must know about one framework: its op table, its wrapper, and how its tensors work."""

    ALIAS: str
    """The framework's import name, the prefix of every command name."""
    exclude: frozenset[str] = frozenset()
    """Names that are never operations on a chain."""
    inplace_methods: frozenset[str] = frozenset(INPLACE_OPERATORS)
    """The names of all methods that change their tensor."""
    worker_methods: tuple[str, ...] = ()
    """The functions that a client may call to create tensors on a worker."""
    result_types: ClassVar[Mapping[str, type]] = {}
    """The named tuples that operations return, by their name on the wire."""
    facts_of_form: frozenset[str] = frozenset()
    """The operations that can be answered from a form: ``shape``, ``size`` …"""
    kernels: ClassVar[Kernels | None] = None
    """The integer arithmetic that protocols on shares need, if the backend has it."""
    structural: ClassVar[Mapping[str, Function | None]] = {}
    """The operations that only move or add elements, so that they also apply to encodings and shares. With a function,
    it is called instead of the operation, which may not have a spelling that a worker accepts."""
    convolve: ClassVar[Function | None] = None
    """A convolution of images with filters that are pointers, if a worker can compute it as one operation."""
    autograd: ClassVar[Autograd | None] = None
    """The framework's names for autograd, if it has autograd."""
    generators: tuple[type, ...] = ()
    """The types of random number generators that are arguments of operations."""
    gradient: str = ""
    """The attribute that holds the gradient of a tensor, if the framework has autograd; a pointer may refer to it."""
    global_state_change_methods: frozenset[str] = frozenset()
    """Functions that change global state of the framework; never in the table."""
    is_attached: bool = False
    """Whether the framework is hooked with this op table."""

    def __init__(
        self, framework: object, wrapper: Callable[[Any], Any], numeric_wrapper: Callable[[Any], Any] | None = None
    ) -> None:
        self.framework = framework
        if self.autograd is not None:
            self.gradient = self.autograd.gradient
        self._wrapper = wrapper
        self._numeric_wrapper = numeric_wrapper
        self.ops = OpTable(self.ALIAS, self._collect())
        self.methods: dict[str, Op] = self._methods()
        self.creators: dict[str, Op] = {
            name: describe_op(f"{self.ALIAS}.{name}", self._creator(name), "function", describe=_creates)
            for name in self.worker_methods
        }
        """The operations that create tensors on a worker from plain arguments."""

    def _collect(self) -> Iterable[Op]:
        """Yield the framework's operations."""
        raise NotImplementedError

    def _methods(self) -> dict[str, Op]:
        """Map attribute names of a tensor to operations."""
        raise NotImplementedError

    def _creator(self, name: str) -> Function:
        """Return the function called ``name`` that creates tensors."""
        function: Function = getattr(self.framework, name)
        return function

    def wrapper(self, child: object) -> Tensor:
        """Wrap ``child``, in the numeric wrapper if a layer encodes the values."""
        if not is_numeric(child):
            return self._wrapper(child)
        if self._numeric_wrapper is None:
            raise OperationNotAllowedError.no_numeric_wrapper(self.ALIAS)
        return self._numeric_wrapper(child)

    def command(self, name: str) -> Op:
        """Return the operation that a worker runs for the command ``name``; raise if there is none."""
        op = self.ops.by_name.get(name)
        if op is not None:
            return op
        prefix, _, last = name.rpartition(".")
        return self.creators[last] if prefix == self.ALIAS and last in self.creators else self.ops.look_up(name)

    def method(self, name: str) -> Op:
        """Return the operation of a tensor's attribute; raise if it is not in the table."""
        op = self.methods.get(name)
        if op is None:
            raise self.ops.refuse(f"{self.ALIAS}.{name}")
        return op

    def copy(self, tensor: Tensor) -> Tensor:
        """Return a plain tensor with a copy of the data."""
        raise NotImplementedError

    def alias(self, tensor: Tensor) -> Tensor:
        """Return another plain tensor with the same memory and autograd history."""
        return tensor

    def transfer(self, tensor: Tensor) -> Tensor:
        """Return a copy of a plain tensor for another worker, without autograd history."""
        return self.copy(tensor)

    def convert(self, value: Any) -> Any:
        """Return an array or a number of another library as the framework's functions read it."""
        return value

    def replace_in_place(self, tensor: Tensor, other: object) -> None:
        """Replace the contents of ``tensor`` with those of ``other``, keeping the Python object."""
        raise NotImplementedError

    def expand(self, tensor: Tensor, shape: tuple[int, ...]) -> Any:
        """Repeat a tensor along axes of length one, to a shape."""
        raise NotImplementedError

    def permute(self, tensor: Tensor, axes: Sequence[int]) -> Any:
        """Reorder the axes of a tensor."""
        raise NotImplementedError

    def join(self, tensors: Sequence[Tensor], axis: int) -> Tensor:
        """Join tensors along an axis."""
        raise NotImplementedError

    def fact(self, op: Op, form: Form) -> Any:
        """Return a fact about a tensor of this form, such as its shape; ``op`` is one of ``facts_of_form``."""
        raise NotImplementedError

    def real_dtype(self, tensor: Tensor) -> Any:
        """Return the dtype of the real numbers of a tensor: its own, or the default for integers."""
        raise NotImplementedError

    def memory_of(self, tensor: Tensor) -> frozenset[int] | None:
        """Identify the memory that a plain tensor uses; tensors that share memory have an element in common.

        Return None if that is unknown: a worker then refuses to compute on private tensors.
        """
        return None

    def make_resizable(self, tensors: Sequence[Tensor]) -> None:
        """Move plain tensors that share memory to memory that can be resized; received memory often cannot."""

    def clear_growth(self, tensor: Tensor) -> AbstractContextManager[None]:
        """Return a context that sets to zero what a block adds to the memory of a plain tensor, also if it fails."""
        return nullcontext()

    def restore_forms(self, tensors: Sequence[Tensor]) -> AbstractContextManager[None]:
        """Return a context that gives plain tensors their former sizes if a block fails after it has changed them."""
        return nullcontext()

    def is_partial_view(self, tensor: Tensor) -> bool:
        """Return whether a plain tensor is a view of part of a larger piece of memory."""
        return False

    def transfer_ownership(self, tensor: Tensor, references: int) -> Tensor:
        """Return the tensor that an in-process receiver may keep without a copy, or None if a copy is needed.

        The sender gives up ``tensor``; ``references`` is the number of other references to it.
        """
        return None

    def is_part_of_model(self, tensor: Tensor) -> bool:
        """Return whether a plain tensor is a parameter, which is sent with its model."""
        return False

    def detach(self, tensor: Tensor) -> Tensor:
        """Return a plain tensor outside of its autograd graph."""
        return tensor

    def is_shared(self, *tensors: Tensor) -> bool:
        """Return whether tensors with another owner (``owner_of``) may use the memory of one of these plain tensors."""
        return True

    owner_of: Callable[[Tensor], object] | None = None
    """Return the object that owns the memory of a plain tensor; None if tensors that share memory do not know it."""

    def modes(self) -> str | None:
        """Return the caller's settings that affect the result of an operation; they are sent with it."""
        return None

    def apply_modes(self, modes: str, args: object, kwargs: object) -> AbstractContextManager[Any]:
        """Return a context with the settings of another process; refuse those that cannot be set here."""
        return nullcontext()

    @staticmethod
    def isolate() -> AbstractContextManager[Any] | None:
        """Return a context without the caller's modes, so that they do not see the data of an in-process worker.

        Return None if there are no modes; this common case must be fast.
        """
        return None

    def place_new_tensors(self, location: Location) -> AbstractContextManager[Any]:
        """Return a context in which the framework creates new tensors at ``location``, if it supports that."""
        return nullcontext()

    def hold_state(
        self, objects: Sequence[object], location: Location, send: Callable[[Tensor], Tensor]
    ) -> AbstractContextManager[tuple[list[Tensor], Callable[[], dict[Any, Callable[[Tensor], None]]]]]:
        """Return a context in which the tensors of these objects lead to ``location``, where a plan is recorded.

        ``send`` returns a wrapper of a pointer there for each tensor. The context yields the tensors, and a function
        that finds the state which the objects have created meanwhile: a setter by the id of each pointer.
        """
        return nullcontext(([], dict))

    def form_of(self, tensor: Tensor) -> Form | None:
        """Return the form of a plain tensor, or None if a form does not describe it completely."""
        return None

    def form_of_copy(self, tensor: Tensor) -> Form | None:
        """Return the form of the copy that ``transfer`` returns, or None if it is not certain."""
        return None

    def warm_up(self) -> None:
        """Prepare what ``infer`` needs, and wait until it is ready."""

    def state(self) -> Any:
        """Return the settings that affect the form of a result, or None if forms cannot be inferred."""
        return None

    def infer(self, op: Op, args: object, kwargs: object) -> Inferred | None:
        """Infer the result of ``op`` for arguments with forms in place of tensors, and the forms after the call.

        Return None if they depend on values.
        """
        return None

    def infer_size(self, op: Op, args: object, kwargs: object) -> tuple[int, int] | None:
        """Infer how many bytes of new memory a call needs for its results, and how many tensors it returns.

        Arguments have forms in place of tensors, as for ``infer``. Return None if the size depends on values.
        """
        return None

    def bytes_of(self, tensor: Tensor) -> int:
        """Return how many bytes of memory a plain tensor keeps in use."""
        return int(tensor.nbytes)

    def form_of_gradient(self, known: Form) -> Form | None:
        """Return the form of the gradient of a leaf of this form, or None if it is not certain."""
        return None

    def parse_backward(self, op: Op, args: Args, kwargs: Kwargs) -> tuple[Any, Any, bool]:
        """Return the roots of a backward pass, the inputs it is restricted to, and whether it creates no graph.

        Only for operations that accumulate gradients. If the inputs are None, all leaves get gradients.
        """
        raise NotImplementedError

    def answer_from_form(self, op: Op, form: Form, args: Args) -> Nested:
        """Return the result of ``op``, one of ``facts_of_form``, for any tensor of this form."""
        raise NotImplementedError

    def shadow(self, argument: object, device: object) -> Tensor:
        """Replace an argument for a call without data, which finds the form of the result.

        Replace a ``Form`` with a plain tensor of that form that has no values, or public ones; replace ``device`` with
        the device of such tensors; return anything else unchanged. Without this method a worker refuses to compute on
        private tensors.
        """
        raise NotImplementedError("the backend has no shadows")

    def needs_data(self, error: Exception) -> bool:
        """Return whether a call failed only because shadows have no values."""
        return isinstance(error, NotImplementedError)

    def zeros(self, forms: Sequence[Form], operands: Sequence[Tensor]) -> list[Any]:
        """Return zeros of these forms on the device of ``operands``; for autograd, they depend on the operands."""
        raise NotImplementedError

    def clear(self, tensor: Tensor) -> None:
        """Set a plain tensor to zeros, outside of autograd."""
        tensor[...] = 0

    def overwrite(self, target: Tensor, value: object) -> None:
        """Copy the values and the shape of a plain tensor into another, like an in-place operation."""
        raise NotImplementedError

    def note_write(self, tensor: Tensor) -> None:
        """Make backward passes fail that need the current values of a plain tensor, which are about to change."""

    def protect_rng(self, op: Op) -> AbstractContextManager[Any]:
        """Return a context in which ``op`` draws random numbers from a separate generator, seeded by the system.

        So a client that computes on private values cannot predict the numbers, nor learn from later ones.
        """
        return nullcontext()

    def allow(
        self,
        function: Function,
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
        """Add ``function`` to the table as ``name``, so that it may run wherever this table is used.

        A fact that is left out is unknown, and the function is refused on data that the sender may not see. To allow it
        there, mark it as reviewed and describe it; ``Facts`` documents each fact::

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
        """Map each function's command name to the name of the native function."""
        return {op.name: self.get_native_framework_name(op.name) for op in self.ops if op.spelling == "function"}

    def is_inplace_method(self, method_name: str) -> bool:
        """Return whether the method ``method_name`` changes its tensor."""
        return method_name in self.inplace_methods

    @staticmethod
    def get_native_framework_name(attr: str) -> str:
        """Return the name of the native function of a command.

        >>> FrameworkAttributes.get_native_framework_name("some.add")
        'some.native_add'
        """
        *path, last = attr.split(".")
        return ".".join([*path, f"native_{last}"])

    def _command_guard(self, command: str, get_native: bool = False) -> str:
        """Return ``command``, or its native name; raise if it is not in the table."""
        self.ops.look_up(command)
        return self.get_native_framework_name(command) if get_native else command

    def _is_command_valid_guard(self, command: str) -> bool:
        """Return whether ``command`` is in the table."""
        return command in self.ops
