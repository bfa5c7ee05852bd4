"""Data that only some users may have."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")


def store(worker: Any, users: list[str], numbers: list[float], requires_grad: bool = False) -> Any:
    tensor = torch.tensor(numbers, requires_grad=requires_grad)
    worker.load_data([tensor.private_tensor(users).tag(f"#{id(tensor)}")])
    (pointer,) = worker.search(f"#{id(tensor)}")
    return pointer
