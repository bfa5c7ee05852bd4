"""What encrypted computation must know about a framework."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from syft_core.values import Arithmetic, Function, Tensor


class KernelSupport:
    """The integer arithmetic of protocols, and the operations that also apply to encodings and shares."""

    kernels: ClassVar[Arithmetic] = None
    """The integer arithmetic that protocols on shares need, if the backend has it."""
    structural: ClassVar[Mapping[str, Function | None]] = {}
    """The operations that only move or add elements, so that they also apply to encodings and shares. With a function,
    it is called instead of the operation, which may not have a spelling that a worker accepts."""
    masking: frozenset[str] = frozenset()
    """The structural operations with which programs mask numbers: infinity becomes a large number there."""
    transposing: frozenset[str] = frozenset()
    """The structural operations that only reorder axes; models repeat them, so their results are kept."""
    selecting: frozenset[str] = frozenset()
    """The structural operations whose tensors, except the first, are indices."""
    alternatives: ClassVar[Mapping[str, str]] = {}
    """What to write instead of operations that encoded numbers do not have, by operation."""
    convolve: ClassVar[Function | None] = None
    """A convolution of images with filters that are pointers, if a worker can compute it as one operation."""

    def expand(self, tensor: Tensor, shape: tuple[int, ...]) -> Any:
        """Repeat a tensor along axes of length one, to a shape."""
        raise NotImplementedError

    def permute(self, tensor: Tensor, axes: Sequence[int]) -> Any:
        """Reorder the axes of a tensor."""
        raise NotImplementedError

    def join(self, tensors: Sequence[Tensor], axis: int) -> Tensor:
        """Join tensors along an axis."""
        raise NotImplementedError

    def real_dtype(self, tensor: Tensor) -> Any:
        """Return the dtype of the real numbers of a tensor: its own, or the default for integers."""
        raise NotImplementedError
