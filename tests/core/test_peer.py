from __future__ import annotations

import contextvars

import pytest

from syft_core.peer import Peer, acting_for, behalf

ANN, BOB, CAROL = Peer("laptop", "ann"), Peer("bob"), Peer("carol", "clinic")


def test_a_peer_that_acts_for_itself_is_the_whole_chain() -> None:
    assert ANN.chain == (ANN,)
    assert ANN.original is ANN


def test_everybody_who_passed_a_request_on_is_in_the_chain_in_order() -> None:
    sender = Peer("carol", "clinic", (ANN, BOB))

    assert sender.chain == (ANN, BOB, CAROL)
    assert sender.original == ANN


def test_a_worker_and_a_user_of_one_name_are_different_peers() -> None:
    assert Peer("board") != Peer("laptop", "board")
    assert Peer("board") != Peer("board", "board")


@pytest.mark.parametrize(
    ("peer", "text"),
    [
        (ANN, "ann"),
        (BOB, "worker bob"),
        (Peer("bob", None, (ANN,)), "ann through worker bob"),
        (Peer("bob", "", ()), ""),
        (Peer("carol", "clinic", (ANN, BOB)), "ann through clinic"),
    ],
)
def test_a_peer_is_shown_by_its_user_or_else_by_its_worker(peer: Peer, text: str) -> None:
    assert str(peer) == text


def test_requests_are_on_behalf_of_others_only_inside_the_block() -> None:
    assert behalf.get() == ()

    with acting_for((ANN,)):
        assert behalf.get() == (ANN,)
        with acting_for((ANN, BOB)):
            assert behalf.get() == (ANN, BOB)
        assert behalf.get() == (ANN,)

    assert behalf.get() == ()


def test_a_block_that_fails_ends_too() -> None:
    with pytest.raises(ValueError, match="mine"), acting_for((ANN,)):
        raise ValueError("mine")

    assert behalf.get() == ()


def test_another_context_does_not_act_for_anybody() -> None:
    other = contextvars.copy_context()

    with acting_for((ANN,)):
        assert other.run(behalf.get) == ()
