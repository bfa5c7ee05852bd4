from __future__ import annotations

import math
from typing import Any

import pytest
import toy
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_layers import under, values

from syft_core.exceptions import DomainError, NotRegisteredError
from syft_core.tensors.polynomial import Piece, PolynomialTensor, interpolate

pytestmark = pytest.mark.usefixtures("hook")


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


# The documented ranges, on which the error is at most 1e-3, and the whole domains.
DOCUMENTED = {
    "exp": (math.exp, -3.0, 3.0),
    "sigmoid": (sigmoid, -3.0, 3.0),
    "tanh": (math.tanh, -3.0, 3.0),
    "log": (math.log, 1.0, 10.0),
}
DOMAINS = {"exp": (-10, 10), "sigmoid": (-10, 10), "tanh": (-10, 10), "log": (0.1, 10)}


def grid(low: float, high: float, n: int = 241) -> list[float]:
    return [low + (high - low) * k / (n - 1) for k in range(n)]


# --- accuracy


@pytest.mark.parametrize("name", DOCUMENTED)
def test_the_error_is_at_most_a_thousandth_on_the_documented_range(name: str) -> None:
    f, low, high = DOCUMENTED[name]
    points = grid(low, high)
    x = PolynomialTensor().on(toy.Vector(points))

    result = getattr(x, name)()

    assert str(result).startswith("(Wrapper)>PolynomialTensor>Vector([")
    assert max(abs(v - f(p)) for v, p in zip(values(result), points, strict=True)) <= 1e-3


@pytest.mark.parametrize("name", DOCUMENTED)
def test_numbers_and_tensors_give_the_same_result(name: str) -> None:
    where_pieces_touch = (-5.0, 0.0, 1.0, 5.0)
    points = [p for p in grid(*DOMAINS[name], n=41) if p not in where_pieces_touch]
    polynomial = PolynomialTensor()

    one_by_one = [polynomial.get_val(name, p) for p in points]
    together = polynomial.get_val(name, toy.Vector(points)).tolist()

    assert together == pytest.approx(one_by_one, rel=1e-9)


@pytest.mark.parametrize("name", DOCUMENTED)
def test_the_approximation_is_close_on_the_whole_domain(name: str) -> None:
    f = DOCUMENTED[name][0]

    for p in grid(*DOMAINS[name], n=101):
        assert PolynomialTensor().get_val(name, p) == pytest.approx(f(p), rel=1e-2, abs=2e-2)


def test_the_function_of_the_framework_is_approximated_too() -> None:
    x = PolynomialTensor().on(toy.Vector([0.5]))

    assert values(toy.tanh(x))[0] == pytest.approx(math.tanh(0.5), abs=1e-3)
    assert values(toy.tanh(x)) != [math.tanh(0.5)], "it is the polynomial that answers"


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(-3, 3), min_size=1, max_size=5))
def test_any_vector_in_the_documented_range_is_approximated(points: list[float]) -> None:
    result = PolynomialTensor().get_val("tanh", toy.Vector(points))

    assert result.tolist() == pytest.approx([math.tanh(p) for p in points], abs=1e-3)


def test_other_operations_are_unchanged() -> None:
    assert str(PolynomialTensor().on(toy.Vector([2.0])) * 3) == "(Wrapper)>PolynomialTensor>Vector([6.0])"


# --- no mutation, no result outside the domain


@pytest.mark.parametrize("name", DOCUMENTED)
def test_the_input_is_not_changed(name: str) -> None:
    points = [1.0, 2.0, 3.0]
    layer = under(PolynomialTensor(), *points)

    getattr(layer, name)()
    layer.get_val(name, layer.child)

    assert values(layer) == points


@pytest.mark.parametrize("name", DOCUMENTED)
@pytest.mark.parametrize("side", [0, 1])
def test_a_value_outside_the_domain_is_refused_without_revealing_it(name: str, side: int) -> None:
    low, high = DOMAINS[name]
    outside = (low - 0.015625, high + 0.015625)[side]
    polynomial = PolynomialTensor()

    for x in (outside, toy.Vector([1.0, outside])):
        with pytest.raises(DomainError) as caught:
            polynomial.get_val(name, x)
        assert str(caught.value) == (
            f"cannot approximate {name!r}: a value lies outside [{low:g}, {high:g}]; "
            f"scale the input into that interval or add a piece for it"
        )


