"""Kernels: the array functions that protocols need, for any framework with the array API."""

from __future__ import annotations

import math
import secrets
from array import array
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property, lru_cache, reduce
from itertools import product
from operator import add, iadd
from typing import Any, ClassVar, TypeAlias

from syft_mpc.prg import Stream
from syft_mpc.products import DIGITS, FastestProduct, Product

Array: TypeAlias = Any
"""An integer array of a framework: a share, or random numbers."""
Shape: TypeAlias = tuple[int, ...]
Pair: TypeAlias = Sequence[int]
"""Two numbers, for the height and the width of images or windows."""
DIGIT_BITS, MAX_TERMS = 22, 1 << 11
"""See Note [Digits]."""
TERMS = MAX_TERMS // 4
"""Maximum number of products of two sums of digits that can be added exactly."""
RINGS = ("int64", "int32")
"""The dtypes of shares."""
ITEM_BYTES = {"int64": 8, "int32": 4, "int16": 2, "uint8": 1}
LONG = 1 << 16
"""Size in bytes from which it pays not to write zeros to memory first."""
BLOCK = 1 << 15
"""Number of elements of several arrays that fit into the processor's cache."""


class Kernels:
    """Integer arithmetic modulo a power of two on the arrays of one framework.

    Protocols use Python's operators on arrays, which wrap around in every framework, and these functions for the rest.
    The implementation needs only the array API; a backend overrides what its framework computes faster.
    """

    correction: ClassVar[int] = 0
    """Subtracted from the number of elements for a variance, unless told otherwise: the framework's default."""

    def __init__(self, namespace: Any) -> None:
        self.xp = namespace

    @property
    def arrays(self) -> Kernels:
        """The kernels with which a party runs protocols; a backend may have faster ones than these."""
        return self

    def to_array(self, x: Array) -> Array:
        """Return a share as an array of ``arrays``, which may use its memory."""
        return x

    def from_array(self, x: Array) -> Array:
        """Invert ``to_array``."""
        return x

    def equal(self, x: Array, y: Array) -> bool:
        """Return whether two arrays have the same shape and equal elements."""
        return bool(x.shape == y.shape and self.xp.all(x == y))

    def wrapping_around(self) -> AbstractContextManager[object]:
        """Return a context in which integers that overflow cause no warnings."""
        return nullcontext()

    def dtype(self, name: str) -> Any:
        """Return the dtype called ``name``."""
        return getattr(self.xp, name)

    def from_bytes(self, buffer: bytearray | memoryview, dtype: str, shape: Shape) -> Array:
        """Return an array of the bytes in ``buffer``, in little-endian order; it may use the buffer's memory."""
        numbers: Any = memoryview(buffer)
        flat = self.xp.asarray(numbers.cast(_CODES[dtype]), dtype=self.dtype(dtype))
        return self.xp.reshape(flat, shape)

    def expand(self, stream: Stream, dtype: str, shape: Shape) -> Array:
        """Return an array with the next random numbers of a stream."""
        return self.from_bytes(stream.take(size_of(shape, dtype)), dtype, shape)

    def to_bytes(self, x: Array) -> bytes | memoryview:
        """Return the bytes of an array, in little-endian order; they may be its memory."""
        return array(_CODES[dtype_name(x)], self.xp.reshape(x, (-1,)).tolist()).tobytes()

    def blank(self, shape: Shape, dtype: str) -> Array:
        """Return an array of this form for a rehearsal, which depends on forms only."""
        return self.zeros(shape, dtype)

    def zeros(self, shape: Shape, dtype: str) -> Array:
        """Return an array of zeros."""
        return self.xp.zeros(shape, dtype=self.dtype(dtype))

    def zeros_like(self, x: Array, shape: Shape) -> Array:
        """Return zeros of a shape, of the type of another array."""
        return self.zeros(shape, dtype_name(x))

    def arange(self, count: int) -> Array:
        """Return the integers from 0 on."""
        return self.xp.arange(count)

    def column(self, numbers: Sequence[float], like: Array, dtype: str) -> Array:
        """Return public numbers along a new first axis, to be combined with an array."""
        flat = self.xp.asarray(list(numbers), dtype=self.dtype(dtype), device=like.device)
        return self.reshape(flat, (-1, *[1] * like.ndim))

    def cast(self, x: Array, dtype: str) -> Array:
        """Convert the elements, modulo the range of the type."""
        return self.xp.astype(x, self.dtype(dtype))

    def matmul(self, x: Array, y: Array) -> Array:
        """Multiply matrices modulo a power of two."""
        return self.multiply_digits(x, y, self.multiply_matrices, x.shape[-1])

    def multiply_matrices(self, x: Array, y: Array) -> Array:
        """Multiply matrices with the framework's own function."""
        return self.xp.matmul(x, y)

    def multiply_digits(self, x: Array, y: Array, multiply: Callable[[Array, Array], Array], terms: int) -> Array:
        """Compute a bilinear operation on integers with floating-point numbers, exactly; see Note [Digits].

        Note [Digits]
        ~~~~~~~~~~~~~
        Libraries multiply matrices of floats much faster than matrices of integers. So 64-bit integers are split into
        three digits of 22 bits, from -2^21 to 2^21. The sum of up to 2^11 products of two digits is at most 2^53, which
        a float represents exactly. Six of the nine products of digits matter modulo 2^64. Sums of up to 2^10 products
        can be added as floats too. For up to 2^9 products, sums of two digits can be multiplied, and
        x0·y1 + x1·y0 = (x0 + x1)(y0 + y1) - x0·y0 - x1·y1 saves one product.
        """
        if terms > MAX_TERMS or terms == 0:
            return multiply(x, y)
        first, second = self.split_digits(x), self.split_digits(y)
        x0, x1, y0, y1 = *first[:2], *second[:2]
        low = multiply(x0, y0)
        places: list[tuple[Array, ...]]
        if len(first) == 2:
            places = [(low,), (multiply(x0, y1), multiply(x1, y0))]
        else:
            inner = multiply(x1, y1)
            places = [(low,), (), (multiply(x0, second[2]), multiply(first[2], y0), inner)]
            if 4 * terms <= MAX_TERMS:
                places[1] = (multiply(x0 + x1, y0 + y1) - low - inner,)
            else:
                places[1] = (multiply(x0, y1), multiply(x1, y0))
        result = None
        for products in reversed(places):
            parts = products if 2 * terms <= MAX_TERMS else [self.cast(product, "int64") for product in products]
            part = self.cast(reduce(add, parts), "int64")
            result = part if result is None else (result << DIGIT_BITS) + part
        return self.cast(result, dtype_name(x))

    def split_digits(self, x: Array) -> list[Array]:
        """Return the digits of integers as floats, lowest first."""
        digits, bits = [], 8 * ITEM_BYTES[dtype_name(x)]
        for _ in range((bits - 1) // DIGIT_BITS):
            digit = x << (bits - DIGIT_BITS)
            digit >>= bits - DIGIT_BITS  # With the sign of its highest bit.
            digits.append(self.to_floats(digit))
            x = x - digit
            x >>= DIGIT_BITS
        return [*digits, self.to_floats(x)]

    def to_floats(self, x: Array) -> Array:
        """Convert integers to floats with 53 bits."""
        return self.xp.astype(x, self.xp.float64)

    def concat(self, parts: Sequence[Array], axis: int = 0) -> Array:
        """Join arrays along an axis."""
        return self.xp.concat(parts, axis=axis)

    def stack(self, parts: Sequence[Array], axis: int) -> Array:
        """Join arrays along a new axis."""
        return self.xp.stack(parts, axis=axis)

    def select(self, x: Array, places: Sequence[int]) -> Array:
        """Return the lines of an array at these places of its first axis."""
        return self.xp.take(x, self.xp.asarray(places), axis=0)

    def permute(self, x: Array, axes: Sequence[int]) -> Array:
        """Reorder the axes."""
        return self.xp.permute_dims(x, tuple(axes))

    def reshape(self, x: Array, shape: Shape) -> Array:
        """Return the elements in another shape."""
        return self.xp.reshape(x, shape)

    def sum(self, x: Array, axis: int | tuple[int, ...]) -> Array:
        """Add the elements along axes, modulo the ring."""
        return self.xp.sum(x, axis=axis, dtype=x.dtype)

    def blockwise(self, function: Callable[..., Array], *arrays: Array) -> Array:
        """Compute a function of elements; a backend may do it in blocks that fit into the processor's cache."""
        return function(*arrays)

    def floor_divide(self, x: Array, divisor: int) -> Array:
        """Divide and round down."""
        return x // divisor if divisor & (divisor - 1) else x >> (divisor.bit_length() - 1)

    def pad(self, x: Array, padding: Pair) -> Array:
        """Surround the last two axes with zeros."""
        for axis, width in ((-2, padding[0]), (-1, padding[1])):
            if width:
                shape = list(x.shape)
                shape[axis] = width
                zeros = self.zeros_like(x, tuple(shape))
                x = self.concat([zeros, x, zeros], axis)
        return x

    def windows(self, x: Array, size: Pair, stride: Pair, dilation: Pair = (1, 1)) -> Array:
        """Return the windows over the last two axes, as two additional axes before them: (..., i, j, row, column)."""
        counts = count_windows(x.shape[-2:], size, stride, dilation)
        elements = product(*map(range, size))
        stacked = self.stack([x[_find_element(element, counts, stride, dilation)] for element in elements], -3)
        return self.reshape(stacked, (*x.shape[:-2], *size, *counts))

    def conv2d(
        self,
        x: Array,
        weight: Array,
        stride: Pair = (1, 1),
        padding: Pair = (0, 0),
        dilation: Pair = (1, 1),
        groups: int = 1,
    ) -> Array:
        """Convolve images (batch, channels, height, width) with filters, modulo a power of two."""
        patches, places = self._columns(x, weight.shape[-2:], stride, padding, dilation, groups)
        products = self._multiply_groups(self.reshape(weight, (groups, weight.shape[0] // groups, -1)), patches)
        return self.permute(self.reshape(products, (weight.shape[0], *places)), (1, 0, 2, 3))

    def _columns(
        self, x: Array, size: Pair, stride: Pair, padding: Pair, dilation: Pair, groups: int, places: Pair = ()
    ) -> tuple[Array, Shape]:
        """Return the windows of images as columns (group, element of a window, place), and the shape of the places.

        Only the first rows and columns of windows are used if their numbers are given as ``places``.
        """
        views = self.windows(self.pad(x, padding), size, stride, dilation)
        if places:
            views = views[..., : places[0], : places[1]]
        batch, channels, rows, columns, high, wide = views.shape
        shape = (groups, channels // groups * rows * columns, batch * high * wide)
        return self.reshape(self.permute(views, (1, 2, 3, 0, 4, 5)), shape), (batch, high, wide)

    def _multiply_groups(self, x: Array, y: Array) -> Array:
        return self.matmul(x[0, ...], y[0, ...]) if x.shape[0] == 1 else self.matmul(x, y)

    def fold(self, views: Array, shape: Sequence[int], stride: Pair, padding: Pair, dilation: Pair) -> Array:
        """Add windows (..., i, j, row, column) to images of a shape, at the places that ``windows`` took them from."""
        high, wide = shape[-2:]
        images = self.zeros_like(views, (*shape[:-2], high + 2 * padding[0], wide + 2 * padding[1]))
        *_, rows, columns, down, across = views.shape
        for i, j in product(range(rows), range(columns)):
            place = _find_element((i, j), (down, across), stride, dilation)
            images[place] = images[place] + views[..., i, j, :, :]
        return images[..., padding[0] : padding[0] + high, padding[1] : padding[1] + wide]

    def conv2d_input(
        self, gradient: Array, weight: Array, *, shape: Shape, stride: Pair, padding: Pair, dilation: Pair, groups: int
    ) -> Array:
        """Compute the gradient of a convolution with respect to its input of this shape."""
        (batch, _, high, wide), (_, per_group, rows, columns) = gradient.shape, weight.shape
        filters = weight.shape[0] // groups
        part = self.reshape(self.permute(gradient, (1, 0, 2, 3)), (groups, filters, batch * high * wide))
        kernel = self.reshape(weight, (groups, filters, per_group * rows * columns))
        products = self._multiply_groups(self.permute(kernel, (0, 2, 1)), part)
        views = self.reshape(products, (groups * per_group, rows, columns, batch, high, wide))
        return self.fold(self.permute(views, (3, 0, 1, 2, 4, 5)), shape, stride, padding, dilation)

    def conv2d_weight(
        self, x: Array, gradient: Array, *, shape: Shape, stride: Pair, padding: Pair, dilation: Pair, groups: int
    ) -> Array:
        """Compute the gradient of a convolution with respect to its filters of this shape."""
        (batch, _, high, wide), filters = gradient.shape, shape[0] // groups
        patches, _ = self._columns(x, shape[-2:], stride, padding, dilation, groups, (high, wide))
        part = self.reshape(self.permute(gradient, (1, 0, 2, 3)), (groups, filters, batch * high * wide))
        return self.reshape(self._multiply_groups(part, self.permute(patches, (0, 2, 1))), shape)

    # --- fixed precision

    def saturate(self, x: Array, limit: float) -> Array:
        """Limit real numbers to a range, and set NaN to 0; also those of pointers."""
        raise NotImplementedError

    def encode(self, x: Array, scale: float, dtype: str) -> Array:
        """Return real numbers, times ``scale``, as the nearest integers."""
        numbers = self.xp.astype(x, self.xp.float64) * scale
        return self.xp.astype(self.xp.round(numbers), self.dtype(dtype))

    def decode(self, x: Array, scale: int, dtype: Any) -> Array:
        """Return integers, divided by ``scale``, as real numbers of a dtype."""
        return self.xp.astype(self.xp.astype(x, self.xp.float64) / scale, dtype)

    def random_mask(self, shape: Shape, probability: float) -> Array:
        """Return 1 with a probability, and 0 otherwise, from the operating system's random numbers."""
        size = size_of(shape, "int64")
        numbers = self.from_bytes(bytearray(secrets.token_bytes(size)), "int64", shape)
        return self.cast((numbers & ((1 << 53) - 1)) < int(probability * (1 << 53)), "int64")

    def compute(self, function: Callable[..., Array], x: Array, options: Mapping[str, Any]) -> Array:
        """Compute a function of real numbers; where it has no value, the result is not a finite number."""
        return function(self, x, **options)

    def erf(self, x: Array) -> Array:
        """Compute the error function of real numbers."""
        numbers = [math.erf(number) for number in self.reshape(x, (-1,)).tolist()]
        return self.reshape(self.xp.asarray(numbers, dtype=x.dtype), tuple(x.shape))

    def is_within(self, x: Array, limit: float) -> bool:
        """Return whether all elements are finite and smaller than ``limit`` in size."""
        return bool(self.xp.all((x < limit) & (x > -limit)))


class NumpyLikeKernels(Kernels):
    """The functions of a namespace like numpy's, under the names that older versions of numpy have too."""

    def equal(self, x: Array, y: Array) -> bool:
        """Return whether two arrays have the same shape and equal elements."""
        one, other = x.__array_interface__, y.__array_interface__
        is_same = one["data"] == other["data"] and one["strides"] == other["strides"] and x.dtype == y.dtype
        return bool(x.shape == y.shape and (is_same or (x == y).all()))

    def wrapping_around(self) -> AbstractContextManager[object]:
        """Return a context without warnings about single integers that overflow."""
        return self.xp.errstate(over="ignore")  # type: ignore[no-any-return]  # of any namespace

    def from_bytes(self, buffer: bytearray | memoryview, dtype: str, shape: Shape) -> Array:
        """Return an array in the memory of ``buffer``."""
        return self.xp.frombuffer(buffer, dtype=dtype).reshape(shape)

    def expand(self, stream: Stream, dtype: str, shape: Shape) -> Array:
        """Return an array with the next random numbers of a stream."""
        if size_of(shape, dtype) < LONG:
            return super().expand(stream, dtype, shape)
        numbers = self.xp.empty(shape, dtype)
        stream.fill(memoryview(numbers.reshape(-1)).cast("B"))
        return numbers

    def to_bytes(self, x: Array) -> bytes | memoryview:
        """Return the memory of an array."""
        return self.xp.ascontiguousarray(x).data  # type: ignore[no-any-return]  # of any namespace

    def column(self, numbers: Sequence[float], like: Array, dtype: str) -> Array:
        """Return public numbers along a new first axis, to be combined with an array."""
        return _column(self.xp, tuple(numbers), dtype).reshape(-1, *[1] * like.ndim)

    def cast(self, x: Array, dtype: str) -> Array:
        """Convert the elements, modulo the range of the type."""
        return x.astype(dtype, copy=False)

    def concat(self, parts: Sequence[Array], axis: int = 0) -> Array:
        """Join arrays along an axis."""
        return self.xp.concatenate(parts, axis)

    def select(self, x: Array, places: Sequence[int]) -> Array:
        """Return the lines of an array at these places of its first axis."""
        return x.take(_column(self.xp, tuple(places), "int64"), 0)

    def permute(self, x: Array, axes: Sequence[int]) -> Array:
        """Reorder the axes."""
        return x.transpose(tuple(axes))

    def reshape(self, x: Array, shape: Shape) -> Array:
        """Return the elements in another shape."""
        return x.reshape(shape)

    def sum(self, x: Array, axis: int | tuple[int, ...]) -> Array:
        """Add the elements along axes, modulo the ring."""
        return x.sum(axis, dtype=x.dtype)

    def blockwise(self, function: Callable[..., Array], *arrays: Array) -> Array:
        """Compute a function of elements in blocks that fit into the processor's cache."""
        first = arrays[0]
        if first.size <= BLOCK:
            return function(*arrays)
        result = self.xp.empty(first.shape, first.dtype)
        flat = [array.reshape(-1) for array in (result, *arrays)]
        for start in range(0, first.size, BLOCK):
            target, *parts = [array[start : start + BLOCK] for array in flat]
            target[...] = function(*parts)
        return result

    def matmul(self, x: Array, y: Array) -> Array:
        """Multiply matrices, in the way that is fastest for their size; see products.py."""
        if x.ndim > 1 and y.ndim > 1:
            return self._multiply(x, y)
        wide, high = x if x.ndim > 1 else x[None], y if y.ndim > 1 else y[:, None]
        found = self._multiply(wide, high)
        axes = (*([-1] if y.ndim == 1 else []), *([-2] if x.ndim == 1 else []))
        return found.squeeze(axes)

    def ways_to_multiply(self) -> dict[str, Product]:
        """Return the functions that multiply matrices of integers, by name."""
        return {
            "matmul": self.xp.matmul,
            "einsum": self.multiply_by_rows,
            DIGITS: self.multiply_by_digits,
        }

    @cached_property
    def _multiply(self) -> FastestProduct:
        return FastestProduct(self.ways_to_multiply())

    def multiply_by_rows(self, x: Array, y: Array) -> Array:
        """Multiply matrices by the lines of one and the columns of the other, which are brought together in memory."""
        columns = self.xp.ascontiguousarray(y.swapaxes(-1, -2))
        return self.xp.einsum("...ik,...jk->...ij", self.xp.ascontiguousarray(x), columns)

    def multiply_by_digits(self, x: Array, y: Array) -> Array:
        """Multiply matrices by their digits; see Note [Digits]."""
        if 0 in (*x.shape, *y.shape):
            return self.xp.matmul(x, y)
        parts = [
            self.multiply_part(x[..., start : start + TERMS], y[..., start : start + TERMS, :])
            for start in range(0, x.shape[-1], TERMS)
        ]
        return reduce(iadd, parts)

    def multiply_part(self, x: Array, y: Array) -> Array:
        """Multiply matrices by their digits, with up to ``TERMS`` products in a sum."""
        return self.multiply_digits(x, y, self.multiply_matrices, x.shape[-1])

    def windows(self, x: Array, size: Pair, stride: Pair, dilation: Pair = (1, 1)) -> Array:
        """Return the windows over the last two axes, as a view that cannot be written to."""
        x = self.xp.ascontiguousarray(x)
        line, item = x.strides[-2:]
        places = count_windows(x.shape[-2:], size, stride, dilation)
        if min(places) < 1:
            raise ValueError(f"windows of {tuple(size)} are larger than the image")
        strides = (dilation[0] * line, dilation[1] * item, stride[0] * line, stride[1] * item)
        # This takes a fifth of the time of ``sliding_window_view``.
        views = self.xp.ndarray((*x.shape[:-2], *size, *places), x.dtype, x, 0, (*x.strides[:-2], *strides))
        views.flags.writeable = False
        return views

    def to_floats(self, x: Array) -> Array:
        """Convert integers to floats with 53 bits."""
        return x.astype(self.xp.float64)

    def saturate(self, x: Array, limit: float) -> Array:
        """Limit real numbers to a range, and set NaN to 0; also those of pointers."""
        return self.xp.clip(self.xp.nan_to_num(x.astype(self.xp.float64)), -limit, limit)

    def encode(self, x: Array, scale: float, dtype: str) -> Array:
        """Return real numbers, times ``scale``, as the nearest integers."""
        return self.xp.rint(x.astype(self.xp.float64) * scale).astype(dtype)

    def decode(self, x: Array, scale: int, dtype: Any) -> Array:
        """Return integers, divided by ``scale``, as real numbers of a dtype."""
        return (x.astype(self.xp.float64) / scale).astype(dtype)

    def compute(self, function: Callable[..., Array], x: Array, options: Mapping[str, Any]) -> Array:
        """Compute a function of real numbers, without warnings."""
        with self.xp.errstate(all="ignore"):
            return super().compute(function, x, options)


def count_windows(lengths: Pair, size: Pair, stride: Pair, dilation: Pair = (1, 1), padding: Pair = (0, 0)) -> Shape:
    """Return how many windows there are along the height and the width of images.

    >>> count_windows((28, 28), size=(5, 5), stride=(1, 2))
    (24, 12)
    """
    sides = zip(lengths, size, stride, dilation, padding, strict=True)
    return tuple([(length + 2 * edge - gap * (span - 1) - 1) // step + 1 for length, span, step, gap, edge in sides])


def _find_element(element: Pair, counts: Pair, stride: Pair, dilation: Pair) -> tuple[Any, ...]:
    """Return where all windows have one of their elements, as an index of images."""
    sides = zip(element, counts, stride, dilation, strict=True)
    return ..., *[slice(k * gap, k * gap + (count - 1) * step + 1, step) for k, count, step, gap in sides]


@lru_cache(maxsize=256)
def _column(namespace: Any, numbers: tuple[float, ...], dtype: str) -> Array:
    return namespace.asarray(numbers, dtype)


def dtype_name(x: Array) -> str:
    """Return the name of an array's dtype: "int64" for ``torch.int64``."""
    name = _names.get(x.dtype)
    if name is None:
        name = _names[x.dtype] = str(x.dtype).rpartition(".")[2]
    return name


_names: dict[Any, str] = {}


def size_of(shape: Shape, dtype: str) -> int:
    """Return the number of bytes of an array."""
    return math.prod(shape) * ITEM_BYTES[dtype]


_CODES = {"int64": "q", "int32": "i", "int16": "h", "uint8": "B"}
