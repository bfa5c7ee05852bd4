from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_core.workers.party.virtual import VirtualWorker  # noqa: E402


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
