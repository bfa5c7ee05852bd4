from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture
def hook() -> Iterator[Any]:
    torch = pytest.importorskip("torch")
    with pytest.importorskip("syft_torch.hook").TorchHook(torch) as hook:
        yield hook
