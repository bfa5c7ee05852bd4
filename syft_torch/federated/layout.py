"""Layout: the tensors of a model as one flat tensor, and back."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import prod

import torch

from syft_core.values import Nested, Tensor


class Layout:
    """Where each tensor of a list is in a flat tensor."""

    def __init__(self, forms: Sequence[Nested]) -> None:
        self.shapes = [tuple(form.shape) for form in forms]
        self.dtypes = [form.dtype for form in forms]
        self.sizes = [prod(shape) for shape in self.shapes]
        self.total = sum(self.sizes)
        self.dtype = reduce(torch.promote_types, self.dtypes) if forms else torch.float32
        self.is_uniform = len(set(self.dtypes)) < 2

    def split(self, flat: Tensor) -> list[Tensor]:
        """Return the tensors: views of the flat tensor, or copies of another dtype.

        Further dimensions of ``flat`` before the last are kept.
        """
        parts = flat.split(self.sizes, dim=-1)
        lead = flat.shape[:-1]
        views = [part.view(*lead, *shape) for part, shape in zip(parts, self.shapes, strict=True)]
        return views if self.is_uniform else [view.to(kind) for view, kind in zip(views, self.dtypes, strict=True)]

    def join(self, tensors: Sequence[Tensor], lead: tuple[int, ...] = ()) -> Tensor:
        """Return the flat tensor."""
        if not tensors:
            return torch.zeros(*lead, 0)
        return torch.cat([tensor.detach().reshape(*lead, -1).to(self.dtype) for tensor in tensors], dim=-1)
