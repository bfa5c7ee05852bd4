"""Autograd: the facts the core needs about a framework whose tensors record gradients."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Autograd:
    """A framework's names for the parts of automatic differentiation."""

    gradient: str
    """The attribute of a tensor that holds its gradient."""
    history: str
    """The attribute that holds the graph node of a tensor; None for a leaf."""
    backward: str
    """The method that starts a backward pass."""
    identity: str
    """The method that returns the tensor itself."""
