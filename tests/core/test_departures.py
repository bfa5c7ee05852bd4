from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from syft_core.departures import RULES, ReleaseRule, register_rule
from syft_core.exceptions import AlreadyRegisteredError
from syft_core.registry import Registry


class History:
    """Takes note of nothing."""

    def note(self, entry: Any) -> None: ...


def make_rule() -> ReleaseRule:
    return ReleaseRule(lambda leaving: None, lambda *_: None, lambda *_: None, History)


@pytest.fixture(autouse=True)
def rules(monkeypatch: pytest.MonkeyPatch) -> Registry[str, ReleaseRule]:
    """An empty table of rules."""
    made: Registry[str, ReleaseRule] = Registry("rules")
    monkeypatch.setattr("syft_core.departures.RULES", made)
    return made


def test_rules_are_asked_in_the_order_in_which_they_were_registered(rules: Registry[str, ReleaseRule]) -> None:
    for name in ("requests", "approvals", "budget"):
        register_rule(name, make_rule())

    assert list(rules) == ["requests", "approvals", "budget"]


def test_a_rule_is_registered_once(rules: Registry[str, ReleaseRule]) -> None:
    rule = make_rule()

    register_rule("requests", rule)
    register_rule("requests", rule)
    with pytest.raises(AlreadyRegisteredError, match="cannot register 'requests' in 'rules'"):
        register_rule("requests", make_rule())

    assert rules["requests"] is rule


def test_a_rule_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        make_rule().cover = print  # type: ignore[misc]


def test_the_error_for_an_unknown_rule_says_how_to_register_one() -> None:
    with pytest.raises(LookupError, match="register it with `register_rule`"):
        RULES["nobody's rule"]
