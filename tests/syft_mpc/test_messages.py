from __future__ import annotations

import msgpack
import pytest

from syft_core.exceptions import SerdeError
from syft_core.messages import MAX_RESULTS, read_note
from syft_core.plugins.manager import plugin_manager
from syft_mpc.messages import Deposit, OpenChannel, Prepare, RunProtocol

plugin_manager()  # It registers the messages.


@pytest.mark.parametrize(
    "deposit",
    [
        Deposit("channel", 3, b"half a seed"),
        Deposit(7, 3, bytearray(b"arrays")),
        Deposit(7, 3, bytearray(b"a piece"), left=100),
        Deposit("channel", 3, None),
    ],
)
def test_a_deposit_is_read_from_its_frames(deposit: Deposit) -> None:
    assert read_note(deposit.to_frames()) == deposit


def test_arrays_are_frames_of_their_own_and_are_not_copied() -> None:
    arrays = bytearray(b"arrays")

    assert Deposit(7, 3, arrays).to_frames()[1] is arrays
    assert len(Deposit(7, 3, b"half a seed").to_frames()) == 1


@pytest.mark.parametrize(
    "fields",
    [(7, 3, None), (7.5, 3, None, 0), (7, "3", None, 0), (7, True, None, 0), (7, 3, "seed", 0), (7, 3, None, None)],
)
def test_a_malformed_deposit_is_refused(fields: tuple[object, ...]) -> None:
    with pytest.raises(SerdeError, match="cannot read a note"):
        read_note([msgpack.packb((Deposit.code, *fields))])


def test_a_deposit_has_one_buffer_at_most() -> None:
    head = Deposit(7, 3, None).to_frames()[0]

    with pytest.raises(SerdeError, match="a field has a wrong type"):
        read_note([head, b"one", b"two"])


@pytest.mark.parametrize(("count", "ids"), [(2, [10, 11]), (0, []), (-1, []), (MAX_RESULTS + 1, [])])
def test_a_run_that_fails_poisons_the_results_that_were_expected(count: int, ids: list[int]) -> None:
    assert list(RunProtocol("channel", 1, "relu", (), {}, 10, count, True).expected) == ids


def test_nobody_joins_or_runs_a_protocol_on_behalf_of_others() -> None:
    assert all(kind.facts.is_personal for kind in (OpenChannel, RunProtocol, Prepare))
    assert not Deposit.facts.is_personal


def test_a_worker_deposits_only_into_the_channel_that_its_ticket_names() -> None:
    assert Deposit.facts.mandate is not None
    assert Deposit.facts.mandate(Deposit("channel", 3, None), "bob") == ("channel",)
