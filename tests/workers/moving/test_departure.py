from __future__ import annotations

from typing import Any

import pytest

import syft_core as sy

torch = pytest.importorskip("torch")


@pytest.fixture
def carol(hook: Any) -> Any:
    return sy.VirtualWorker(hook, id="carol", serialize=False)


def test_a_fetched_number_does_not_bring_the_memory_that_it_was_taken_from(carol: Any) -> None:
    p = torch.arange(1000.0, requires_grad=True).send(carol)
    number = (p * 1)[3].get()
    assert number.item() == 3.0
    assert number.untyped_storage().nbytes() == number.element_size()


def test_a_fetched_number_shares_no_memory_with_a_graph(carol: Any) -> None:
    p = torch.tensor(2.0, requires_grad=True).send(carol)
    result = p.exp()  # The graph needs the result.
    doubled = result * 2
    fetched = result.get()
    fetched.zero_()
    doubled.backward()
    assert p.grad.get().item() == pytest.approx(2 * 7.389056, rel=1e-6)
    assert fetched.owner is not carol
