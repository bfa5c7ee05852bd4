"""Autograd: what the core must know about a framework whose tensors record gradients."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Autograd:
    """A framework's names for the parts of automatic differentiation."""

    gradient: str
    """The attribute of a tensor that holds its gradient."""
    data: str
    """The attribute that holds the tensor outside of any graph."""
    history: str
    """The attribute with the graph node that computed a tensor; None for a leaf."""
    backward: str
    """The method that starts a backward pass."""

    @property
    def attributes(self) -> frozenset[str]:
        """The attributes that are tensors; a pointer may refer to them."""
        return frozenset((self.gradient, self.data))
