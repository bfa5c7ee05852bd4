"""Memory counts once for what shares it, and in full for copies."""

from __future__ import annotations

import pytest

from syft_core.messages import Run, Store
from syft_worker.measures import Seen, bytes_beyond, bytes_of, bytes_of_copy, bytes_of_message

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("hook")


def test_a_view_counts_with_what_it_keeps_and_its_copy_with_its_elements() -> None:
    x = torch.ones(100)

    assert (bytes_of(x[:1]), bytes_of_copy(x[:1]), bytes_of_copy(x.expand(10, 100))) == (400, 4, 4000)


def test_a_gradient_counts() -> None:
    x = torch.ones(100, requires_grad=True)
    x.sum().backward()

    assert bytes_of(x) == bytes_of_copy(x) == 800


def test_a_sparse_tensor_counts_with_its_parts() -> None:
    assert bytes_of(torch.eye(10).to_sparse()) == 10 * 4 + 20 * 8


def test_what_shares_memory_counts_once_for_each_user() -> None:
    seen, x = Seen(), torch.ones(100)

    assert [seen.add("ana", x), seen.add("ana", x[1:]), seen.add("bo", x.t())] == [400, 0, 400]


def test_new_memory_is_what_no_operand_has() -> None:
    x = torch.ones(100)

    assert bytes_beyond([x[1:], x + 1, [x * 2, x.t()]], [x]) == 800


def test_a_graph_counts_only_with_what_is_not_stored() -> None:
    x = torch.ones(100, requires_grad=True)
    y = x.exp()
    z = y.exp()
    seen = Seen()
    seen.add("ana", x)
    seen.add("ana", z)

    assert seen.add_graphs("ana", z) == 400


def test_the_tensors_in_a_message_count_apart_from_the_object_that_is_stored() -> None:
    run = Run("torch", "torch.cat", ([torch.ones(5), torch.ones(5)],), {"out": torch.ones(10)}, 1)

    assert bytes_of_message(run) == 80
    assert bytes_of_message(Store(1, torch.ones(5))) == 0
