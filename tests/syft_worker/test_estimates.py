"""Signatures name what an operation is called with, but no values."""

from __future__ import annotations

from typing import Any

import pytest

from syft_core.hook import signatures
from syft_worker.quotas import QuotaGuard

from ..network.conftest import Connect

torch = pytest.importorskip("torch")


def test_signatures_have_forms_and_constants_but_no_values(
    far: Any, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signatures, "_memos", {})
    far.guard = QuotaGuard(far, {})
    location = connect("ana")
    x = torch.ones(2, 3).send(location)

    torch.nn.functional.pad(x * 86753.5, (1, 2), value=86753.5)
    x[0, 1:]
    location.flush()

    estimates = [known for memo in signatures._memos.values() for known in memo.values()]
    assert [known.signature for known in estimates] == [
        "torch.Tensor.__mul__(float32[2, 3]/3,1, float)",
        "torch.nn.functional.pad(float32[2, 3]/3,1, [1, 2], mode='constant', value=float)",
        "torch.Tensor.__getitem__(float32[2, 3]/3,1, [0, [1, None, None]])",
    ]
