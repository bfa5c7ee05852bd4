from __future__ import annotations

import pytest

pytest.importorskip("numpy")

import numpy as np

from syft_numpy.stand_ins import STAND_INS, set_values, stand_in

ARRAYS = {
    "vector": lambda: np.full(3, 7.0),
    "number": lambda: np.array(7.0),
    "transposed": lambda: np.full((2, 3), 7.0).T,
    "expanded": lambda: np.broadcast_to(np.full(2, 7.0), (3, 2)),
    "empty": lambda: np.full((0, 3), 7.0),
    "integers": lambda: np.full((2, 2), 7),
    "texts": lambda: np.array(["7", "77"]),
    "dates": lambda: np.array([7, 77], dtype="M8[D]"),
    "records": lambda: np.array([(7, 7.0)], dtype=[("a", int), ("b", float)]),
    "objects": lambda: np.array([7, "77"], dtype=object),
    "complex": lambda: np.full((2, 2), 7.0j),
}


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("number", range(STAND_INS))
def test_a_stand_in_has_the_form_of_an_array_and_none_of_its_values(name: str, number: int) -> None:
    array = ARRAYS[name]()

    made = stand_in(array, number)

    assert (made.shape, made.strides, made.dtype) == (array.shape, array.strides, array.dtype)
    assert not (made == array).any()


def test_a_square_stands_in_for_what_has_an_inverse_and_fractions_for_what_gets_another_shape() -> None:
    square, cube = np.zeros((2, 3, 3)), np.zeros((2, 3, 6))
    set_values(square, 0)
    set_values(cube, 2)

    assert np.array_equal(np.linalg.cholesky(square), square)
    assert np.linalg.tensorinv(cube).shape == (6, 2, 3)
    assert ((cube > 0) & (cube < 1)).all()
