"""FrameworkAttributes: everything a backend provides."""

from __future__ import annotations

from syft_core.hook.contracts.forms import Forms
from syft_core.hook.contracts.kernels import KernelSupport
from syft_core.hook.contracts.memory import Memory
from syft_core.hook.contracts.operations import Operations
from syft_core.hook.ops import Op, OpTable, Spelling, describe_op, words

__all__ = ["FrameworkAttributes", "Op", "OpTable", "Spelling", "describe_op", "words"]


class FrameworkAttributes(Operations, Memory, Forms, KernelSupport):
    """The facts the core needs about one framework; a backend overrides the defaults that do not apply."""
