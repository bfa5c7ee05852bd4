"""Unread: what a kernel has changed before it failed is counted as a change."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from syft_torch.unread import Unread  # noqa: E402


@pytest.mark.parametrize("inference", [False, True])
def test_a_change_by_a_kernel_that_fails_is_counted(inference: bool) -> None:
    with torch.inference_mode(inference):
        first, second = torch.zeros(3), torch.zeros(3)

    with Unread((), id, ValueError("no")), pytest.raises(RuntimeError, match="size"):
        torch._foreach_add_([first, second], [torch.ones(3), torch.ones(7)])

    assert first.tolist() == [1.0, 1.0, 1.0]
    assert inference or first._version > 0
