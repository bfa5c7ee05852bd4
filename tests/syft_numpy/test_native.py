from __future__ import annotations

import copy
from typing import Any

import pytest

np = pytest.importorskip("numpy")


def test_the_hook_creates_arrays_that_can_be_sent_and_tagged(hook: Any) -> None:
    x = hook.array([1.0, 2.0]).tag("#x").describe("two")
    assert isinstance(x, np.ndarray)
    assert (x.tags, x.description, str(x)) == ({"#x"}, "two", "[1. 2.]")
    assert (hook.zeros((2, 2)) + 1).sum().item() == 4.0
    assert hook.linspace(0, 1, 3).tolist() == [0.0, 0.5, 1.0]


def test_results_have_no_identity_of_their_operands(hook: Any) -> None:
    x = hook.array([1.0, 2.0], id=7).tag("#x")
    for result in (x + 1, x[1:], x.sum(), copy.copy(x)):
        assert (result.tags, result.id == 7) == (set(), False)
    assert (x.copy().tags, x.copy().id == 7) == ({"#x"}, False)
