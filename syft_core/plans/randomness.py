"""Find out whether a recorded function draws random numbers that a plan could not draw again."""

from __future__ import annotations

import dis
import random
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from syft_core.plans.capture import find_codes, find_own_classes, find_variables, is_of_library

_ENTROPY = frozenset({"secrets", "uuid"})
"""Modules whose numbers come from the system, without a state that could be compared."""

_UNSEEDED = frozenset({"Random", "SystemRandom", "default_rng", "RandomState", "SeedSequence"})
"""What makes a generator that is seeded by the system if it is called without a seed."""


class Generators:
    """The random number generators of Python and numpy that a function can reach; those of frameworks are recorded."""

    def __init__(self, objects: Sequence[object]) -> None:
        self._found: dict[str, Any] = {"Python's `random`": random}
        for name, module in list(sys.modules.items()):
            if name.endswith(".random") and callable(getattr(module, "get_state", None)):
                self._found[f"`{name}`"] = module
        for thing in (*objects, *_find_in_classes(objects)):
            if isinstance(thing, random.Random) or hasattr(type(thing), "bit_generator") or _is_legacy(thing):
                self._found[f"a {type(thing).__name__}"] = thing
        self._before = self._read()
        self._entropy = next(filter(None, map(_find_entropy, objects)), None)

    def find_used(self) -> str | None:
        """Return the name of a generator from which the function has drawn, or may have."""
        now = self._read()
        return next((name for name in self._found if self._before[name] != now[name]), self._entropy)

    def _read(self) -> dict[str, object]:
        return {name: _read_state(found) for name, found in self._found.items()}


def _find_in_classes(objects: Sequence[object]) -> Iterator[object]:
    """Yield the attributes of the classes that functions name, and of the classes of objects."""
    functions = [thing for thing in objects if isinstance(thing, FunctionType) and not is_of_library(thing)]
    named = [value for function in functions for _, value in find_variables(function) if isinstance(value, type)]
    for cls in dict.fromkeys([part for kind in (*named, *map(type, objects)) for part in find_own_classes(kind)]):
        yield from vars(cls).values()


def _is_legacy(thing: object) -> bool:
    """Return whether an object is a generator with a state that can be read and set, in the manner of numpy."""
    cls = type(thing)
    return not isinstance(thing, ModuleType) and hasattr(cls, "get_state") and hasattr(cls, "set_state")


def _read_state(generator: Any) -> object:
    """Return the state of a generator; one without a state, such as ``SystemRandom``, never has the same."""
    read = getattr(generator, "getstate", None) or getattr(generator, "get_state", None)
    try:
        return _to_comparable(getattr(generator, "bit_generator", generator).state if read is None else read())
    except NotImplementedError:
        return random.SystemRandom().randbytes(16)


def _to_comparable(state: Any) -> object:
    """Return the state of a generator as values that can be compared with ``==``, arrays as bytes."""
    if isinstance(state, dict):
        return {name: _to_comparable(part) for name, part in state.items()}
    if isinstance(state, list | tuple):
        return [_to_comparable(part) for part in state]
    try:
        return bytes(memoryview(state))
    except TypeError:
        return state


def _find_entropy(thing: object) -> str | None:
    """Return the source of the system's random numbers that a function of the user names."""
    if not isinstance(thing, FunctionType) or is_of_library(thing):
        return None
    for _, value in find_variables(thing):
        named = isinstance(value, ModuleType | BuiltinFunctionType)
        name = str(value.__name__ if named else getattr(value, "__module__", ""))  # type: ignore[attr-defined]  # checked
        if name == "urandom" or (name in ("os", "posix") and "urandom" in thing.__code__.co_names):
            return "`os.urandom`"
        if name in _ENTROPY and (named or callable(value)):
            return f"`{name}`"
    return next((f"`{name}()`" for name in _find_calls_without_arguments(thing.__code__) if name in _UNSEEDED), None)


def _find_calls_without_arguments(code: CodeType) -> Iterator[str]:
    for part in find_codes(code):
        steps = [step for step in dis.get_instructions(part) if step.opname not in ("PRECALL", "PUSH_NULL", "CACHE")]
        for step, following in pairwise(steps):
            if following.opname.startswith("CALL") and following.arg == 0 and isinstance(step.argval, str):
                yield step.argval
