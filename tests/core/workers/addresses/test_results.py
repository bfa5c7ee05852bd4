from __future__ import annotations

from typing import Any

import pytest
import toy
from syft_toy.hook import ToyHook

from syft_core.exceptions import SerdeError, WorkerNotFoundError
from syft_core.messages import Named, Placed
from syft_core.serde import deserialize, serialize
from syft_core.workers.addresses.results import from_named, to_named


@pytest.mark.parametrize(
    "result",
    [
        toy.Max(Placed(1), Placed(2)),
        [toy.MinMax(1, 2), (toy.Max(3, 4), 5)],
        toy.MinMax(toy.Max(1, 2), 3),
        NotImplemented,
        (1, NotImplemented),
        7,
        None,
    ],
)
def test_named_tuples_arrive_as_what_they_were(hook: ToyHook, me: Any, result: Any) -> None:
    sent = serialize(to_named(result, hook.attributes))

    arrived = from_named(deserialize(sent), me)

    assert arrived == result
    assert type(arrived) is type(result)


def test_what_is_not_a_named_tuple_is_left_as_it_is(hook: ToyHook) -> None:
    assert to_named([1, (2, "x")], hook.attributes) == [1, (2, "x")]
    assert to_named({"a": 1}, hook.attributes) == {"a": 1}


def test_results_of_no_framework_have_no_named_tuples() -> None:
    result = toy.Max(1, 2)

    assert to_named(result, None) is result


def test_an_unknown_named_tuple_is_refused_by_name(me: Any) -> None:
    with pytest.raises(SerdeError, match="cannot read a result: toy has no named tuple 'Max2' here"):
        from_named(Named("toy", "Max2", (1, 2)), me)


def test_a_named_tuple_of_a_framework_that_is_not_hooked_is_refused(me: Any) -> None:
    with pytest.raises(WorkerNotFoundError, match="cannot run jax on worker 'me': it is not hooked there"):
        from_named([Named("jax", "Max", (1, 2))], me)
