"""Kernels: the array functions that protocols need, for any framework with the array API."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

Array: TypeAlias = Any
"""An integer array of a framework: a share, or random numbers."""
Shape: TypeAlias = tuple[int, ...]
ITEM_BYTES = {"int64": 8, "int32": 4, "int16": 2, "uint8": 1}


class Kernels:
    """Integer arithmetic modulo a power of two on the arrays of one framework.

    Protocols use Python's operators on arrays, which wrap around in every framework, and these functions for the rest.
    The implementation needs only the array API; a backend overrides what its framework does faster.
    """

    def __init__(self, namespace: Any) -> None:
        self.xp = namespace

    def dtype(self, name: str) -> Any:
        """Return the dtype called ``name``."""
        return getattr(self.xp, name)

    def from_bytes(self, buffer: bytearray, dtype: str, shape: Shape) -> Array:
        """Return an array of the bytes in ``buffer``, in little-endian order; it may use the buffer's memory."""
        flat = self.xp.asarray(memoryview(buffer).cast(_CODES[dtype]), dtype=self.dtype(dtype))
        return self.xp.reshape(flat, shape)

    def blank(self, shape: Shape, dtype: str) -> Array:
        """Return an array of this form for a rehearsal, which depends on forms only."""
        return self.zeros(shape, dtype)

    def zeros(self, shape: Shape, dtype: str) -> Array:
        """Return an array of zeros."""
        return self.xp.zeros(shape, dtype=self.dtype(dtype))

    def cast(self, x: Array, dtype: str) -> Array:
        """Convert the elements, modulo the range of the type."""
        return self.xp.astype(x, self.dtype(dtype))

    def matmul(self, x: Array, y: Array) -> Array:
        """Multiply matrices modulo a power of two."""
        return self.xp.matmul(x, y)

    def concat(self, parts: Sequence[Array]) -> Array:
        """Join arrays along the first axis."""
        return self.xp.concat(parts)

    def stack(self, parts: Sequence[Array], axis: int) -> Array:
        """Join arrays along a new axis."""
        return self.xp.stack(parts, axis=axis)

    def permute(self, x: Array, axes: Sequence[int]) -> Array:
        """Reorder the axes."""
        return self.xp.permute_dims(x, tuple(axes))

    def reshape(self, x: Array, shape: Shape) -> Array:
        """Return the elements in another shape."""
        return self.xp.reshape(x, shape)

    def sum(self, x: Array, axis: int | tuple[int, ...]) -> Array:
        """Add the elements along axes, modulo the ring."""
        return self.xp.sum(x, axis=axis, dtype=x.dtype)

    def floor_divide(self, x: Array, divisor: int) -> Array:
        """Divide and round down."""
        return x // divisor if divisor & (divisor - 1) else x >> (divisor.bit_length() - 1)

    def pad(self, x: Array, padding: int) -> Array:
        """Surround the last two axes with zeros."""
        if not padding:
            return x
        *rest, height, width = x.shape
        padded = self.zeros((*rest, height + 2 * padding, width + 2 * padding), dtype_name(x))
        padded[..., padding : padding + height, padding : padding + width] = x
        return padded

    def windows(self, x: Array, size: Sequence[int], stride: Sequence[int], dilation: Sequence[int] = (1, 1)) -> Array:
        """Return the windows over the last two axes, as two additional axes before them: (..., i, j, row, column)."""
        (height, width), (rows, columns) = x.shape[-2:], size
        high = (height - dilation[0] * (rows - 1) - 1) // stride[0] + 1
        wide = (width - dilation[1] * (columns - 1) - 1) // stride[1] + 1
        parts = [
            x[
                ...,
                i * dilation[0] : i * dilation[0] + (high - 1) * stride[0] + 1 : stride[0],
                j * dilation[1] : j * dilation[1] + (wide - 1) * stride[1] + 1 : stride[1],
            ]
            for i in range(rows)
            for j in range(columns)
        ]
        stacked = self.stack(parts, -3)
        return self.reshape(stacked, (*x.shape[:-2], rows, columns, high, wide))

    def conv2d(
        self,
        x: Array,
        weight: Array,
        stride: Sequence[int] = (1, 1),
        padding: Sequence[int] = (0, 0),
        dilation: Sequence[int] = (1, 1),
        groups: int = 1,
    ) -> Array:
        """Convolve images (batch, channels, height, width) with filters, modulo a power of two."""
        if padding[0] != padding[1]:
            raise ValueError("cannot pad rows and columns differently")
        views = self.windows(self.pad(x, padding[0]), weight.shape[-2:], stride, dilation)
        batch, channels, rows, columns, high, wide = views.shape
        per_group, filters = channels // groups, weight.shape[0] // groups
        parts = []
        for group in range(groups):
            inputs = views[:, group * per_group : (group + 1) * per_group, ...]
            patches = self.reshape(inputs, (batch, per_group * rows * columns, high * wide))
            kernel = self.reshape(weight[group * filters : (group + 1) * filters, ...], (filters, -1))
            parts.append(self.reshape(self.matmul(kernel, patches), (batch, filters, high, wide)))
        return (
            parts[0]
            if groups == 1
            else self.permute(self.concat([self.permute(p, (1, 0, 2, 3)) for p in parts]), (1, 0, 2, 3))
        )


def dtype_name(x: Array) -> str:
    """Return the name of an array's dtype: "int64" for ``torch.int64``."""
    return str(x.dtype).rpartition(".")[2]


def size_of(shape: Shape, dtype: str) -> int:
    """Return the number of bytes of an array."""
    return math.prod(shape) * ITEM_BYTES[dtype]


_CODES = {"int64": "q", "int32": "i", "int16": "h", "uint8": "B"}
