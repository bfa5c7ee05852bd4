from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from syft_sums.errors import SumRuleError
from syft_sums.rules import SumRule, read_conditions

BASE = {"user": "dana", "computed_from": ["#x"], "any_program": True}


def read(**changes: Any) -> dict[str, Any]:
    found: dict[str, Any] = read_conditions("aggregates", {**BASE, **changes})
    return found


def test_what_is_not_named_has_a_default() -> None:
    found = read()
    assert (found["at_least"], found["colluding"], found["changes"], found["failures"]) == (3, 1, 2, "zeros")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"any_program": None}, "it has neither programs nor noise"),
        ({"any_program": False}, "must be true, or be left out"),
        ({"at_leest": 3}, "there is no condition 'at_leest' .*at_least"),
        ({"at_least": 1}, "at_least must be a whole number from 2 to 64"),
        ({"at_least": True}, "at_least must be a whole number"),
        ({"at_least": 2}, "at_least = 2 with colluding = 1 would hide a result among 1"),
        ({"programs": ["ab"]}, "programs must be a list of digests of 64 hexadecimal digits"),
        ({"programs": []}, "programs must be a list"),
        ({"free": ["fixed 1"]}, "free names inputs of programs, and there are none"),
        ({"free": [], "programs": ["ab" * 32]}, "free must be a list of names of supplied inputs"),
        ({"clip": 0}, "clip must be a number above 0"),
        ({"clip": float("inf")}, "clip must be a number above 0"),
        ({"noise": {"multiplier": 1.0}}, "noise must have multiplier, delta and epsilon"),
        ({"noise": {"multiplier": 1.0, "delta": 1e-5, "epsilon": 8}}, "noise needs clip"),
        ({"failures": "loud"}, "failures must be 'zeros' or 'visible'"),
        ({"until": "soon"}, "until must be a date"),
        ({"count": 1, "per_day": 2}, "per_day contradicts count"),
        ({"user": ""}, "user must be a text"),
        ({"computed_from": []}, "computed_from must be a list of at least one tag"),
    ],
)
def test_a_condition_that_is_wrong_is_explained(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(SumRuleError, match=why):
        read(**changes)


@pytest.mark.parametrize("missing", ["user", "computed_from"])
def test_a_rule_names_its_user_and_its_data(missing: str) -> None:
    with pytest.raises(SumRuleError, match=f"'{missing}' is missing"):
        read_conditions("aggregates", {name: value for name, value in BASE.items() if name != missing})


def test_a_name_is_checked() -> None:
    with pytest.raises(SumRuleError, match="a name is 1 to 64"):
        read_conditions("a b", BASE)


def test_a_rule_with_noise_needs_no_program() -> None:
    found = read(any_program=None, clip=1.0, noise={"multiplier": 1.1, "delta": 1e-5, "epsilon": 8})
    assert found["noise"]["epsilon"] == 8.0


def test_a_date_of_toml_is_a_date() -> None:
    assert read(until=date(2999, 1, 31))["until"] == "2999-01-31"


def test_a_rule_describes_what_any_program_means() -> None:
    rule = SumRule("aggregates", read(count=5))
    text = rule.describe()

    assert "by any program: a sum can then be made to show one record" in text
    assert "of at least 3 workers, this one included; of which 1 may collude" in text
    assert rule.hides_among == 2
    assert rule.to_table()["used"] == 0


def test_conditions_that_were_read_can_be_read_again() -> None:
    found = read(clip=1, noise={"multiplier": 1.1, "delta": 1e-5, "epsilon": 8}, until="2999-01-31")
    assert read_conditions("aggregates", found) == found
