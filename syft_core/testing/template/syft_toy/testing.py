"""The conformance suite for this backend: `syft-core plugins --check toy` and the tests run it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import toy

from syft_core.tensors.abstract import AbstractTensor
from syft_core.testing import BackendConformance
from syft_toy.hook import ToyHook


class ToyConformance(BackendConformance):
    """What the suite must know about toy."""

    framework = toy
    hook_class = ToyHook

    def concatenate(self, tensors: Sequence[Any]) -> Any:
        """Concatenate with a function of the framework that takes a list."""
        return toy.cat(tensors)

    def numbers(self, tensor: Any) -> Any:
        """Return the values of a vector; the default is ``tensor.tolist()``."""
        return tensor.item() if len(tensor) == 1 else tensor.tolist()

    def patched_objects(self) -> Sequence[Any]:
        """Return the objects to which the hook may add names, and on which it must leave none."""
        return [toy, toy.nn, toy.Vector, AbstractTensor]
