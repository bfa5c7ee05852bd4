"""TorchKernels: integer arithmetic of protocols on torch tensors."""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence
from typing import Any

import torch

from syft_core.crypto.kernels import Array, Kernels, Shape


class TorchKernels(Kernels):
    """Torch's own functions, which are exact for integers."""

    correction = 1

    def __init__(self) -> None:
        super().__init__(torch)

    def from_bytes(self, buffer: bytearray | memoryview, dtype: str, shape: Shape) -> Array:
        """Return a tensor in the memory of ``buffer``."""
        if not buffer:
            return self.zeros(shape, dtype)
        return torch.frombuffer(buffer, dtype=self.dtype(dtype)).view(shape)

    def to_bytes(self, x: Array) -> bytes | memoryview:
        """Return the memory of a tensor; nothing in a rehearsal."""
        return b"" if x.is_meta else x.contiguous().numpy().data

    def blank(self, shape: Shape, dtype: str) -> Array:
        """Return a tensor without memory."""
        return torch.empty(shape, dtype=self.dtype(dtype), device="meta")

    def zeros_like(self, x: Array, shape: Shape) -> Array:
        """Return zeros of a shape, of the type and on the device of another tensor."""
        return x.new_zeros(shape)

    def cast(self, x: Array, dtype: str) -> Array:
        """Convert the elements, modulo the range of the type."""
        return x.to(self.dtype(dtype))

    def concat(self, parts: Sequence[Array], axis: int = 0) -> Array:
        """Join tensors along an axis."""
        return torch.cat(list(parts), axis)

    def stack(self, parts: Sequence[Array], axis: int) -> Array:
        """Join tensors along a new axis."""
        return torch.stack(list(parts), axis)

    def permute(self, x: Array, axes: Sequence[int]) -> Array:
        """Reorder the axes."""
        return x.permute(tuple(axes))

    def sum(self, x: Array, axis: int | tuple[int, ...]) -> Array:
        """Add the elements along axes."""
        return x.sum(axis, dtype=x.dtype)

    def matmul(self, x: Array, y: Array) -> Array:
        """Multiply matrices, with whichever way is faster on this machine."""
        rows = x.shape[-2] if x.ndim > 1 else 1
        columns = y.shape[-1] if y.ndim > 1 else 1
        if x.is_meta or rows * x.shape[-1] * columns < SMALL or not _floats_are_faster():
            return x @ y
        return self.multiply_digits(x, y, torch.matmul, x.shape[-1])

    def to_floats(self, x: Array) -> Array:
        """Convert integers to floats with 53 bits."""
        return x.double()

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

        def convolve(images: Array, filters: Array) -> Array:
            return torch.conv2d(images, filters, None, tuple(stride), tuple(padding), tuple(dilation), groups)

        terms = weight[0].numel()
        if x.is_meta or x.numel() * weight.numel() < SMALL or not _floats_are_faster():
            return convolve(x, weight)
        return self.multiply_digits(x, weight, convolve, terms)

    def saturate(self, x: Array, limit: float) -> Array:
        """Limit real numbers to a range, and set NaN to 0; also those of pointers."""
        return x.detach().double().nan_to_num(0.0).clamp(-limit, limit)

    def encode(self, x: Array, scale: float, dtype: str) -> Array:
        """Return real numbers, times ``scale``, as the nearest integers."""
        return (x.detach().double() * scale).round().to(self.dtype(dtype))

    def decode(self, x: Array, scale: int, dtype: Any) -> Array:
        """Return integers, divided by ``scale``, as real numbers of a dtype."""
        return (x.double() / scale).to(dtype)

    def erf(self, x: Array) -> Array:
        """Compute the error function of real numbers."""
        return torch.erf(x)


SMALL = 1 << 15
"""Below this number of products, integers are multiplied directly."""


@functools.cache
def _floats_are_faster() -> bool:
    """Measure once whether products of floats, of which six are needed, are faster than one of integers."""
    integers = torch.arange(128 * 128).view(128, 128)
    floats = integers.double()
    direct, split = (min(_time(x) for _ in range(3)) for x in (integers, floats))
    return 6 * split < direct


def _time(x: torch.Tensor) -> float:
    start = time.perf_counter()
    torch.matmul(x, x)
    return time.perf_counter() - start
