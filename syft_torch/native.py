"""TorchTensor: the methods that a hook adds to ``torch.Tensor``."""

from __future__ import annotations

import torch

from syft_core.pointers.travel import Travelling
from syft_core.tensors.identity import Identified, keep_words
from syft_core.values import Kwargs, Tensor
from syft_mpc.sharing import Sharing


class TorchTensor(Sharing, Travelling, Identified):
    """The methods of every torch tensor while torch is hooked, and of every wrapper.

    None of them replaces one of torch's own.
    """

    child: Tensor
    """The next layer of a wrapper; a plain tensor has none."""

    @property
    def native_shape(self) -> torch.Size:
        """The native shape."""
        return self.shape  # type: ignore[attr-defined]  # mixed into torch.Tensor

    def copy(self) -> torch.Tensor:
        """Return a tensor with a copy of the data and a new id; a copy on a worker has no tags."""
        made: torch.Tensor = self.clone()  # type: ignore[attr-defined]  # mixed into torch.Tensor
        return made if self.location is not None else keep_words(self, made)

    def get_class_attributes(self) -> Kwargs:
        """Return the class attributes of a wrapper of the same type."""
        return {"type": self.dtype}  # type: ignore[attr-defined]  # mixed into torch.Tensor

    def torch_type(self) -> str:
        """Return the name of the tensor type of the values, e.g. "torch.FloatTensor"."""
        name: str = self.type()  # type: ignore[attr-defined]  # mixed into torch.Tensor
        return name

    def set_grad(self, grad: torch.Tensor | None) -> torch.Tensor:
        """Set the gradient, which may be remote, and return the tensor."""
        self.grad = grad
        return self

    def numpy_tensor(self) -> Tensor:
        """Return a numpy array that shares the memory and can be sent; numpy must be hooked too."""
        return self.owner.attributes_of("numpy").wrapper(self.numpy())  # type: ignore[attr-defined]  # mixed in
