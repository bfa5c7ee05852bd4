"""NumpyKernels: integer arithmetic of protocols on numpy arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from syft_core.crypto.kernels import Array, Kernels, Shape


class NumpyKernels(Kernels):
    """Numpy's own functions, under the names that also older versions have."""

    correction = 0

    def __init__(self) -> None:
        super().__init__(np)

    def wrapping_around(self) -> AbstractContextManager[object]:
        """Return a context in which numpy does not warn about single integers that overflow."""
        return np.errstate(over="ignore")

    def from_bytes(self, buffer: bytearray | memoryview, dtype: str, shape: Shape) -> Array:
        """Return an array in the memory of ``buffer``."""
        return np.frombuffer(buffer, dtype=dtype).reshape(shape)

    def to_bytes(self, x: Array) -> bytes | memoryview:
        """Return the memory of an array."""
        return np.ascontiguousarray(x).data

    def column(self, numbers: Sequence[float], like: Array, dtype: str) -> Array:
        """Return public numbers along a new first axis, to be combined with an array."""
        return np.asarray(numbers, dtype).reshape(-1, *[1] * like.ndim)

    def cast(self, x: Array, dtype: str) -> Array:
        """Convert the elements, modulo the range of the type."""
        return x.astype(dtype)

    def concat(self, parts: Sequence[Array], axis: int = 0) -> Array:
        """Join arrays along an axis."""
        return np.concatenate(parts, axis)

    def permute(self, x: Array, axes: Sequence[int]) -> Array:
        """Reorder the axes."""
        return x.transpose(tuple(axes))

    def to_floats(self, x: Array) -> Array:
        """Convert integers to floats with 53 bits."""
        return x.astype(np.float64)

    def saturate(self, x: Array, limit: float) -> Array:
        """Limit real numbers to a range, and set NaN to 0; also those of pointers."""
        return np.clip(np.nan_to_num(x.astype(np.float64)), -limit, limit)

    def encode(self, x: Array, scale: float, dtype: str) -> Array:
        """Return real numbers, times ``scale``, as the nearest integers."""
        return np.rint(x.astype(np.float64) * scale).astype(dtype)

    def decode(self, x: Array, scale: int, dtype: Any) -> Array:
        """Return integers, divided by ``scale``, as real numbers of a dtype."""
        return (x.astype(np.float64) / scale).astype(dtype)

    def compute(self, function: Callable[..., Array], x: Array, options: Mapping[str, Any]) -> Array:
        """Compute a function of real numbers, without numpy's warnings."""
        with np.errstate(all="ignore"):
            return super().compute(function, x, options)
