from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_core.exceptions import GetNotPermittedError  # noqa: E402
from syft_torch.federated.errors import FederatedError  # noqa: E402
from syft_torch.federated.sums import fetch_released, sum_columns  # noqa: E402
from syft_worker.desk.errors import ReleasePendingError  # noqa: E402


def test_the_sums_of_parts_are_those_of_all_rows(bob: Any, alice: Any) -> None:
    rows = torch.randn(30, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    rows[3, 0] = rows[20, 2] = torch.nan

    count, mean, squares = sum_columns([rows[:11].send(bob), rows[11:].send(alice)], "", 0)

    assert count.tolist() == [29.0, 30.0, 29.0]
    assert torch.allclose(mean, rows.nanmean(0))
    assert torch.allclose(squares, ((rows - rows.nanmean(0)) ** 2).nansum(0))


def test_a_worker_without_values_in_a_column_changes_nothing(bob: Any, alice: Any) -> None:
    rows = torch.tensor([[1.0], [3.0]])

    count, mean, squares = sum_columns([torch.full((2, 1), torch.nan).send(bob), rows.send(alice)], "", 0)

    assert (count.item(), mean.item(), squares.item()) == (2.0, 2.0, 2.0)


def test_infinite_values_are_refused(bob: Any) -> None:
    with pytest.raises(FederatedError):
        sum_columns([torch.tensor([[torch.inf], [1.0]]).send(bob)], "", 0)


def test_only_three_rows_leave_each_worker(bob: Any) -> None:
    sum_columns([torch.ones(50, 2).send(bob)], "", 0)

    assert [entry.form for entry in bob.ledger] == ["Tensor[3, 2] float64"]


def test_sums_of_private_data_are_refused_unless_there_is_a_reason_to_ask(bob: Any) -> None:
    bob.load_data([torch.ones(4, 1).private_tensor([]).tag("#x")])
    total = bob.search("#x")[0].sum()

    with pytest.raises(GetNotPermittedError):
        fetch_released([total], "", 0)
    assert len(bob.requests) == 0
    with pytest.raises(ReleasePendingError):
        fetch_released([total], "scaling", 0)
    assert [request.reason for request in bob.requests] == ["scaling"]


def test_what_an_owner_has_approved_is_fetched_without_its_restriction(bob: Any) -> None:
    bob.load_data([torch.ones(4, 1).private_tensor([]).tag("#x")])
    bob.allow("sums", user="me", computed_from=["#x"], any_program=True)
    bob.hook.local_worker.user = "me"

    (found,) = fetch_released([bob.search("#x")[0].sum()], "scaling", 0)

    assert type(found) is torch.Tensor
    assert found.item() == 4.0
