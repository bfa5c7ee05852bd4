"""Programs are run again on examples: what they depend on, and how much one row changes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from syft_core.workers.road.derivation import derivation_of
from syft_worker.desk.examination import Examination, count_rows_behind, measure_influence


@pytest.fixture
def x(bob: Any) -> Any:
    bob.load_data([torch.arange(60.0).reshape(30, 2).private_tensor([]).tag("#x")])
    return bob.search("#x")[0]


def find(bob: Any, pointer: Any) -> Any:
    pointer.child._location.flush()
    return derivation_of(bob.object_store.entry(pointer.id_at_location))


PROGRAMS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "a mean": (lambda x: x.mean(0), 10),
    "a mean of each row": (lambda x: x.mean(1), 1),
    "seven rows": (lambda x: x[3:10].sum(0), 7),
    "one of several results": (lambda x: torch.var_mean(x, 0)[1], 10),
    "a change in place": (lambda x: (x * 1.0).add_(1.0).sum(0), 10),
    "a product with itself": (lambda x: x.t() @ x, 10),
    "a row next to sums": (lambda x: torch.cat([x.sum(0), x[4]]), 1),
}


@pytest.mark.parametrize(("compute", "rows"), PROGRAMS.values(), ids=PROGRAMS)
def test_the_rows_behind_each_number_are_counted(bob: Any, x: Any, compute: Any, rows: int) -> None:
    assert count_rows_behind(find(bob, compute(x)), 10) == Examination(rows)


def test_what_was_supplied_is_used_itself_while_it_is_there(bob: Any, x: Any) -> None:
    mask = torch.zeros(30, 1)
    mask[:3] = 1.0
    sent = mask.send(bob)

    assert count_rows_behind(find(bob, (x * sent).sum(0)), 10) == Examination(3)


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "random": (lambda x: torch.dropout(x, 0.5, True).sum(0), "its step 'dropout' draws random numbers"),
    "not a number": (lambda x: (x * 0.0 / 0.0).sum(0), "its result on examples is not a number"),
    "of no row": (lambda x: (x * 0.0).sum(0), "its result on examples depends on no row"),
}


@pytest.mark.parametrize(("compute", "why"), REFUSED.values(), ids=REFUSED)
def test_a_program_of_which_examples_say_nothing_has_a_reason(bob: Any, x: Any, compute: Any, why: str) -> None:
    assert count_rows_behind(find(bob, compute(x)), 10).why == why


def test_the_influence_of_a_row_is_measured_on_the_data(bob: Any, x: Any) -> None:
    found = measure_influence(find(bob, x.sum(0)))

    assert (
        found == "with another row in place of row 0, a number changes by 58, 0.064 of the largest number of the result"
    )


def test_an_influence_that_cannot_be_measured_has_a_reason(bob: Any, x: Any) -> None:
    total = x
    for _ in range(300):
        total = total * 1.0

    assert measure_influence(find(bob, total)).startswith("not computed: it has up to 301 steps")
