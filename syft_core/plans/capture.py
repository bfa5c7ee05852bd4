"""Find the objects that a function refers to besides its arguments: models, optimizers and tensors of a plan."""

from __future__ import annotations

import dis
import operator
import os
import sys
from argparse import Namespace
from collections import ChainMap, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from contextvars import ContextVar
from functools import cached_property, lru_cache, partial
from itertools import chain, compress
from pathlib import Path
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
    SimpleNamespace,
)
from typing import Any
from weakref import ReferenceType

from syft_core.hook.dispatch import frameworks, frameworks_of_types
from syft_core.hook.hook import attached_hook, is_library
from syft_core.hook.hook_args import is_framework_tensor
from syft_core.hook.rules import leaves, resolve
from syft_core.packages import FEATURES
from syft_core.values import Function

MAX_OBJECTS = 10_000
"""The maximum number of objects to examine."""


def find_captured(function: Function, state: object = ()) -> list[Any]:
    """Return the objects that ``function`` and ``state`` can reach: closures, globals, attributes.

    A class contributes ``forward``, its operators, and everything whose name occurs in the code of other functions.
    """
    seen: dict[int, Any] = {}
    waiting = [function, *reversed(leaves(state))]
    while waiting and len(seen) < MAX_OBJECTS:
        while waiting and len(seen) < MAX_OBJECTS:
            thing = waiting.pop()
            if id(thing) in seen or _is_skipped(thing):
                continue
            seen[id(thing)] = thing
            waiting += reversed(list(_find_parts(thing)))
        names = find_names(seen.values())
        waiting = [part for thing in seen.values() for part in _find_named(thing, names) if id(part) not in seen]
    # Returning a container would keep its weak references alive, for instance those of recurrent layers.
    return [thing for thing in seen.values() if not isinstance(thing, _CONTAINERS)]


def find_names(things: Iterable[object]) -> set[str]:
    """Return all names in the code of the user's functions among ``things``."""
    codes = [thing.__code__ for thing in things if isinstance(thing, FunctionType) and not is_of_library(thing)]
    return {"forward", "__call__"}.union(*map(_find_names_in, codes))


def _find_named(thing: object, names: set[str]) -> list[Any]:
    """Return what the names mean in a module, in a class, or in the class of an object."""
    if isinstance(thing, ModuleType):
        found = [vars(thing)[name] for name in names & vars(thing).keys()]
    elif isinstance(thing, (FunctionType, MethodType, *_CONTAINERS)) or is_part_of_library(thing):
        return []
    else:
        held = [vars(cls) for cls in find_own_classes(thing)]
        found = [_unwrap(own[name]) for own in held for name in own if name in names or _is_operator(name)]
    return [part for part in found if not _is_skipped(part)]


def _unwrap(value: Any) -> Any:
    """Return the function of a property, of a class method or of a static method."""
    for name in ("fget", "__func__", "func"):
        if isinstance(value, property | classmethod | staticmethod | cached_property) and hasattr(value, name):
            return getattr(value, name)
    return value


def _is_operator(name: str) -> bool:
    """Return whether Python itself calls a method of this name, so that it does not occur in code."""
    return name.startswith("__") and name.endswith("__") and name not in _LIFE


_LIFE = frozenset({"__new__", "__init__", "__del__", "__repr__", "__str__"})
"""Methods that an object has before and after it is used."""
"""Methods that Python calls without naming them."""


def is_of_library(function: FunctionType) -> bool:
    """Return whether a function belongs to this library, to a hooked framework or to Python.

    Functions of Python reach far: a thread has the handler of its exceptions, and that has a whole test runner.
    """
    return is_library(function.__module__ or "") or _is_of_python(function.__code__.co_filename)


@lru_cache(maxsize=1_000)
def _is_of_python(file: str) -> bool:
    is_inside = file.startswith((f"{Path(os.__file__).parent}{os.sep}", "<frozen "))
    return is_inside and not _is_installed(file)


def _is_installed(file: str) -> bool:
    """Return whether a file is part of an installed package, which may be in any folder of the search path."""
    if "site-packages" in file or "dist-packages" in file:
        return True
    return any(folder and file.startswith(f"{folder}{os.sep}") and _has_packages(folder) for folder in sys.path)


@lru_cache(maxsize=1_000)
def _has_packages(folder: str) -> bool:
    return any(Path(folder).glob("*.dist-info"))


_CONTAINERS = (dict, list, tuple, set, frozenset, deque, MappingProxyType)
_SKIPPED = (ModuleType, BuiltinFunctionType, CodeType, str, bytes, int, float, complex, type(None), ReferenceType)


