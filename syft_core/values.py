"""Type aliases for framework values, whose exact types the core does not know.

To a type checker they are ``Any``; to a reader they document the expected value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

Tensor: TypeAlias = Any
"""A framework tensor, or a part of a chain: a wrapper, a layer or a pointer."""

LayerType: TypeAlias = Any
"""The class of a layer or a wrapper; None for a call that contains neither."""

Nested: TypeAlias = Any
"""Arguments or results of an operation: tensors and plain values, possibly nested in lists, tuples, dicts, slices."""

Args: TypeAlias = tuple[Any, ...]
"""The positional arguments of an operation."""

Kwargs: TypeAlias = dict[str, Any]
"""The keyword arguments of an operation, or of the constructor of a layer."""

Function: TypeAlias = Callable[..., Any]
"""A framework function, or one with the same signature."""

LocalWorker: TypeAlias = Any
"""The worker that owns the objects of a process, a ``BaseWorker``; each framework's hook declares it."""

Payload: TypeAlias = list[Any]
"""The parts of a received object; their types are not checked yet."""

Outcome: TypeAlias = Any
"""The answer to a message, as its handler returns it."""

Given: TypeAlias = Any
"""What a function that a plugin registers is called with: its own message, or an object of a higher layer."""

Json: TypeAlias = Any
"""A value that JSON or TOML can express."""

Table: TypeAlias = dict[str, Any]
"""A table of JSON or TOML: values by name."""

Arithmetic: TypeAlias = Any
"""The integer arithmetic that protocols on shares need: an instance of ``syft_mpc.kernels.Kernels``, or None."""


class Traced:
    """Base class of numbers that stand for a plan's numbers while it is recorded; see ``plans/traced.py``."""
