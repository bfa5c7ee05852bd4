"""Layout: the tensors of a model as one flat tensor, and back."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from functools import reduce
from math import prod

import torch

from syft_core.values import Nested, Tensor

MAX_COUNT = 1 << 24
"""Every integer up to this one can be represented in a flat tensor."""


class Layout:
    """Where each tensor of a list is in a flat tensor: parameters, then statistics (running means), then counts.

    The first ``parameters`` tensors are parameters, by default all. Of the other ones, those that are not real are
    counts. The flat tensor has at least 32 bits for each number, so that small differences of small types are not lost.
    """

    def __init__(self, forms: Sequence[Nested], parameters: int | None = None) -> None:
        self.shapes = [tuple(form.shape) for form in forms]
        self.dtypes = [form.dtype for form in forms]
        self.sizes = [prod(shape) for shape in self.shapes]
        self.total = sum(self.sizes)
        real = [dtype for dtype in self.dtypes if dtype.is_floating_point]
        self.dtype = reduce(torch.promote_types, real, torch.float32)
        self.is_uniform = set(self.dtypes) <= {self.dtype}
        self.parameters = sum(self.sizes[:parameters])
        """Number of values that belong to parameters."""
        count = len(self.sizes) if parameters is None else parameters
        counts = sum([self.sizes[place] for place in range(count, len(forms)) if self.dtypes[place] not in real])
        self.statistics = slice(self.parameters, self.total - counts)
        self.counts = slice(self.total - counts, self.total)

    def split(self, flat: Tensor) -> list[Tensor]:
        """Return the tensors: views of the flat tensor, or copies of another dtype.

        Further dimensions of ``flat`` before the last are kept.
        """
        parts = flat.split(self.sizes, dim=-1)
        lead = flat.shape[:-1]
        views = [part.view((*lead, *shape)) for part, shape in zip(parts, self.shapes, strict=True)]
        return views if self.is_uniform else [view.to(kind) for view, kind in zip(views, self.dtypes, strict=True)]

    def split_apart(self, flat: Tensor) -> list[Tensor]:
        """Return the tensors so that autograd counts the changes of each separately, as in a model.

        Views share one count: after an update of a running mean, a backward pass would refuse all parameters.
        """
        return [tensor.data for tensor in self.split(flat)]

    def join(self, tensors: Sequence[Tensor], lead: tuple[int, ...] = ()) -> Tensor:
        """Return the flat tensor."""
        if not tensors:
            return torch.zeros(*lead, 0)
        return torch.cat([tensor.detach().reshape(*lead, -1).to(self.dtype) for tensor in tensors], dim=-1)


class Remade:
    """A tensor that is made on demand, and made again if it was not kept: large models need the memory."""

    def __init__(self, make: Callable[[], Tensor]) -> None:
        self._make, self._lock = make, threading.Lock()
        self._find: Callable[[], Tensor | None] = lambda: None

    def __call__(self) -> Tensor:
        """Return the tensor; all who need it at the same time share it."""
        with self._lock:
            found = self._find()
            if found is None:
                found = self._make()
                self._find = weakref.ref(found)
            return found
