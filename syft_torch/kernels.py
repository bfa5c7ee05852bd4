"""TorchKernels: integer arithmetic of protocols on torch tensors."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from syft_core.crypto.kernels import Array, Kernels, Shape


class TorchKernels(Kernels):
    """Torch's own functions, which are exact for integers."""

    def __init__(self) -> None:
        super().__init__(torch)

    def from_bytes(self, buffer: bytearray, dtype: str, shape: Shape) -> Array:
        """Return a tensor in the memory of ``buffer``."""
        if not buffer:
            return self.zeros(shape, dtype)
        return torch.frombuffer(buffer, dtype=self.dtype(dtype)).view(shape)

    def blank(self, shape: Shape, dtype: str) -> Array:
        """Return a tensor without memory."""
        return torch.empty(shape, dtype=self.dtype(dtype), device="meta")

    def cast(self, x: Array, dtype: str) -> Array:
        """Convert the elements, modulo the range of the type."""
        return x.to(self.dtype(dtype))

    def stack(self, parts: Sequence[Array], axis: int) -> Array:
        """Join tensors along a new axis."""
        return torch.stack(list(parts), axis)

    def permute(self, x: Array, axes: Sequence[int]) -> Array:
        """Reorder the axes."""
        return x.permute(tuple(axes))

    def sum(self, x: Array, axis: int | tuple[int, ...]) -> Array:
        """Add the elements along axes."""
        return x.sum(axis, dtype=x.dtype)

    def conv2d(
        self,
        x: Array,
        weight: Array,
        stride: Sequence[int] = (1, 1),
        padding: Sequence[int] = (0, 0),
        dilation: Sequence[int] = (1, 1),
        groups: int = 1,
    ) -> Array:
        """Convolve integers."""
        return torch.conv2d(x, weight, None, tuple(stride), tuple(padding), tuple(dilation), groups)
