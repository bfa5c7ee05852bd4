"""Pooling: protocols on windows of shared images (batch, channels, height, width)."""

from __future__ import annotations

from math import prod

from syft_mpc.comparison import count_comparisons, largest, sends_tournament
from syft_mpc.kernels import Array, Kernels, Pair, Shape, count_windows, dtype_name
from syft_mpc.protocol import Role, Spec, Steps, protocol
from syft_mpc.truncation import BITS


def _pooled_size(x: Spec, size: Pair, stride: Pair, padding: Pair, dilation: Pair) -> Spec:
    return Spec((prod(size), *x.shape[:2], *count_windows(x.shape[2:], size, stride, dilation, padding)), x.dtype)


@protocol(
    rounds=lambda _x, **options: 4 * count_comparisons(prod(options["size"]))[0],
    sends=lambda x, **options: sends_tournament(_pooled_size(x, **options)),
    opens="the same as largest",
    uses="the same as largest",
)
def max_pool2d(party: Role, x: Array, *, size: Pair, stride: Pair, padding: Pair, dilation: Pair) -> Steps:
    """Compute the largest value of each window of images (batch, channels, height, width), all windows at once.

    Rounds: 4 for each level of a tournament of a window's elements. Bytes: 12 3/8 for each comparison of 64 bits.
    """
    return (yield from largest(party, stack_windows(party, x, size, stride, padding, dilation)))


@protocol(
    rounds=lambda _x, **options: 5 * count_comparisons(prod(options["size"]))[0] - 1,
    sends=lambda x, **options: sends_tournament(_pooled_size(x, **options), positions=True),
    opens="the same as largest",
    uses="the same as largest",
)
def max_pool2d_positions(party: Role, x: Array, *, size: Pair, stride: Pair, padding: Pair, dilation: Pair) -> Steps:
    """Compute 1 at the first of the largest values of each window, and 0 elsewhere; the window is the first axis.

    Rounds: 5 for each level of the tournament, less 1. Bytes: as ``largest`` with positions.
    """
    windows = stack_windows(party, x, size, stride, padding, dilation)
    return (yield from largest(party, windows, positions=True))[1]


def stack_windows(party: Role, x: Array, size: Pair, stride: Pair, padding: Pair, dilation: Pair) -> Array:
    """Return the windows of images, with the elements of a window along the first axis."""
    kernels = party.kernels
    if any(padding):
        lowest = -(1 << (BITS[dtype_name(x)] - 2))  # Smaller than any value; still in the range of a comparison.
        x = kernels.pad(x - lowest if party.leads else x, tuple(padding))
        x = x + lowest if party.leads else x
    views = kernels.windows(x, size, stride, dilation)
    batch, channels, rows, columns, high, wide = views.shape
    return kernels.reshape(kernels.permute(views, (2, 3, 0, 1, 4, 5)), (rows * columns, batch, channels, high, wide))


@protocol(rounds=0, sends=0, opens="nothing", uses="nothing")
def sum_pool2d(party: Role, x: Array, *, size: Pair, stride: Pair, padding: Pair) -> Steps:
    """Add the values of each window. Rounds: 0. Bytes: 0."""
    yield from ()
    return party.kernels.sum(party.kernels.windows(party.kernels.pad(x, padding), size, stride), (2, 3))


@protocol(rounds=0, sends=0, opens="nothing", uses="nothing")
def unpool2d(
    party: Role, windows: Array, *, shape: Shape, size: Pair, stride: Pair, padding: Pair, dilation: Pair = (1, 1)
) -> Steps:
    """Add windows to images of a shape, at the places from which pooling takes them; the window is the first axis.

    Rounds: 0. Bytes: 0.
    """
    yield from ()
    return fold_windows(party.kernels, windows, shape, size, stride, padding, dilation)


def fold_windows(
    kernels: Kernels, windows: Array, shape: Shape, size: Pair, stride: Pair, padding: Pair, dilation: Pair = (1, 1)
) -> Array:
    """Compute what ``unpool2d`` does, on an array."""
    views = kernels.permute(kernels.reshape(windows, (*size, *windows.shape[1:])), (2, 3, 0, 1, 4, 5))
    return kernels.fold(views, shape, stride, padding, dilation)
