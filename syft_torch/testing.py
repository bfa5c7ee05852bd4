"""The conformance suite for this backend: `syft-core plugins --check torch` and the tests run it."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import ClassVar

import torch

from syft_core.testing import BackendConformance
from syft_core.values import Tensor
from syft_torch.hook import TorchHook


class TorchConformance(BackendConformance):
    """What the suite must know about torch."""

    framework: ClassVar[ModuleType] = torch
    hook_class = TorchHook

    def concatenate(self, tensors: Sequence[Tensor]) -> Tensor:
        return torch.cat(tensors)

    def leaks(self, wrapper: Tensor) -> Sequence[Callable[[], object]]:
        return [
            lambda: pickle.dumps(wrapper),
            lambda: torch.Tensor(wrapper),
            lambda: torch.ones(2).set_(wrapper),
            lambda: torch.func.vmap(lambda x: x * 2)(wrapper),
            lambda: torch.func.grad(lambda x: x.sum())(wrapper),
            lambda: torch.jit.trace(lambda x: x * 2, (wrapper,)),
        ]

    def patched_objects(self) -> Sequence[object]:
        return [
            torch,
            torch.functional,
            torch.nn.functional,
            torch.Tensor,
            torch.nn.Parameter,
            torch.nn.Module,
            torch.optim.Optimizer,
        ]
