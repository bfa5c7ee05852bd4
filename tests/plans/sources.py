"""Values that a function can read, each with a function that reads it and one that changes it."""

from __future__ import annotations

import array
import operator
import types
from argparse import Namespace
from collections import ChainMap
from collections.abc import Callable
from contextvars import ContextVar
from decimal import Decimal
from functools import partial
from typing import Any, ClassVar

import pytest

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")

Source = tuple[Callable[[], Any], Callable[[], Any]]
"""A function that returns a number or a tensor, and one that changes it."""

CONTEXT: ContextVar[float] = ContextVar("factor", default=1.0)


class Descriptor:
    """A descriptor that keeps its value elsewhere."""

    def __get__(self, thing: Any, _cls: Any = None) -> Any:
        return self if thing is None else thing._hidden

    def __set__(self, thing: Any, value: float) -> None:
        thing._hidden = value


class Factor:
    """A number with an operator."""

    def __init__(self) -> None:
        self.number = 1.0

    def __rmul__(self, other: Any) -> Any:
        return other * self.number


class Dynamic:
    """An object whose attributes are the items of a dict."""

    def __init__(self) -> None:
        self._items = {"factor": 1.0}

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_items"][name]
        except KeyError:
            raise AttributeError(name) from None


class Holder:
    """An object with attributes of all kinds."""

    described = Descriptor()

    def __init__(self) -> None:
        self.number, self.described, self.exact, self.part = 1.0, 1.0, Decimal(1), slice(0, 3)
        self.items, self.function = numpy.ones(1), abs
        self.scalar = numpy.float32(1)


def compute(value: float = 1.0) -> float:
    """Return a value, or an attribute of this function."""
    return value * compute.factor  # type: ignore[attr-defined]  # set below


def make_sources() -> dict[str, Source]:
    """Return new sources, so that a test may change them."""

    class Registry:
        factor = 1.0
        mask = torch.ones(3)
        table: ClassVar[Any] = {"factor": 1.0}

        @classmethod
        def find(cls) -> float:
            return cls.factor

        @staticmethod
        def look_up() -> float:
            return Registry.table["factor"]  # type: ignore[no-any-return]  # a dict

    compute.factor = 1.0  # type: ignore[attr-defined]  # as programs do
    CONTEXT.set(1.0)
    holder, dynamic, factor = Holder(), Dynamic(), Factor()
    space = types.SimpleNamespace(options={"factors": [1.0]})
    module = types.ModuleType("settings")
    vars(module)["factor"] = 1.0
    call, chain, held = partial(compute, value=1.0), ChainMap({"factor": 1.0}), {"factor": 1.0}
    proxy, deep = types.MappingProxyType(held), {"a": {"b": {"c": {"d": {"e": 1.0}}}}}
    numbers, octets, options = array.array("d", [1.0]), bytearray([1]), Namespace(factors=[1.0])
    return {
        "class method": (Registry.find, lambda: setattr(Registry, "factor", 0.5)),
        "static method": (Registry.look_up, lambda: Registry.table.update(factor=0.5)),
        "attribute of a function": (compute, lambda: setattr(compute, "factor", 0.5)),
        "keyword of a partial function": (lambda: call(), lambda: call.keywords.update(value=0.5)),
        "namespace": (lambda: space.options["factors"][0], lambda: space.options.update(factors=[0.5])),
        "options of a program": (lambda: options.factors[0], lambda: options.factors.insert(0, 0.5)),
        "module": (lambda: module.factor, lambda: setattr(module, "factor", 0.5)),
        "chain of dicts": (lambda: chain["factor"], lambda: chain.update(factor=0.5)),
        "dict behind a proxy": (lambda: proxy["factor"], lambda: held.update(factor=0.5)),
        "five dicts": (lambda: deep["a"]["b"]["c"]["d"]["e"], lambda: deep["a"]["b"]["c"]["d"].update(e=0.5)),
        "array of Python": (lambda: numbers[0], lambda: numbers.insert(0, 0.5)),
        "bytes": (lambda: float(octets[0]), lambda: operator.setitem(octets, 0, 2)),
        "array of numpy": (lambda: float(holder.items[0]), lambda: holder.items.fill(0.5)),
        "number of numpy": (lambda: float(holder.scalar), lambda: setattr(holder, "scalar", numpy.float32(0.5))),
        "decimal number": (lambda: float(holder.exact), lambda: setattr(holder, "exact", Decimal("0.5"))),
        "slice": (lambda: len([1, 1, 1][holder.part]), lambda: setattr(holder, "part", slice(0, 2))),
        "function in an attribute": (lambda: holder.function(-1.0), lambda: setattr(holder, "function", float)),
        "descriptor": (lambda: holder.described, lambda: setattr(holder, "described", 0.5)),
        "operator of a class": (lambda: 1.0 * factor, lambda: setattr(factor, "number", 0.5)),
        "dynamic attribute": (lambda: dynamic.factor, lambda: dynamic._items.update(factor=0.5)),
        "attribute by its name": (lambda: getattr(holder, "num" + "ber"), lambda: setattr(holder, "number", 0.5)),
        "getter of an attribute": (lambda: operator.attrgetter("number")(holder), lambda: setattr(holder, "number", 2)),
        "context variable": (lambda: CONTEXT.get(), lambda: CONTEXT.set(0.5)),
    }


SOURCES = list(make_sources())
