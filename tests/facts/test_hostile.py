"""Call reviewed operations with hostile arguments in a separate process: none crashes it."""

from __future__ import annotations

import os

import pytest
import torch

from syft_core.hook.guards import limit_integers
from syft_torch.attributes import TorchAttributes

from .hostile import attack

CALLS = int(os.environ.get("SYFT_HOSTILE_CALLS", "6000"))


@pytest.mark.parametrize("framework", ["torch", "numpy"])
def test_no_reviewed_operation_kills_or_hangs_the_process(framework: str) -> None:
    assert [*attack(framework, CALLS)] == []


def test_a_number_that_would_crash_an_operation_is_refused() -> None:
    guarded = limit_integers(max, 100)

    assert guarded(1, 100) == 100
    with pytest.raises(OverflowError, match="cannot run 'max' with an integer above 100: use a smaller one"):
        guarded(1, 101)
    with pytest.raises(OverflowError, match="with an integer above 100"):
        guarded([1, [-101]], [2])


@pytest.mark.parametrize("heads", [0, False, torch.tensor(0)])
def test_attention_without_heads_is_refused(heads: object) -> None:
    x, weight, bias = torch.ones(2, 3, 4), torch.ones(12, 4), torch.ones(12)
    attention = TorchAttributes(torch).ops.look_up("torch._native_multi_head_attention").run

    with pytest.raises(ValueError, match="cannot run '_native_multi_head_attention' without features or heads"):
        attention(x, x, x, 4, heads, weight, bias, torch.ones(4, 4), torch.ones(4))
