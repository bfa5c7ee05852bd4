from __future__ import annotations

from typing import Any

import pytest

from syft_sums.roster import MAX_MEMBERS, Roster, find_quorum

KEYS = tuple(sorted(bytes([number] * 32) for number in range(5)))


@pytest.mark.parametrize(
    ("size", "quorum", "lost"), [(3, 3, 0), (4, 3, 1), (5, 4, 1), (7, 5, 2), (10, 6, 4), (20, 11, 9), (50, 26, 24)]
)
def test_the_quorum_for_one_colluding_worker(size: int, quorum: int, lost: int) -> None:
    assert find_quorum(size, 1) == quorum
    assert size - quorum == lost


def test_a_study_is_its_name_its_workers_and_how_many_may_collude() -> None:
    one = Roster("icu", KEYS, 1)
    others = [Roster("ICU", KEYS, 1), Roster("icu", KEYS[1:], 1), Roster("icu", KEYS, 2)]

    assert one.study == Roster("icu", KEYS, 1).study
    assert one.study not in [other.study for other in others]


@pytest.mark.parametrize(
    ("roster", "why"),
    [
        (Roster("", KEYS, 1), "its name is not a text"),
        (Roster("icu", (b"short",), 1), "a key is malformed"),
        (Roster("icu", KEYS[::-1], 1), "not in order, or one is named twice"),
        (Roster("icu", (*KEYS, KEYS[-1]), 1), "not in order, or one is named twice"),
        (Roster("icu", KEYS[:2], 3), "3 of its 2 workers would have to take part"),
        (Roster("icu", KEYS, -1), "not a whole number"),
        (Roster("icu", tuple(bytes([n] * 32) for n in range(MAX_MEMBERS + 1)), 1), "it has 65 workers, and the limit"),
    ],
)
def test_a_roster_that_is_not_valid_is_explained(roster: Roster, why: str) -> None:
    problem: Any = roster.find_problem()
    assert why in problem[0]


def test_a_valid_roster_has_no_problem() -> None:
    assert Roster("icu", KEYS, 1).find_problem() is None
