"""ToyAttributes: the op table of toy, and what else the core must know about toy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import toy

from syft_core.hook.attributes import FrameworkAttributes, Op, describe_op, words
from syft_core.hook.facts import WRITES_FIRST, Facts
from syft_core.hook.forms import Form, Inferred, form
from syft_core.hook.operators import INPLACE_OPERATORS
from syft_core.hook.rules import leaves, map_leaves
from syft_toy.wrapper import Wrapper

REVEALS = words("item tolist __bool__ __int__ __float__ __index__ __contains__")
"""Operations that return numbers."""
LOCAL = words("map zip")
"""Operations that run the caller's code."""
PARTIAL = words("exp log sigmoid div")
"""Operations that fail on some values."""
FORM_DEPENDS = words("pow")
"""Operations whose result type depends on values: ``2 ** -1`` is a float."""
STATES_FACT = words("shape dtype __len__ summary")
"""Operations whose result contains a plain number or a type that follows from the forms of their operands."""


class ToyAttributes(FrameworkAttributes):
    """What the core must know about toy."""

    ALIAS = "toy"
    exclude = words("save __init__ __repr__ __iter__")
    inplace_methods = frozenset({"add_", "__setitem__", *INPLACE_OPERATORS})
    global_state_change_methods = frozenset({"seed"})
    worker_methods = ("zeros", "arange")
    result_types: ClassVar[Mapping[str, type]] = {kind.__name__: kind for kind in (toy.Max, toy.MinMax)}
    facts_of_form = words("shape dtype __len__")

    def __init__(self, framework: Any) -> None:
        super().__init__(framework, Wrapper)

    # --- the op table

    def _collect(self) -> Iterator[Op]:
        for function in toy.overridable:
            if function.__name__ not in self.exclude:
                yield self._describe(f"{function.__module__}.{function.__name__}", function, "function")
        for name, attribute in vars(toy.Vector).items():
            if isinstance(attribute, property):
                yield self._describe(f"toy.Vector.{name}.__get__", attribute.fget, "getter")
            elif callable(attribute) and name not in self.exclude and name not in [*dir(object), "_positions"]:
                yield self._describe(f"toy.Vector.{name}", attribute, "method")
        for name in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"):
            yield self._describe(f"toy.Vector.{name}", getattr(toy.Vector, name), "method")

    def _describe(self, name: str, function: Any, spelling: Any) -> Op:
        inplace = name.rpartition(".")[2] in self.inplace_methods
        return describe_op(name, function, spelling, inplace=inplace, describe=self._facts)

    def _facts(self, op: Op) -> Facts:
        """Return what the core must know before an operation runs on data that a peer may not see."""
        writes = WRITES_FIRST if op.inplace else frozenset()
        if op.attr in REVEALS or op.attr in LOCAL:
            return Facts(writes=writes, reveals=op.attr in REVEALS, local=op.attr in LOCAL, tier="off")
        if op.operation in FORM_DEPENDS:
            return Facts(writes=writes, discloses="form", reads_beyond=False)
        return Facts(
            writes=writes,
            discloses="nothing",
            form_depends=_is_chosen_by_vector if op.attr in ("__getitem__", "__setitem__") else None,
            reads_beyond=False,
            partial=op.operation in PARTIAL,
            tier="reviewed",
            states_fact=op.attr in STATES_FACT,
        )

    def _methods(self) -> dict[str, Op]:
        return {op.attr: op for op in self.ops if op.name.startswith("toy.Vector.")}

    # --- memory

    def copy(self, tensor: Any) -> Any:
        return tensor.copy()

    def replace_in_place(self, tensor: Any, other: Any) -> None:
        tensor.child = other.child if isinstance(other, Wrapper) else other

    def memory_of(self, tensor: Any) -> frozenset[int]:
        """Return the identity of a vector: no two share memory."""
        return frozenset((id(tensor),))

    def overwrite(self, target: Any, value: Any) -> None:
        target[:] = value

    # --- forms

    def form_of(self, tensor: Any) -> Form:
        return form(tensor.shape, (1,), tensor.dtype)

    def form_of_copy(self, tensor: Any) -> Form:
        return self.form_of(tensor)

    def state(self) -> Any:
        return ()

    def shadow(self, argument: Any, device: Any) -> Any:
        return _to_ones(argument)

    def zeros(self, forms: Sequence[Form], operands: Sequence[Any]) -> list[Any]:
        return [toy.zeros(known.shape, known.dtype) for known in forms]

    def infer(self, op: Op, args: Any, kwargs: Any) -> Inferred | None:
        """Run a reviewed operation on ones: the form of its result does not depend on values."""
        if op.tier != "reviewed" or op.disclosure(args, kwargs) != "nothing":
            return None
        ones = map_leaves(_to_ones, (args, kwargs))
        try:
            result = op.run(*ones[0], **ones[1])
        except (TypeError, ValueError, IndexError):
            return None
        pairs = zip(leaves((args, kwargs)), leaves(ones), strict=True)
        after = [self.form_of(one) for leaf, one in pairs if type(leaf) is Form]
        return Inferred(
            map_leaves(lambda leaf: self.form_of(leaf) if type(leaf) is toy.Vector else leaf, result), after
        )

    def answer_from_form(self, op: Op, form: Form, args: tuple[Any, ...]) -> Any:
        return op.run(_to_ones(form), *args)


def _to_ones(leaf: Any) -> Any:
    return toy.Vector([leaf.dtype(1)] * leaf.shape[0]) if type(leaf) is Form else leaf


def _is_chosen_by_vector(args: Sequence[Any], _kwargs: Mapping[str, Any]) -> bool:
    """Return whether an index contains a vector, so that the length of the result depends on values."""
    return any(hasattr(leaf, "shape") for leaf in leaves(args[1]))
