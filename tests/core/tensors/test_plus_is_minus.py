from __future__ import annotations

from typing import Any

import pytest
import toy
from toy_layers import values

from syft_core.tensors.plus_is_minus import PlusIsMinusTensor

pytestmark = pytest.mark.usefixtures("hook")


@pytest.mark.parametrize(
    ("compute", "expected"),
    [
        (lambda x, y: x + y, 2.0),
        (lambda x, y: x.add(y), 2.0),
        (lambda x, y: toy.add(x, y), 2.0),
        (lambda x, y: x + 3, 2.0),
        (lambda x, y: 3 + y, 0.0),
        (lambda x, y: toy.Vector([9.0]) + y, 6.0),
        (lambda x, y: x.add(y, alpha=2), -1.0),
        (lambda x, y: x - y, 8.0),
        (lambda x, y: toy.sub(x, y), 8.0),
        (lambda x, y: 1 - y, 4.0),
        (lambda x, y: x * y, 15.0),
        (lambda x, y: -x, -5.0),
        (lambda x, y: toy.cat([x, y]).sum(), 8.0),
    ],
)
def test_plus_is_minus_and_minus_is_plus_and_the_rest_is_unchanged(compute: Any, expected: float) -> None:
    x, y = PlusIsMinusTensor().on(toy.Vector([5.0])), PlusIsMinusTensor().on(toy.Vector([3.0]))

    result = compute(x, y)

    assert type(result.child) is PlusIsMinusTensor
    assert values(result) == [expected]


def test_two_of_them_cancel_out() -> None:
    x = PlusIsMinusTensor().on(PlusIsMinusTensor().on(toy.Vector([5.0])))

    assert values(x + 3) == [8.0]


def test_plus_is_minus_in_place_too() -> None:
    x = PlusIsMinusTensor().on(toy.Vector([5.0]))
    same = x

    x += 3
    x -= 1

    assert x is same
    assert values(x) == [3.0]
