from __future__ import annotations

import pytest

np = pytest.importorskip("numpy")

from syft_core.exceptions import SyftError  # noqa: E402
from syft_mpc import order  # noqa: E402
from syft_mpc.errors import PrecisionError  # noqa: E402

from .settings import Setting  # noqa: E402

VALUES = np.array([[1.5, -2.25, 1.5, 0.0], [3.0, -0.5, -0.5, 7.75]])


def test_the_first_of_the_largest_numbers_is_marked(anywhere: Setting) -> None:
    x = anywhere.put(VALUES)

    assert anywhere.read(x.max(1)[0] if anywhere.name == "torch" else x.max(1)).tolist() == [1.5, 7.75]
    assert anywhere.read(x.argmax(1)).tolist() == [0, 3]


def test_the_largest_of_no_numbers_is_refused() -> None:
    with pytest.raises(ValueError, match="the axis is empty; leave the call out"):
        order.find_largest(np.zeros((0, 3), "int64"), 0)


def test_plain_integers_have_a_largest_row_and_marks() -> None:
    x = np.array([[1, 5], [3, 5], [2, 4]])

    top, marks = order.find_largest_row(x, positions=True)

    assert top.tolist() == [3, 5]
    assert marks.tolist() == [[0, 1], [1, 0], [0, 0]]
    assert order.find_largest_row(x, positions=False).tolist() == [3, 5]


def test_equal_numbers_keep_their_order(anywhere: Setting) -> None:
    x = anywhere.put(VALUES)

    found = x.sort(1)[0] if anywhere.name == "torch" else np.sort(x, 1)

    assert anywhere.read(found).tolist() == np.sort(VALUES, 1).tolist()


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc"])
def test_numbers_are_rounded_to_integers(anywhere: Setting, name: str) -> None:
    found = getattr(anywhere.xp, name)(anywhere.put(VALUES))

    assert anywhere.read(found).tolist() == getattr(np, name)(VALUES).tolist()


def test_a_half_is_rounded_to_the_even_integer(anywhere: Setting) -> None:
    halves = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.4])

    assert anywhere.read(anywhere.xp.round(anywhere.put(halves))).tolist() == np.round(halves).tolist()


def test_decimals_that_the_precision_does_not_have_are_refused(anywhere: Setting) -> None:
    with pytest.raises(SyftError, match="decimals that the precision does not have"):
        anywhere.xp.round(anywhere.put(VALUES), decimals=1)


@pytest.mark.parametrize("divisor", [0.75, -0.75, 2.0])
def test_quotients_and_remainders_fit_together(anywhere: Setting, divisor: float) -> None:
    x = anywhere.put(VALUES)

    assert anywhere.read(anywhere.xp.floor_divide(x, divisor)).tolist() == np.floor_divide(VALUES, divisor).tolist()
    assert anywhere.read(anywhere.xp.remainder(x, divisor)).tolist() == np.remainder(VALUES, divisor).tolist()
    assert anywhere.read(anywhere.xp.fmod(x, divisor)).tolist() == np.fmod(VALUES, divisor).tolist()


def test_a_quotient_by_zero_is_refused(anywhere: Setting) -> None:
    with pytest.raises(PrecisionError):
        anywhere.xp.floor_divide(anywhere.put(VALUES), 0.0)


def test_a_quotient_of_shared_numbers_is_not_rounded(shared: Setting) -> None:
    with pytest.raises(SyftError, match="divide first, then round"):
        shared.xp.floor_divide(shared.put(VALUES), shared.put(np.array([2.0])))
