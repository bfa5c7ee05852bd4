"""The contract of encrypted computation with a framework."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from syft_core.values import Arithmetic, Function, Tensor


class KernelSupport:
    """The integer arithmetic of protocols, and the operations that also apply to encodings and shares."""

    kernels: ClassVar[Arithmetic] = None
    """The integer arithmetic that protocols on shares need, if the backend has it."""
    structural: ClassVar[Mapping[str, Function | None]] = {}
    """Operations that only move or add elements, so that they also apply to encodings and shares. A given function is
    called instead of the operation, which may lack a spelling that a worker accepts.
    """
    masking: frozenset[str] = frozenset()
    """Structural operations that programs use to mask numbers: infinity becomes a large number there."""
    transposing: frozenset[str] = frozenset()
    """Structural operations that only reorder axes; models repeat them, so their results are kept."""
    selecting: frozenset[str] = frozenset()
    """Structural operations whose tensors, except the first, are indices."""
    alternatives: ClassVar[Mapping[str, str]] = {}
    """Suggested replacements for operations that encoded numbers lack."""
    convolve: ClassVar[Function | None] = None
    """A convolution of images with filters that are pointers, if a worker can compute it as one operation."""

    def expand(self, tensor: Tensor, shape: tuple[int, ...]) -> Any:
        """Expand axes of length one to a shape, by repetition."""
        raise NotImplementedError

    def permute(self, tensor: Tensor, axes: Sequence[int]) -> Any:
        """Reorder the axes of a tensor."""
        raise NotImplementedError

    def join(self, tensors: Sequence[Tensor], axis: int) -> Tensor:
        """Join tensors along an axis."""
        raise NotImplementedError

    def real_dtype(self, tensor: Tensor) -> Any:
        """Return the dtype of a tensor's real numbers: its own, or the default for integers."""
        raise NotImplementedError
