"""ToyHook: chains on toy."""

from __future__ import annotations

from functools import cache
from typing import Any

import toy

from syft_core.hook.dispatch import dispatch, framework_of, frameworks
from syft_core.hook.hook import FrameworkHook, Patches
from syft_core.serde import codecs
from syft_core.tensors.abstract import AbstractTensor
from syft_core.workers.party.virtual import VirtualWorker
from syft_toy import hook_args, serde  # noqa: F401  # hook_args registers toy's types
from syft_toy.attributes import ToyAttributes


class ToyHook(FrameworkHook):
    """Hooks toy."""

    name = "toy"
    worker_type = VirtualWorker

    def _make_attributes(self) -> ToyAttributes:
        return _attributes()

    def _install(self, patches: Patches) -> None:
        patches.set(AbstractTensor, "__toy_function__", _layer_function)
        patches.set(toy, "native_cat", toy.cat)

    def create_shape(self, shape_dims: Any) -> tuple[int, ...]:
        return tuple(shape_dims)

    def create_wrapper(self, wrapper_type: Any = None) -> toy.Vector:
        if wrapper_type not in (None, toy.Vector, float, int, bool):
            raise ValueError(f"cannot create a wrapper of type {wrapper_type!r}: give float, int, bool or None")
        return toy.Vector([])

    def create_tensor(self, data: Any) -> toy.Vector:
        return toy.Vector(data)

    def create_zeros(self, *shape: int, dtype: Any = None, **_kwargs: Any) -> toy.Vector:
        return toy.Vector([(dtype or float)(0)] * shape[0])


for _codec in serde.CODECS:
    codecs.register(_codec)


@cache
def _attributes() -> ToyAttributes:
    attributes = ToyAttributes(toy)
    frameworks.register(toy.Vector, attributes)
    return attributes


def _layer_function(self: Any, function: Any, args: Any, kwargs: Any) -> Any:
    """Handle functions of layers without a wrapper."""
    return dispatch(framework_of(self).ops.of(function), args, kwargs)
