"""Torch modes of the caller do not see the tensors of a worker in the same process."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.overrides import TorchFunctionMode  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402


class Watching(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen += [arg for arg in args if type(arg) is torch.Tensor]
        return func(*args, **(kwargs or {}))


class WatchingKernels(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen += [arg for arg in args if type(arg) is torch.Tensor]
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("kind", [Watching, WatchingKernels])
def test_a_mode_of_the_caller_does_not_see_tensors_of_a_worker(bob: Any, kind: Any) -> None:
    x = torch.tensor([86753.0, 1.0]).private_tensor(["owner"])
    bob.load_data([x.tag("#secret")])
    (secret,) = bob.search("#secret")

    with kind() as mode:
        (secret * 2).sum()

    assert not any(86753.0 in tensor.flatten().tolist() for tensor in mode.seen if tensor.device.type == "cpu")
