"""NumpyTensor: what an array has when it heads a chain."""

from __future__ import annotations

from syft_core.pointers.travel import Travelling
from syft_core.tensors.forwarding import Forwarding
from syft_core.tensors.identity import Identified
from syft_core.values import Kwargs, Tensor


class NumpyTensor(Travelling, Identified, Forwarding):
    """The names that a wrapper adds to those of an array; an ``ndarray`` itself cannot be given any."""

    def copy(self) -> Tensor:
        """Return an array with the same data and an id of its own."""
        return self._call("copy")

    def __divmod__(self, other: Tensor) -> Tensor:
        return self._call("__divmod__", other)

    def __rdivmod__(self, other: Tensor) -> Tensor:
        return self._call("__rdivmod__", other)

    def get_class_attributes(self) -> Kwargs:
        """Return what a wrapper of the same kind would need."""
        return {"type": self.dtype}
