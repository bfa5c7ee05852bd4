"""Which types are layers, and which of them comes off first.

Note [Ranks]
~~~~~~~~~~~~
One call may meet several layer types. The type of the highest ``rank`` comes off first: the wrapper that a user holds
(2), then layers that only watch (1), then layers that change what a value means (0). Two different types of rank 0
are refused: neither may look into the other.
"""

from __future__ import annotations

from typing import NoReturn

from syft_core.exceptions import MixedLayersError, PureFrameworkTensorFoundError
from syft_core.hook.rules import forward_func, is_mapped, leaves, resolve
from syft_core.values import LayerType, Tensor

WRAPPER = 2
"""The rank of the wrapper that a user holds."""
TRANSPARENT = 1
"""The rank of layers that only watch: they go with any other layer."""
OPAQUE = 0
"""The rank of layers that change what a value means: two different ones never meet."""


def find_outermost_type(name: str, obj: object) -> LayerType:
    """Return the type of the layer in ``obj`` that comes off first, or None; see Note [Ranks]."""
    return find_outermost(name, leaves(obj))


def find_outermost(name: str, slots: list[object]) -> LayerType:
    """Return the type of the layer among ``slots`` that comes off first, or None."""
    outermost: LayerType = None
    highest = -1
    for cls in dict.fromkeys(map(type, slots)):
        rank = _rank(cls)
        if rank > highest:
            outermost, highest = cls, rank
        elif rank == highest == 0:
            raise MixedLayersError.between(name, outermost.__name__, cls.__name__)
        elif rank == highest and getattr(outermost, "numeric", False) != getattr(cls, "numeric", False):
            raise MixedLayersError.wrappers(name)
        elif rank == highest == WRAPPER and (one := _framework(outermost)) != (other := _framework(cls)):
            raise MixedLayersError.frameworks(name, one, other)
    return outermost


def _framework(wrapper: LayerType) -> str:
    return str(getattr(getattr(wrapper, "framework", None), "ALIAS", ""))


_ranks: dict[type, int] = {}


def _rank(cls: type) -> int:
    """Return the rank of a layer type, and -1 for what is no layer."""
    rank = _ranks.get(cls)
    if rank is None:
        rank = _ranks[cls] = getattr(cls, "rank", 0) if _is_layer(cls) else -1
    return rank


def _is_layer(cls: type) -> bool:
    return not is_mapped(cls) and resolve(forward_func, cls) not in (None, reject_framework_tensor)


framework_types: dict[type, bool] = {}
"""What is known of types that were met; ``is_framework_tensor`` fills it."""


def is_framework_tensor(cls: type) -> bool:
    """Say whether instances of ``cls`` are plain tensors of a framework, which end a chain."""
    known = framework_types.get(cls)
    if known is None:
        known = framework_types[cls] = resolve(forward_func, cls) is reject_framework_tensor
    return known


def reject_framework_tensor(tensor: Tensor, **_kwargs: object) -> NoReturn:
    """Stand as ``forward_func`` of a framework's own tensors, which end a chain: they have no child."""
    raise PureFrameworkTensorFoundError.in_call(type(tensor).__name__)


def is_numeric(value: object) -> bool:
    """Return whether a layer of the chain under ``value`` encodes the values."""
    while value is not None:
        if getattr(type(value), "numeric", False):
            return True
        value = getattr(value, "child", None)
    return False


def clear_ranks() -> None:
    """Drop what was concluded from the registries, because one of them has grown."""
    _ranks.clear()
    framework_types.clear()
