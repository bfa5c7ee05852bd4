"""Numbers with fixed precision: encoding, and every operation on them, shared or not, with torch and with numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syft_core.exceptions import OperationNotAllowedError
from syft_core.hook.chain import end_of
from syft_mpc.errors import PrecisionError
from syft_mpc.fixed_precision import FixedPrecisionTensor

from .settings import Setting, assert_close, attach

A = np.array([[1.5, -2.0, 3.25], [0.5, 4.0, -1.0]])
B = np.array([2.0, 0.5, -3.0])

# --- encoding


@pytest.mark.parametrize(
    ("options", "number", "integer"),
    [
        ({}, 1.2345, 1234),
        ({}, -1.2345, -1234),
        ({}, 1.2346, 1235),
        ({"precision_fractional": 5}, 1.2345, 123450),
        ({"base": 2, "precision_fractional": 16}, 1.5, 98304),
        ({"base": 10, "precision_fractional": 0}, 2.6, 3),
        ({"field": "int"}, -7.0, -7000),
    ],
)
def test_a_number_is_encoded_as_the_nearest_integer(
    any_hook: Any, options: dict[str, Any], number: float, integer: int
) -> None:
    encoded = Setting(any_hook, 0).plain([number]).fix_precision(**options)

    assert end_of(encoded).tolist() == [integer]
    assert str(end_of(encoded).dtype).endswith("int32" if options.get("field") == "int" else "int64")


@given(st.lists(st.floats(-(2**31), 2**31), min_size=1, max_size=5), st.integers(1, 20))
@settings(max_examples=50, deadline=None)
def test_decoding_is_off_by_at_most_half_a_unit(values: list[float], digits: int) -> None:
    with attach("numpy") as hook:
        decoded = hook.array(values).fix_precision(base=2, precision_fractional=digits).float_precision()

    assert np.abs(np.asarray(decoded) - np.asarray(values)).max() <= 2.0 ** -(digits + 1)


def test_decoding_returns_the_dtype_of_the_tensor(any_hook: Any) -> None:
    setting = Setting(any_hook, 0)
    for dtype in ("float32", "float64"):
        x = setting.plain(np.array([1.5], dtype))
        assert str(x.fix_precision().dtype).endswith(dtype)
        assert str(x.fix_precision().float_precision().dtype).endswith(dtype)


def test_integers_and_booleans_are_encoded_exactly(any_hook: Any) -> None:
    setting = Setting(any_hook, 0)
    large = 2**53 + 1
    assert end_of(setting.plain([large]).fix_precision(precision_fractional=0)).tolist() == [large]
    assert end_of(setting.plain([True, False]).fix_precision()).tolist() == [1000, 0]


@pytest.mark.parametrize("number", [1e17, -1e17, float("nan"), float("inf"), -float("inf"), 2.0**62 / 1000])
def test_numbers_that_do_not_fit_are_refused(any_hook: Any, number: float) -> None:
    with pytest.raises(
        PrecisionError, match=r"cannot encode a number: it is not finite, or not smaller than 4.61e\+15"
    ):
        Setting(any_hook, 0).plain([1.0, number]).fix_precision()


def test_the_limit_depends_on_the_ring(any_hook: Any) -> None:
    setting = Setting(any_hook, 0)
    limit = 2.0**30 / 1000
    setting.plain([limit - 1]).fix_precision(field="int")
    with pytest.raises(PrecisionError, match=r"not smaller than 1.07e\+06"):
        setting.plain([limit]).fix_precision(field="int")
    with pytest.raises(PrecisionError):
        setting.plain([-(2**63)]).fix_precision()


@pytest.mark.parametrize("number", [float("nan"), 1e17])
def test_operands_that_do_not_fit_are_refused(anywhere: Setting, number: float) -> None:
    x = anywhere.put(B)
    for compute in (lambda: x + number, lambda: x < number, lambda: x + anywhere.plain([number])):
        with pytest.raises(PrecisionError, match="cannot encode a number"):
            compute()
    assert_close(anywhere.read(x), B)


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), float("nan")])
def test_a_product_with_infinity_is_refused(anywhere: Setting, number: float) -> None:
    x = anywhere.put(B)
    products = (lambda: x * number, lambda: x * anywhere.plain([number]), lambda: x @ anywhere.plain([number] * 3))
    for compute in (*products, lambda: x / number):
        with pytest.raises(PrecisionError, match="cannot encode a number"):
            compute()
    with pytest.raises(PrecisionError, match="cannot raise a fixed-precision number to this power"):
        x**number


def test_a_complex_number_is_refused(any_hook: Any) -> None:
    with pytest.raises(PrecisionError, match="cannot encode complex numbers"):
        Setting(any_hook, 0).plain([1j]).fix_precision()


def test_an_unknown_field_is_refused(any_hook: Any) -> None:
    with pytest.raises(PrecisionError, match="cannot use the field 'short'"):
        Setting(any_hook, 0).plain([1.0]).fix_precision(field="short")


def test_methods_in_place_keep_the_tensor_object(torch_hook: Any) -> None:
    x = torch_hook.torch.tensor([1.5])
    same = x.fix_precision_()
    assert same is x
    assert isinstance(x.child, FixedPrecisionTensor)
    assert x.float_precision_() is x
    assert x.tolist() == [1.5]


# --- operands

BINARY: dict[str, Callable[[Any, Any, Any], Any]] = {
    "add": lambda _xp, x, y: x + y,
    "sub": lambda _xp, x, y: x - y,
    "mul": lambda _xp, x, y: x * y,
    "div": lambda _xp, x, y: x / y,
    "lt": lambda _xp, x, y: x < y,
    "le": lambda _xp, x, y: x <= y,
    "gt": lambda _xp, x, y: x > y,
    "ge": lambda _xp, x, y: x >= y,
    "eq": lambda _xp, x, y: x == y,
    "ne": lambda _xp, x, y: x != y,
    "maximum": lambda xp, x, y: xp.maximum(x, y),
    "minimum": lambda xp, x, y: xp.minimum(x, y),
    "matmul": lambda _xp, x, y: x @ y,
}


def test_the_ring_of_32_bits_computes_too(anywhere: Setting) -> None:
    x, y = (anywhere.put(value, base=2, precision_fractional=8, field="int") for value in (A, B))
    for name in ("add", "sub", "mul", "lt", "eq", "maximum"):
        result = BINARY[name](anywhere.xp, x, y)
        assert_close(anywhere.read(result), BINARY[name](np, A, B), 2e-2)
    assert_close(anywhere.read((x * 0.3).sum()), (A * 0.3).sum(), 2e-2)


# --- in place

CHANGES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "add": lambda x, y, _plain: x.__iadd__(y),
    "sub": lambda x, y, _plain: x.__isub__(y),
    "mul": lambda x, y, _plain: x.__imul__(y),
    "div": lambda x, y, _plain: x.__itruediv__(y),
    "add_number": lambda x, _y, _plain: x.__iadd__(1),
    "mul_number": lambda x, _y, _plain: x.__imul__(0.5),
    "row_number": lambda x, _y, _plain: x.__setitem__(0, 5.0),
    "row": lambda x, y, _plain: x.__setitem__(1, y),
    "column_plain": lambda x, _y, plain: x.__setitem__((slice(None), 1), plain([7.0, 8.0])),
    "slice": lambda x, y, _plain: x.__setitem__((slice(None), slice(1, None)), y[:2]),
    "fancy": lambda x, _y, plain: x.__setitem__((0, plain([0, 2])), plain([7.0, 8.0])),
    "mask": lambda x, _y, plain: x.__setitem__(plain(A > 0), plain(9.0)),
    "view": lambda x, _y, _plain: x[0].__iadd__(10),
    "transposed": lambda x, y, _plain: x.T[0].__imul__(3),
    "row_in_place": lambda x, y, _plain: x[1].__isub__(y),
    "fill": lambda x, _y, _plain: x.fill(2) if hasattr(x, "fill") else x.fill_(2),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_in_place_is_the_framework_s(anywhere: Setting, name: str) -> None:
    change = CHANGES[name]
    x, expected = anywhere.put(A), anywhere.plain(A.copy())
    change(x, anywhere.put(B), anywhere.plain)
    change(expected, anywhere.plain(B), anywhere.plain)

    assert_close(anywhere.read(x), expected)


@pytest.mark.parametrize(
    "compute",
    [
        lambda x: x + 1,
        lambda x: 1 - x,
        lambda x: x * 1,
        lambda x: x**1,
        lambda x: x / 1,
        lambda x: x[:1].max(0) if not hasattr(x[:1].max(0), "values") else x[:1].max(0).values,
        lambda x: x.clip(-100, 100),
        lambda x: x.copy(),
        lambda x: abs(x),
    ],
)
def test_a_result_and_its_operand_change_independently(anywhere: Setting, compute: Callable[[Any], Any]) -> None:
    x = anywhere.put(A)
    y = compute(x)
    before, result = anywhere.read(x), anywhere.read(y)

    y += 1
    assert_close(anywhere.read(x), before)
    x *= 2
    assert_close(anywhere.read(y), result + 1)


def test_a_mask_that_was_changed_is_no_longer_one_of_bits(anywhere: Setting) -> None:
    x = anywhere.put(B)
    mask = x > 0
    mask += 1
    assert_close(anywhere.read(mask * x), ((B > 0) + 1) * B)
    mask = x > 0
    mask[2] = 5
    assert_close(anywhere.read(mask * x), np.array([1, 1, 5]) * B)


def test_an_operand_that_does_not_fit_in_place_is_refused(anywhere: Setting) -> None:
    x = anywhere.put(B)
    with pytest.raises(ValueError, match="cannot write numbers of shape"):
        x += anywhere.plain(A)
    assert x.shape == (3,)
    assert_close(anywhere.read(x), B)


def test_shared_numbers_are_not_written_into_public_ones(shared: Setting) -> None:
    public, plain = shared.encode(B), shared.plain(B.copy())
    secret = shared.put(B)
    with pytest.raises(PrecisionError, match="cannot write shared numbers into a tensor that is not shared"):
        public += secret
    with pytest.raises(PrecisionError, match="cannot write shared numbers into a tensor that is not shared"):
        public[shared.plain(np.array([0, 1, 2]))] = secret
    with pytest.raises((OperationNotAllowedError, TypeError)):
        plain.add_(secret) if shared.name == "torch" else plain.__iadd__(secret)
    assert_close(np.asarray(public.float_precision()), B)
    assert_close(np.asarray(plain), B)


# --- options that would be ignored


def test_an_option_without_a_rule_is_refused(anywhere: Setting) -> None:
    x = anywhere.put(B)
    if anywhere.name == "numpy":
        calls = [
            lambda: np.add(x, 1, out=np.zeros(3)),
            lambda: np.max(x, initial=5.0),
            lambda: np.sum(x, where=B > 0),
        ]
    else:
        calls = [lambda: anywhere.xp.add(x, 1, out=anywhere.plain(np.zeros(3)))]
    for call in calls:
        with pytest.raises(OperationNotAllowedError, match="out|initial|where"):
            call()


@pytest.mark.parametrize("name", ["unique", "nonzero", "arctan", "arcsinh"])
def test_an_operation_without_a_rule_is_refused(anywhere: Setting, name: str) -> None:
    x = anywhere.put(B)
    with pytest.raises(OperationNotAllowedError, match="has no rule for it"):
        getattr(anywhere.xp, name)(x)
    assert_close(anywhere.read(x), B)


def test_conversions_of_the_type(anywhere: Setting) -> None:
    x = anywhere.put(B)
    convert = (lambda kind: x.astype(kind)) if anywhere.name == "numpy" else (lambda kind: x.to(getattr(x_type, kind)))
    x_type = anywhere.xp
    assert str(convert("float32").dtype).endswith("float32")
    assert_close(anywhere.read(convert("float32")), B)
    with pytest.raises(PrecisionError, match="cannot convert fixed-precision numbers to"):
        convert("int64")


# --- printing


def test_a_chain_is_printed_as_the_ancestor_s(any_hook: Any) -> None:
    setting = Setting(any_hook, 2)
    encoded = setting.plain([1.2345]).fix_precision()
    assert str(encoded) == f"(Wrapper)>FixedPrecisionTensor>{end_of(encoded)!r}"
    lines = repr(setting.share(encoded)).split("\n")
    assert lines[0] == "(Wrapper)>FixedPrecisionTensor>[AdditiveSharingTensor]"
    assert [line.split(" | ")[0] for line in lines[1:3]] == ["\t-> [PointerTensor"] * 2
    assert ["bob:" in lines[1], "alice:" in lines[2], lines[3]] == [True, True, "\t*crypto provider: carol*"]
    assert str(FixedPrecisionTensor()) == "FixedPrecisionTensor"


def test_the_form_is_that_of_the_numbers(anywhere: Setting) -> None:
    x = anywhere.put(A)
    assert (tuple(x.shape), len(x), x.ndim) == ((2, 3), 2, 2)
    assert str(x.dtype).endswith("float64")


def test_sums_stay_in_the_ring_of_32_bits(anywhere: Setting) -> None:
    x = anywhere.put(A, base=2, precision_fractional=8, field="int")
    results = {
        "sum": (x.sum(), A.sum()),
        "axis": (x.sum(0), A.sum(0)),
        "mean": (x.mean(1), A.mean(1)),
        "cumsum": (x.cumsum(0), A.cumsum(0)),
        "matmul": (x @ anywhere.plain(B), A @ B),
    }
    for found, expected in results.values():
        assert str(end_of(found).dtype).endswith("int32")
        assert_close(anywhere.read(found), expected, 3e-2)
