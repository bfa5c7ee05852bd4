from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from syft_core.departures import RULES, ReleaseRule, collect_arrivals, on_arrival, register_rule
from syft_core.exceptions import AlreadyRegisteredError, RegistryError
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


def test_what_follows_an_arrival_is_done_at_once_if_nobody_will_know_when_it_arrives() -> None:
    done: list[str] = []

    on_arrival(lambda: done.append("now"))

    assert done == ["now"]


def test_a_transport_collects_what_follows_the_arrival_of_its_answers() -> None:
    done: list[str] = []

    with collect_arrivals() as arrivals:
        on_arrival(lambda: done.append("later"))
        assert done == []
    for action in arrivals:
        action()
    on_arrival(lambda: done.append("now"))

    assert done == ["later", "now"]


def test_answers_to_different_clients_are_collected_apart() -> None:
    done: list[int] = []

    def answer(number: int) -> None:
        with collect_arrivals() as arrivals:
            together.wait(20)
            on_arrival(lambda: done.append(number))
            together.wait(20)
            assert len(arrivals) == 1

    together = threading.Barrier(3)
    with ThreadPoolExecutor(3) as threads:
        assert list(threads.map(answer, range(3))) == [None, None, None]
    assert done == []


def test_a_rule_of_a_wrong_type_is_refused() -> None:
    with pytest.raises(RegistryError, match="cannot register the rule 'mine': it has the type function; make a `Rel"):
        register_rule("mine", lambda _leaving: None)  # type: ignore[arg-type]  # the mistake
