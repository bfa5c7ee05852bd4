"""NumpyKernels: integer arithmetic of protocols on numpy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from syft_core.crypto.kernels import Array, Kernels, Shape


class NumpyKernels(Kernels):
    """Numpy's own functions, under the names that also older versions have."""

    def __init__(self) -> None:
        super().__init__(np)

    def from_bytes(self, buffer: bytearray | memoryview, dtype: str, shape: Shape) -> Array:
        """Return an array in the memory of ``buffer``."""
        return np.frombuffer(buffer, dtype=dtype).reshape(shape)

    def to_bytes(self, x: Array) -> bytes | memoryview:
        """Return the memory of an array."""
        return np.ascontiguousarray(x).data

    def cast(self, x: Array, dtype: str) -> Array:
        """Convert the elements, modulo the range of the type."""
        return x.astype(dtype)

    def concat(self, parts: Sequence[Array], axis: int = 0) -> Array:
        """Join arrays along an axis."""
        return np.concatenate(parts, axis)

    def permute(self, x: Array, axes: Sequence[int]) -> Array:
        """Reorder the axes."""
        return x.transpose(tuple(axes))

    def encode(self, x: Array, scale: int, dtype: str) -> Array:
        """Return real numbers, times ``scale``, as the nearest integers."""
        return np.rint(np.asarray(x, np.float64) * scale).astype(dtype)

    def decode(self, x: Array, scale: int, dtype: Any) -> Array:
        """Return integers, divided by ``scale``, as real numbers of a dtype."""
        return (np.asarray(x, np.float64) / scale).astype(dtype)