def _is_skipped(thing: object) -> bool:
    if isinstance(thing, type):
        return not find_own_classes(thing)
    return isinstance(thing, _SKIPPED) and not (isinstance(thing, ModuleType) and is_of_user(thing))


@lru_cache(maxsize=1_000)
def is_of_user(module: ModuleType) -> bool:
    """Return whether a module is part of the user's program: not of Python, of a framework, or installed."""
    package = module.__name__.partition(".")[0]
    place = str(getattr(module, "__file__", None) or "")
    return not (not place or _is_installed(place) or package in sys.stdlib_module_names or is_library(package))


def _find_parts(thing: object) -> Iterator[Any]:
    if isinstance(thing, MethodType):
        yield from (thing.__self__, thing.__func__)
    elif isinstance(thing, FunctionType):
        if not is_of_library(thing):
            yield from _find_values(thing)
            yield from vars(thing).values()
    elif isinstance(thing, partial):
        yield from (thing.func, *thing.args, *thing.keywords.values())
    elif isinstance(thing, dict | MappingProxyType):
        yield from thing.values()
    elif isinstance(thing, _CONTAINERS):
        yield from thing
    elif not (isinstance(thing, ModuleType | type) or is_tensor_like(thing) or is_part_of_library(thing)):
        yield from getattr(thing, "__dict__", {}).values()


def is_part_of_library(thing: object) -> bool:
    """Return whether ``thing`` is a worker, a location or a hook, such as a remote model refers to.

    Their tensors are not state of the function. Those of a plan, which contains a user's function, are.
    """
    is_ours = any(base.__module__.partition(".")[0] in FEATURES for base in type(thing).__mro__)
    return is_ours and not hasattr(type(thing), "forward")


def is_tensor_like(thing: object) -> bool:
    """Return whether ``thing`` is a tensor or a chain, whose attributes are not searched."""
    return hasattr(type(thing), "shape")


def _find_values(function: FunctionType) -> Iterator[object]:
    yield from (value for _, value in find_variables(function))
    yield from (function.__defaults__ or ())
    yield from (function.__kwdefaults__ or {}).values()


def find_variables(function: FunctionType) -> Iterator[tuple[str, object]]:
    """Yield the closure variables, and the globals that the code reads."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # It has no value yet.
            yield name, cell.cell_contents
    held = function.__globals__
    yield from ((name, held[name]) for name in find_globals(function.__code__) if name in held)


@lru_cache(maxsize=1_000)
def find_globals(code: CodeType) -> tuple[str, ...]:
    """Return the names of the globals that the code of a function reads."""
    steps = [step for part in find_codes(code) for step in dis.get_instructions(part)]
    return tuple(dict.fromkeys(step.argval for step in steps if step.opname in _READS_GLOBAL))


@lru_cache(maxsize=1_000)
def _find_names_in(code: CodeType) -> frozenset[str]:
    parts = find_codes(code)
    texts = [constant for part in parts for constant in part.co_consts if isinstance(constant, str)]
    named = [name for text in texts for name in text.split(".") if name.isidentifier()]  # as for ``getattr``
    return frozenset([*named, *[name for part in parts for name in part.co_names]])


def find_codes(code: CodeType) -> list[CodeType]:
    """Return the code of a function, and of the functions in it."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return [code, *[part for constant in inner for part in find_codes(constant)]]


_READS_GLOBAL = ("LOAD_GLOBAL", "LOAD_NAME")


# --- settings

CapturedSettings = dict[tuple[int, str], object]
"""Values by the identity of the object that has the setting, and the name of the setting."""


def find_settings(objects: Sequence[object], stateful: tuple[type, ...]) -> CapturedSettings:
    """Return the values, besides tensors, that the steps of a function depend on.

    These are the variables that functions read, including the contents of containers, and the attributes of
    ``stateful``
    objects: numbers, flags and texts, such as ``training`` of a module and ``lr`` of an optimizer, and the identities
    of their parts. For other objects, and for classes, only attributes whose names occur in the functions count.
    """
    found: CapturedSettings = {}
    names = find_names(objects)
    for thing in objects:
        if isinstance(thing, FunctionType):
            if not is_of_library(thing):
                for name, value in _find_values_by_name(thing):
                    found[id(thing), name] = _freeze(value)
                    if isinstance(value, type | ModuleType):
                        _add_named(value, names, found)
        elif isinstance(thing, stateful):
            _add_settings(thing, found)
            _add_named(thing, names, found)
        elif not (is_tensor_like(thing) or is_part_of_library(thing)):
            _add_named(thing, names, found)
    return found


