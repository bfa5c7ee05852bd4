from __future__ import annotations

import pytest

pytest.importorskip("torch")

from syft_torch.federated.private_steps.marks import (  # torch may be missing
    LENGTH,
    MIXED,
    SHARED,
    Batched,
    CoupledError,
    Reduced,
    is_number_mark,
)


def test_a_tensor_keeps_its_count_when_its_samples_move() -> None:
    assert Batched(0, 3).at(2) == Batched(2, 3)


def test_only_numbers_are_marked_as_numbers() -> None:
    assert [mark for mark in (LENGTH, MIXED, SHARED, Batched(0), Reduced("mean"), None) if is_number_mark(mark)] == [
        LENGTH,
        MIXED,
    ]


def test_a_refusal_has_a_reason_and_a_way_out() -> None:
    error = CoupledError("sorts the batch", "do not")

    assert (error.why, error.advice, str(error)) == ("sorts the batch", "do not", "sorts the batch")
