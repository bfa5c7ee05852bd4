from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from syft_core.ledgers.entry import Entry  # noqa: E402  # torch may be missing
from syft_torch.demo.page import Departures  # noqa: E402  # the same


def make_entry(id: str, sources: tuple[str, ...]) -> Entry:
    return Entry(0.0, "dana", id, "Tensor[7]", sources, "me", "why", ("#patients",) * len(sources))


def test_an_object_of_the_hospital_counts_as_rows_and_what_was_computed_from_it_does_not() -> None:
    entries = [make_entry(id, ("1",)) for id in ("1", "2", "3")]

    found = Departures("north", "heart clinic", entries)

    assert found.records == 1
    assert found.rows == [("3", "Tensor[7]", "#patients", "dana", "why")]