def _find_values_by_name(function: FunctionType) -> list[tuple[str, object]]:
    defaults = ("defaults", function.__defaults__), ("defaults by name", function.__kwdefaults__)
    return [*find_variables(function), *defaults, *[(f".{name}", value) for name, value in vars(function).items()]]


def _add_named(thing: object, names: set[str], found: CapturedSettings) -> None:
    classes = find_own_classes(thing)
    for holder in classes:
        for name in names & vars(holder).keys():
            value = vars(holder)[name]
            value = getattr(thing, name, None) if isinstance(value, MemberDescriptorType) else value
            if not _is_state(value):
                found[id(thing), f"{holder.__name__}.{name}"] = _freeze(value)
    own = {} if isinstance(thing, type) else getattr(thing, "__dict__", {})
    is_own = bool(classes) or isinstance(thing, _NAMESPACES) or (isinstance(thing, ModuleType) and is_of_user(thing))
    for name in names & own.keys():
        if _is_setting(own[name]) or (is_own and not _is_state(own[name])):  # Libraries count and cache.
            found[id(thing), name] = _freeze(own[name])


def find_own_classes(thing: object) -> list[type]:
    """Return the classes of an object, or of a class, that belong neither to libraries nor to Python."""
    classes = thing.__mro__ if isinstance(thing, type) else type(thing).__mro__
    modules = [cls.__module__ for cls in classes]
    is_own = [not is_library(name) and name.partition(".")[0] not in sys.stdlib_module_names for name in modules]
    return list(compress(classes, is_own))


class Snapshot:
    """The values that ``find_settings`` reads, for a quick check that none has been replaced."""

    def __init__(self, objects: Sequence[object], stateful: tuple[type, ...]) -> None:
        self._functions = [thing for thing in objects if isinstance(thing, FunctionType) and not is_of_library(thing)]
        self._cells = [cell for function in self._functions for cell in function.__closure__ or ()]
        self._globals = [(f.__globals__, name) for f in self._functions for name in find_globals(f.__code__)]
        self._containers: list[Collection[object]] = []
        """The lists, and the keys and values of the dicts; later changes are visible in them."""
        self._slots: list[tuple[object, str]] = []
        names, classes = find_names(objects), [cls for thing in objects for cls in find_own_classes(thing)]
        for thing in objects:
            if not isinstance(thing, FunctionType | type):
                self._add_object(thing, names, stateful)
        for function in self._functions:
            self._add(vars(function), _DEPTH)
        for value in self._read_variables():
            if isinstance(value, _HOLDERS) and _is_kept(value):
                self._add(value, _DEPTH - 1)
            elif isinstance(value, type):
                classes += find_own_classes(value)
            elif isinstance(value, ModuleType):
                self._globals += [(vars(value), name) for name in sorted(names & vars(value).keys())]
        for cls in dict.fromkeys(classes):
            self._containers += (vars(cls).keys(), vars(cls).values())
            for value in [value for value in vars(cls).values() if isinstance(value, _HOLDERS)]:
                self._add(value, _DEPTH - 1)
        self._values = [*chain.from_iterable(self._containers), *self._read_variables()]
        contents = [(value, _read_content(value)) for value in self._values]
        self._contents = [(value, content) for value, content in contents if content is not None]

    def _add_object(self, thing: object, names: set[str], stateful: tuple[type, ...]) -> None:
        if isinstance(thing, ModuleType):
            self._globals += [(vars(thing), name) for name in sorted(names & vars(thing).keys())]
        elif isinstance(thing, partial):
            self._add(thing.keywords, _DEPTH)
        elif isinstance(thing, stateful) or not (is_tensor_like(thing) or is_part_of_library(thing)):
            self._add(getattr(thing, "__dict__", {}), _DEPTH)
            own = find_own_classes(thing)
            self._slots += [(thing, name) for cls in own for name in vars(cls).get("__slots__", ())]

    def is_current(self) -> bool:
        """Return whether all values are the same objects, with the same content."""
        variables = self._read_variables()
        if sum(map(len, self._containers)) + len(variables) != len(self._values):
            return False
        if not all(map(operator.is_, chain(chain.from_iterable(self._containers), variables), self._values)):
            return False
        return all(_read_content(value) == content for value, content in self._contents)

    def _read_variables(self) -> list[object]:
        read: list[object] = []
        for function in self._functions:
            read += (function.__code__, function.__defaults__, function.__kwdefaults__)
        for cell in self._cells:
            with suppress(ValueError):  # It has no value yet.
                read.append(cell.cell_contents)
        read += [held[name] for held, name in self._globals if name in held]
        return read + [getattr(thing, name, None) for thing, name in self._slots]

    def _add(self, container: Any, depth: int) -> None:
        is_mapping = isinstance(container, _MAPPINGS)
        parts = container.values() if is_mapping else container
        self._containers += (container.keys(), parts) if is_mapping else (parts,)
        for part in list(parts) if depth else ():
            if isinstance(part, dict) or (isinstance(part, _HOLDERS) and _is_kept(part)):
                self._add(part, depth - 1)


