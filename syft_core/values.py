"""Names for what passes through: values of a framework, which the core cannot know more exactly.

A type checker sees ``Any`` in them; they tell a reader what to expect. What has an exact type is annotated with that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

Tensor: TypeAlias = Any
"""A tensor of some framework, or a link of a chain on one: a wrapper, a layer or a pointer."""

LayerType: TypeAlias = Any
"""The class of a layer or of a wrapper; None stands for a call without either."""

Nested: TypeAlias = Any
"""What an operation takes or returns: tensors and plain values, also nested in lists, tuples, dicts and slices."""

Args: TypeAlias = tuple[Any, ...]
"""The positional arguments of an operation."""

Kwargs: TypeAlias = dict[str, Any]
"""The keyword arguments of an operation, or of the constructor of a layer."""

Function: TypeAlias = Callable[..., Any]
"""A function of a framework, or one that is called like it."""

Payload: TypeAlias = list[Any]
"""The parts of a received object, whose types nobody has checked yet."""
