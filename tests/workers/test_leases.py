"""Leases are counted per holder: nobody can release the leases of another."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_core.exceptions import GetNotPermittedError  # noqa: E402
from syft_core.messages import Lease, Release, Store  # noqa: E402


def test_a_peer_cannot_release_what_another_holds(bob: Any, alice: Any) -> None:
    p = torch.ones(2).send(bob)

    for _ in range(3):
        alice.location_of(bob).ask(Release((p.id_at_location,)))

    assert p.get().tolist() == [1.0, 1.0]


def test_a_peer_cannot_release_more_than_it_holds(bob: Any, alice: Any, me: Any) -> None:
    p = torch.ones(2).send(bob)
    me.location_of(bob).ask(Lease((p.id_at_location,), "alice"))
    for _ in range(3):
        alice.location_of(bob).ask(Release((p.id_at_location,), "me"))
    assert bob.objects_count == 1

    del p
    assert bob.objects_count == 0


def test_a_search_gives_the_finder_a_lease_of_its_own(bob: Any) -> None:
    p = torch.ones(2).tag("#x").send(bob)
    (found,) = bob.search("#x")
    del p
    assert found.shape == (2,)

    del found
    assert bob.objects_count == 0


def test_a_pointer_that_is_sent_gets_a_lease_of_its_own(bob: Any, alice: Any) -> None:
    p = torch.ones(2).send(bob)
    q = p.send(alice)
    del p
    assert (bob.objects_count, alice.objects_count) == (1, 1)
    r = q.get()
    del q
    assert (bob.objects_count, alice.objects_count) == (1, 0)
    assert r.get().tolist() == [1.0, 1.0]
    assert bob.objects_count == 0


def test_a_moved_object_belongs_to_the_peer_that_moved_it(bob: Any, alice: Any) -> None:
    p = torch.ones(2).send(bob).move(alice)
    assert (bob.objects_count, alice.objects_count) == (0, 1)
    alice.location_of(bob).ask(Release((p.id_at_location,)))
    bob.location_of(alice).ask(Release((p.id_at_location,)))
    assert alice.objects_count == 1

    del p
    assert alice.objects_count == 0


def test_a_peer_cannot_store_an_object_for_another_holder(bob: Any, alice: Any) -> None:
    with pytest.raises(GetNotPermittedError, match="the sender does not act on behalf of 'somebody'"):
        alice.location_of(bob).ask(Store(1, torch.ones(2), holder="somebody"))

    assert bob.objects_count == 0


def test_an_object_moved_back_and_forth_with_gradients_is_dropped(bob: Any, alice: Any, me: Any) -> None:
    x = torch.ones(2, requires_grad=True).send(bob)
    y = (x * 2).move(alice, requires_grad=True)
    (y * 3).sum().backward()
    assert x.grad.get().tolist() == [6.0, 6.0]

    del x, y
    assert (alice.objects_count, bob.objects_count) == (0, 0)
