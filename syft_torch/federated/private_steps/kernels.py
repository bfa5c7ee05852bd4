"""Gradients of single samples, from the inputs of an operation and the gradients of its output.

For each operation that has parameters, a kernel finds the squared norm of each sample's gradient of a parameter, and
the weighted sum of these gradients, without the gradients themselves where they would be large (Goodfellow 2015,
arXiv 1510.01799; "book-keeping", arXiv 2210.00038).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import NamedTuple, Protocol

import torch
from torch.nn import functional

from syft_core.values import Args, Kwargs, Nested, Tensor
from syft_torch.federated.private_steps.marks import SHARED, Batched

MAX_WHOLE = 1 << 26
"""Bytes of the gradients of all samples up to which they are computed; above, only their norms and their sum are."""
_LEAST_SHARE = 2.0**-8
"""A norm counts as at least this share of the sum of the norms of its terms: rounding would decide below."""


class SampleGradients(Protocol):
    """The gradients of one parameter for each sample of a batch."""

    squares: Tensor
    """Their squared norms, in float64."""

    def sum_up(self, factors: Tensor, is_valid: Tensor) -> Tensor:
        """Return the sum of the valid ones, times the factors of the samples."""


class Whole:
    """Gradients that are kept as they are, one row for each sample."""

    def __init__(self, rows: Tensor) -> None:
        self._rows = rows
        flat = rows.flatten(1) if rows.dim() > 1 else rows.unsqueeze(1)
        self.squares = torch.linalg.vector_norm(flat, dim=1).double().square_()

    def sum_up(self, factors: Tensor, is_valid: Tensor) -> Tensor:
        """Return the sum of the valid ones, times the factors of the samples."""
        flat = self._rows.reshape(len(self._rows), -1)
        return torch.mv(_select(flat, is_valid).mT, factors).view(self._rows.shape[1:])


class Scaled:
    """The gradients of an output, one row for each sample: those of the bias, and a factor of those of the weight."""

    def __init__(self, outputs: Tensor) -> None:
        self._outputs = outputs
        self._scaled: Tensor | None = None
        self.squares = torch.linalg.vector_norm(outputs, dim=1, dtype=torch.float64).square_()

    def scale(self, factors: Tensor, is_valid: Tensor) -> Tensor:
        """Return the rows times the factors of the samples; the last result is kept for the weight or the bias."""
        if self._scaled is None:
            self._scaled = _select(self._outputs * factors.unsqueeze(1), is_valid)
        return self._scaled

    def sum_up(self, factors: Tensor, is_valid: Tensor) -> Tensor:
        """Return the sum of the valid ones, times the factors of the samples."""
        return self.scale(factors, is_valid).sum(0)


class Outer:
    """Gradients of a matrix, each of which is the product of a row and a column."""

    def __init__(self, inputs: Tensor, outputs: Scaled) -> None:
        self._inputs, self._outputs = inputs, outputs
        self.squares = torch.linalg.vector_norm(inputs, dim=1, dtype=torch.float64).square_().mul_(outputs.squares)

    def sum_up(self, factors: Tensor, is_valid: Tensor) -> Tensor:
        """Return the sum of the valid ones, times the factors of the samples."""
        return self._outputs.scale(factors, is_valid).mT @ _select(self._inputs, is_valid)


class Gram:
    """Gradients of a large matrix, each of which is a sum of products over a sequence.

    The norm follows from the products of the inputs with each other, and those of the outputs. It is computed in
    float64, because terms may cancel out.
    """

    def __init__(self, inputs: Tensor, outputs: Tensor) -> None:
        self._inputs, self._outputs = inputs, outputs
        x, y = inputs.double(), outputs.double()
        first, second = x @ x.mT, y @ y.mT
        norms = (first.diagonal(dim1=1, dim2=2) * second.diagonal(dim1=1, dim2=2)).clamp(min=0).sqrt().sum(1)
        self.squares = torch.maximum((first * second).sum((1, 2)), (norms * _LEAST_SHARE).square())

    def sum_up(self, factors: Tensor, is_valid: Tensor) -> Tensor:
        """Return the sum of the valid ones, times the factors of the samples."""
        scaled = _select(self._outputs * factors.view(-1, 1, 1), is_valid).flatten(0, 1)
        return scaled.mT @ _select(self._inputs, is_valid).flatten(0, 1)


class Rows:
    """Gradients of a table, each of which has a few rows that are not zero."""

    def __init__(self, indices: Tensor, outputs: Tensor, table: Tensor) -> None:
        self._indices, self._table = indices, table
        is_same = indices.unsqueeze(1) == indices.unsqueeze(2)
        count = is_same.sum(2, dtype=outputs.dtype).unsqueeze(2)
        sums = is_same.to(outputs.dtype) @ outputs
        self._parts = sums / count
        """The gradient of a row, divided by how often a sample has it."""
        lengths = torch.linalg.vector_norm(sums, dim=2, dtype=torch.float64).square()
        self.squares = (lengths / count.squeeze(2)).sum(1)

    def sum_up(self, factors: Tensor, is_valid: Tensor) -> Tensor:
        """Return the sum of the valid ones, times the factors of the samples."""
        parts = _select(self._parts * factors.view(-1, 1, 1), is_valid).flatten(0, 1)
        return torch.zeros_like(self._table).index_add_(0, self._indices.flatten(), parts)


def _select(values: Tensor, is_valid: Tensor) -> Tensor:
    """Return zeros for samples that are not valid; a product with zero would keep what is not finite."""
    return torch.where(is_valid.view(-1, *[1] * (values.dim() - 1)), values, 0.0)


# --- operations


Found = dict[str, SampleGradients]


class Kernel(NamedTuple):
    """How to find the gradients of the parameters of an operation."""

    names: tuple[str, ...]
    weights: tuple[str, ...]
    """The arguments that may be parameters; the first of the others has the samples."""
    find: Callable[[Kwargs, Tensor, Sequence[str]], Found]
    """A function of the arguments, the gradients of the output, and the names of the parameters."""

    def bind(self, args: Args, kwargs: Kwargs) -> Kwargs:
        """Return the arguments by name."""
        return {**dict(zip(self.names, args, strict=False)), **kwargs}

    def fits(self, marks: Mapping[str, Nested], values: Kwargs, found: Sequence[tuple[str, int]]) -> bool:
        """Return whether it can be used: the samples are in front, and all weights are tensors of the model."""
        if len(found) != len({number for _, number in found}) or not found:
            return False
        if self.weights == _EITHER:
            return _fits_elements(marks, values, found)
        return marks.get(self.names[0]) == Batched(0)


_EITHER = ("input", "other")


def _fits_elements(marks: Mapping[str, Nested], values: Kwargs, found: Sequence[tuple[str, int]]) -> bool:
    """Return whether a step combines samples with one parameter, element by element."""
    ((role, _), *more) = found
    other = _EITHER[1 - _EITHER.index(role)]
    if more or marks.get(role) != SHARED or marks.get(other) != Batched(0) or values.get("alpha", 1) != 1:
        return False
    return bool(values[role].dim() < values[other].dim())


def _find_linear(given: Kwargs, outputs: Tensor, names: Sequence[str]) -> Found:
    found: Found = {}
    inputs = given["input"]
    if inputs.dim() == 2:
        rows = Scaled(outputs)
        every: Found = {"weight": Outer(inputs, rows) if "weight" in names else rows, "bias": rows}
        return {name: every[name] for name in names}
    inputs, outputs = (x.flatten(1, -2) for x in (inputs, outputs))
    if "bias" in names:
        found["bias"] = Whole(outputs.sum(1))
    if "weight" in names:
        found["weight"] = _find_matrix(inputs, outputs)
    return found


def _find_matrix(inputs: Tensor, outputs: Tensor) -> SampleGradients:
    """Return gradients of a matrix in the way that needs the least time or memory."""
    size = inputs.shape[2] * outputs.shape[2]
    if len(inputs) * size * inputs.itemsize <= MAX_WHOLE or inputs.shape[1] ** 2 >= size:
        return Whole(outputs.mT @ inputs)
    return Gram(inputs, outputs)


def _find_convolution(given: Kwargs, outputs: Tensor, names: Sequence[str]) -> Found:
    found: Found = {}
    weight, inputs = given["weight"], given["input"]
    sides = weight.dim() - 2
    if "bias" in names:
        found["bias"] = Whole(outputs.flatten(2).sum(2))
    if "weight" not in names:
        return found
    stride, dilation = (_to_pair(given.get(name, 1), sides) for name in ("stride", "dilation"))
    inputs, padding = _pad(inputs, weight, given.get("padding", 0), dilation)
    kernel = (1, *weight.shape[2:]) if sides == 1 else tuple(weight.shape[2:])
    columns = functional.unfold(inputs.unsqueeze(2) if sides == 1 else inputs, kernel, dilation, padding, stride)
    groups = given.get("groups", 1)
    columns = columns.view(len(inputs), groups, -1, columns.shape[2])
    parts = outputs.flatten(2).view(len(inputs), groups, -1, columns.shape[3])
    size = prod(weight.shape)
    if groups == 1 and len(inputs) * size * inputs.itemsize > MAX_WHOLE and columns.shape[3] ** 2 < size:
        found["weight"] = _Reshaped(Gram(columns.squeeze(1).mT, parts.squeeze(1).mT), weight.shape)
    else:
        found["weight"] = Whole((parts @ columns.mT).view(len(inputs), *weight.shape))
    return found


class _Reshaped:
    """Gradients of a matrix that is stored in another shape."""

    def __init__(self, inner: SampleGradients, shape: Sequence[int]) -> None:
        self._inner, self._shape = inner, shape
        self.squares = inner.squares

    def sum_up(self, factors: Tensor, is_valid: Tensor) -> Tensor:
        """Return the sum of the valid ones, times the factors of the samples."""
        return self._inner.sum_up(factors, is_valid).view(*self._shape)


def _to_pair(value: Nested, sides: int) -> tuple[int, int]:
    parts = (value,) * sides if isinstance(value, int) else tuple(value) * (sides if len(value) == 1 else 1)
    return (0 if value == 0 else 1, parts[0]) if sides == 1 else (parts[0], parts[1])


def _pad(inputs: Tensor, weight: Tensor, padding: Nested, dilation: tuple[int, int]) -> tuple[Tensor, tuple[int, int]]:
    """Return the inputs, and the padding on both sides that remains."""
    sides = weight.dim() - 2
    if padding == "valid":
        return inputs, (0, 0)
    if padding == "same":
        amounts: list[int] = []
        for size, step in zip(weight.shape[2:], dilation[-sides:], strict=True):
            total = step * (size - 1)
            amounts = [total // 2, total - total // 2, *amounts]
        return functional.pad(inputs, amounts), (0, 0)
    if sides == 1:
        return inputs, (0, padding if isinstance(padding, int) else padding[0])
    return inputs, _to_pair(padding, sides)


def _find_embedding(given: Kwargs, outputs: Tensor, names: Sequence[str]) -> Found:
    indices = given["input"].reshape(len(outputs), -1)
    outputs = outputs.reshape(len(outputs), -1, outputs.shape[-1])
    table, padding = given["weight"], given.get("padding_idx")
    if padding is not None:
        outputs = torch.where((indices == padding % len(table)).unsqueeze(2), 0.0, outputs)
    return {"weight": Rows(indices, outputs, table)}


def _find_layer_norm(given: Kwargs, outputs: Tensor, names: Sequence[str]) -> Found:
    shape = given["normalized_shape"]
    inner = tuple(range(1, outputs.dim() - len(shape)))

    def normalize() -> Tensor:
        return functional.layer_norm(given["input"], shape, None, None, given.get("eps", 1e-5))

    return _find_scales(normalize, outputs, inner, names)


def _find_group_norm(given: Kwargs, outputs: Tensor, names: Sequence[str]) -> Found:
    def normalize() -> Tensor:
        return functional.group_norm(given["input"], given["num_groups"], None, None, given.get("eps", 1e-5))

    return _find_scales(normalize, outputs, tuple(range(2, outputs.dim())), names)


def _find_scales(
    normalize: Callable[[], Tensor], outputs: Tensor, inner: tuple[int, ...], names: Sequence[str]
) -> Found:
    """Return the gradients of a scale and of a shift after a normalization, summed over inner dimensions."""
    found: Found = {}
    if "weight" in names:
        found["weight"] = Whole(_sum_over(outputs * normalize(), inner))
    if "bias" in names:
        found["bias"] = Whole(_sum_over(outputs, inner))
    return found


def _sum_over(values: Tensor, dims: tuple[int, ...]) -> Tensor:
    return values.sum(dims) if dims else values


def _find_elements(derive: Callable[[str, Tensor, Tensor], Tensor]) -> Callable[[Kwargs, Tensor, Sequence[str]], Found]:
    def find(given: Kwargs, outputs: Tensor, names: Sequence[str]) -> Found:
        (role,) = names
        other = given[_EITHER[1 - _EITHER.index(role)]]
        parameter = given[role]
        gradients = derive(role, outputs, other)
        shape = (len(outputs), *[1] * (outputs.dim() - 1 - parameter.dim()), *parameter.shape)
        return {role: Whole(gradients.sum_to_size(shape).reshape(len(outputs), *parameter.shape))}

    return find


def _spell(names: str) -> list[str]:
    return [f"{place}.{name}" for name in names.split() for place in ("torch", "torch.Tensor", "torch.nn.functional")]


_BOTH = ("weight", "bias")
_CONVOLUTION = Kernel(("input", "weight", "bias", "stride", "padding", "dilation", "groups"), _BOTH, _find_convolution)
_SUM = Kernel(_EITHER, _EITHER, _find_elements(lambda _role, outputs, _other: outputs))
_DIFFERENCE = Kernel(
    _EITHER, _EITHER, _find_elements(lambda role, outputs, _: outputs if role == "input" else -outputs)
)
_PRODUCT = Kernel(_EITHER, _EITHER, _find_elements(lambda _role, outputs, other: outputs * other))
KERNELS: dict[str, Kernel] = {
    "torch.nn.functional.linear": Kernel(("input", "weight", "bias"), _BOTH, _find_linear),
    **dict.fromkeys(_spell("conv1d conv2d"), _CONVOLUTION),
    "torch.nn.functional.embedding": Kernel(
        ("input", "weight", "padding_idx", "max_norm", "norm_type", "scale_grad_by_freq", "sparse"),
        ("weight",),
        _find_embedding,
    ),
    **dict.fromkeys(
        _spell("layer_norm"), Kernel(("input", "normalized_shape", "weight", "bias", "eps"), _BOTH, _find_layer_norm)
    ),
    **dict.fromkeys(
        _spell("group_norm"), Kernel(("input", "num_groups", "weight", "bias", "eps"), _BOTH, _find_group_norm)
    ),
    **dict.fromkeys(_spell("add __add__ __radd__"), _SUM),
    **dict.fromkeys(_spell("sub subtract __sub__"), _DIFFERENCE),
    **dict.fromkeys(_spell("mul multiply __mul__ __rmul__"), _PRODUCT),
}
"""The kernels, by operation; the parameters of all others are handled one sample at a time."""
