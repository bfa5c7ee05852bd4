"""TorchKernels: integer arithmetic of protocols on torch tensors."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from syft_core.crypto.kernels import Array, Kernels, Shape, size_of
from syft_core.crypto.prg import Stream


class TorchKernels(Kernels):
    """Torch's own functions, which are exact for integers."""

    correction = 1

    def __init__(self) -> None:
        super().__init__(torch)

    def equal(self, x: Array, y: Array) -> bool:
        """Return whether two tensors have equal elements."""
        return bool(torch.equal(x, y))

    def from_bytes(self, buffer: bytearray | memoryview, dtype: str, shape: Shape) -> Array:
        """Return a tensor in the memory of ``buffer``."""
        if not buffer:
            return self.zeros(shape, dtype)
        flat = torch.frombuffer(buffer, dtype=self.dtype(dtype))
        return flat if len(shape) == 1 else flat.view(shape)

    def expand(self, stream: Stream, dtype: str, shape: Shape) -> Array:
        """Return a tensor with the next random numbers of a stream."""
        if size_of(shape, dtype) < LONG:
            return super().expand(stream, dtype, shape)
        numbers = torch.empty(shape, dtype=self.dtype(dtype))
        stream.fill(memoryview(numbers.view(-1).numpy()).cast("B"))
        return numbers

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

    def add_product(self, total: Array, x: Array, y: Array) -> Array:
        """Add a product of elements to ``total``, in place."""
        return total.addcmul_(x, y)

    def blockwise(self, function: Callable[..., Array], *arrays: Array) -> Array:
        """Compute a function of elements in blocks that fit into the processor's cache."""
        if arrays[0].is_meta or arrays[0].numel() <= BLOCK:
            return function(*arrays)
        result = torch.empty(arrays[0].shape, dtype=arrays[0].dtype)
        blocks = [array.reshape(-1).split(BLOCK) for array in (result, *arrays)]
        for target, *parts in zip(*blocks, strict=True):
            target.copy_(function(*parts))
        return result

    def select(self, x: Array, places: Sequence[int]) -> Array:
        """Return the lines of a tensor at these places of its first axis."""
        return x.index_select(0, _index(tuple(places), x.device))

    def column(self, numbers: Sequence[float], like: Array, dtype: str) -> Array:
        """Return public numbers along a new first axis, to be combined with a tensor."""
        return _column(tuple(numbers), self.dtype(dtype), like.device).view(-1, *[1] * like.ndim)

    def permute(self, x: Array, axes: Sequence[int]) -> Array:
        """Reorder the axes."""
        return x.permute(tuple(axes))

    def sum(self, x: Array, axis: int | tuple[int, ...]) -> Array:
        """Add the elements along axes."""
        return x.sum(axis, dtype=x.dtype)

    def matmul(self, x: Array, y: Array) -> Array:
        """Multiply matrices, in the way that is fastest for their size on this machine."""
        if x.is_meta or x.ndim != 2 or y.ndim != 2:
            return x @ y if x.is_meta or x.numel() < SMALL else self.multiply_digits(x, y, torch.matmul, x.shape[-1])
        (rows, terms), columns = x.shape, y.shape[1]
        products, speed = rows * terms * columns, _measure()
        digits = 6 * speed.real * products + speed.split * (x.numel() + y.numel()) + speed.start
        direct = speed.integer * products
        if products <= LARGE and speed.sum * products < min(direct, digits):
            return (x.unsqueeze(-1) * y).sum(1, dtype=x.dtype)
        return x @ y if direct < digits else self.multiply_digits(x, y, torch.matmul, terms)

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

        if x.is_meta:
            return convolve(x, weight)
        terms, speed = weight[0].numel(), _measure()
        products = x.numel() * weight.numel() / (weight.shape[1] * stride[0] * stride[1])
        digits = 6 * CONVOLVED * speed.real * products + speed.split * (x.numel() + weight.numel()) + speed.start
        return (
            convolve(x, weight)
            if speed.integer * products < digits
            else self.multiply_digits(x, weight, convolve, terms)
        )

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


@functools.lru_cache(maxsize=256)
def _index(places: tuple[int, ...], device: torch.device) -> torch.Tensor:
    return torch.tensor(places, device=device)


@functools.lru_cache(maxsize=256)
def _column(numbers: tuple[float, ...], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    return torch.tensor(numbers, dtype=dtype, device=device)


LONG = 1 << 16
"""From how many bytes on it pays not to write zeros to memory first."""
BLOCK = 1 << 15
"""How many elements of several arrays fit into the processor's cache."""
SMALL = 1 << 12
"""The size of a batch of matrices below which integers are multiplied directly."""
LARGE = 1 << 20
"""The number of products above which they do not fit into the processor's cache."""
CONVOLVED = 2.3
"""How much longer a product takes in a convolution of floats than in a product of matrices."""


class Speed(NamedTuple):
    """The seconds that one product takes in each way of multiplying integer matrices, and what else the last costs."""

    integer: float
    sum: float
    real: float
    split: float
    start: float = 1e-4


@functools.cache
def _measure() -> Speed:
    """Measure once, for a few milliseconds, how fast this machine multiplies matrices of integers and of floats."""
    size = 64
    x = torch.arange(size * size).view(size, size)
    y = x.double()
    return Speed(
        _time(lambda: x @ x) / size**3,
        _time(lambda: (x.unsqueeze(-1) * x).sum(1)) / size**3,
        _time(lambda: y @ y) / size**3,
        _time(lambda: TorchKernels().split_digits(x)) / size**2,
    )


def _time(function: Callable[[], object]) -> float:
    """Return the shortest of a few runs."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)
