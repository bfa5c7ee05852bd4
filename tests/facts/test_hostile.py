"""Call reviewed operations with hostile arguments in a separate process: none crashes it."""

from __future__ import annotations

import os

import pytest

from syft_core.hook.guards import limit_integers

from .hostile import attack

CALLS = int(os.environ.get("SYFT_HOSTILE_CALLS", "6000"))


@pytest.mark.parametrize("framework", ["torch", "numpy"])
def test_no_reviewed_operation_kills_or_hangs_the_process(framework: str) -> None:
    assert [*attack(framework, CALLS)] == []


def test_a_number_that_would_crash_an_operation_is_refused() -> None:
    guarded = limit_integers(max, 100)

    assert guarded(1, 100) == 100
    with pytest.raises(OverflowError, match="cannot run 'max' with the number 101: at most 100 is supported"):
        guarded(1, 101)
    with pytest.raises(OverflowError, match="-101"):
        guarded([1, [-101]], [2])
