from __future__ import annotations

import random

import pytest

from syft_core.exceptions import IdNotUniqueError
from syft_core.ids import ID_BITS, IdProvider


def test_given_ids_are_used_first_in_order() -> None:
    provider = IdProvider([7, 3])

    assert [provider.pop(), provider.pop()] == [7, 3]
    assert provider.pop() not in (7, 3)


def test_generated_ids_are_unique_and_fit_in_62_bits() -> None:
    provider = IdProvider()

    ids = [provider.pop() for _ in range(1000)]

    assert len(set(ids)) == 1000
    assert all(0 <= i < 2**62 for i in ids)
    assert max(ids) > 2 ** (ID_BITS - 8), "a thousand ids use the high bits"


def test_ids_cannot_be_predicted_by_seeding_random() -> None:
    state = random.getstate()
    try:
        random.seed(0)
        first = IdProvider().pop()
        random.seed(0)
        second = IdProvider().pop()
    finally:
        random.setstate(state)

    assert first != second


def test_a_duplicate_id_is_refused() -> None:
    with pytest.raises(IdNotUniqueError) as caught:
        IdProvider([1, 2, 2])

    assert str(caught.value) == "cannot use the id 2: it is in use; leave it out to get a new one"


def test_the_callers_list_is_not_changed() -> None:
    given = [1, 2]

    IdProvider(given).pop()

    assert given == [1, 2]
