"""Layouts: the strides of results on the CPU, where torch's meta device has others.

The meta device gives the shapes and dtypes of results, but on views, on tensors without elements, and for a few
operations its strides may be those of another device. So small calls of these kinds run on the CPU, on examples.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial

import torch

from syft_core.hook.attributes import Op, words
from syft_core.hook.forms import Form, form
from syft_core.hook.rules import leaves, map_leaves
from syft_core.values import Nested, Tensor

DIFFER = words(
    "svd svd_lowrank pca_lowrank nonzero_static "
    "fft fft2 fftn ifft ifft2 ifftn rfft rfft2 rfftn irfft irfft2 irfftn hfft hfft2 hfftn ihfft ihfft2 ihfftn"
)
"""Operations whose results have other strides on the meta device."""
DIFFER_ON_VIEWS = words(
    "batch_norm bilinear channel_shuffle convolution conv1d conv2d conv3d conv_transpose1d conv_transpose2d "
    "conv_transpose3d copysign floor_divide huber_loss instance_norm isin logaddexp2 logsigmoid max_pool1d "
    "max_unpool2d max_unpool3d normal pixel_shuffle poisson rrelu _transformer_encoder_layer_fwd"
)
"""Operations for which this holds if operands are not contiguous."""
LARGEST = 1 << 16
"""Maximum elements of memory of the operands and results of a run on examples; more would take too long."""
KINDS = 4
"""The number of kinds of examples."""

Examples = Callable[[Form, int], "Tensor | None"]


def correct(op: Op, args: Nested, kwargs: Nested, found: list[Form], make: Examples) -> list[Form] | None:
    """Return forms from the meta device with the strides of the CPU, or None if those are not certain.

    ``args`` and ``kwargs`` have forms in place of tensors; ``found`` are the forms of the results of the call, and of
    its operands afterwards.
    """
    operands = [leaf for leaf in leaves((args, kwargs)) if type(leaf) is Form]
    is_usual = all(map(_is_contiguous, operands)) and op.operation not in DIFFER
    if is_usual or any(known.device.type != "cpu" for known in operands):
        return found
    if sum(map(_count_elements, (*operands, *found))) <= LARGEST:
        return _run_on_examples(op, args, kwargs, found, make)
    return None if op.operation in DIFFER | DIFFER_ON_VIEWS else found


def _run_on_examples(op: Op, args: Nested, kwargs: Nested, found: list[Form], make: Examples) -> list[Form] | None:
    """Return forms with the strides of a call on examples, or None if none works or has results of other forms."""
    for kind in range(KINDS):
        with suppress(Exception):  # Torch may raise any error, and another example may work.
            made = _run(op, args, kwargs, partial(_make, kind=kind, make=make))
            if [(each.shape, each.dtype) for each in made] != [(each.shape, each.dtype) for each in found]:
                return None
            return [_lay_out(known, each) for known, each in zip(found, made, strict=True)]
    return None


def _run(op: Op, args: Nested, kwargs: Nested, replace: Callable[[Tensor], Tensor]) -> list[Tensor]:
    examples, named = map_leaves(replace, (args, kwargs))
    result = op.run(*examples, **named)
    pairs = zip(leaves((args, kwargs)), leaves((examples, named)), strict=True)
    made = [leaf for leaf in leaves(result) if isinstance(leaf, torch.Tensor)]
    return made + [example for leaf, example in pairs if type(leaf) is Form]


def _make(leaf: Tensor, kind: int, make: Examples) -> Tensor:
    if isinstance(leaf, torch.Generator):
        raise NotImplementedError("the program expects the numbers that it would draw")
    if isinstance(leaf, torch.Tensor):
        return leaf.detach().clone()
    if type(leaf) is not Form:
        return leaf
    example = make(leaf, kind)
    if example is None:
        raise NotImplementedError("the form has no example")
    return example


def _lay_out(known: Form, example: Tensor) -> Form:
    return form(known.shape, example.stride(), known.dtype, known.device, known.requires_grad, known.is_leaf)


def _is_contiguous(known: Form) -> bool:
    """Return whether a tensor has elements, and the strides of a new one, also where these make no difference."""
    expected = 1
    for size, stride in zip(reversed(known.shape), reversed(known.strides), strict=True):
        if stride != expected or not size:
            return False
        expected *= size
    return True


def _count_elements(known: Form) -> int:
    return 1 + sum(max(int(size) - 1, 0) * int(stride) for size, stride in zip(known.shape, known.strides, strict=True))
