from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_core.exceptions import GetNotPermittedError  # noqa: E402
from syft_torch.federated.sums import fetch_released  # noqa: E402
from syft_worker.desk.errors import ReleasePendingError  # noqa: E402


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