def _is_kept(parts: Collection[object]) -> bool:
    """Return whether a container may be kept; weak references, as in recurrent layers, must not be kept alive."""
    return len(parts) <= MAX_OBJECTS and not any(isinstance(part, ReferenceType) for part in parts)


_DEPTH = 8
"""How deeply settings are nested: attributes, parameter groups, their lists; files of options are nested most."""


def find_change(before: CapturedSettings, now: CapturedSettings) -> str | None:
    """Return the name of a setting that differs, if there is one."""
    if before == now:
        return None
    return next(name for key in before.keys() | now.keys() if before.get(key) != now.get(key) for name in key[1:])


def is_other_value(before: object, now: object) -> bool:
    """Return whether a number or a text in a setting differs, and not only the identity or the number of objects."""
    if not (type(before) is tuple and type(now) is tuple and len(before) == len(now)) or before == now:
        return False
    if len(now) == 2 and now[0] in _SETTINGS and before[0] in _SETTINGS:
        return True
    return any(map(is_other_value, before, now))


def _add_settings(thing: object, found: CapturedSettings) -> None:
    place = id(thing)
    for name, value in vars(thing).items():
        cls = type(value)
        if cls in _SETTINGS:
            if name[0] != "_" or not is_library(type(thing).__module__):
                found[place, name] = cls, value
        elif isinstance(value, dict):
            if value and (parts := [(key, _identify(part)) for key, part in value.items() if _is_setting(key)]):
                found[place, name] = tuple(parts)
        elif cls is tuple:
            if _is_setting(value):
                found[place, name] = value
        elif cls is list and value and isinstance(value[0], dict):
            _add_groups(place, value, found)
        elif callable(value) and not _is_state(value):  # such as an activation
            found[place, name] = id(value)


def _add_groups(place: int, groups: list[dict[str, object]], found: CapturedSettings) -> None:
    for number, group in enumerate(groups):
        for key, part in group.items():
            found[place + number, key] = tuple(map(id, part)) if isinstance(part, list) else _freeze(part)


_MAPPINGS = (dict, ChainMap, MappingProxyType)
_HOLDERS = (*_MAPPINGS, list, tuple, set, frozenset, deque)
_NAMESPACES = (SimpleNamespace, Namespace)
_LARGEST_BUFFER = 1 << 20
_SETTINGS = frozenset({bool, int, float, complex, str, bytes, type(None)})


def _is_setting(value: object) -> bool:
    return type(value) in _SETTINGS or (isinstance(value, tuple) and all(map(_is_setting, value)))


def _is_state(value: Any) -> bool:
    """Return whether a value is a tensor of a hooked framework; an array of another one is a constant."""
    cls = type(value)
    framework = frameworks_of_types.get(cls) or (resolve(frameworks, cls) if is_framework_tensor(cls) else None)
    return framework is not None and attached_hook(framework.ALIAS) is not None


def _identify(value: object) -> object:
    """Identify numbers and texts by value, other objects by identity."""
    return (type(value), value) if _is_setting(value) else id(value)


def _freeze(value: object, depth: int = _DEPTH) -> object:
    """Return numbers and texts themselves, the contents of containers, and the identity of any other object.

    A tensor in a container is state: a function may replace it for its next call.
    """
    if _is_setting(value):
        return type(value), value
    if depth < _DEPTH and _is_state(value):
        return None
    if depth and isinstance(value, _HOLDERS) and len(value) <= MAX_OBJECTS:
        if isinstance(value, _MAPPINGS):
            return type(value), tuple((_freeze(key, 0), _freeze(part, depth - 1)) for key, part in value.items())
        parts = tuple(_freeze(part, depth - 1) for part in value)
        return type(value), frozenset(parts) if isinstance(value, set | frozenset) else parts
    if isinstance(value, partial):
        return id(value), _freeze(value.args, depth - 1), _freeze(value.keywords, depth - 1)
    content = _read_content(value)
    return id(value) if content is None else (id(value), content)


def _read_content(value: Any) -> object:
    """Return what may change in a value that stays the same object: the memory of an array, a context variable."""
    if isinstance(value, ContextVar):
        return _identify(value.get(None))
    if not isinstance(value, bytes):
        with suppress(TypeError, ValueError, BufferError):
            if (memory := memoryview(value)).nbytes <= _LARGEST_BUFFER:
                return hash(memory.tobytes())
    return None
