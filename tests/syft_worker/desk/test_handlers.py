from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")
import torch

from syft_core.exceptions import GetNotPermittedError
from syft_worker.desk.errors import ReleaseError
from syft_worker.desk.messages import AskRelease
from syft_worker.desk.requests import MAX_OPEN


@pytest.fixture
def mean(bob: Any, me: Any) -> Any:
    """A pointer of eve's to the mean of private data."""
    me.user = "eve"
    bob.load_data([torch.tensor([10.0, 20.0]).private_tensor(["alice"]).tag("#ages")])
    return bob.search("#ages")[0].mean()


def test_the_number_of_open_requests_is_limited(bob: Any, mean: Any) -> None:
    for _ in range(MAX_OPEN):
        mean.request("please")

    with pytest.raises(ReleaseError, match="64 requests are waiting"):
        mean.request("please")


def test_objects_of_others_cannot_be_requested(bob: Any, alice: Any, me: Any, mean: Any) -> None:
    pointer = mean.child
    stranger = alice.location_of(bob)

    with pytest.raises(GetNotPermittedError, match="belongs to someone else"):
        stranger.ask(AskRelease((pointer.id_at_location,), None, "please"))


def test_a_request_names_objects_and_copies_each_once(bob: Any, me: Any, mean: Any) -> None:
    location, id = mean.child._location, mean.child.id_at_location

    with pytest.raises(ReleaseError, match="names no object"):
        location.ask(AskRelease((), None, "please"))
    location.ask(AskRelease((id,) * 1000, None, "please"))

    assert len(bob.requests[0].values) == 1


def test_what_an_asker_says_about_a_request_is_cut_and_covered_by_the_digest(bob: Any, me: Any, mean: Any) -> None:
    location, id = mean.child.location, mean.child.id_at_location
    message = AskRelease((id,), None, "why", ("a\n" + "b" * 1000, "c"), tuple(map(str, range(1000))), "x" * 1000)

    request = bob.requests.find(location.ask(message))

    assert request.labels == ("a\\n" + "b" * 198,)
    assert len(request.parties) == 64
    assert len(request.line) == 200
    before = request.digest
    request.line = "another"
    assert request.digest != before
