"""What a backend that describes no forms says: nothing can be inferred, so nothing private is computed."""

from __future__ import annotations

from typing import Any

import pytest
from syft_toy.hook import ToyHook

from syft_core.hook.contracts.forms import Forms
from syft_core.hook.forms import form

FORM = form((2,), (1,), float)


@pytest.fixture
def op(hook: ToyHook) -> Any:
    return hook.attributes.method("__add__")


def test_nothing_is_known_about_forms_by_default(op: Any) -> None:
    forms = Forms()

    assert forms.form_of(object()) is None
    assert forms.form_of_copy(object()) is None
    assert forms.form_of_gradient(FORM) is None
    assert forms.positions_of(object()) is None
    assert forms.state() is None
    assert forms.infer(op, (FORM,), {}) is None
    assert forms.infer_size(op, (FORM,), {}) is None
    assert forms.example(FORM, 0) is None
    assert forms.facts_of_form == frozenset()
    assert not forms.is_integral(int)


def test_a_backend_without_shadows_refuses_calls_without_data(op: Any) -> None:
    with pytest.raises(NotImplementedError, match="the backend has no shadows") as caught:
        Forms().shadow(FORM, None)

    assert Forms().needs_data(caught.value)
    assert not Forms().needs_data(ValueError("wrong shape"))


@pytest.mark.parametrize(
    "call",
    [
        lambda forms, op: forms.fact(op, FORM),
        lambda forms, op: forms.answer_from_form(op, FORM, ()),
        lambda forms, op: forms.zeros([FORM], []),
    ],
)
def test_what_only_a_backend_can_do_is_not_guessed(op: Any, call: Any) -> None:
    with pytest.raises(NotImplementedError):
        call(Forms(), op)


def test_an_error_without_data_is_that_with_data_by_default() -> None:
    error = ValueError("wrong shape")

    assert Forms().as_with_data(error) is error
