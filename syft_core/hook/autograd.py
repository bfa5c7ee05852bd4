"""Autograd: what the core must know about a framework that differentiates; numpy and JAX arrays have no such part."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Autograd:
    """The names that a framework gives to the parts of automatic differentiation."""

    gradient: str
    """The attribute of a tensor that holds its gradient."""
    data: str
    """The attribute that is the tensor outside of any graph."""
    history: str
    """The attribute that says how a tensor was computed; None for a leaf."""
    backward: str
    """The method that starts a backward pass."""

    @property
    def attributes(self) -> frozenset[str]:
        """The attributes that are tensors themselves: a pointer may refer to them."""
        return frozenset((self.gradient, self.data))
