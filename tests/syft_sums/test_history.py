from __future__ import annotations

from typing import Any

from syft_sums.history import MAX_SHOWN, SumHistory, data_of


def facts(**changes: Any) -> dict[str, Any]:
    known = {
        "name": "icu",
        "study": "s",
        "round": 1,
        "user": "dana",
        "task": "t",
        "list": ["a", "b", "c"],
        "counters": [0, 0, 0],
        "data": ["#x"],
        "noise": "none",
        "counts": True,
        "rule": "aggregates",
        "use": "s-1",
    }
    return {**known, **changes}


def test_a_list_beyond_the_changes_is_refused_and_a_known_one_is_not() -> None:
    history = SumHistory()
    history.add(facts(), False, 0.0)

    assert history.refuse_list(["#x"], frozenset("abc"), 0) is None
    assert history.refuse_list(["#y"], frozenset("ab"), 0) is None
    assert history.refuse_list(["#x"], frozenset("ab"), 1) is None
    assert "changes = 0" in str(history.refuse_list(["#x"], frozenset("ab"), 0))


def test_each_data_of_a_result_counts() -> None:
    history = SumHistory()
    history.add(facts(data=["#x", "#y"]), False, 0.0)
    assert "results of #y" in str(history.refuse_list(["#y"], frozenset("ab"), 0))


def test_lists_under_a_rule_that_demands_noise_are_not_counted() -> None:
    history = SumHistory()
    history.add(facts(counts=False), False, 0.0)
    assert history.refuse_list(["#x"], frozenset("ab"), 0) is None


def test_a_task_is_bound_to_the_lists_of_every_other_round() -> None:
    history = SumHistory()
    history.add(facts(), False, 0.0)
    history.add(facts(list=["a", "b"], counters=[1, 1]), False, 0.0)
    one, two = ("dana", "s", 1), ("eve", "s", 2)

    assert history.refuse_task("t", one, frozenset("bc")) is None
    for workers in ("abc", "ab", "bc"):  # Which of the two was opened is not known.
        assert history.refuse_task("t", two, frozenset(workers)) is not None
    assert history.refuse_task("other", two, frozenset("bc")) is None


def test_a_counter_never_goes_down() -> None:
    history = SumHistory()
    history.add(facts(counters=[3, 0, 0]), False, 0.0)
    history.add(facts(counters=[4, 1, 1]), True, 0.0)

    assert history.refuse_counter("a", 4) is None
    assert "restored from a backup" in str(history.refuse_counter("a", 3))


def test_only_masking_counts_as_a_sum() -> None:
    history = SumHistory()
    history.add(facts(), False, 5.0)
    history.add(facts(), True, 6.0)

    assert history.masked == 1
    assert history.uses == {"aggregates": {"s-1": 5.0}}
    assert [each["revealed"] for each in history.rounds] == [False, True]


def test_a_limited_number_of_rounds_is_shown() -> None:
    history = SumHistory()
    for round in range(MAX_SHOWN + 10):
        history.add(facts(round=round), False, 0.0)
    assert len(history.rounds) == MAX_SHOWN
    assert history.last_rounds == {("dana", "s"): MAX_SHOWN + 9}


def test_data_is_named_by_all_its_tags_in_order() -> None:
    assert data_of(("#y", "#x")) == "#x #y"
