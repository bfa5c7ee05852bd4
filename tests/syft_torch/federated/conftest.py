from __future__ import annotations

from typing import Any

import pytest

import syft_core as sy

from .owners import NAMES
from .settings import Setting


@pytest.fixture
def bob(hook: Any) -> Any:
    return sy.VirtualWorker(hook, id="bob")


@pytest.fixture
def alice(hook: Any) -> Any:
    return sy.VirtualWorker(hook, id="alice")


@pytest.fixture(params=[False, True], ids=["in_process", "by_wire"])
def workers(hook: Any, request: pytest.FixtureRequest) -> list[Any]:
    hook.local_worker.user = "eve"
    return [sy.VirtualWorker(hook, id=name, serialize=request.param) for name in NAMES]


@pytest.fixture
def setting(hook: Any, bob: Any) -> Setting:
    return Setting(hook, bob)


@pytest.fixture
def private(hook: Any, alice: Any) -> Setting:
    return Setting(hook, alice, private=True)
