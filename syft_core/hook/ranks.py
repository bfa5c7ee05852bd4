"""Ranks: which layer type is unwrapped first.

Note [Ranks]
~~~~~~~~~~~~
A call may contain several layer types. The type with the highest ``rank`` is unwrapped first: wrappers (2), then layers
that only observe or restrict (1), then layers that change what a value means (0). Two different types of rank 0 are
refused, because neither can interpret the other's values.
"""

from __future__ import annotations

from typing import NoReturn

from syft_core.exceptions import MixedLayersError, PureFrameworkTensorFoundError
from syft_core.hook.rules import forward_func, is_mapped, leaves, resolve
from syft_core.values import LayerType, Tensor

WRAPPER = 2
"""The rank of wrappers."""
TRANSPARENT = 1
"""The rank of layers that only observe or restrict; they can be combined with any other layer."""
OPAQUE = 0
"""The rank of layers that change what a value means; two different types cannot be combined."""


def find_outermost_type(name: str, obj: object) -> LayerType:
    """Return the type of the layer in ``obj`` that is unwrapped first, or None; see Note [Ranks]."""
    return find_outermost(name, leaves(obj))


def find_outermost(name: str, slots: list[object]) -> LayerType:
    """Return the type of the layer in ``slots`` that is unwrapped first, or None."""
    outermost: LayerType = None
    highest = -1
    for cls in dict.fromkeys(map(type, slots)):
        rank = _get_rank(cls)
        if rank > highest:
            outermost, highest = cls, rank
        elif rank == highest == 0:
            raise MixedLayersError.between(name, outermost.__name__, cls.__name__)
        elif rank == highest and getattr(outermost, "numeric", False) != getattr(cls, "numeric", False):
            raise MixedLayersError.wrappers(name)
        elif rank == highest == WRAPPER and (one := _framework_name(outermost)) != (other := _framework_name(cls)):
            raise MixedLayersError.frameworks(name, one, other)
    return outermost


def _framework_name(wrapper: LayerType) -> str:
    return str(getattr(getattr(wrapper, "framework", None), "ALIAS", ""))


_ranks: dict[type, int] = {}


def _get_rank(cls: type) -> int:
    rank = _ranks.get(cls)
    if rank is None:
        rank = _ranks[cls] = getattr(cls, "rank", 0) if _is_layer(cls) else -1
    return rank


def _is_layer(cls: type) -> bool:
    return not is_mapped(cls) and resolve(forward_func, cls) not in (None, reject_framework_tensor)


framework_types: dict[type, bool] = {}
"""A cache of ``is_framework_tensor``."""


def is_framework_tensor(cls: type) -> bool:
    """Return whether instances of ``cls`` are plain framework tensors."""
    known = framework_types.get(cls)
    if known is None:
        known = framework_types[cls] = resolve(forward_func, cls) is reject_framework_tensor
    return known


def reject_framework_tensor(tensor: Tensor, **_kwargs: object) -> NoReturn:
    """Raise: the ``forward_func`` of plain framework tensors, which have no child."""
    raise PureFrameworkTensorFoundError.in_call(type(tensor).__name__)


def is_numeric(value: object) -> bool:
    """Return whether the chain of ``value`` contains a layer that encodes values."""
    while value is not None:
        if getattr(type(value), "numeric", False):
            return True
        value = getattr(value, "child", None)
    return False


def clear_ranks() -> None:
    """Clear the caches derived from the registries."""
    _ranks.clear()
    framework_types.clear()
