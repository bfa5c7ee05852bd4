"""PlusIsMinusTensor: an example of a layer that changes what an operation means."""

from __future__ import annotations

from syft_core.hook import hook_args
from syft_core.hook.overload import overloaded
from syft_core.serde import codecs
from syft_core.tensors.abstract import AbstractTensor
from syft_core.tensors.codecs import build_layer_codec
from syft_core.values import Tensor


class PlusIsMinusTensor(AbstractTensor):
    """Swaps addition and subtraction; other operations are unchanged."""

    @overloaded.method
    def add(self, _self: Tensor, other: Tensor, *, alpha: object = 1) -> Tensor:
        """Handle ``x + y``, ``x.add(y)`` and the framework's function ``add``."""
        return _self - other * alpha

    @overloaded.method
    def sub(self, _self: Tensor, other: Tensor, *, alpha: object = 1) -> Tensor:
        """Handle ``x - y``, ``x.sub(y)`` and the framework's function ``sub``."""
        return _self + other * alpha


hook_args.default_register_tensor(PlusIsMinusTensor)
codecs.register(build_layer_codec(PlusIsMinusTensor, code=251))
