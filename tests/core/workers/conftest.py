"""Workers of the toy framework, in this process."""

from __future__ import annotations

import pytest
from syft_toy.hook import ToyHook

from syft_core.hook.ops import OpTable
from syft_core.workers.party.virtual import VirtualWorker


@pytest.fixture
def me(hook: ToyHook) -> VirtualWorker:
    """The local worker."""
    return hook.local_worker


@pytest.fixture
def bob(hook: ToyHook) -> VirtualWorker:
    return VirtualWorker(hook, id="bob", serialize=False)


@pytest.fixture
def alice(hook: ToyHook) -> VirtualWorker:
    return VirtualWorker(hook, id="alice", serialize=False)


@pytest.fixture
def own_table(hook: ToyHook, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a test allow further operations, which are forgotten afterwards."""
    monkeypatch.setattr(hook.attributes, "ops", OpTable("toy", hook.attributes.ops))
