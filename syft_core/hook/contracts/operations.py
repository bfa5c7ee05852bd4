"""The contract about the operations of a framework: its op table, its wrapper, and how it runs them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar

from syft_core.exceptions import OperationNotAllowedError
from syft_core.hook.autograd import Autograd
from syft_core.hook.facts import WRITES_ALL, Discloses, Facts, Places, Tier
from syft_core.hook.operators import INPLACE_OPERATORS
from syft_core.hook.ops import Op, OpTable, creates, describe_op
from syft_core.hook.ranks import is_numeric
from syft_core.values import Function, Tensor


class Operations:
    """The op table of one framework, its wrapper, and the settings that affect its operations."""

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
    autograd: ClassVar[Autograd | None] = None
    generators: tuple[type, ...] = ()
    gradient: str = ""
    """The attribute that holds the gradient of a tensor, if the framework has autograd; a pointer may refer to it."""
    global_state_change_methods: frozenset[str] = frozenset()
    """Functions that change the framework's global state; never in the table."""
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
            name: describe_op(f"{self.ALIAS}.{name}", self._creator(name), "function", describe=creates)
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
        """Return the operation with the wire name ``name``; raise if there is none."""
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

    def explain_read(self) -> str:
        """Return an alternative for framework code that is reading a remote value, or ""."""
        return ""

    def convert(self, value: Any) -> Any:
        """Convert an array or a number of another library as the framework's functions do."""
        return value

    def modes(self) -> str | None:
        """Return the caller's settings that affect the result of an operation; they are sent along."""
        return None

    def apply_modes(self, modes: str, args: object, kwargs: object) -> AbstractContextManager[Any]:
        """Return a context with the settings of another process; refuse settings that cannot be applied here."""
        return nullcontext()

    @staticmethod
    def isolate() -> AbstractContextManager[Any] | None:
        """Return a context without the caller's modes, which must not observe an in-process worker's data.

        Return None if there are no modes.
        """
        return None

    watchers: tuple[Callable[[], object], ...] = ()
    """Functions that return a true value while such modes are active; every operation calls them, so they are fast."""

    def count_threads(self) -> int | None:
        """Return the number of threads the framework computes with, or None if unknown; sums depend on it."""
        return None

    def protect_rng(self, op: Op) -> AbstractContextManager[Any]:
        """Return a context in which ``op`` draws random numbers from a separate generator, seeded by the system.

        A client that computes on private values can then neither predict the numbers nor learn from later ones.
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

        An omitted fact is unknown, and the function is refused on data that the sender may not see. To allow it there,
        mark it as reviewed and describe it; ``Facts`` documents each fact::

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
        """Map each function's command name to the name of its native function."""
        return {op.name: self.get_native_framework_name(op.name) for op in self.ops if op.spelling == "function"}

    def is_inplace_method(self, method_name: str) -> bool:
        """Return whether the method ``method_name`` changes its tensor."""
        return method_name in self.inplace_methods

    @staticmethod
    def get_native_framework_name(attr: str) -> str:
        """Return the name of the native function of a command.

        >>> Operations.get_native_framework_name("some.add")
        'some.native_add'
        """
        *path, last = attr.split(".")
        return ".".join([*path, f"native_{last}"])

    def _command_guard(self, command: str, get_native: bool = False) -> str:
        self.ops.look_up(command)
        return self.get_native_framework_name(command) if get_native else command

    def _is_command_valid_guard(self, command: str) -> bool:
        return command in self.ops