@pytest.mark.parametrize("x", [math.nan, math.inf, -math.inf, toy.Vector([1.0, math.nan])])
def test_nan_and_infinity_are_refused(x: Any) -> None:
    with pytest.raises(DomainError):
        PolynomialTensor().get_val("exp", x)


@pytest.mark.parametrize("name", DOCUMENTED)
def test_both_ends_belong_to_the_domain(name: str) -> None:
    low, high = DOMAINS[name]
    polynomial = PolynomialTensor()

    for end in (low, high):
        assert polynomial.get_val(name, toy.Vector([end])).item() == pytest.approx(polynomial.get_val(name, end))


def test_an_unknown_function_is_refused_with_advice() -> None:
    polynomial = PolynomialTensor()
    polynomial.add_function("cube", 3, [[-1, 1]], lambda x: x**3)

    with pytest.raises(NotRegisteredError, match="cannot find 'cub' in 'approximations': it is not registered") as c:
        polynomial.get_val("cub", 0.5)

    assert str(c.value).endswith("add it with `add_function`")


# --- interpolation


@pytest.mark.parametrize("degree", range(6))
def test_the_degree_is_respected(degree: int) -> None:
    piece = interpolate(lambda x: x**4, (-1, 2), degree)

    worst = max(abs(piece.evaluate(p) - p**4) for p in grid(-1, 2))

    assert len(piece.coefficients) == degree + 1
    assert (worst < 1e-9) == (degree >= 4)


