from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture
def hook() -> Iterator[Any]:
    torch = pytest.importorskip("torch")
    from syft_torch.hook import TorchHook  # noqa: PLC0415  # torch may be missing

    with TorchHook(torch) as hook:
        yield hook
