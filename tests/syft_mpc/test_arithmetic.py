from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from syft_core.exceptions import MixedLayersError
from syft_mpc.errors import PrecisionError, ProtocolError

from .settings import Setting, assert_close
from .test_fixed_precision import BINARY

A = np.array([[1.5, -2.0, 3.25], [0.5, 4.0, -1.0]])


B = np.array([2.0, 0.5, -3.0])


@pytest.mark.parametrize("name", BINARY)
def test_operands_are_private_encoded_plain_or_numbers_in_either_order(anywhere: Setting, name: str) -> None:
    compute = BINARY[name]
    xp, put = anywhere.xp, anywhere.put
    one, other = A, B.reshape(3, 1) if name == "matmul" else B
    expected = compute(np, one, other)
    pairs = [
        (put(one), put(other)),
        (put(one), anywhere.plain(other)),
        (anywhere.plain(one), put(other)),
        (put(one), anywhere.encode(other)),
        (anywhere.encode(one), put(other)),
    ]
    for x, y in pairs:
        assert_close(anywhere.read(compute(xp, x, y)), expected)
    if name not in ("matmul", "maximum", "minimum"):
        assert_close(anywhere.read(compute(xp, put(one), 2)), compute(np, one, 2))
        assert_close(anywhere.read(compute(xp, put(one), -0.5)), compute(np, one, -0.5))
        assert_close(anywhere.read(compute(xp, 3, put(one))), compute(np, 3, one))


def test_comparisons_with_numbers_use_their_scale(anywhere: Setting) -> None:
    x = anywhere.put([1.0, 3.0, -1.0], base=10, precision_fractional=3)
    assert anywhere.read(x > 2).tolist() == [0, 1, 0]
    assert anywhere.read(x == 1).tolist() == [1, 0, 0]
    assert anywhere.read(x >= 2.9995).tolist() == [0, 1, 0]


def test_different_precisions_and_rings_are_refused(anywhere: Setting) -> None:
    x = anywhere.put(B)
    others = [
        anywhere.put(B, base=10, precision_fractional=3),
        anywhere.put(B, precision_fractional=8),
        anywhere.put(B, precision_fractional=8, field="int"),
    ]
    for other in others:
        for compute in (lambda: x + other, lambda: x * other, lambda: other < x):  # noqa: B023  # called at once
            with pytest.raises(MixedLayersError, match="create both operands with the same"):
                compute()


UNARY: dict[str, Callable[[Any, Any], Any]] = {
    "neg": lambda _xp, x: -x,
    "abs": lambda _xp, x: abs(x),
    "abs_function": lambda xp, x: xp.abs(x),
    "square": lambda xp, x: xp.square(x),
    "power": lambda _xp, x: x**3,
    "power_zero": lambda _xp, x: x**0,
    "power_one": lambda _xp, x: x**1,
    "power_negative": lambda _xp, x: x**-1,
    "half": lambda _xp, x: x * 0.5,
    "third": lambda _xp, x: x / 3,
    "by_fraction": lambda _xp, x: x / 0.3,
    "from_number": lambda _xp, x: 1 - x,
    "inverse": lambda _xp, x: 1 / x,
    "sign": lambda xp, x: xp.sign(x),
    "sum": lambda xp, x: xp.sum(x),
    "sum_axis": lambda _xp, x: x.sum(axis=0),
    "sum_axes": lambda _xp, x: x.sum((0, 1)),
    "sum_last": lambda _xp, x: x.sum(-1),
    "mean": lambda xp, x: xp.mean(x),
    "mean_axis": lambda _xp, x: x.mean(axis=1),
    "max": lambda xp, x: xp.max(x),
    "min": lambda xp, x: xp.min(x),
    "amax": lambda xp, x: xp.amax(x, 1),
    "amin": lambda xp, x: xp.amin(x, 0),
    "argmax": lambda xp, x: xp.argmax(x),
    "argmax_axis": lambda xp, x: xp.argmax(x, 1),
    "argmin_axis": lambda xp, x: xp.argmin(x, 0),
    "clip": lambda xp, x: xp.clip(x, -1, 1.5),
    "clip_from": lambda xp, x: xp.clip(x, 0, None),
    "where": lambda xp, x: xp.where(x > 0, x, x * 0.1),
    "and": lambda xp, x: xp.logical_and(x > 0, x < 2),
    "or": lambda xp, x: xp.logical_or(x < -1, x > 2),
    "not": lambda xp, x: xp.logical_not(x > 0),
    "transpose": lambda _xp, x: x.T,
    "reshape": lambda _xp, x: x.reshape(3, 2),
    "ravel": lambda _xp, x: x.ravel(),
    "row": lambda _xp, x: x[0],
    "columns": lambda _xp, x: x[:, 1:],
    "steps": lambda _xp, x: x[:, ::2],
    "last": lambda _xp, x: x[..., -1],
    "new_axis": lambda _xp, x: x[None],
    "fancy": lambda _xp, x: x[:, [0, 2]],
    "roll": lambda xp, x: xp.roll(x, 1),
    "flip": lambda xp, x: xp.flip(x, (0,)),
    "tile": lambda xp, x: xp.tile(x, (2, 1)),
    "cumsum": lambda xp, x: xp.cumsum(x, 0),
    "triangle": lambda xp, x: xp.tril(x),
    "copy": lambda _xp, x: x.copy(),
    "zeros": lambda xp, x: xp.zeros_like(x),
    "ones": lambda xp, x: xp.ones_like(x),
    "full": lambda xp, x: xp.full_like(x, 2.5),
    "exp": lambda xp, x: xp.exp(x),
    "log": lambda xp, x: xp.log(x * x),
    "sqrt": lambda xp, x: xp.sqrt(x * x),
    "tanh": lambda xp, x: xp.tanh(x),
    "sin": lambda xp, x: xp.sin(x),
    "cos": lambda xp, x: xp.cos(x),
    "gram": lambda _xp, x: x @ x.T,
    "stack": lambda xp, x: xp.stack([x, x * 2]),
}


