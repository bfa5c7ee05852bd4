"""A reservation ends with its command, however that ends."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from syft_core.workers.party.reservations import Amounts, Reservation


def test_a_reservation_is_held_in_its_block() -> None:
    held: dict[int, Amounts] = {}

    with Reservation(held, Amounts(1, 10)), Reservation(held, Amounts(2, 20)):
        assert sorted(held.values()) == [(1, 10, 0), (2, 20, 0)]

    assert held == {}


def test_releasing_a_reservation_again_has_no_effect() -> None:
    held: dict[int, Amounts] = {}
    one, _other = Reservation(held, Amounts(1)), Reservation(held, Amounts(2))

    one.release()
    one.release()

    assert [*held.values()] == [Amounts(2)]


@pytest.mark.parametrize("steps", [0, 1])
def test_a_process_that_nobody_goes_on_with_releases_its_reservation(steps: int) -> None:
    held: dict[int, Amounts] = {}

    def run(reservation: Reservation) -> Iterator[None]:
        with reservation:
            yield

    process = run(Reservation(held, Amounts(1)))
    for _ in range(steps):
        next(process)
    assert held
    del process

    assert held == {}
