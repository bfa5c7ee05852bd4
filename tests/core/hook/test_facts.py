from __future__ import annotations

from typing import Any

import pytest

from syft_core.hook.facts import WRITES_ALL, WRITES_FIRST, Facts, Option


class Tensor:
    """Stands for a tensor: anything that is not a plain Python value."""


A, B, C = Tensor(), Tensor(), Tensor()
INPLACE = Option(1, "inplace", default=False)


@pytest.mark.parametrize(
    ("args", "kwargs", "on"),
    [
        ((A,), {}, False),
        ((A, True), {}, True),
        ((A, False), {}, False),
        ((A,), {"inplace": True}, True),
        ((A,), {"inplace": None}, False),
        ((A, 0), {}, True),
    ],
)
def test_an_option_is_on_unless_its_value_is_one_that_disables_it(args: Any, kwargs: Any, on: bool) -> None:
    assert INPLACE.is_on(args, kwargs) is on


def test_an_option_without_a_position_is_read_by_name_only() -> None:
    assert not Option(None, "training").is_on((A, True), {})
    assert Option(None, "training", default=True).is_on((A,), {})


def test_an_operation_without_a_description_may_do_anything() -> None:
    facts = Facts()

    assert facts.writes is WRITES_ALL
    assert (facts.discloses, facts.reads_beyond, facts.partial, facts.tier) == ("values", True, True, "public")
    assert facts.targets((A, [B, 1], "text", None), {"key": C}) == [A, B, C]


def test_an_operation_in_place_changes_its_first_argument_by_position_or_by_name() -> None:
    facts = Facts(writes=WRITES_FIRST)

    assert facts.targets((A, B), {}) == [A]
    assert facts.targets((), {"input": A, "other": B}) == [A]
    assert facts.targets(([A, B], C), {}) == [A, B]


def test_the_output_of_a_call_is_always_changed() -> None:
    assert Facts(writes=frozenset()).targets((A, B), {"out": C}) == [C]
    assert Facts(writes=frozenset()).targets((A,), {"out": (B, C)}) == [B, C]
    assert Facts(writes=frozenset()).targets((A, B), {"out": None}) == []
    assert set(Facts(writes=WRITES_FIRST).targets((A, B), {"out": C})) == {A, C}


def test_an_argument_is_changed_only_if_its_option_is_on() -> None:
    facts = Facts(writes=WRITES_FIRST, writes_if=dict.fromkeys(WRITES_FIRST, INPLACE))

    assert facts.targets((A,), {}) == []
    assert facts.targets((A, True), {}) == [A]
    assert facts.targets((A,), {"inplace": True}) == [A]
    assert facts.targets((A,), {"out": B}) == [B]


def test_options_of_some_arguments_do_not_matter_for_others() -> None:
    training = Option(2, "training")
    facts = Facts(writes=frozenset({0, 1}), writes_if={1: training})

    assert facts.targets((A, B), {}) == [A]
    assert set(facts.targets((A, B, True), {})) == {A, B}


def test_unknown_keywords_alone_may_all_be_changed() -> None:
    assert Facts(writes=WRITES_FIRST).targets((), {"mystery": A, "number": 1}) == [A]


def test_a_target_that_is_given_twice_is_listed_once() -> None:
    assert Facts().targets((A, A), {"again": A}) == [A]


def test_indices_are_found_by_position_and_by_name() -> None:
    facts = Facts(indices=frozenset({1, "index"}))

    assert facts.indexes((A, (B, 2)), {}) == [B, 2]
    assert facts.indexes((A,), {"index": C}) == [C]
    assert facts.indexes((A,), {}) == []
    assert Facts().indexes((A, B), {"index": C}) == []


def test_a_form_may_depend_on_values_in_some_calls_only() -> None:
    facts = Facts(discloses="nothing", form_depends=lambda args, _kwargs: len(args) > 1)

    assert facts.disclosure((A,), {}) == "nothing"
    assert facts.disclosure((A, B), {}) == "form"
    assert Facts(discloses="values", form_depends=lambda *_call: False).disclosure((A,), {}) == "values"
