from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from syft_sums.errors import SumRuleError
from syft_sums.keys import MemberKey
from syft_sums.messages import JoinSum
from syft_sums.studies import release_only_aggregates, studies_of
from syft_worker.views import _sums

from .workers import Hospitals


def test_a_rule_that_wants_more_workers_than_there_are_members_is_refused(hospitals: Hospitals) -> None:
    with pytest.raises(SumRuleError, match="it wants at least 4 workers, and there are 3 members, this one included"):
        release_only_aggregates(
            hospitals.workers[0], at_least=4, computed_from=["#x"], user="dana", any_program=True, name="more"
        )


def test_two_rules_of_one_name_are_refused(hospitals: Hospitals) -> None:
    with pytest.raises(SumRuleError, match="there is one of this name"):
        hospitals.allow(hospitals.workers[0], any_program=True)


def test_a_rule_that_is_not_there_cannot_be_revoked(hospitals: Hospitals) -> None:
    studies = studies_of(hospitals.workers[0])
    studies.revoke()
    with pytest.raises(SumRuleError, match="there is none"):
        studies.revoke()


@pytest.mark.parametrize("members", [{"a": "ed25519:00"}, {"a": ["x"]}, {"a": 7}])
def test_a_member_with_a_malformed_fingerprint_is_refused(hospitals: Hospitals, members: Any) -> None:
    with pytest.raises(SumRuleError, match="'a' "):
        studies_of(hospitals.workers[0]).set_members(members)


def test_a_key_that_is_listed_twice_is_refused(hospitals: Hospitals) -> None:
    key = MemberKey().fingerprint
    with pytest.raises(SumRuleError, match="is listed twice"):
        studies_of(hospitals.workers[0]).set_members({"a": key, "b": [key]})


def test_the_key_is_kept_in_its_file(hospitals: Hospitals, tmp_path: Path) -> None:
    studies = studies_of(hospitals.start("kept"))
    studies.key_file = tmp_path / "key"

    assert studies.fingerprint == MemberKey.load(tmp_path / "key").fingerprint


def test_the_configured_rule_is_replaced_and_removed(hospitals: Hospitals) -> None:
    studies = studies_of(hospitals.workers[0])
    studies.revoke()
    table = {"user": "dana", "computed_from": ["#x"], "any_program": True}
    studies.configure(hospitals.fingerprints, table)
    studies.configure(hospitals.fingerprints, {**table, "user": "eve"})

    assert studies.rules["aggregates"]["user"] == "eve"
    studies.configure(hospitals.fingerprints, None)
    assert studies.rules == {}


def test_it_prints_the_key_the_members_the_rules_and_the_rounds(hospitals: Hospitals) -> None:
    hospitals.study().sum(1, hospitals.put_all([[1.0]] * 3))
    north = hospitals.workers[0]

    text = str(north.studies)

    assert f"key of 'north': {hospitals.fingerprints['north']}" in text
    assert "member 'south': ed25519:" in text
    assert "hides each result among 2 workers" in text
    assert "results of #x: summed over 1 different list of workers" in text
    assert "revealed" in text
    assert "1.0" not in text


def test_the_page_shows_the_key_the_members_the_rules_and_the_rounds(hospitals: Hospitals) -> None:
    hospitals.study(name="<b>icu</b>").sum(1, hospitals.put_all([[1.0]] * 3))

    page = str(_sums(studies_of(hospitals.workers[0]), "csrf"))

    for text in (*hospitals.fingerprints.values(), "2 workers", "#x", "revealed", "&lt;b&gt;icu&lt;/b&gt;"):
        assert text in page
    assert "<b>icu" not in page


def test_the_page_of_a_worker_without_sums_says_so(hospitals: Hospitals) -> None:
    page = str(_sums(studies_of(hospitals.start("alone")), "csrf"))
    assert "no rule: nothing leaves in a sum" in page


def test_rounds_of_a_client_that_has_left_are_forgotten(hospitals: Hospitals) -> None:
    study, north = hospitals.study(), hospitals.workers[0]
    ids = tuple(hospitals.put(north, [1.0]))
    study.locations["north"].ask(JoinSum("icu", study.roster.keys, 1, 1, ids, "samples"))
    assert len(studies_of(north).rounds) == 1

    studies_of(north).forget("somebody else")
    assert len(studies_of(north).rounds) == 1
    studies_of(north).forget(hospitals.hook.local_worker.id)
    assert studies_of(north).rounds == {}
