"""The toy backend keeps the contract that every backend keeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import toy
from syft_toy.hook import ToyHook

from syft_core.tensors.abstract import AbstractTensor
from syft_core.testing.conformance import BackendConformance


class TestToyBackend(BackendConformance):
    framework = toy
    hook_class = ToyHook

    def concatenate(self, tensors: Sequence[Any]) -> Any:
        return toy.cat(tensors)

    def numbers(self, tensor: Any) -> Any:
        return tensor.item() if len(tensor) == 1 else tensor.tolist()

    def patched(self) -> Sequence[Any]:
        return [toy, toy.nn, toy.Vector, AbstractTensor]
