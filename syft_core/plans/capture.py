"""Find what a function refers to besides its arguments: the models, optimizers and tensors that a plan must contain."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any
from weakref import ReferenceType

from syft_core.hook.hook import is_library
from syft_core.hook.rules import leaves
from syft_core.values import Function

MAX_OBJECTS = 10_000
"""How many objects are looked at."""


def find_captured(function: Function, state: object = ()) -> list[Any]:
    """Return the objects that ``function`` can reach, and those of ``state``: closures, globals, attributes."""
    seen: dict[int, Any] = {}
    waiting = [function, *reversed(leaves(state))]
    while waiting and len(seen) < MAX_OBJECTS:
        thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, _SKIPPED):
            continue
        seen[id(thing)] = thing
        waiting += reversed(list(_find_parts(thing)))
    # A container that is returned would keep the weak references in it, for instance those of recurrent layers.
    return [thing for thing in seen.values() if not isinstance(thing, _CONTAINERS)]


_CONTAINERS = (dict, list, tuple, set, frozenset)
_SKIPPED = (type, ModuleType, BuiltinFunctionType, CodeType, str, bytes, int, float, complex, type(None), ReferenceType)


def _find_parts(thing: object) -> Iterator[Any]:
    if isinstance(thing, MethodType):
        yield from (thing.__self__, thing.__func__)
    elif isinstance(thing, FunctionType):
        if not is_library(thing.__module__):
            yield from _find_names(thing)
    elif isinstance(thing, dict):
        yield from thing.values()
    elif isinstance(thing, _CONTAINERS):
        yield from thing
    elif not (is_tensor_like(thing) or _is_part_of_library(thing)):
        yield from getattr(thing, "__dict__", {}).values()


def _is_part_of_library(thing: object) -> bool:
    """Return whether ``thing`` is a worker, a location or a hook, for instance that of a remote model.

    The tensors that they hold are not state of the function. A plan, which has a function of the user, is.
    """
    package = __name__.partition(".")[0]
    is_ours = any(base.__module__.partition(".")[0] == package for base in type(thing).__mro__)
    return is_ours and not hasattr(type(thing), "forward")


def is_tensor_like(thing: object) -> bool:
    """Return whether ``thing`` is a tensor or a chain, whose attributes are not searched."""
    return hasattr(type(thing), "shape")


def _find_names(function: FunctionType) -> Iterator[Any]:
    """Yield the values of closure variables, defaults, and globals that the code names."""
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # It has no value yet.
            yield cell.cell_contents
    yield from (function.__defaults__ or ())
    yield from (function.__kwdefaults__ or {}).values()
    names: set[str] = set()
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        names.update(code.co_names)
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    for name in names & function.__globals__.keys():
        yield function.__globals__[name]
