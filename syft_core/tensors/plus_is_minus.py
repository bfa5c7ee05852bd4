"""PlusIsMinusTensor: a demonstration of a layer that changes what an operation means."""

from __future__ import annotations

from typing import Any

from syft_core.hook import hook_args
from syft_core.hook.overload import overloaded
from syft_core.serde import codecs
from syft_core.tensors.abstract import AbstractTensor
from syft_core.tensors.codecs import build_layer_codec
from syft_core.values import Tensor


class PlusIsMinusTensor(AbstractTensor):
    """Subtract where the caller adds, and add where the caller subtracts; everything else passes."""

    @overloaded.method
    def add(self, _self: Tensor, other: Tensor, *, alpha: Any = 1) -> Tensor:
        """Answer ``x + y``, ``x.add(y)`` and the framework's function ``add``."""
        return _self - other * alpha

    @overloaded.method
    def sub(self, _self: Tensor, other: Tensor, *, alpha: Any = 1) -> Tensor:
        """Answer ``x - y``, ``x.sub(y)`` and the framework's function ``sub``."""
        return _self + other * alpha


hook_args.default_register_tensor(PlusIsMinusTensor)
codecs.register(build_layer_codec(PlusIsMinusTensor, code=251))
