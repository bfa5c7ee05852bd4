from __future__ import annotations

from typing import Any

import pytest

import syft_core as sy


@pytest.fixture
def bob(hook: Any) -> Any:
    return sy.VirtualWorker(hook, id="bob")


@pytest.fixture
def alice(hook: Any) -> Any:
    return sy.VirtualWorker(hook, id="alice")
