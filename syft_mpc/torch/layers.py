"""Torch's kernels for layers of networks on encoded numbers: convolution, pooling, normalization, losses, dropout."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from syft_core.values import Kwargs
from syft_mpc import integers, pooling, spdz
from syft_mpc.integers import Integers
from syft_mpc.kernels import dtype_name
from syft_mpc.numbers import Numbers, is_plain, refuse
from syft_mpc.order import find_largest_row
from syft_mpc.protocol import Role
from syft_mpc.secret_places import SecretPlaces
from syft_mpc.truncation import BITS

DRAW = "compare public random numbers with them: `torch.rand(p.shape) < p`"
NO_REDUCTION, MEAN = 0, 1
"""Torch's numbers for the reduction of a loss: one number for each row, or the mean."""


# --- convolution


def convolution(
    numbers: Numbers,
    x: Integers,
    weight: Integers,
    bias: Integers,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Integers:
    """Convolve one- or two-dimensional images; a transposed convolution is the gradient of an ordinary one."""
    lengths = len(integers.shape_of(weight)) - 2
    if lengths not in (1, 2):
        refuse("three-dimensional convolution", "add two-dimensional convolutions of the slices")
    options = _geometry(lengths, stride, padding, dilation, groups)
    images, filters = (_widen(value, lengths) for value in (x, weight))
    op = spdz.INPUTS if transposed else spdz.IMAGES
    if transposed:
        options["shape"] = _transposed_shape(images, filters, (*(0,) * (2 - lengths), *output_padding), options)
    if bias is None:
        return _narrow(integers.multiply(images, filters, numbers.scale, op, **options), lengths)
    return _narrow(integers.multiply_and_add(images, filters, bias, numbers.scale, op, **options), lengths)


def convolution_backward(
    numbers: Numbers,
    gradient: Integers,
    x: Integers,
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
    grad, inputs, filters = (_widen(value, lengths) for value in (gradient, x, weight))
    results: list[Any] = [None, None, None]
    if output_mask[0]:
        if transposed:
            found = integers.multiply(grad, filters, numbers.scale, spdz.IMAGES, **options)
        else:
            shape = integers.shape_of(inputs)
            found = integers.multiply(grad, filters, numbers.scale, spdz.INPUTS, shape=shape, **options)
        results[0] = _narrow(found, lengths)
    if output_mask[1]:
        images = (grad, inputs) if transposed else (inputs, grad)
        shape = integers.shape_of(filters)
        found = integers.multiply(*images, numbers.scale, spdz.FILTERS, shape=shape, **options)
        results[1] = _narrow(found, lengths)
    if output_mask[2]:
        results[2] = integers.total(gradient, (0, *range(2, 2 + lengths)))
    return tuple(results)


# --- pooling


def max_pool(
    numbers: Numbers,
    x: Integers,
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0, 0),
    dilation: Sequence[int] = (1, 1),
    ceil_mode: bool = False,
) -> tuple[Integers, Integers]:
    """Return the largest number of each window, and the places of these numbers, which are secret."""
    images, options = _prepare_images(x, kernel_size, stride, padding, dilation, ceil_mode, lowest=True)
    if integers.is_shared(images):
        found = images.run(pooling.max_pool2d, **options)
    else:
        windows = pooling.stack_windows(Role(0, 1, integers.kernels_of(images)), images, **options)
        found = find_largest_row(windows, positions=False)
    shape = (*integers.shape_of(x)[:-2], *integers.shape_of(found)[-2:])
    return integers.reshape(found, shape), SecretPlaces(child=integers.kernels_of(x).zeros(shape, "int64"))


def max_pool_backward(numbers: Numbers, gradient: Integers, x: Integers, *window: Any) -> Integers:
    """Pass the gradient of each window to the first of its largest numbers; ``window`` as for ``max_pool``."""
    images, options = _prepare_images(x, *window, lowest=True)
    if integers.is_shared(images):
        marks = images.run(pooling.max_pool2d_positions, **options)
    else:
        windows = pooling.stack_windows(Role(0, 1, integers.kernels_of(images)), images, **options)
        marks = find_largest_row(windows, positions=True)[1]
    wide = integers.reshape(gradient, integers.shape_of(marks)[1:])
    return _spread(integers.multiply(marks, wide), images, x, options)


def average_pool(
    numbers: Numbers,
    x: Integers,
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0, 0),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Integers:
    """Return the mean of each window."""
    images, options = _prepare_images(x, kernel_size, stride, padding, None, ceil_mode)
    total = images.run(pooling.sum_pool2d, **options) if integers.is_shared(images) else _sum_windows(images, options)
    found = _over_windows(numbers, total, x, images, count_include_pad, divisor_override, options)
    return integers.reshape(found, (*integers.shape_of(x)[:-2], *integers.shape_of(found)[-2:]))


def average_pool_backward(
    numbers: Numbers,
    gradient: Integers,
    x: Integers,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Integers:
    """Pass the gradient of each window to all of its numbers."""
    images, options = _prepare_images(x, kernel_size, stride, padding, None, ceil_mode)
    wide = integers.reshape(gradient, (*integers.shape_of(images)[:2], *integers.shape_of(gradient)[-2:]))
    part = _over_windows(numbers, wide, x, images, count_include_pad, divisor_override, options)
    shape = integers.shape_of(part)
    spread = integers.expand(integers.reshape(part, (1, *shape)), (prod(options["size"]), *shape))
    return _spread(integers.multiply(spread, 1), images, x, options)


def _over_windows(
    numbers: Numbers,
    x: Integers,
    images: Integers,
    extended: Integers,
    counts_padding: bool,
    divisor: int | None,
    options: Kwargs,
) -> Integers:
    """Divide the sums of windows by the numbers of their elements; extensions of the images do not count."""
    sizes = [integers.shape_of(value)[-2:] for value in (images, extended)]
    if divisor or (sizes[0] == sizes[1] and (counts_padding or not any(options["padding"]))):
        return numbers.over(x, divisor or prod(options["size"]))
    kernels, edges = integers.kernels_of(images), options["padding"]
    lines = []
    for length, whole, edge in zip(*sizes, edges, strict=True):
        place = kernels.arange(whole + 2 * edge)
        used = place < length + 2 * edge if counts_padding else (place >= edge) & (place < edge + length)
        lines.append(kernels.cast(used, "int64"))
    area = kernels.reshape(lines[0], (1, 1, -1, 1)) * kernels.reshape(lines[1], (1, 1, 1, -1))
    return numbers.over_each(x, kernels.to_floats(_sum_windows(area, {**options, "padding": (0, 0)})))


# --- normalization


def layer_norm(
    numbers: Numbers, x: Integers, shape: Sequence[int], weight: Integers, bias: Integers, eps: float
) -> tuple[Integers, Integers, Integers]:
    """Normalize along the last axes; return also the mean and the reciprocal of the standard deviation."""
    rank = len(integers.shape_of(x))
    mean, centred, rstd, _ = _standardize(numbers, x, tuple(range(rank - len(shape), rank)), eps)
    return _rescale(numbers, numbers.mul(centred, rstd), weight, bias), mean, rstd


def group_norm(
    numbers: Numbers,
    x: Integers,
    weight: Integers,
    bias: Integers,
    batch: int,
    channels: int,
    length: int,
    groups: int,
    eps: float,
) -> tuple[Integers, Integers, Integers]:
    """Normalize groups of channels."""
    shape = integers.shape_of(x)
    grouped = integers.reshape(x, (batch, groups, channels // groups * length))
    mean, centred, rstd, _ = _standardize(numbers, grouped, (2,), eps)
    result = integers.reshape(numbers.mul(centred, rstd), shape)
    flat = [integers.reshape(value, (batch, groups)) for value in (mean, rstd)]
    return _rescale(numbers, result, weight, bias, (-1, *(1,) * (len(shape) - 2))), flat[0], flat[1]


def batch_norm_without_training(
    numbers: Numbers, x: Integers, weight: Integers, bias: Integers, mean: Integers, var: Integers, *rest: float
) -> tuple[Integers, Integers, Integers]:
    """Normalize each channel with the running statistics."""
    return batch_norm(numbers, x, weight, bias, mean, var, False, *rest)


def batch_norm_legit(
    numbers: Numbers, x: Integers, weight: Integers, bias: Integers, *rest: Any
) -> tuple[Integers, Integers, Integers]:
    """Normalize each channel; running statistics, if given, stand before the other arguments."""
    return batch_norm(numbers, x, weight, bias, *(rest if len(rest) == 5 else (None, None, *rest)))


def batch_norm(
    numbers: Numbers,
    x: Integers,
    weight: Integers,
    bias: Integers,
    running_mean: Integers,
    running_var: Integers,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Integers, Integers, Integers]:
    """Normalize each channel, with the statistics of the batch or, in evaluation, with the running ones.

    Plain operands are encoded here: plain running statistics could not be updated.
    """
    if training and (is_plain(running_mean) or is_plain(running_var)):
        refuse(
            "batch norm in training with plain running statistics, which cannot be updated",
            "share the model too, or call `model.eval()`",
        )
    x, weight, bias, mean, var = map(numbers.encode_if_plain, (x, weight, bias, running_mean, running_var))
    shape = integers.shape_of(x)
    channel = (-1, *(1,) * (len(shape) - 2))
    if not training:
        rstd = numbers.compute("rsqrt", numbers.plus(var, eps))
        centred = integers.sub(x, integers.reshape(mean, channel))
        result = numbers.mul(centred, integers.reshape(rstd, channel))
        return _rescale(numbers, result, weight, bias, channel), mean, rstd
    axes = (0, *range(2, len(shape)))
    batch_mean, centred, rstd, batch_var = _standardize(numbers, x, axes, eps)
    flat = [integers.reshape(value, (-1,)) for value in (batch_mean, rstd, batch_var)]
    if mean is not None:
        count = prod(shape[axis] for axis in axes)
        _move(numbers, mean, flat[0], momentum)
        _move(numbers, var, numbers.times(flat[2], count / max(count - 1, 1)), momentum)
    return _rescale(numbers, numbers.mul(centred, rstd), weight, bias, channel), flat[0], flat[1]


def _move(numbers: Numbers, running: Integers, new: Integers, momentum: float) -> None:
    moved = integers.add(numbers.times(running, 1 - momentum), numbers.times(new, momentum))
    integers.overwrite(running, moved)


def _standardize(
    numbers: Numbers, x: Integers, axes: tuple[int, ...], eps: float
) -> tuple[Integers, Integers, Integers, Integers]:
    """Return the mean, the difference from it, the reciprocal of the standard deviation, and the variance."""
    count = prod(integers.shape_of(x)[axis] for axis in axes)
    mean = numbers.over(integers.total(x, axes, keepdims=True), count)
    centred = integers.sub(x, mean)
    squares = numbers.square(centred)
    variance = numbers.over(integers.total(squares, axes, keepdims=True), count)
    return mean, centred, numbers.compute("rsqrt", numbers.plus(variance, eps)), variance


def _rescale(
    numbers: Numbers, x: Integers, weight: Integers, bias: Integers, shape: tuple[int, ...] | None = None
) -> Integers:
    factors = [value if value is None or shape is None else integers.reshape(value, shape) for value in (weight, bias)]
    if factors[0] is not None:
        x = numbers.mul(x, factors[0])
    return x if factors[1] is None else integers.add(x, factors[1])


# --- classification


def nll_loss(
    numbers: Numbers, x: Integers, target: Any, weight: Any, reduction: int, ignore_index: int
) -> tuple[Integers, Integers]:
    """Return the loss of log-probabilities for public classes, and the sum of the weights of these classes."""
    marks, weights = _mark_classes(numbers, x, target, weight, ignore_index)
    losses = integers.neg(integers.total(integers.multiply(x, marks), int(len(integers.shape_of(x)) > 1)))
    if weight is not None:
        losses = numbers.mul(losses, weights)
    total = integers.total(weights)
    if reduction != NO_REDUCTION:
        losses = integers.total(losses)
    return numbers.over(losses, float(total) / numbers.scale) if reduction == MEAN else losses, total


def nll_loss_backward(
    numbers: Numbers,
    gradient: Integers,
    x: Integers,
    target: Any,
    weight: Any,
    reduction: int,
    ignore_index: int,
    total: Integers,
) -> Integers:
    """Pass the gradient of each loss to the log-probability of its class."""
    marks, weights = _mark_classes(numbers, x, target, weight, ignore_index)
    gradient = integers.neg(numbers.encode_if_plain(gradient))
    if reduction == MEAN:
        gradient = numbers.over(gradient, float(total) / numbers.scale)
    if weight is not None:
        gradient = numbers.mul(gradient, weights)
    if integers.shape_of(gradient):
        gradient = integers.unsqueeze(gradient, 1)
    return integers.multiply(gradient, marks)


def _mark_classes(
    numbers: Numbers, x: Integers, target: Any, weight: Any, ignore_index: int
) -> tuple[Integers, Integers]:
    """Return 1 at the class of each row of x and 0 elsewhere; and the weight of each row, as a number."""
    if not hasattr(target, "shape") or integers.is_shared(target) or integers.is_shared(weight):
        refuse(
            "a classification loss with shared classes or weights",
            "use shared one-hot vectors as target of cross_entropy, or public classes and weights",
        )
    kernels, shape = integers.kernels_of(target), integers.shape_of(x)
    axis = int(len(shape) > 1)
    classes = kernels.reshape(kernels.arange(shape[axis]), (-1, *(1,) * (len(shape) - axis - 1)))
    used = target != ignore_index
    if not bool(((target >= 0) & (target < shape[axis]) | ~used).all()):
        raise IndexError(f"cannot compute the loss: a class is not one of {shape[axis]}; use classes from 0 on")
    chosen = integers.unsqueeze(target, axis) == classes
    marks = kernels.cast(chosen & integers.unsqueeze(used, axis), dtype_name(x))
    if weight is None:
        return marks, kernels.cast(used, dtype_name(x)) * numbers.scale
    each = numbers.encode_if_plain(weight)
    return marks, integers.total(marks * integers.reshape(each, classes.shape), axis)


# --- embedding and dropout


def embedding(numbers: Numbers, weight: Integers, indices: Integers, *_options: Any) -> Integers:
    """Look up rows by public indices."""
    if bool((indices < 0).any()):
        raise IndexError("cannot look up rows: an index is negative; count from 0 on")
    return weight.on_each(lambda p: p[indices]) if integers.is_shared(weight) else weight[indices]


def dropout(numbers: Numbers, x: Integers, p: float, train: bool | None = None) -> tuple[Integers, Any]:
    """Set numbers to zero at random, with a public mask from the operating system's random numbers."""
    if not train:
        return x, None
    keep = _draw_mask(x, 1 - p)
    dropped = numbers.times(integers.multiply(x, keep), 1 / (1 - p) if p < 1 else 0)
    return dropped, integers.multiply(keep, numbers.scale)


def bernoulli(numbers: Numbers, x: Integers, p: float = 0.5, *, generator: object = None) -> Integers:
    """Draw 1 with a probability and 0 otherwise, publicly, as torch's dropout does."""
    if not isinstance(p, int | float):
        refuse("drawing with a tensor of probabilities", DRAW)
    if generator is not None:
        refuse("drawing with a generator", "leave it out: random numbers come from the operating system")
    return integers.multiply(_draw_mask(x, p), numbers.scale)


def _draw_mask(x: Integers, probability: float | None) -> Integers:
    kernels = integers.kernels_of(x)
    return kernels.cast(kernels.random_mask(integers.shape_of(x), probability or 0.0), dtype_name(x))


def _prepare_images(
    x: Integers,
    size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int] | None,
    ceil: bool,
    *,
    lowest: bool = False,
) -> tuple[Integers, Kwargs]:
    """Return images with a batch and, for ``ceil_mode``, with rows and columns for the last windows; and options.

    These rows and columns are zeros or, with ``lowest``, smaller than any number.
    """
    pair = [_pair(value) for value in (size, stride or size, padding, dilation or 1)]
    shape = integers.shape_of(x)
    if len(shape) not in (3, 4):
        raise ValueError(
            f"cannot pool values of shape {shape}: images are (channels, height, width), with or without a batch "
            f"before these; reshape them"
        )
    missing = []
    for length, window, step, edge, gap in zip(shape[-2:], *pair, strict=True):
        span = gap * (window - 1) + 1
        rest = length + 2 * edge - span
        if rest < 0:
            raise ValueError(f"cannot pool images of shape {shape}: the windows are larger; use smaller ones")
        more = -(rest // -step)
        if more * step >= length + edge:  # No window starts in the padding behind the image.
            more -= 1
        missing.append(max(0, more * step - rest) if ceil else 0)
    names = ("size", "stride", "padding", "dilation")[: 3 if dilation is None else 4]
    images = x if len(shape) == 4 else integers.reshape(x, (1, *shape))
    if any(missing):
        images = _extend(images, missing, -(1 << (BITS[dtype_name(x)] - 4)) if lowest else 0)
    return images, dict(zip(names, pair, strict=False))


def _extend(images: Integers, missing: Sequence[int], fill: int) -> Integers:
    sizes, kernels = integers.shape_of(images)[-2:], integers.kernels_of(images)
    for count in reversed(missing):  # columns, then rows
        if count:
            line = integers.multiply(integers.take(images, slice(1)), 0)
            images = integers.join([images, integers.expand(line, (*integers.shape_of(line)[:-1], count))])
        images = integers.permute(images, (0, 1, 3, 2))
    rows, columns = (kernels.arange(size + count) >= size for size, count in zip(sizes, missing, strict=True))
    added = kernels.cast(kernels.reshape(rows, (-1, 1)) | kernels.reshape(columns, (1, -1)), dtype_name(images))
    return integers.add(images, added * fill) if fill else images


def _spread(windows: Integers, images: Integers, x: Integers, options: Kwargs) -> Integers:
    whole, shape = integers.shape_of(images), integers.shape_of(x)
    if integers.is_shared(windows):
        found = windows.run(pooling.unpool2d, shape=whole, **options)
    else:
        found = pooling.fold_windows(integers.kernels_of(windows), windows, whole, **options)
    if whole[-2:] != shape[-2:]:
        part = (..., slice(shape[-2]), slice(shape[-1]))
        found = found.on_each(lambda p: p[part]) if integers.is_shared(found) else found[part]
    return integers.reshape(found, shape)


def _sum_windows(x: Integers, options: Kwargs) -> Integers:
    kernels = integers.kernels_of(x)
    views = kernels.windows(kernels.pad(x, options["padding"]), options["size"], options["stride"])
    return kernels.sum(views, (2, 3))


def _geometry(
    lengths: int, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], groups: int
) -> Kwargs:
    options = {"stride": (1, stride), "padding": (0, padding), "dilation": (1, dilation)}
    wide = {name: (first, *numbers) if lengths == 1 else _pair(numbers) for name, (first, numbers) in options.items()}
    return {**wide, "groups": groups}


def _transposed_shape(x: Integers, filters: Integers, extra: Sequence[int], options: Kwargs) -> tuple[int, ...]:
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
