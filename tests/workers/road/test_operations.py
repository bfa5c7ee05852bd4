from __future__ import annotations

from typing import Any

import pytest

from syft_core.workers.party import status
from syft_core.workers.road.procedure import find_stages

pytest.importorskip("torch")


def names(hook: Any, op: str, bits: int) -> list[str]:
    stages = find_stages("run", hook.attributes.method(op), bits, hook.attributes)
    return [stage.__name__.strip("_") for stage in stages]


def test_an_empty_status_needs_only_the_stages_that_run_and_keep(hook: Any) -> None:
    assert names(hook, "__add__", 0) == ["keep", "run_plain"]


def test_every_status_adds_its_own_stage(hook: Any) -> None:
    assert names(hook, "__add__", status.QUOTA) == ["meter", "keep", "run_plain"]
    assert names(hook, "__add__", status.PRIVATE | status.LAYERED) == ["keep", "derive", "conceal", "run_layers"]
    assert names(hook, "add_", status.FOREIGN) == ["authorize", "keep", "track", "run_plain"]
    assert names(hook, "__add__", status.REMOTE | status.LAYERED) == ["relay", "run_layers"]
    assert names(hook, "backward", 0) == ["keep", "track_gradients", "run_plain"]


def test_a_restriction_that_a_feature_adds_conceals_like_others(hook: Any) -> None:
    assert "conceal" in names(hook, "__add__", status.RESTRICTED & ~status.POLICY & ~status.PRIVATE)
