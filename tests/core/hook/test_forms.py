from __future__ import annotations

import pytest

from syft_core.hook import forms
from syft_core.hook.forms import fact_of_form, form, is_constant, remember_prediction


class Size(tuple):
    """A framework's own type for shapes."""

    __slots__ = ()


def test_equal_forms_are_one_object() -> None:
    assert form((2, 3), (3, 1), "f4") is form((2, 3), (3, 1), "f4")


@pytest.mark.parametrize(
    "other",
    [
        form((3, 2), (3, 1), "f4"),
        form((2, 3), (1, 2), "f4"),
        form((2, 3), (3, 1), "f8"),
        form((2, 3), (3, 1), "f4", "gpu"),
        form((2, 3), (3, 1), "f4", requires_grad=True),
        form((2, 3), (3, 1), "f4", is_leaf=False),
        form(Size((2, 3)), (3, 1), "f4"),
    ],
)
def test_forms_that_differ_in_anything_are_different_objects(other: forms.Form) -> None:
    assert form((2, 3), (3, 1), "f4") is not other


def test_a_form_shows_its_shape_its_dtype_and_its_device() -> None:
    assert repr(form((2, 3), None, "f4", "cpu")) == "Form([2, 3], f4, cpu)"


def test_a_fact_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "_facts", {})
    read = iter([3, 4])

    assert [fact_of_form("ndim", lambda: next(read)) for _ in range(2)] == [3, 3]
    assert fact_of_form("size", lambda: next(read)) == 4


def test_a_prediction_is_kept_also_if_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "predictions", {})

    assert remember_prediction("key", False) is False
    assert forms.predictions == {"key": False}


@pytest.mark.parametrize("part", [1, True, "text", float, None, ..., NotImplemented, Size((1, 2))])
def test_what_describes_a_form_is_a_constant(part: object) -> None:
    assert is_constant(part)


@pytest.mark.parametrize("part", [1.5, b"bytes", [1], (1,), {}, object(), 1j])
def test_what_may_be_a_value_is_not_a_constant(part: object) -> None:
    assert not is_constant(part)
