"""Stand-ins: tensors of a given form whose values are known, in the place of others that may not be told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_GOLDEN = 0.6180339887498949


def stand_in(tensor: Any, number: int) -> Any:
    """Return the stand-in with this number for a tensor: the same form and place in autograd, other values.

    A gradient that reaches the stand-in goes on to the tensor, as zeros.
    """
    if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_nested or tensor.is_mkldnn:
        return tensor.detach().clone().fill_(0) if tensor.is_quantized else torch.zeros_like(tensor)
    with torch.inference_mode(tensor.is_inference()), torch.no_grad():
        strides = tensor.stride()
        shape = [size if stride else 1 for size, stride in zip(tensor.shape, strides, strict=True)]  # not yet expanded
        made = torch.empty_strided(shape, strides, dtype=tensor.dtype, device=tensor.device)
        set_values(made, number)
        if made.shape != tensor.shape:
            made = made.expand(tensor.shape)
    if not tensor.requires_grad:
        return made
    with torch.inference_mode(False), torch.enable_grad():
        return torch.where(torch.zeros((), dtype=torch.bool, device=tensor.device), tensor, made)


def set_values(tensor: Any, number: int) -> None:
    """Give a tensor the values of the stand-in with this number."""
    of_floats, of_integers = _VALUES[number]
    fractional = tensor.is_floating_point() or tensor.is_complex()
    (of_floats if fractional else of_integers)(tensor)


def _ones_on_the_diagonal(tensor: Any) -> None:
    """Fill with what has an inverse and is positive definite, where that is possible; ones where there is no square."""
    if tensor.ndim < 2 or tensor.shape[-1] != tensor.shape[-2]:
        tensor.fill_(1)
        return
    tensor.zero_().diagonal(dim1=-2, dim2=-1).fill_(1)


def _fractions(tensor: Any) -> None:
    """Fill with numbers between 0 and 1 of which no row is like another, whatever way they are arranged."""
    count = torch.arange(1, tensor.numel() + 1, dtype=torch.float64, device=tensor.device)
    tensor.copy_((count * _GOLDEN % 1).reshape(tensor.shape))


def _with(number: int) -> Callable[[Any], None]:
    return lambda tensor: tensor.fill_(number)


_VALUES: tuple[tuple[Callable[[Any], None], Callable[[Any], None]], ...] = (
    (_ones_on_the_diagonal, _with(0)),
    (_with(1), _with(1)),
    (_fractions, _with(0)),
    (_with(0), _with(0)),
)
"""What each stand-in holds, if it has fractions and if it has none: indices, divisors, probabilities, matrices."""
STAND_INS = len(_VALUES)
