"""TorchKernels: integer arithmetic on torch tensors, and that of parties, which run protocols on numpy arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from syft_mpc.kernels import BLOCK, DIGIT_BITS, Array, Kernels, NumpyLikeKernels, Shape
from syft_mpc.products import Product

PARALLEL = 1 << 30
"""Matrix products of at least this many products of elements may use all threads of torch."""


class TorchKernels(Kernels):
    """Torch's own functions, which are exact for integers."""

    correction = 1

    def __init__(self) -> None:
        super().__init__(torch)
        self._arrays = ArrayKernels()

    @property
    def arrays(self) -> Kernels:
        """Numpy's functions: for arrays of a few thousand elements they take half as long as torch's."""
        return self._arrays

    def to_array(self, x: Array) -> Array:
        """Return a share as an array, which uses its memory."""
        return x.numpy()

    def from_array(self, x: Array) -> Array:
        """Return an array as a tensor, which uses its memory."""
        return torch.from_numpy(np.asarray(x))

    def from_bytes(self, buffer: bytearray | memoryview, dtype: str, shape: Shape) -> Array:
        """Return a tensor in the memory of ``buffer``."""
        if not buffer:
            return self.zeros(shape, dtype)
        flat = torch.frombuffer(buffer, dtype=self.dtype(dtype))
        return flat if len(shape) == 1 else flat.view(shape)

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

    def select(self, x: Array, places: Sequence[int]) -> Array:
        """Return the lines of a tensor at these places of its first axis."""
        return x.index_select(0, _index(tuple(places), x.device))

    def column(self, numbers: Sequence[float], like: Array, dtype: str) -> Array:
        """Return public numbers along a new first axis, to be combined with a tensor."""
        return _column(tuple(numbers), self.dtype(dtype), like.device).view(-1, *[1] * like.ndim)

    def permute(self, x: Array, axes: Sequence[int]) -> Array:
        """Reorder the axes."""
        return x.permute(tuple(axes))

    def matmul(self, x: Array, y: Array) -> Array:
        """Multiply matrices."""
        if x.is_cpu:
            return self._compute(self._arrays.matmul, x, y)
        return x @ y if x.is_meta else super().matmul(x, y)

    def _compute(self, function: Callable[..., Array], x: Array, y: Array, *options: Any) -> Array:
        return self.from_array(function(x.numpy(), y.numpy(), *options))

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
        if x.is_cpu:
            return self._compute(self._arrays.conv2d, x, weight, stride, padding, dilation, groups)

        def convolve(images: Array, filters: Array) -> Array:
            return torch.conv2d(images, filters, None, tuple(stride), tuple(padding), tuple(dilation), groups)

        return convolve(x, weight) if x.is_meta else self.multiply_digits(x, weight, convolve, weight[0].numel())

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


def _in_few_threads(multiply: Product) -> Product:
    """Return a function that multiplies matrices in one thread, unless they are large.

    Threads of torch that wait for each other use a processor, so two of them take much longer if it is busy.
    """

    def run(x: Array, y: Array) -> Array:
        threads = torch.get_num_threads()
        if threads == 1 or max(x.size * y.shape[-1], y.size * x.shape[-2]) >= PARALLEL:
            return multiply(x, y)
        torch.set_num_threads(1)
        try:
            return multiply(x, y)
        finally:
            torch.set_num_threads(threads)

    return run


def _to_tensor(x: Array) -> torch.Tensor:
    """Return an array as a tensor, in its memory if torch supports it."""
    return torch.from_numpy(x if x.flags.writeable and min(x.strides) >= 0 else x.copy())


def _multiply(x: Array, y: Array) -> Array:
    """Multiply matrices of 64-bit integers by their digits, at most ``TERMS`` products in a sum; see Note [Digits].

    Next to each other, digits 0 and 2 of both factors are multiplied and added at once: x0·y2 + x2·y0.
    """
    terms = x.shape[1]
    first, second = _stack_digits(x, (0, 2, 1), 1), _stack_digits(y, (1, 2, 0), 0)
    wide, high = first.view(-1, 3 * terms), second.view(3 * terms, -1)
    low = wide[:, :terms] @ high[terms : 2 * terms]
    inner = wide[:, 2 * terms :] @ high[2 * terms :]
    mixed = (first[:, 0] + first[:, 2]) @ (second[1] + second[2])
    mixed -= low
    mixed -= inner
    inner.addmm_(wide[:, : 2 * terms], high[: 2 * terms])
    result = inner.long()
    for part in (mixed, low):
        result <<= DIGIT_BITS
        result += part.long()
    return result.numpy()


def _stack_digits(x: Array, places: Sequence[int], axis: int) -> torch.Tensor:
    """Return the digits of a matrix as floats along a new axis, each at its place; lowest digit first."""
    rows, columns = x.shape
    stacked = np.empty((rows, 3, columns) if axis else (3, rows, columns))
    targets = stacked if axis else stacked.transpose(1, 0, 2)
    step = max(1, BLOCK // 4 // max(columns, 1))
    for start in range(0, rows, step):  # A few lines at a time, which stay in the processor's cache.
        part, target = x[start : start + step], targets[start : start + step]
        for place in places[:2]:
            digit = part << (64 - DIGIT_BITS)
            digit >>= 64 - DIGIT_BITS
            target[:, place] = digit
            part = part - digit
            part >>= DIGIT_BITS
        target[:, places[2]] = part
    return torch.from_numpy(stacked)


class ArrayKernels(NumpyLikeKernels):
    """Numpy's functions, but torch's for products of large matrices."""

    def __init__(self) -> None:
        super().__init__(np)

    def ways_to_multiply(self) -> dict[str, Product]:
        """Return the functions that multiply matrices of integers, by name."""
        return {"torch": _in_few_threads(self.multiply_matrices), **super().ways_to_multiply()}

    def multiply_matrices(self, x: Array, y: Array) -> Array:
        """Multiply matrices with torch's function."""
        return torch.matmul(_to_tensor(x), _to_tensor(y)).numpy()

    def multiply_by_digits(self, x: Array, y: Array) -> Array:
        """Multiply matrices by their digits, with torch's function for floats."""
        return _in_few_threads(super().multiply_by_digits)(x, y)

    def multiply_part(self, x: Array, y: Array) -> Array:
        """Multiply matrices by their digits, with up to ``TERMS`` products in a sum."""
        are_matrices = x.ndim == y.ndim == 2 and x.dtype == np.int64
        return _multiply(x, y) if are_matrices else super().multiply_part(x, y)


@functools.lru_cache(maxsize=256)
def _index(places: tuple[int, ...], device: torch.device) -> torch.Tensor:
    return torch.tensor(places, device=device)


@functools.lru_cache(maxsize=256)
def _column(numbers: tuple[float, ...], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    return torch.tensor(numbers, dtype=dtype, device=device)


KERNELS = TorchKernels()
