from __future__ import annotations

from datetime import date, datetime
from typing import Any

import pytest

from syft_core.conditions import DAY, read_count, read_moment, read_tags, read_text, read_until


@pytest.mark.parametrize(
    ("read", "value", "why"),
    [
        (read_text, "", "must be a text, not ''"),
        (read_text, 3, "must be a text, not 3"),
        (read_tags, [], "must be a list of at least one tag"),
        (read_tags, ["#x", 3], "must be a list of at least one tag"),
        (read_count, 0, "must be a whole number of at least 1, not 0"),
        (read_count, True, "must be a whole number"),
        (read_count, 2**31, "must be a whole number"),
        (read_until, "soon", "must be a date, such as 2027-01-31"),
        (read_until, 7, "must be a date"),
    ],
)
def test_a_wrong_value_is_explained(read: Any, value: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read(value)


def test_tags_are_in_order_and_named_once() -> None:
    assert read_tags(("#y", "#x", "#y")) == ["#x", "#y"]


def test_a_day_ends_at_midnight_and_a_moment_is_itself() -> None:
    day = read_moment("2027-01-31")
    assert day == datetime(2027, 2, 1).timestamp()  # of this machine
    assert day - read_moment("2027-01-30") == pytest.approx(DAY, abs=3600)
    assert read_moment("2027-01-31T12:00:00+00:00") == 1801396800.0


def test_a_date_of_toml_is_read_as_text() -> None:
    assert read_until(date(2027, 1, 31)) == "2027-01-31"
