"""The registries of tensor types, and functions that traverse nested arguments."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

from syft_core.features import FEATURES
from syft_core.hook.folds import FoldSlot, one, zero
from syft_core.registry import Registry
from syft_core.values import Function, Nested

base_types: frozenset[type] = frozenset({int, float, str, bool, bytes, bytearray, complex})

_ADVICE = "register it with `syft_core.hook.hook_args.default_register_tensor(YourTensor)`"

type_rule: Registry[type, Callable[[Nested], Nested]] = Registry("type_rule", advice=_ADVICE)
forward_func: Registry[Any, FoldSlot] = Registry("forward_func", advice=_ADVICE)
backward_func: Registry[Any, Function] = Registry("backward_func", advice=_ADVICE)
ambiguous_methods: set[str] = set()
ambiguous_functions: set[str] = set()


def build_rule(args: Nested) -> Nested:
    """Replace each tensor in ``args`` by 1 and each other value by 0, keeping lists and tuples.

    >>> build_rule((1, ["a", None], {}))
    (0, [0, 0], 1)
    """
    rule = resolve(type_rule, type(args))
    return rule(args) if rule is not None else 0


_resolved: dict[tuple[int, type], Any] = {}


def resolve(registry: Registry[Any, Any], cls: type) -> Any:
    """Return the entry of ``cls`` or of its nearest registered base class, or None."""
    found = registry.get(cls)
    if found is not None:
        return found
    key = (id(registry), cls)
    if key not in _resolved:
        FEATURES.load_type(cls)  # This may register it.
        _resolved[key] = next((registry.get(base) for base in cls.__mro__ if base in registry), None)
    return _resolved[key]


def clear_resolved() -> None:
    """Clear the caches derived from the registries."""
    _resolved.clear()
    _flatness.clear()


def _slice_rule(s: slice) -> int:
    return int(any(build_rule(part) for part in (s.start, s.stop, s.step)))


def is_container(cls: type) -> bool:
    """Return whether plans index into instances of ``cls``: lists and tuples."""
    return resolve(type_rule, cls) in _CONTAINER_RULES


def is_mapped(cls: type) -> bool:
    """Return whether instances of ``cls`` are one slot that may contain tensors: dicts and slices."""
    return cls is slice or issubclass(cls, dict)


def _list_rule(args: Iterable[Nested]) -> list[Nested]:
    return [build_rule(a) for a in args]


def _tuple_rule(args: Iterable[Nested]) -> tuple[Nested, ...]:
    return tuple([build_rule(a) for a in args])


_CONTAINER_RULES = (_list_rule, _tuple_rule)


def rebuild(cls: type, items: Iterable[Nested]) -> Nested:
    """Create a container of type ``cls``, which may be a named tuple, from ``items``."""
    if cls is tuple or cls is list:
        return cls(items)
    if hasattr(cls, "_fields"):
        return cls(*items)
    return cls(items)


# Caches is_flat.
_flatness: dict[type, bool] = {}


def is_flat(cls: type) -> bool:
    """Return whether instances of ``cls`` are leaves: not lists, tuples, dicts or slices."""
    flat = _flatness.get(cls)
    if flat is None:
        flat = _flatness[cls] = not (is_mapped(cls) or is_container(cls))
    return flat


def map_leaves(f: Callable[[Nested], Nested], obj: Nested) -> Nested:
    """Apply ``f`` to everything in ``obj`` that is not itself a list, tuple, dict or slice."""
    cls = type(obj)
    if _flatness.get(cls) or (cls not in _flatness and is_flat(cls)):
        return f(obj)
    if cls is tuple or cls is list:  # the common case
        items = [f(item) if _flatness.get(type(item)) else map_leaves(f, item) for item in obj]
        return items if cls is list else tuple(items)
    if cls is dict:
        return {key: map_leaves(f, value) for key, value in obj.items()}
    if cls is slice:
        return slice(f(obj.start), f(obj.stop), f(obj.step))
    if issubclass(cls, dict):
        mapped = copy.copy(obj)
        mapped.update({key: map_leaves(f, value) for key, value in obj.items()})
        return mapped
    return rebuild(cls, [map_leaves(f, item) for item in obj])


def map_marked(f: Callable[[Nested], Nested], obj: Nested, rule: Nested) -> Nested:
    """Apply ``f`` to the parts marked by a rule of ``build_rule``, and to the tensors in a marked dict or slice."""
    cls = type(obj)
    if isinstance(rule, list | tuple):
        return rebuild(cls, [map_marked(f, item, of_item) for item, of_item in zip(obj, rule, strict=True)])
    if not rule:
        return obj
    return map_leaves(lambda leaf: f(leaf) if build_rule(leaf) else leaf, obj) if is_mapped(cls) else f(obj)


def leaves(obj: object) -> list[Nested]:
    """Return the leaves that ``map_leaves`` visits, in the same order."""
    found: list[Nested] = []
    _collect(obj, found)
    return found


def _collect(obj: Nested, found: list[Nested]) -> None:
    cls = type(obj)
    if cls is slice:
        found += (obj.start, obj.stop, obj.step)
    elif cls is tuple or cls is list or not (_flatness.get(cls) or is_flat(cls)):
        for item in obj.values() if issubclass(cls, dict) else obj:
            if _flatness.get(type(item)):  # the common case
                found.append(item)
            else:
                _collect(item, found)
    else:
        found.append(obj)


def signature(obj: Nested) -> object:
    """Return a hashable description of nesting, arity and slot types."""
    cls = type(obj)
    if _flatness.get(cls) or (cls not in _flatness and is_flat(cls)):
        return cls
    if cls is slice:
        return (slice, type(obj.start), type(obj.stop), type(obj.step))
    if issubclass(cls, dict):
        return (cls, *[(key, signature(value)) for key, value in obj.items()])
    types = tuple(map(type, obj))
    return (cls, types if all(map(_flatness.get, types)) else tuple([signature(item) for item in obj]))


type_rule.update({list: _list_rule, tuple: _tuple_rule, slice: _slice_rule, dict: one, type(None): zero})
type_rule.update({type(Ellipsis): zero, **dict.fromkeys(base_types, zero)})
