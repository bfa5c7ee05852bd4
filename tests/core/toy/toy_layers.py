"""Layers and a pointer that a user might write, for the tests of the core."""

from __future__ import annotations

from typing import Any

import toy

from syft_core.hook import hook_args
from syft_core.hook.dispatch import TRANSPARENT
from syft_core.hook.overload import overloaded
from syft_core.tensors.abstract import AbstractTensor


class Watcher(AbstractTensor):
    """A transparent layer."""

    rank = TRANSPARENT


class Scaled(AbstractTensor):
    """A layer with an attribute, which its results keep."""

    def __init__(self, scale: int = 1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.scale = scale

    def get_class_attributes(self) -> dict[str, Any]:
        return {"scale": self.scale}


class Negating(AbstractTensor):
    """A layer whose child is the negative of its value."""

    @classmethod
    def lift(cls, plain: Any, **_kwargs: Any) -> Any:
        return -plain

    @overloaded.method
    def mul(self, _self: Any, other: Any) -> Any:
        return -(_self * other)


class Pointer:
    """A pointer to a vector on another worker."""

    rank = 0

    def __init__(self, location: str) -> None:
        self.location = location

    def __repr__(self) -> str:
        return f"[Pointer -> {self.location}]"


hook_args.default_register_tensor(Watcher, Scaled, Negating)
hook_args.register_type_rule({Pointer: hook_args.one})
hook_args.register_forward_func({Pointer: hook_args.reject_pointer})


def under(layer: AbstractTensor, *values: float) -> Any:
    """Return ``layer`` on a vector of ``values``, without a wrapper."""
    return layer.on(toy.Vector(values), wrap=False)


def values(chain: Any) -> list[float]:
    """Return the numbers at the end of a chain."""
    while getattr(chain, "child", None) is not None:
        chain = chain.child
    return chain.tolist()
