from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from syft_core.workers.party.virtual import VirtualWorker

from ..hooks import hook_for_test
from ..syft_mpc.conftest import any_hook, anywhere, shared, torch_anywhere, torch_hook, two  # noqa: F401  # fixtures


@pytest.fixture
def hook(request: pytest.FixtureRequest) -> Iterator[Any]:
    yield from hook_for_test(request, "torch")


@pytest.fixture(params=[False, True], ids=["in-process", "by-wire"])
def serialize(hook: Any, request: Any) -> bool:
    hook.local_worker.serialize = bool(request.param)
    return bool(request.param)


@pytest.fixture
def bob(hook: Any, serialize: bool) -> Any:
    return VirtualWorker(hook, id="bob", serialize=serialize)


@pytest.fixture
def alice(hook: Any, serialize: bool) -> Any:
    return VirtualWorker(hook, id="alice", serialize=serialize)
