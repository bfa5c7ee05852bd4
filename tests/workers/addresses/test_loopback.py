from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_core.exceptions import ObjectNotFoundError  # noqa: E402  # torch may be absent
from syft_core.messages import Describe, Fetch, Store  # noqa: E402  # the same
from syft_core.workers.addresses.loopback import LoopbackLocation  # noqa: E402  # the same
from syft_core.workers.party.virtual import VirtualWorker  # noqa: E402  # the same


@pytest.fixture
def location(hook: Any) -> LoopbackLocation:
    bob = VirtualWorker(hook, id="bob by wire", serialize=True)
    made = hook.local_worker.location_of(bob)
    assert isinstance(made, LoopbackLocation)
    return made


def test_what_is_sent_is_a_copy_that_went_through_the_wire_format(location: LoopbackLocation) -> None:
    x = torch.ones(3)

    location.tell(Store(5, x))
    x.zero_()

    assert location.worker.object_store.entry(5).value.tolist() == [1.0, 1.0, 1.0]
    assert location.bytes_moved > 0


def test_every_message_is_executed_at_once_and_errors_are_raised_where_they_are_caused(
    location: LoopbackLocation,
) -> None:
    with pytest.raises(ObjectNotFoundError):
        location.tell(Fetch(77))
    location.tell(Store(5, torch.ones(2)))

    (known,) = location.ask(Describe((5,)))

    assert tuple(known.shape) == (2,)
    assert location.receive_frames(wait=False) is None


def test_a_dropped_lease_is_released_with_the_next_message(location: LoopbackLocation) -> None:
    location.tell(Store(5, torch.ones(2)))

    location.drop(5)
    location.tell(Store(6, torch.ones(2)))

    assert 5 not in location.worker.object_store
