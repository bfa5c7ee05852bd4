"""Arrays travel as tensors do."""

from __future__ import annotations

import copy
from typing import Any

import pytest

pytest.importorskip("numpy")

import numpy as np

from syft_core.exceptions import AlreadyRetrievedError, NotCollocatedError, ValueRefusedError


@pytest.fixture
def x(numpy_hook: Any) -> Any:
    return numpy_hook.array([1.0, 2.0, 3.0])


def values(fetched: Any) -> list[float]:
    return fetched.child.tolist()  # type: ignore[no-any-return]


def test_an_array_that_was_sent_shares_no_memory_with_the_worker(x: Any, carol: Any) -> None:
    p = x.send(carol)

    x += 1

    assert values(p.get()) == [1.0, 2.0, 3.0]
    assert carol.objects_count == 0


def test_operations_run_where_the_array_is(x: Any, carol: Any) -> None:
    p, q = x.send(carol), x.send(carol)

    assert values((p + q).get()) == [2.0, 4.0, 6.0]
    assert values(np.concatenate([p, q]).get()) == [1.0, 2.0, 3.0, 1.0, 2.0, 3.0]
    assert values(np.add(p, q, out=p).get()) == [2.0, 4.0, 6.0]
    assert (q.shape, q.dtype, len(q), q.sum().shape) == ((3,), np.dtype("f8"), 3, ())


def test_in_place_and_out_keep_the_object(x: Any, carol: Any) -> None:
    p = x.send(carol)
    q = p

    q += 1

    assert q is p
    assert np.multiply(p, 2, out=p) is p
    assert values(p.get()) == [4.0, 6.0, 8.0]
    assert carol.objects_count == 0


def test_arrays_can_be_sent_and_fetched_in_place(x: Any, carol: Any) -> None:
    assert x.send_(carol) is x
    assert x.location is carol
    assert x.get_() is x
    assert values(x) == [1.0, 2.0, 3.0]


def test_arrays_move(x: Any, carol: Any, dave: Any) -> None:
    p = x.send(carol)

    q = p.move(dave)

    assert (q.location, carol.objects_count, dave.objects_count) == (dave, 0, 1)
    with pytest.raises(AlreadyRetrievedError):
        p + 1
    assert values(q.send(carol).get().get()) == [1.0, 2.0, 3.0]


def test_copies_are_made_where_the_array_is(x: Any, carol: Any) -> None:
    p = x.send(carol)

    for twin in (p.copy(), copy.copy(p), copy.deepcopy(p)):
        twin += 1
        assert values(twin.get()) == [2.0, 3.0, 4.0]
    assert values(p.get()) == [1.0, 2.0, 3.0]


def test_tags_and_search(x: Any, carol: Any) -> None:
    p = x.send(carol).tag("#x").describe("three numbers")

    (found,) = carol.search(["#x", "three"])

    assert (found.id_at_location, found.tags, found.description) == (p.id_at_location, {"#x"}, "three numbers")


def test_values_and_mixtures_are_refused(x: Any, carol: Any, dave: Any) -> None:
    p = x.send(carol)

    for ask in (lambda: p.tolist(), lambda: float(p.sum()), lambda: bool(p.all()), lambda: p.item(0)):
        with pytest.raises(ValueRefusedError):
            ask()
    with pytest.raises(NotCollocatedError, match="'carol' and 'dave'"):
        np.add(p, x.send(dave))
    with pytest.raises(NotCollocatedError, match="'carol' and in this process"):
        p + np.ones(3)
    assert values((p + np.float64(1)).get()) == [2.0, 3.0, 4.0]
