from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from syft_core.exceptions import GetNotPermittedError
from syft_worker.desk.errors import ReleaseDeniedError, ReleaseError
from syft_worker.desk.handle import RequestHandle
from syft_worker.desk.terms import Terms


@pytest.mark.parametrize(
    ("terms", "why"),
    [
        (Terms(0), "how often"),
        (Terms(-1), "negative"),
        (Terms(2**40), "too large"),
        (Terms(3, "icu", 2, 1), "hides nothing"),
        (Terms(3, "icu", 10_000, 1), "hides nothing"),
        (Terms(3, "icu", 3, 4), "hides nothing"),
    ],
)
def test_terms_that_nobody_could_grant_have_a_problem(terms: Terms, why: str) -> None:
    assert why in (terms.find_problem() or "")


def test_good_terms_are_described() -> None:
    assert Terms(3).find_problem() is None
    assert Terms(3).describe() == "up to 3 times"
    assert Terms(3, "icu", 4, 1).find_problem() is None
    assert (
        Terms(3, "icu", 4, 1).describe().endswith("the 4 workers of 'icu', of which 1 may work together with the user")
    )
    assert Terms(3, "icu", 4, 1).roster.size == 4


def test_terms_survive_as_plain_data() -> None:
    terms = Terms(3, "icu", 4, 1)

    assert Terms(**terms.to_table()) == terms


def ask(pointer: Any, count: int, *sums: Any) -> RequestHandle | None:
    given = pointer.child
    return RequestHandle.ask_study(given.location, {given.id_at_location: "means"}, "a study", count, *sums)


@pytest.fixture
def scans(bob: Any, me: Any) -> Any:
    me.user = "eve"
    bob.load_data([torch.rand(100, 4).private_tensor([]).tag("#scans")])
    return bob.search("#scans")[0]


def test_a_study_is_granted_by_a_rule_for_its_program(bob: Any, scans: Any) -> None:
    asked = ask((scans * 2).mean(0), 2)
    assert asked is not None
    bob.approve(asked)

    (rule,) = bob.rules
    assert asked.state == "granted"
    assert rule.conditions["count"] == 2
    assert (scans * 2).mean(0).get().shape == (4,)
    with pytest.raises(GetNotPermittedError, match="its program is not approved"):
        (scans * 3).mean(0).get()


def test_a_granted_request_can_be_neither_fetched_nor_taken_back(bob: Any, scans: Any) -> None:
    asked = ask((scans * 2).mean(0), 2)
    assert asked is not None
    bob.approve(asked)

    with pytest.raises(ReleaseDeniedError, match="its owner has made a rule of it"):
        asked.get()
    with pytest.raises(ReleaseError):
        bob.withdraw(asked)


def test_a_denied_study_makes_no_rule(bob: Any, scans: Any) -> None:
    asked = ask((scans * 2).mean(0), 2)
    assert asked is not None
    bob.deny(asked, "too many")

    assert list(bob.rules) == []
    with pytest.raises(ReleaseDeniedError, match="too many"):
        asked.wait(1)


def test_a_study_without_a_number_is_refused(scans: Any) -> None:
    with pytest.raises(ReleaseError, match="it does not say how often results leave"):
        ask((scans * 2).mean(0), 0)


def test_an_operation_cannot_be_summed_by_a_rule_for_sums(bob: Any, scans: Any) -> None:
    """Only the worker's own loops can: an operation may compute whatever a client likes."""
    asked = ask((scans * 2).mean(0), 2, ("icu", 3, 1))
    assert asked is not None

    with pytest.raises(ValueError, match="there are|ledger"):
        bob.approve(asked)
    assert asked.state == "open"
