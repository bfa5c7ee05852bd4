"""Kernels on encoded numbers in terms of simpler kernels, where torch has no definition that fits."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.nn import functional

from syft_core.exceptions import OperationNotAllowedError
from syft_core.values import Function
from syft_torch.attention import attend, attend_backward, attend_with_heads, encode_with_attention
from syft_torch.versions import find_decomposed

aten = torch.ops.aten
SUM, MEAN = 0, 1
"""Torch's numbers for how an embedding bag is reduced."""


def _refuse(what: str, why: str) -> None:
    raise OperationNotAllowedError.refused_by("NumericWrapper", what, why)


# --- embedding bags


def bag(
    weight: torch.Tensor,
    indices: torch.Tensor,
    offsets: torch.Tensor,
    _scale_grad_by_freq: bool = False,
    mode: int = SUM,
    _sparse: bool = False,
    per_sample_weights: torch.Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the sum or the mean of the rows in each bag, the bag of each row, and the number of rows in each bag."""
    if mode not in (SUM, MEAN):
        _refuse("an embedding bag with mode='max'", "there is no rule for it; use mode='sum' or mode='mean'")
    starts = offsets[:-1] if include_last_offset else offsets
    bags = torch.searchsorted(starts.contiguous(), torch.arange(len(indices)), right=True) - 1
    used = indices != padding_idx
    sizes = torch.zeros(len(starts), dtype=indices.dtype).index_add(0, bags, used.to(indices.dtype))
    rows = aten.embedding(weight, indices) * used.unsqueeze(1)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(1)
    total = rows.new_zeros((len(starts), weight.shape[1])).index_add(0, bags, rows)
    return (total / sizes.clamp(min=1).unsqueeze(1) if mode == MEAN else total), bags, sizes, sizes


def bag_backward(
    gradient: torch.Tensor,
    indices: torch.Tensor,
    _offsets: torch.Tensor,
    bags: torch.Tensor,
    sizes: torch.Tensor,
    _maximum: torch.Tensor,
    rows: int,
    scale_grad_by_freq: bool,
    mode: int,
    _sparse: bool,
    per_sample_weights: torch.Tensor | None,
    padding_idx: int = -1,
) -> torch.Tensor:
    """Return the gradient of the table of an embedding bag."""
    if mode == MEAN:
        gradient = gradient / sizes.clamp(min=1).unsqueeze(1)
    each = gradient.index_select(0, bags)
    if per_sample_weights is not None:
        each = each * per_sample_weights.unsqueeze(1)
    return aten.embedding_dense_backward(each, indices, rows, padding_idx, scale_grad_by_freq)


# --- distances


def distances(x: torch.Tensor, y: torch.Tensor, p: float, _mode: int | None = None) -> torch.Tensor:
    """Return the distance of each row of x from each row of y."""
    return torch.linalg.vector_norm(_differences(x, y), p, -1)


def distances_backward(
    gradient: torch.Tensor, x: torch.Tensor, y: torch.Tensor, p: float, result: torch.Tensor
) -> torch.Tensor:
    """Return the gradient of x."""
    if p == 1:
        slopes = _differences(x, y).sign()
    elif p == 2:
        slopes = _differences(x, y) / (result + (result == 0)).unsqueeze(-1)
    else:
        _refuse(f"the gradient of distances with p={p}", "there is no rule for it; use p=1 or p=2")
    return (slopes * gradient.unsqueeze(-1)).sum(-2)


def _differences(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x.unsqueeze(-2) - y.unsqueeze(-3)


def solve(
    matrix: torch.Tensor, other: torch.Tensor, *, left: bool = True, check_errors: bool = False
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the product with the inverse and, in place of a decomposition, the matrix, for the gradient."""
    inverse, nothing = torch.linalg.inv(matrix), torch.zeros(matrix.shape[:-2], dtype=torch.int32)
    kept = find_decomposed(matrix)
    if other.ndim == 1 or tuple(other.shape) == tuple(matrix.shape[:-1]):
        return (inverse @ other.unsqueeze(-1)).squeeze(-1), kept, nothing, nothing
    return inverse @ other if left else other @ inverse, kept, nothing, nothing


def solve_again(
    matrix: torch.Tensor, pivots: torch.Tensor, other: torch.Tensor, *, left: bool = True, adjoint: bool = False
) -> torch.Tensor:
    """Return the product with the inverse of the matrix that ``solve`` returns: for its gradient."""
    if pivots.ndim != matrix.ndim - 2:
        _refuse("a solution from a decomposition", "there is no rule for it; use `torch.linalg.solve` with the matrix")
    inverse = torch.linalg.inv(matrix.mT if adjoint else matrix)
    return inverse @ other if left else other @ inverse


def add_batches(
    x: torch.Tensor, one: torch.Tensor, other: torch.Tensor, *, beta: float = 1, alpha: float = 1
) -> torch.Tensor:
    """Return the sum of a batch of matrix products, added to x."""
    return beta * x + alpha * (one @ other).sum(0)


def weight_norm_backward(
    gradient: torch.Tensor, v: torch.Tensor, g: torch.Tensor, norms: torch.Tensor, dim: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the gradients of the direction and of the length of weights."""
    axes = [axis for axis in range(v.ndim) if axis != dim % v.ndim]
    along = (gradient * v).sum(axes, keepdim=True) / norms
    return (gradient - v * (along / norms)) * (g / norms), along


# --- adaptive pooling, and gradients of upsampling for sizes that are multiples of each other


def _find_windows(large: Sequence[int], small: Sequence[int]) -> list[int]:
    if any(one % other for one, other in zip(large, small, strict=True)):
        why = "the larger size must be a multiple of the smaller one; choose such a size"
        _refuse("the gradient of adaptive pooling or of upsampling", why)
    return [one // other for one, other in zip(large, small, strict=True)]


def adaptive_average_backward(gradient: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Pass the gradient of each window to all of its numbers."""
    windows = _find_windows(x.shape[-2:], gradient.shape[-2:])
    return aten.avg_pool2d_backward(gradient, x, windows, windows, [0, 0], False, True, None)


def adaptive_largest(x: torch.Tensor, output: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the largest number of each window."""
    if x.dim() == 3:  # one image
        values, indices = adaptive_largest(x.unsqueeze(0), output)
        return values.squeeze(0), indices.squeeze(0)
    wide, windows, _places = _separate_windows(x, output)
    found: tuple[torch.Tensor, torch.Tensor] = aten.max_pool2d_with_indices(wide, windows, windows)
    return found


def adaptive_largest_backward(gradient: torch.Tensor, x: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    """Pass the gradient of each window to the first of its largest numbers."""
    if x.dim() == 3:
        return adaptive_largest_backward(gradient.unsqueeze(0), x.unsqueeze(0), indices).squeeze(0)
    wide, windows, places = _separate_windows(x, gradient.shape[-2:])
    options = (windows, windows, [0, 0], [1, 1], False, wide)
    found: torch.Tensor = aten.max_pool2d_with_indices_backward(gradient, wide, *options)
    for axis, rows in places.items():
        shape = list(found.shape)
        shape[axis] = x.shape[axis]
        found = found.new_zeros(shape).index_add(axis, rows, found)
    return found


def _separate_windows(
    x: torch.Tensor, output: Sequence[int]
) -> tuple[torch.Tensor, list[int], dict[int, torch.Tensor]]:
    """Return images in which the windows of an adaptive pool do not overlap, their size, and the rows of each axis.

    Windows of different lengths repeat their last row.
    """
    windows, places = [], {}
    for axis, length in zip((-2, -1), output, strict=True):
        size, each = x.shape[axis], torch.arange(length)
        starts, ends = each * size // length, ((each + 1) * size + length - 1) // length
        windows.append(int((ends - starts).max()))
        rows = torch.minimum(starts.unsqueeze(1) + torch.arange(windows[-1]), ends.unsqueeze(1) - 1).flatten()
        if len(rows) != size:
            places[axis] = rows
            x = x.index_select(axis, rows)
    return x, windows, places


def upsample_backward(
    gradient: torch.Tensor, output: Sequence[int], shape: Sequence[int], *_scales: float | None
) -> torch.Tensor:
    """Add the gradients of the copies of each number."""
    windows = _find_windows(output, shape[2:])
    split = [length for pair in zip(shape[2:], windows, strict=True) for length in pair]
    copies = tuple(range(3, 3 + 2 * len(windows), 2))
    return gradient.reshape((*shape[:2], *split)).sum(copies)


# --- sequences of different lengths


def pack(x: torch.Tensor, lengths: torch.Tensor, batch_first: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the steps of sequences of decreasing length one after another, and how many sequences have each step."""
    steps = x.transpose(0, 1) if batch_first else x
    sizes = (lengths.unsqueeze(0) > torch.arange(int(lengths[0])).unsqueeze(1)).sum(1)
    return torch.cat([steps[step, :size] for step, size in enumerate(sizes.tolist())]), sizes


def unpack(
    data: torch.Tensor, sizes: torch.Tensor, batch_first: bool, padding: float, total: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Invert ``pack``: return the sequences with a constant after their ends, and their lengths."""
    width = int(sizes[0])
    parts = list(data.split(sizes.tolist()))
    parts += [data[:0]] * (total - len(parts))
    rows = [torch.cat([part, part.new_full((width - len(part), *part.shape[1:]), padding)]) for part in parts]
    lengths = (sizes.unsqueeze(0) > torch.arange(width).unsqueeze(1)).sum(1)
    return torch.stack(rows, 1 if batch_first else 0), lengths


# --- others


def multiply_three(
    x: torch.Tensor,
    y: torch.Tensor,
    z: torch.Tensor,
    new_x: Sequence[int],
    new_y: Sequence[int],
    new_z: Sequence[int],
    axes: Sequence[int],
    _unroll: int = 1,
) -> torch.Tensor:
    """Multiply three tensors, each with new axes of length one, and add along axes: the kernel of a bilinear layer."""
    wide = []
    for value, places in ((x, new_x), (y, new_y), (z, new_z)):
        for place in places:
            value = value.unsqueeze(place)
        wide.append(value)
    product = wide[0] * wide[1] * wide[2]
    return product.sum(tuple(axes)) if axes else product


def multi_margin(
    x: torch.Tensor,
    target: torch.Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: torch.Tensor | None = None,
    reduction: int = MEAN,
) -> torch.Tensor:
    """Return how far public classes are from being the largest of each row, or of one row, by a margin."""
    rows, places = (x if x.ndim > 1 else x.unsqueeze(0)), target.reshape(-1, 1)
    distances = (margin - rows.gather(1, places) + rows).clamp(min=0) ** p
    if weight is not None:
        distances = distances * weight[places]
    others = torch.ones(rows.shape).scatter(1, places, 0.0)
    losses = (distances * others).sum(1) / rows.shape[1]
    if reduction == 0:
        return losses if x.ndim > 1 else losses.squeeze(0)
    return losses.mean() if reduction == MEAN else losses.sum()


def find_bins(x: torch.Tensor, edges: torch.Tensor, *, out_int32: bool = False, right: bool = False) -> torch.Tensor:
    """Return how many edges are smaller than each number or, with ``right``, not larger."""
    column = x.unsqueeze(-1)
    return (column >= edges if right else column > edges).sum(-1)


def count_in_bins(x: torch.Tensor, bins: int = 100, low: float = 0, high: float = 0) -> torch.Tensor:
    """Return a histogram of numbers between two ends."""
    if low >= high:
        _refuse("a histogram between the smallest and the largest number", "they are secret; pass min and max")
    column = x.flatten().unsqueeze(-1)
    above = (column >= torch.linspace(low, high, bins + 1)[:-1]).sum(0)
    return above - torch.cat([above[1:], (column > high).sum(0)])


def _draw(function: Function) -> Function:
    """Return a kernel for public random numbers of the shape of encoded ones."""
    return lambda x, **_options: function(x.shape, dtype=x.dtype)


def shrink_backward(gradient: torch.Tensor, x: torch.Tensor, threshold: float) -> torch.Tensor:
    """Pass the gradient where the number was not set to 0."""
    return gradient * (x.abs() > threshold)


_ATTENTION = "_scaled_dot_product_flash_attention_for_cpu"
DEFINITIONS: dict[str, Function] = {
    _ATTENTION: attend,
    f"{_ATTENTION}_backward": attend_backward,
    "_native_multi_head_attention": attend_with_heads,
    "_transformer_encoder_layer_fwd": encode_with_attention,
    "_embedding_bag": bag,
    "_embedding_bag_forward_only": bag,
    "_embedding_bag_backward": bag_backward,
    # In torch 2.4: the same, without the offsets and without the flag for a sparse gradient.
    "_embedding_bag_dense_backward": lambda x, i, *rest: bag_backward(*[x, i, rest[0], *rest[:6], False, *rest[6:]]),
    "_cdist_forward": distances,
    "_linalg_solve_ex": solve,
    "linalg_lu_solve": solve_again,
    "addbmm": add_batches,
    "_trilinear": multiply_three,
    "_weight_norm_interface_backward": weight_norm_backward,
    "_cdist_backward": distances_backward,
    "_adaptive_avg_pool2d_backward": adaptive_average_backward,
    "adaptive_max_pool2d": adaptive_largest,
    "adaptive_max_pool2d_backward": adaptive_largest_backward,
    "upsample_nearest1d_backward": upsample_backward,
    "upsample_nearest2d_backward": upsample_backward,
    "multi_margin_loss": multi_margin,
    "bucketize": find_bins,
    "histc": count_in_bins,
    "channel_shuffle": lambda x, groups: x.unflatten(1, (groups, -1)).transpose(1, 2).flatten(1, 2),
    "xlogy": lambda x, y: x * torch.log(y),
    "exp2": lambda x: 2**x,
    "cosh": lambda x: (x.exp() + (-x).exp()) / 2,
    "sinh": lambda x: (x.exp() - (-x).exp()) / 2,
    "tan": lambda x: x.sin() / x.cos(),
    "hypot": lambda x, y: (x.square() + y.square()).sqrt(),
    "logaddexp": lambda x, y: torch.maximum(x, y) + functional.softplus(-(x - y).abs()),
    "fmax": torch.maximum,
    "fmin": torch.minimum,
    "randn_like": _draw(torch.randn),
    "rand_like": _draw(torch.rand),
    "softshrink_backward": shrink_backward,
    "hardshrink_backward": shrink_backward,
}
