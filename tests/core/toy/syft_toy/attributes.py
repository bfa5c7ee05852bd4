"""ToyAttributes: which operations of toy may run on a chain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import toy

from syft_core.hook.attributes import INPLACE_OPERATORS, FrameworkAttributes, Op, describe_op
from syft_core.hook.facts import WRITES_FIRST, Facts
from syft_core.hook.forms import Form, form
from syft_toy.wrapper import Wrapper

REVEALS = frozenset({"item", "tolist", "__bool__", "__int__", "__float__", "__index__", "__contains__"})
LOCAL = frozenset({"map", "zip"})


class ToyAttributes(FrameworkAttributes):
    """What the core must know of toy."""

    ALIAS = "toy"
    exclude = frozenset({"save", "__init__", "__repr__", "__iter__"})
    inplace_methods = frozenset({"add_", "__setitem__", *INPLACE_OPERATORS})
    global_state_change_methods = frozenset({"seed"})

    def __init__(self, framework: Any) -> None:
        super().__init__(framework, Wrapper)

    def copy(self, tensor: Any) -> Any:
        return tensor.copy()

    def _collect(self) -> Iterator[Op]:
        for function in toy.overridable:
            if function.__name__ not in self.exclude:
                name = f"{function.__module__}.{function.__name__}"
                yield describe_op(name, function, "function", describe=_facts)
        for name, attribute in vars(toy.Vector).items():
            if isinstance(attribute, property):
                yield describe_op(f"toy.Vector.{name}.__get__", attribute.fget, "getter", describe=_facts)
            elif callable(attribute) and name not in self.exclude and name not in [*dir(object), "_positions"]:
                yield self._method(name, attribute)
        for name in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"):
            yield self._method(name, getattr(toy.Vector, name))

    def _method(self, name: str, function: Any) -> Op:
        inplace = name in self.inplace_methods
        return describe_op(f"toy.Vector.{name}", function, "method", inplace=inplace, describe=_facts)

    def memory_of(self, tensor: Any) -> frozenset[int]:
        return frozenset((id(tensor),))

    def form_of(self, tensor: Any) -> Form:
        return form((len(tensor),), None, tensor.dtype)

    def shadow(self, argument: Any, device: Any) -> Any:
        return self.zeros([argument], [])[0] if type(argument) is Form else argument

    def zeros(self, forms: Sequence[Form], operands: Sequence[Any]) -> list[Any]:
        return [toy.Vector([known.dtype(0)] * known.shape[0]) for known in forms]

    def overwrite(self, target: Any, value: Any) -> None:
        target[:] = value

    def _methods(self) -> dict[str, Op]:
        return {op.attr: op for op in self.ops if op.name.startswith("toy.Vector.")}


def _facts(op: Op) -> Facts:
    """Return the facts that the core needs to run an operation on data that a peer may not see."""
    if op.attr in REVEALS or op.attr in LOCAL:
        return Facts(writes=frozenset(), reveals=op.attr in REVEALS, local=op.attr in LOCAL, tier="off")
    return Facts(
        writes=WRITES_FIRST if op.inplace else frozenset(),
        discloses="nothing",
        reads_beyond=False,
        partial=False,
        tier="reviewed",
        states_fact=op.spelling == "getter" or op.attr == "__len__",
    )
