from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
from syft_core.exceptions import ObjectNotFoundError  # noqa: E402
from syft_core.messages import Fetch, Lease  # noqa: E402


def test_what_others_hold_is_fetched_as_a_copy(bob: Any, alice: Any, me: Any) -> None:
    p = torch.ones(2).send(bob)
    me.location_of(bob).ask(Lease((p.id_at_location,), "alice"))
    id = p.id_at_location

    assert p.get().tolist() == [1.0, 1.0]
    assert alice.location_of(bob).ask(Fetch(id)).tolist() == [1.0, 1.0]
    assert bob.objects_count == 0
    with pytest.raises(ObjectNotFoundError, match="it was fetched by 'alice'"):
        me.location_of(bob).ask(Fetch(id))


def test_a_peer_that_fetches_what_it_does_not_hold_leaves_it_there(bob: Any, alice: Any) -> None:
    p = torch.ones(2).send(bob)

    assert alice.location_of(bob).ask(Fetch(p.id_at_location)).tolist() == [1.0, 1.0]

    assert p.get().tolist() == [1.0, 1.0]
