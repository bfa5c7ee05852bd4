"""TorchTensor: the names that a hook adds to ``torch.Tensor``."""

from __future__ import annotations

from typing import Any

import torch

from syft_core.pointers.travel import Travelling
from syft_core.tensors.identity import Identified
from syft_core.values import Kwargs


class TorchTensor(Travelling, Identified):
    """What every torch tensor has while torch is hooked, and every wrapper always.

    Nothing here replaces a name of torch's own.
    """

    @property
    def native_shape(self) -> torch.Size:
        """The shape, as torch has it."""
        return self.shape  # type: ignore[attr-defined]  # mixed into torch.Tensor

    def copy(self) -> torch.Tensor:
        """Return a tensor with the same data and an id of its own."""
        return self.clone()  # type: ignore[attr-defined]  # mixed into torch.Tensor

    def get_class_attributes(self) -> Kwargs:
        """Return what a wrapper of the same kind would need."""
        return {"type": self.dtype}  # type: ignore[attr-defined]  # mixed into torch.Tensor

    def torch_type(self) -> str:
        """Return the name of the tensor type, e.g. "torch.FloatTensor", of what the chain stands for."""
        name: str = self.type()  # type: ignore[attr-defined]  # mixed into torch.Tensor
        return name

    def set_grad(self, grad: torch.Tensor | None) -> torch.Tensor:
        """Set the gradient, where the data is, and return this very tensor."""
        self.grad = grad
        return self

    def numpy_tensor(self) -> Any:
        """Return the same memory as an array that can head a chain; numpy must be hooked too."""
        return self.owner.attributes_of("numpy").wrapper(self.numpy())  # type: ignore[attr-defined]  # mixed in
