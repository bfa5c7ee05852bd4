"""Results on the wire: named tuples of a framework are sent by name, and looked up in the framework's table."""

from __future__ import annotations

from typing import Any

from syft_core.exceptions import SerdeError
from syft_core.hook.attributes import FrameworkAttributes
from syft_core.location import Party
from syft_core.messages import Named
from syft_core.values import Nested

_NOT_IMPLEMENTED = "NotImplemented"
"""The result of an operator that does not support the operand, as in ``p == None``."""


def to_named(result: Nested, framework: FrameworkAttributes | None) -> Nested:
    """Replace the named tuples in ``result`` by their names and items."""
    kind = type(result)
    if kind is list or kind is tuple:
        return kind([to_named(item, framework) for item in result])
    if result is NotImplemented:
        return Named("", _NOT_IMPLEMENTED, ())
    if framework is not None and kind.__name__ in framework.result_types:
        return Named(framework.ALIAS, kind.__name__, tuple([to_named(item, framework) for item in result]))
    return result


def from_named(result: Nested, party: Party) -> Nested:
    """Invert ``to_named``."""
    kind = type(result)
    if kind is list or kind is tuple:
        return kind([from_named(item, party) for item in result])
    if kind is not Named:
        return result
    if result.name == _NOT_IMPLEMENTED:
        return NotImplemented
    found: Any = party.attributes_of(result.framework).result_types.get(result.name)
    if found is None:
        raise SerdeError(f"cannot read a result: {result.framework} has no named tuple {result.name!r} here")
    items = [from_named(item, party) for item in result.items]
    return found(*items) if hasattr(found, "_fields") else found(items)
