"""Rules of fixed-precision numbers for the operations of neural networks: convolution, pooling, embedding, dropout."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from syft_core.crypto import comparison, integers, pooling, spdz
from syft_core.crypto.approximations import RealFunctions
from syft_core.crypto.integers import Integers
from syft_core.crypto.kernels import dtype_name
from syft_core.crypto.protocol import Party
from syft_core.exceptions import OperationNotAllowedError
from syft_core.hook.overload import overloaded, with_indices
from syft_core.values import Kwargs

NO_REDUCTION, MEAN = 0, 1
"""Torch's numbers for what a loss returns: one number for each row, or the mean."""


class NeuralNumbers(RealFunctions):
    """The rules that ``FixedPrecisionTensor`` inherits."""

    # --- convolution

    @overloaded.method
    def convolution(
        self,
        _self: Integers,
        weight: Integers,
        bias: Integers,
        stride: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
        transposed: bool,
        output_padding: Sequence[int],
        groups: int,
    ) -> Integers:
        """Convolve one- or two-dimensional images; a transposed convolution is the gradient of another one."""
        lengths = len(integers.shape_of(weight)) - 2
        if lengths not in (1, 2):
            self._refuse("three-dimensional convolution")
        options = _geometry(lengths, stride, padding, dilation, groups)
        x, filters = (_widen(value, lengths) for value in (_self, weight))
        op = spdz.INPUTS if transposed else spdz.IMAGES
        if transposed:
            options["shape"] = _transposed_shape(x, filters, (*(0,) * (2 - lengths), *output_padding), options)
        if bias is None:
            return _narrow(integers.multiply(x, filters, self.scale, op, **options), lengths)
        return _narrow(integers.multiply_and_add(x, filters, bias, self.scale, op, **options), lengths)

    @overloaded.method
    def convolution_backward(
        self,
        gradient: Integers,
        _self: Integers,
        weight: Integers,
        bias_sizes: Any,
        stride: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
        transposed: bool,
        output_padding: Sequence[int],
        groups: int,
        output_mask: Sequence[bool],
    ) -> tuple[Integers, ...]:
        """Return the gradients of a convolution with respect to its input, filters and bias."""
        lengths = len(integers.shape_of(weight)) - 2
        options = _geometry(lengths, stride, padding, dilation, groups)
        grad, x, filters = (_widen(value, lengths) for value in (gradient, _self, weight))
        results: list[Any] = [None, None, None]
        if output_mask[0]:
            if transposed:
                found = integers.multiply(grad, filters, self.scale, spdz.IMAGES, **options)
            else:
                shape = integers.shape_of(x)
                found = integers.multiply(grad, filters, self.scale, spdz.INPUTS, shape=shape, **options)
            results[0] = _narrow(found, lengths)
        if output_mask[1]:
            images = (grad, x) if transposed else (x, grad)
            shape = integers.shape_of(filters)
            found = integers.multiply(*images, self.scale, spdz.FILTERS, shape=shape, **options)
            results[1] = _narrow(found, lengths)
        if output_mask[2]:
            results[2] = integers.total(gradient, (0, *range(2, 2 + lengths)))
        return tuple(results)

    # --- pooling

    @overloaded.method
    def max_pool2d_with_indices(
        self,
        _self: Integers,
        kernel_size: Sequence[int],
        stride: Sequence[int] = (),
        padding: Sequence[int] = (0, 0),
        dilation: Sequence[int] = (1, 1),
        ceil_mode: bool = False,
    ) -> tuple[Integers, Integers]:
        """Return the largest number of each window and, in place of the indices, which are secret, the images."""
        options = self._pool_options(_self, kernel_size, stride, padding, dilation, ceil_mode)
        if integers.is_shared(_self):
            return _self.run(pooling.max_pool2d, **options), _self
        windows = pooling.stack_windows(Party(0, 1, integers.kernels_of(_self)), _self, **options)
        return _largest_plain(windows, positions=False), _self

    @overloaded.method
    def max_pool2d_with_indices_backward(
        self,
        gradient: Integers,
        _self: Integers,
        kernel_size: Sequence[int],
        stride: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
        ceil_mode: bool,
        indices: Integers,
    ) -> Integers:
        """Pass the gradient of each window to the first of its largest numbers."""
        options = self._pool_options(_self, kernel_size, stride, padding, dilation, ceil_mode)
        if not integers.is_shared(_self):
            self._refuse("the gradient of max pooling of numbers that are not shared")
        marks = _self.run(pooling.max_pool2d_positions, **options)
        gradient = gradient if integers.is_shared(gradient) else integers.make_public(gradient, _self)
        return integers.multiply(marks, gradient).run(pooling.unpool2d, shape=integers.shape_of(_self), **options)

    @overloaded.method
    def avg_pool2d(
        self,
        _self: Integers,
        kernel_size: Sequence[int],
        stride: Sequence[int] = (),
        padding: Sequence[int] = (0, 0),
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Integers:
        """Return the mean of each window."""
        options = self._average_options(_self, kernel_size, stride, padding, ceil_mode)
        total = _self.run(pooling.sum_pool2d, **options) if integers.is_shared(_self) else _sum_windows(_self, options)
        return self._over_windows(total, _self, count_include_pad, divisor_override, options)

    @overloaded.method
    def avg_pool2d_backward(
        self,
        gradient: Integers,
        _self: Integers,
        kernel_size: Sequence[int],
        stride: Sequence[int],
        padding: Sequence[int],
        ceil_mode: bool,
        count_include_pad: bool,
        divisor_override: int | None,
    ) -> Integers:
        """Pass the gradient of each window to all of its numbers."""
        options = self._average_options(_self, kernel_size, stride, padding, ceil_mode)
        if not integers.is_shared(gradient):
            self._refuse("the gradient of average pooling of numbers that are not shared")
        part = self._over_windows(gradient, _self, count_include_pad, divisor_override, options)
        shape = integers.shape_of(part)
        spread = integers.expand(integers.reshape(part, (1, *shape)), (prod(options["size"]), *shape))
        return integers.multiply(spread, 1).run(pooling.unpool2d, shape=integers.shape_of(_self), **options)

    def _pool_options(
        self,
        x: Integers,
        size: Sequence[int],
        stride: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
        ceil: bool,
    ) -> Kwargs:
        if ceil:
            self._refuse("pooling with ceil_mode")
        pair = [_pair(value) for value in (size, stride or size, padding, dilation)]
        for length, window, _, edge, step in zip(integers.shape_of(x)[-2:], *pair, strict=True):
            if length + 2 * edge < step * (window - 1) + 1:
                raise ValueError(
                    f"cannot pool images of shape {integers.shape_of(x)}: the windows are larger; use smaller ones"
                )
        return dict(zip(("size", "stride", "padding", "dilation"), pair, strict=True))

    def _average_options(
        self, x: Integers, size: Sequence[int], stride: Sequence[int], padding: Sequence[int], ceil: bool
    ) -> Kwargs:
        options = self._pool_options(x, size, stride, padding, (1, 1), ceil)
        del options["dilation"]
        return options

    def _over_windows(
        self, x: Integers, images: Integers, counts_padding: bool, divisor: int | None, options: Kwargs
    ) -> Integers:
        """Divide the sums of windows by the numbers of their elements."""
        if divisor or counts_padding or not any(options["padding"]):
            return self.numbers.over(x, divisor or prod(options["size"]))
        kernels, shape = integers.kernels_of(images), (1, 1, *integers.shape_of(images)[-2:])
        counts = _sum_windows(kernels.zeros(shape, dtype_name(images)) + 1, options)
        return self.numbers.over_each(x, kernels.to_floats(counts))

    # --- normalization

    @overloaded.method
    def native_layer_norm(
        self, _self: Integers, shape: Sequence[int], weight: Integers, bias: Integers, eps: float
    ) -> tuple[Integers, Integers, Integers]:
        """Normalize along the last axes; return also the mean and the reciprocal of the standard deviation."""
        rank = len(integers.shape_of(_self))
        mean, centred, rstd, _ = self._standardize(_self, tuple(range(rank - len(shape), rank)), eps)
        return self._rescale(self.numbers.mul(centred, rstd), weight, bias), mean, rstd

    @overloaded.method
    def native_group_norm(
        self,
        _self: Integers,
        weight: Integers,
        bias: Integers,
        batch: int,
        channels: int,
        length: int,
        groups: int,
        eps: float,
    ) -> tuple[Integers, Integers, Integers]:
        """Normalize groups of channels."""
        shape = integers.shape_of(_self)
        grouped = integers.reshape(_self, (batch, groups, channels // groups * length))
        mean, centred, rstd, _ = self._standardize(grouped, (2,), eps)
        result = integers.reshape(self.numbers.mul(centred, rstd), shape)
        flat = [integers.reshape(value, (batch, groups)) for value in (mean, rstd)]
        return self._rescale(result, weight, bias, (-1, *(1,) * (len(shape) - 2))), flat[0], flat[1]

    @overloaded.method
    @with_indices
    def native_batch_norm(
        self,
        _self: Integers,
        weight: Integers,
        bias: Integers,
        running_mean: Integers,
        running_var: Integers,
        training: bool,
        momentum: float,
        eps: float,
    ) -> tuple[Integers, Integers, Integers]:
        """Normalize each channel, with the statistics of the batch or, in evaluation, with the running ones."""
        return self._normalize(_self, weight, bias, running_mean, running_var, training, momentum, eps)

    @overloaded.method
    @with_indices
    def _native_batch_norm_legit_no_training(
        self,
        _self: Integers,
        weight: Integers,
        bias: Integers,
        mean: Integers,
        var: Integers,
        momentum: float,
        eps: float,
    ) -> tuple[Integers, Integers, Integers]:
        """Normalize each channel with the running statistics."""
        return self._normalize(_self, weight, bias, mean, var, False, momentum, eps)

    @overloaded.method
    @with_indices
    def _native_batch_norm_legit(
        self, _self: Integers, weight: Integers, bias: Integers, *rest: Any
    ) -> tuple[Integers, Integers, Integers]:
        """Normalize each channel; running statistics, if given, stand before the other arguments."""
        return self._normalize(_self, weight, bias, *(rest if len(rest) == 5 else (None, None, *rest)))

    def _normalize(
        self,
        _self: Integers,
        weight: Integers,
        bias: Integers,
        running_mean: Integers,
        running_var: Integers,
        training: bool,
        momentum: float,
        eps: float,
    ) -> tuple[Integers, Integers, Integers]:
        """Normalize each channel. Plain operands are encoded here: plain running statistics could not be updated."""
        plain = [name for name, x in (("mean", running_mean), ("var", running_var)) if self._is_plain(x)]
        if training and plain:
            self._refuse("batch norm in training with plain running statistics, which cannot be updated")
        _self, weight, bias, mean, var = (
            self.encode(x) if self._is_plain(x) else x for x in (_self, weight, bias, running_mean, running_var)
        )
        shape = integers.shape_of(_self)
        channel = (-1, *(1,) * (len(shape) - 2))
        if not training:
            rstd = self.compute("rsqrt", self.numbers.plus(var, eps))
            centred = integers.sub(_self, integers.reshape(mean, channel))
            result = self.numbers.mul(centred, integers.reshape(rstd, channel))
            return self._rescale(result, weight, bias, channel), mean, rstd
        axes = (0, *range(2, len(shape)))
        batch_mean, centred, rstd, batch_var = self._standardize(_self, axes, eps)
        flat = [integers.reshape(value, (-1,)) for value in (batch_mean, rstd, batch_var)]
        if mean is not None:
            count = prod(shape[axis] for axis in axes)
            self._move(mean, flat[0], momentum)
            self._move(var, self.numbers.times(flat[2], count / max(count - 1, 1)), momentum)
        return self._rescale(self.numbers.mul(centred, rstd), weight, bias, channel), flat[0], flat[1]

    def _is_plain(self, x: Integers) -> bool:
        """Return whether an operand is a plain tensor of real numbers, not encoded yet."""
        return hasattr(x, "shape") and dtype_name(x).startswith(("float", "bfloat"))

    def _move(self, running: Integers, new: Integers, momentum: float) -> None:
        """Move running statistics towards new ones, in place."""
        moved = integers.add(self.numbers.times(running, 1 - momentum), self.numbers.times(new, momentum))
        self.copy_onto(running).assign(moved)

    def _standardize(
        self, x: Integers, axes: tuple[int, ...], eps: float
    ) -> tuple[Integers, Integers, Integers, Integers]:
        """Return the mean, the difference from it, the reciprocal of the standard deviation, and the variance."""
        count = prod(integers.shape_of(x)[axis] for axis in axes)
        mean = self.numbers.over(integers.total(x, axes, keepdims=True), count)
        centred = integers.sub(x, mean)
        squares = self.numbers.square(centred)
        variance = self.numbers.over(integers.total(squares, axes, keepdims=True), count)
        return mean, centred, self.compute("rsqrt", self.numbers.plus(variance, eps)), variance

    def _rescale(self, x: Integers, weight: Integers, bias: Integers, shape: tuple[int, ...] | None = None) -> Integers:
        factors = [
            value if value is None or shape is None else integers.reshape(value, shape) for value in (weight, bias)
        ]
        if factors[0] is not None:
            x = self.numbers.mul(x, factors[0])
        return x if factors[1] is None else integers.add(x, factors[1])

    # --- classification

    @overloaded.method
    @with_indices
    def nll_loss_forward(
        self, _self: Integers, target: Any, weight: Any, reduction: int, ignore_index: int
    ) -> tuple[Integers, Integers]:
        """Return the loss of log-probabilities for public classes, and the sum of the weights of these classes."""
        marks, weights = self._mark_classes(_self, target, weight, ignore_index)
        losses = integers.neg(integers.total(integers.multiply(_self, marks), int(len(integers.shape_of(_self)) > 1)))
        if weight is not None:
            losses = self.numbers.mul(losses, weights)
        total = integers.total(weights)
        if reduction != NO_REDUCTION:
            losses = integers.total(losses)
        return self.numbers.over(losses, self._to_float(total)) if reduction == MEAN else losses, total

    nll_loss2d_forward = nll_loss_forward

    @overloaded.method
    @with_indices
    def nll_loss_backward(
        self,
        gradient: Integers,
        _self: Integers,
        target: Any,
        weight: Any,
        reduction: int,
        ignore_index: int,
        total: Integers,
    ) -> Integers:
        """Pass the gradient of each loss to the log-probability of its class."""
        marks, weights = self._mark_classes(_self, target, weight, ignore_index)
        gradient = integers.neg(self.encode(gradient) if self._is_plain(gradient) else gradient)
        if reduction == MEAN:
            gradient = self.numbers.over(gradient, self._to_float(total))
        if weight is not None:
            gradient = self.numbers.mul(gradient, weights)
        if integers.shape_of(gradient):
            gradient = integers.unsqueeze(gradient, 1)
        return integers.multiply(gradient, marks)

    nll_loss2d_backward = nll_loss_backward

    def _mark_classes(self, x: Integers, target: Any, weight: Any, ignore_index: int) -> tuple[Integers, Integers]:
        """Return 1 at the class of each row of x and 0 elsewhere; and the weight of each row, as a number."""
        if not hasattr(target, "shape") or integers.is_shared(target) or integers.is_shared(weight):
            self._refuse("a classification loss with shared classes or weights")
        kernels, shape = integers.kernels_of(target), integers.shape_of(x)
        axis = int(len(shape) > 1)
        classes = kernels.reshape(kernels.arange(shape[axis]), (-1, *(1,) * (len(shape) - axis - 1)))
        used = target != ignore_index
        if not bool(((target >= 0) & (target < shape[axis]) | ~used).all()):
            raise IndexError(f"cannot compute the loss: a class is not one of {shape[axis]}; use classes from 0 on")
        chosen = integers.unsqueeze(target, axis) == classes
        marks = kernels.cast(chosen & integers.unsqueeze(used, axis), dtype_name(x))
        if weight is None:
            return marks, kernels.cast(used, dtype_name(x)) * self.scale
        each = self.encode(weight) if self._is_plain(weight) else weight
        return marks, integers.total(marks * integers.reshape(each, classes.shape), axis)

    def _to_float(self, total: Integers) -> float:
        return float(total) / self.scale

    # --- embedding and dropout

    @overloaded.method
    @with_indices
    def embedding(self, weight: Integers, indices: Integers, *_options: Any) -> Integers:
        """Look up rows by public indices."""
        return weight.on_each(lambda p: p[indices]) if integers.is_shared(weight) else weight[indices]

    @overloaded.method
    def native_dropout(self, _self: Integers, p: float, train: bool | None = None) -> tuple[Integers, Any]:
        """Set numbers to zero at random, with a public mask from the operating system's random numbers."""
        if not train:
            return _self, None
        keep = self._draw_mask(_self, 1 - p)
        dropped = self.numbers.times(integers.multiply(_self, keep), 1 / (1 - p) if p < 1 else 0)
        return dropped, integers.multiply(keep, self.scale)

    @overloaded.method
    def bernoulli(self, _self: Integers, p: float | None = None, *, generator: object = None) -> Integers:
        """Draw 1 with a probability and 0 otherwise, publicly, as torch's dropout does."""
        if p is None or generator is not None:
            self._refuse("drawing with secret probabilities, or with a generator")
        return integers.multiply(self._draw_mask(_self, p), self.scale)

    def _draw_mask(self, x: Integers, probability: float | None) -> Integers:
        kernels = integers.kernels_of(x)
        return kernels.cast(kernels.random_mask(integers.shape_of(x), probability or 0.0), dtype_name(x))

    def _refuse(self, what: str) -> None:
        raise OperationNotAllowedError.refused_by(
            type(self).__name__, what, "there is no protocol for it; fetch the value, or use another layer"
        )


# --- the largest


def find_largest(x: Integers, axis: int, positions: bool = False) -> Integers:
    """Return the largest integers along an axis; with ``positions`` also marks of the first of them."""
    rank = len(integers.shape_of(x))
    axis = integers.find_axis(x, axis)
    order = (axis, *(other for other in range(rank) if other != axis))
    moved = integers.permute(x, order)
    if not integers.shape_of(moved)[0]:
        raise ValueError("cannot find the largest or smallest of no numbers: the axis is empty; leave the call out")
    if integers.shape_of(moved)[0] == 1:  # The result would use the memory of x.
        moved = integers.multiply(moved, 1)
    if integers.is_shared(x):
        found = moved.run(comparison.largest, positions=True) if positions else moved.run(comparison.largest)
    else:
        found = _largest_plain(moved, positions)
    if not positions:
        return found
    back = [order.index(place) for place in range(rank)]
    return found[0], integers.permute(found[1], back)


def _largest_plain(x: Integers, positions: bool) -> Integers:
    kernels = integers.kernels_of(x)
    top = x[0]
    for row in x[1:]:
        top = integers.maximum(top, row)
    if not positions:
        return top
    rows, taken = [], kernels.zeros(tuple(top.shape), dtype_name(x))
    for row in x:
        mark = integers.is_zero(row - top) * (1 - taken)
        taken = taken + mark
        rows.append(mark)
    return top, kernels.stack(rows, 0)


def _sum_windows(x: Integers, options: Kwargs) -> Integers:
    kernels = integers.kernels_of(x)
    views = kernels.windows(kernels.pad(x, options["padding"]), options["size"], options["stride"])
    return kernels.sum(views, (2, 3))


def _geometry(
    lengths: int, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], groups: int
) -> Kwargs:
    """Return the options of a convolution as those of a two-dimensional one."""
    pad = (0,) if lengths == 1 else ()
    one = (1,) if lengths == 1 else ()
    return {
        "stride": (*one, *stride),
        "padding": (*pad, *padding),
        "dilation": (*one, *dilation),
        "groups": groups,
    }


def _transposed_shape(x: Integers, filters: Integers, extra: Sequence[int], options: Kwargs) -> tuple[int, ...]:
    """Return the shape of the result of a transposed convolution."""
    images, size = integers.shape_of(x), integers.shape_of(filters)
    if images[1] != size[0]:
        raise ValueError(
            f"cannot convolve images of {images[1]} channels: the filters are for {size[0]}; use the same number"
        )
    lengths = [
        (images[k + 2] - 1) * options["stride"][k]
        - 2 * options["padding"][k]
        + options["dilation"][k] * (size[k + 2] - 1)
        + extra[k]
        + 1
        for k in range(2)
    ]
    return (images[0], size[1] * options["groups"], *lengths)


def _widen(x: Integers, lengths: int) -> Integers:
    """Give one-dimensional images a height of 1."""
    if lengths == 2:
        return x
    shape = integers.shape_of(x)
    return integers.reshape(x, (*shape[:-1], 1, shape[-1]))


def _narrow(x: Integers, lengths: int) -> Integers:
    shape = integers.shape_of(x)
    return x if lengths == 2 else integers.reshape(x, (*shape[:-2], shape[-1]))


def _pair(value: Any) -> tuple[int, int]:
    values = tuple(value) if isinstance(value, Sequence) else (value,)
    return (values[0], values[-1])
