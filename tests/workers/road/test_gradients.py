from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")
import torch


@pytest.fixture
def x(hook: Any) -> Any:
    return torch.tensor([1.0, 2.0, 3.0])


def test_a_gradient_comes_back_to_the_tensor_that_was_sent(x: Any, bob: Any) -> None:
    x.requires_grad_()
    y = x * 2

    p = y.send(bob, requires_grad=True)
    (p * p).sum().backward()

    assert x.grad.tolist() == [8.0, 16.0, 24.0]
    assert [(line.to, line.reason) for line in bob.ledger] == [("me", "its gradient went back")]


def test_backward_crosses_workers_after_a_move(x: Any, bob: Any, alice: Any) -> None:
    w = x.requires_grad_().send(bob)
    moved = (w * 2).move(alice, requires_grad=True)

    (moved * moved).sum().backward()

    assert w.grad.get().tolist() == [8.0, 16.0, 24.0]
    assert bob.objects_count == 2


def test_only_what_a_backward_pass_adds_comes_back(x: Any, bob: Any) -> None:
    p = x.requires_grad_().send(bob, requires_grad=True)

    (p * p).sum().backward()
    (p * 1).sum().backward()

    assert x.grad.tolist() == p.grad.get().tolist() == [3.0, 5.0, 7.0]


def test_the_origin_is_held_as_long_as_its_copy(x: Any, bob: Any, me: Any) -> None:
    p = x.requires_grad_().send(bob, requires_grad=True)
    assert me.objects_count == 1
    del p

    assert (bob.objects_count, me.objects_count) == (0, 0)
