"""NumpyKernels: integer arithmetic of protocols on numpy arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from syft_core.crypto.kernels import Array, Kernels, Shape


class NumpyKernels(Kernels):
    """Numpy's own functions, under the names that also older versions have."""

    def __init__(self) -> None:
        super().__init__(np)

    def from_bytes(self, buffer: bytearray, dtype: str, shape: Shape) -> Array:
        """Return an array in the memory of ``buffer``."""
        return np.frombuffer(buffer, dtype=dtype).reshape(shape)

    def cast(self, x: Array, dtype: str) -> Array:
        """Convert the elements, modulo the range of the type."""
        return x.astype(dtype)

    def concat(self, parts: Sequence[Array]) -> Array:
        """Join arrays along the first axis."""
        return np.concatenate(parts)

    def permute(self, x: Array, axes: Sequence[int]) -> Array:
        """Reorder the axes."""
        return x.transpose(tuple(axes))
