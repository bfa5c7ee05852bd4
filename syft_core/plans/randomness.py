"""Detect whether a recorded function draws random numbers that a plan could not draw again."""

from __future__ import annotations

import dis
import inspect
import random
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from syft_core.plans.capture import find_codes, find_own_classes, find_variables, is_of_library

_ENTROPY = frozenset({"secrets", "uuid"})
"""Modules that take numbers from the system, without a state to compare."""

_SEEDING = frozenset({"manual_seed", "set_rng_state", "fork_rng"})
"""Functions that set or restore the state of a framework's generator, which a plan only draws from."""

_UNSEEDED = frozenset({
    "Random", "SystemRandom", "default_rng", "RandomState", "SeedSequence",
    "MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64",
})  # fmt: skip
"""Constructors of generators that the system seeds if no seed is given."""


class Generators:
    """The random number generators of Python and numpy that a function can reach; those of frameworks are recorded."""

    def __init__(self, objects: Sequence[object]) -> None:
        self._found: list[tuple[str, object]] = [("Python's `random`", random)]
        for name, module in list(sys.modules.items()):
            if name.endswith(".random") and callable(getattr(module, "get_state", None)):
                self._found.append((f"`{name}`", module))
        for thing in (*objects, *_find_in_classes(objects), *_find_hidden(objects)):
            if isinstance(thing, random.Random) or _is_of_numpy(thing) or _is_legacy(thing):
                self._found.append((f"a {type(thing).__name__}", thing))
        self._before = self._read()
        self._entropy = next(filter(None, map(_find_entropy, objects)), None)

    def find_used(self) -> str | None:
        """Return the name of a generator from which the function drew, or may have drawn."""
        pairs = zip(self._found, self._before, self._read(), strict=True)
        return next((name for (name, _), before, now in pairs if before != now), self._entropy)

    def _read(self) -> list[object]:
        return [_read_state(found) for _, found in self._found]


def _is_of_numpy(thing: object) -> bool:
    return hasattr(type(thing), "bit_generator") or hasattr(type(thing), "random_raw")


def _find_hidden(objects: Sequence[object]) -> Iterator[object]:
    """Yield generators whose methods are named by functions, and the variables of started generator functions."""
    functions = [thing for thing in objects if isinstance(thing, FunctionType) and not is_of_library(thing)]
    values = [value for function in functions for _, value in find_variables(function)]
    values += [value for function in functions for value in function.__defaults__ or ()]
    for thing in (*objects, *values):
        parts = (*thing.args, thing.func) if isinstance(thing, partial) else (thing,)
        yield from [part.__self__ for part in parts if isinstance(part, BuiltinFunctionType)]
        if inspect.isgenerator(thing) and thing.gi_frame is not None:
            yield from thing.gi_frame.f_locals.values()


def _find_in_classes(objects: Sequence[object]) -> Iterator[object]:
    functions = [thing for thing in objects if isinstance(thing, FunctionType) and not is_of_library(thing)]
    named = [value for function in functions for _, value in find_variables(function) if isinstance(value, type)]
    for cls in dict.fromkeys([part for kind in (*named, *map(type, objects)) for part in find_own_classes(kind)]):
        yield from vars(cls).values()


def _is_legacy(thing: object) -> bool:
    cls = type(thing)
    return not isinstance(thing, ModuleType) and hasattr(cls, "get_state") and hasattr(cls, "set_state")


def _read_state(generator: Any) -> object:
    """Return the state of a generator; one without a state, such as ``SystemRandom``, never compares equal."""
    read = getattr(generator, "getstate", None) or getattr(generator, "get_state", None)
    try:
        return _to_comparable(getattr(generator, "bit_generator", generator).state if read is None else read())
    except NotImplementedError:
        return random.SystemRandom().randbytes(16)


def _to_comparable(state: Any) -> object:
    if isinstance(state, dict):
        return {name: _to_comparable(part) for name, part in state.items()}
    if isinstance(state, list | tuple):
        return [_to_comparable(part) for part in state]
    try:
        return bytes(memoryview(state))
    except TypeError:
        return state.tolist() if hasattr(state, "tolist") else state


def _find_entropy(thing: object) -> str | None:
    if not isinstance(thing, FunctionType) or is_of_library(thing):
        return None
    for _, value in find_variables(thing):
        named = isinstance(value, ModuleType | BuiltinFunctionType)
        name = str(value.__name__ if named else getattr(value, "__module__", ""))  # type: ignore[attr-defined]  # checked
        for source in ("urandom", "getrandom"):
            if name == source or (name in ("os", "posix") and source in thing.__code__.co_names):
                return f"`os.{source}`"
        if name in _ENTROPY and (named or callable(value)):
            return f"`{name}`"
    names = {name for part in find_codes(thing.__code__) for name in part.co_names}
    if seeding := names & _SEEDING:
        return f"a generator that it sets with `{min(seeding)}`"
    return next((f"`{name}()`" for name in _find_calls_without_arguments(thing.__code__) if name in _UNSEEDED), None)


def _find_calls_without_arguments(code: CodeType) -> Iterator[str]:
    for part in find_codes(code):
        steps = [step for step in dis.get_instructions(part) if not _is_detail_of_call(step)]
        for name, step, following in zip([None, *steps], steps, steps[1:], strict=False):
            if following.opname.startswith("CALL"):
                if following.arg == 1 and step.opname == "LOAD_CONST" and step.argval is None and name is not None:
                    yield str(name.argval)
                elif following.arg == 0:
                    yield str(step.argval)


def _is_detail_of_call(step: dis.Instruction) -> bool:
    """Return whether an instruction is neither a function nor an argument; names of arguments are a constant."""
    is_names = step.opname == "LOAD_CONST" and type(step.argval) is tuple and all(type(n) is str for n in step.argval)
    return is_names or step.opname in ("PRECALL", "PUSH_NULL", "CACHE", "KW_NAMES")