def test_the_tensors_own_interpolation_respects_the_degree_and_the_precision() -> None:
    piece = PolynomialTensor(precision=2).interpolate(math.exp, (0, 1), degree=3)

    assert len(piece.coefficients) == 4
    assert [round(c, 2) for c in piece.coefficients] == list(piece.coefficients)
    assert len(PolynomialTensor().interpolate(math.exp, (0, 1)).coefficients) == 11


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(-5, 5), min_size=1, max_size=6), st.floats(-2, 3))
def test_a_polynomial_is_its_own_interpolation(coefficients: list[int], x: float) -> None:
    def p(t: float) -> float:
        return sum(c * t**k for k, c in enumerate(coefficients))

    piece = interpolate(p, (-2, 3), len(coefficients) - 1)

    assert piece.evaluate(x) == pytest.approx(p(x), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(("interval", "degree"), [((1, 1), 3), ((2, 1), 3), ((0, 1), -1)])
def test_an_impossible_fit_is_refused(interval: Any, degree: int) -> None:
    with pytest.raises(ValueError, match="cannot fit on .*: pass low < high and a degree of 0 or more"):
        interpolate(math.exp, interval, degree)


# --- user-defined functions


def test_a_function_may_be_added_in_pieces_of_five() -> None:
    polynomial = PolynomialTensor()

    polynomial.add_function("step", 10, [[0, 1, 100, 1, lambda x: 2 * x], [-1, 0, 100, 2, lambda x: x * x]])

    assert [polynomial.get_val("step", p) for p in (-0.5, 0.5)] == pytest.approx([0.25, 1.0])
    assert polynomial.get_val("step", toy.Vector([-0.5, 0.0, 0.5])).tolist() == pytest.approx([0.25, 0.0, 1.0])
    assert [len(piece.coefficients) for piece in polynomial.function_attr["step"]] == [3, 2]


def test_a_function_may_be_added_in_short_pieces() -> None:
    polynomial = PolynomialTensor()

    polynomial.add_function("cube", 3, [[-1, 1], [1, 2]], lambda x: x**3)

    assert polynomial.get_val("cube", toy.Vector([-1.0, 1.0, 2.0])).tolist() == pytest.approx([-1.0, 1.0, 8.0])
    with pytest.raises(DomainError, match=r"cannot approximate 'cube': a value lies outside \[-1, 2\]"):
        polynomial.get_val("cube", 2.5)


def test_a_function_of_one_piece_accepts_numbers_and_tensors() -> None:
    polynomial = PolynomialTensor()
    polynomial.add_function("double", 1, [[0, 4]], lambda x: 2 * x)

    assert polynomial.get_val("double", 3) == pytest.approx(6)
    assert polynomial.get_val("double", toy.Vector([0.0, 4.0])).tolist() == pytest.approx([0.0, 8.0])


def test_a_default_may_be_replaced() -> None:
    layer = under(PolynomialTensor(), 0.5)

    layer.add_function("exp", 0, [[0, 1]], lambda x: 7.0)

    assert values(layer.exp()) == [7.0]


def test_copies_and_results_keep_the_functions_that_were_added() -> None:
    x = PolynomialTensor().on(toy.Vector([0.5]))
    x.child.add_function("exp", 0, [[0, 1]], lambda x: 7.0)

    assert values(x.child.copy().exp()) == [7.0]
    assert values((x * 1).exp()) == [7.0]


def test_functions_added_to_one_tensor_are_not_added_to_another() -> None:
    one, other = PolynomialTensor(), PolynomialTensor()
    twin = under(one, 1.0).copy()

    one.add_function("cube", 3, [[-1, 1]], lambda x: x**3)

    for untouched in (other, twin):
        with pytest.raises(NotRegisteredError):
            untouched.get_val("cube", 0.5)


@pytest.mark.parametrize("pieces", [[[0, 1], [2, 3]], [[0, 2], [1, 3]], [[0, 1], [0, 1]], []])
def test_pieces_that_do_not_cover_an_interval_exactly_once_are_refused(pieces: Any) -> None:
    with pytest.raises(ValueError, match="cannot add 'f': its pieces leave a gap or overlap; pass adjacent intervals"):
        PolynomialTensor().add_function("f", 3, pieces, lambda x: x)


def test_a_piece_without_a_function_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot add 'f': a piece has no function"):
        PolynomialTensor().add_function("f", 3, [[0, 1]])


# --- precision and function


def test_coefficients_are_rounded_to_the_precision() -> None:
    piece = Piece(0.0, 1.0, (1.23456, -0.98765))

    assert PolynomialTensor(precision=2).apply_coefs(piece).coefficients == (1.23, -0.99)
    assert PolynomialTensor().precision == 10


def test_a_low_precision_affects_the_result() -> None:
    coarse = PolynomialTensor(precision=1).get_val("exp", 0.5)

    assert abs(coarse - math.exp(0.5)) > 1e-4


def test_the_function_is_applied_to_every_coefficient() -> None:
    seen: list[float] = []

    def encrypt(coefficient: float) -> float:
        seen.append(coefficient)
        return coefficient * 2

    answer = PolynomialTensor(function=encrypt, precision=3).get_val("tanh", 0.5)

    assert answer == pytest.approx(2 * math.tanh(0.5), abs=1e-2)
    assert len(seen) == 4 * 11
    assert all(c == round(c, 3) for c in seen)


def test_coefficients_may_be_anything_that_can_be_added() -> None:
    answer = PolynomialTensor(function=lambda c: toy.Vector([c])).get_val("exp", toy.Vector([0.5]))

    assert answer.tolist() == pytest.approx([math.exp(0.5)], abs=1e-3)


def test_results_keep_function_and_precision() -> None:
    function = abs
    x = PolynomialTensor(function=function, precision=4).on(toy.Vector([1.0]))

    result = x * 2

    assert (result.child.function, result.child.precision) == (function, 4)


# --- old names


def test_the_old_names_are_the_same_functions() -> None:
    assert PolynomialTensor.addfunction is PolynomialTensor.add_function
    assert PolynomialTensor.applycoefs is PolynomialTensor.apply_coefs
    assert PolynomialTensor.defaultfunctions is PolynomialTensor.default_functions


def test_the_defaults_may_be_fitted_in_advance() -> None:
    polynomial = PolynomialTensor()

    polynomial.default_functions()

    assert polynomial.get_val("log", 2.0) == pytest.approx(math.log(2), abs=1e-3)
