from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from syft_core.ledgers.entry import Entry  # noqa: E402  # torch may be missing
from syft_torch.demo.page import WhatLeft  # noqa: E402  # the same

LEFT_OUT = "SampleDP(clip=1), for a record left out"


def make_entry(id: str, **changes: object) -> Entry:
    return Entry(0.0, "dana", id, "Tensor[7]", ("1",), "me", "why", ("#patients",))._replace(**changes)


def test_an_object_of_the_hospital_counts_as_rows_and_what_was_computed_from_it_as_left_outside_a_sum() -> None:
    found = WhatLeft("north", "heart clinic", [make_entry(id) for id in ("1", "2", "3")])

    assert (found.records, found.outside) == (1, 3)
    assert found.rows == [("3", "Tensor[7]", "#patients", "dana", "why")]


def test_the_sums_of_all_rounds_are_one_row() -> None:
    forms = [f"Tensor[7] of sum(study='s', round={number})" for number in (1, 2)]
    facts = {"list": ["a", "b", "c"], "noise": "none"}
    entries = [make_entry(form, form=form, sum=facts, rule="aggregates") for form in forms]
    noises = [f"SampleDP(clip=1, epsilon={spent}), for a record left out" for spent in ("2.5", "3e-05")]
    noisy = [make_entry("x", form=forms[0], sum={**facts, "noise": noise}, rule="aggregates") for noise in noises]
    share = make_entry("9", sources=("5", "6"), names=())

    found = WhatLeft("north", "heart clinic", [*entries, *noisy, share])

    assert (found.records, found.outside) == (0, 0)
    assert [row[:3] for row in found.rows] == [
        ("2", "Tensor[7], only in the sum of 3 workers", "#patients"),
        ("2", f"Tensor[7], only in the sum of 3 workers, with noise: {LEFT_OUT}", "#patients"),
        ("1", "Tensor[7]", "nothing of this hospital"),
    ]