@pytest.mark.parametrize("name", UNARY)
def test_an_operation_computes_what_the_framework_computes(anywhere: Setting, name: str) -> None:
    compute = UNARY[name]
    expected = compute(anywhere.xp, anywhere.plain(A))

    assert_close(anywhere.read(compute(anywhere.xp, anywhere.put(A))), expected, 5e-3)


def test_variances_divide_by_the_count_of_their_framework(anywhere: Setting) -> None:
    xp, x, plain = anywhere.xp, anywhere.put(A), anywhere.plain(A)
    assert_close(anywhere.read(xp.var(x)), xp.var(plain), 5e-3)
    assert_close(anywhere.read(xp.std(x, 1)), xp.std(plain, 1), 5e-3)
    option = "ddof" if anywhere.name == "numpy" else "correction"
    for count in (0, 1):
        assert_close(anywhere.read(xp.var(x, 1, **{option: count})), xp.var(plain, 1, **{option: count}), 5e-3)


def test_tensors_are_joined_and_split(anywhere: Setting) -> None:
    xp, x, y = anywhere.xp, anywhere.put(A), anywhere.put(A * 2)
    expected = np.concatenate([A, A * 2])
    assert_close(anywhere.read(xp.concatenate([x, y])), expected)
    assert_close(anywhere.read(xp.concatenate([x, anywhere.plain(A * 2)])), expected)
    assert_close(anywhere.read(xp.concatenate([anywhere.plain(A), y])), expected)
    assert_close(anywhere.read(xp.concatenate([anywhere.encode(A), y])), expected)
    for part, row in zip(xp.split(x, 1 if anywhere.name == "torch" else 2), np.split(A, 2), strict=True):
        assert_close(anywhere.read(part), row)
    for part, row in zip(x, A, strict=True):
        assert_close(anywhere.read(part), row)


def test_plain_indices_and_masks_choose_elements(anywhere: Setting) -> None:
    x = anywhere.put(A)
    rows, mask = anywhere.plain(np.array([1, 0, 1])), anywhere.plain(A > 0)
    assert_close(anywhere.read(x[rows]), A[[1, 0, 1]])
    assert_close(anywhere.read(x[mask]), A[A > 0])
    assert_close(anywhere.read(anywhere.xp.where(mask, x, 0)), np.where(A > 0, A, 0))


def test_secret_indices_are_refused(anywhere: Setting) -> None:
    x = anywhere.put(B)
    with pytest.raises(ProtocolError, match="cannot index with shared or encoded numbers"):
        x[x > 0]
    assert_close(anywhere.read(x), B)


def test_division_by_zero_is_refused(anywhere: Setting) -> None:
    x = anywhere.put(B)
    for divisor in (0, 0.0, anywhere.plain(np.array([1.0, 0.0, 1.0]))):
        with pytest.raises(PrecisionError, match="cannot divide by 0"):
            x / divisor


def test_dividing_by_large_public_numbers_keeps_the_precision(anywhere: Setting) -> None:
    found = anywhere.read(anywhere.put([500.0, 500.0]) / anywhere.plain(np.array([1000.0, 3.0])))
    np.testing.assert_allclose(found, [0.5, 500 / 3], rtol=1e-4)
