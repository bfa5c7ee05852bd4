from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_core.testing import BackendConformance  # noqa: E402
from syft_torch.hook import TorchHook  # noqa: E402


class TestTorch(BackendConformance):
    framework = torch
    hook_class = TorchHook

    def concatenate(self, tensors: Sequence[Any]) -> Any:
        return torch.cat(tensors)

    def leaks(self, wrapper: Any) -> Sequence[Callable[[], Any]]:
        return [
            lambda: pickle.dumps(wrapper),
            lambda: torch.Tensor(wrapper),
            lambda: torch.ones(2).set_(wrapper),
            lambda: torch.func.vmap(lambda x: x * 2)(wrapper),
            lambda: torch.func.grad(lambda x: x.sum())(wrapper),
            lambda: torch.jit.trace(lambda x: x * 2, (wrapper,)),
        ]

    def patched_objects(self) -> Sequence[Any]:
        return [
            torch,
            torch.functional,
            torch.nn.functional,
            torch.Tensor,
            torch.nn.Parameter,
            torch.nn.Module,
            torch.optim.Optimizer,
        ]
