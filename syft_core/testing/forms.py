"""Forms: what is said of tensors without their values is true."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from syft_core.hook.forms import Form
from syft_core.hook.hook import FrameworkHook
from syft_core.hook.rules import leaves, map_leaves
from syft_core.testing.calls import Call, form_of, is_tensor
from syft_core.testing.section import OTHERS, VALUES, Section, fix
from syft_core.values import Tensor


class FormSection(Section):
    """A backend may leave ``form_of`` and ``infer`` out: then pointers ask for forms, and wait."""

    @fix("FrameworkAttributes.form_of")
    def test_a_form_is_what_a_tensor_says_of_itself(self, hook: FrameworkHook, plain: Tensor) -> None:
        form = self._form(hook, plain)
        assert (tuple(form.shape), form.dtype) == (tuple(plain.shape), plain.dtype)
        assert form.strides is not None, "without strides a form is not used: return None instead"

    @fix("FrameworkAttributes.form_of")
    def test_tensors_that_differ_in_values_only_have_one_form(self, hook: FrameworkHook) -> None:
        one, other = (self._form(hook, hook.create_tensor(values)) for values in (VALUES, OTHERS))
        assert one is other, "make forms with `form(...)`, and of nothing that depends on values"

    @fix("FrameworkAttributes.form_of")
    def test_tensors_of_another_shape_or_dtype_have_another_form(self, hook: FrameworkHook) -> None:
        found = [self._form(hook, hook.create_tensor(values)) for values in (VALUES, VALUES[:2], [1, 2, 4])]
        assert len({id(form) for form in found}) == len(found)

    @fix("FrameworkAttributes.form_of_copy")
    def test_the_form_of_a_copy_is_the_one_that_a_copy_has(self, hook: FrameworkHook, plain: Tensor) -> None:
        attributes = hook.attributes
        for tensor in (plain, plain[1:]):
            told = attributes.form_of_copy(tensor)
            if told is not None:
                assert told is attributes.form_of(attributes.transfer(tensor))

    @fix("FrameworkAttributes.read_off", "FrameworkAttributes.facts_of_form")
    def test_facts_of_form_follow_from_the_form(self, hook: FrameworkHook, calls: Sequence[Call]) -> None:
        attributes = hook.attributes
        for call in calls:
            if call.op.attr not in attributes.facts_of_form or len(call.outcomes[0].before) > 1:
                continue
            for outcome in call.working:
                (tensor,) = outcome.before
                form = attributes.form_of(tensor) if is_tensor(tensor) else None
                if form is not None:
                    found = attributes.read_off(call.op, form, ())
                    assert found == outcome.result, f"{call} is {outcome.result!r}; from its form {found!r}"

    @fix("FrameworkAttributes.infer")
    def test_inferred_results_have_the_forms_of_real_ones(self, hook: FrameworkHook, calls: Sequence[Call]) -> None:
        if hook.attributes.state() is None:
            pytest.skip("the backend infers nothing, says `FrameworkAttributes.state`")
        inferred = [call for call in calls if self._is_inferred(hook, call)]
        assert inferred, "`state` says that results can be inferred, and `infer` infers none"

    def _is_inferred(self, hook: FrameworkHook, call: Call) -> bool:
        """Compare what is inferred of a call, if anything is, with each outcome."""
        attributes, outcome = hook.attributes, call.working[0]
        given = map_leaves(lambda leaf: attributes.form_of(leaf) if is_tensor(leaf) else leaf, outcome.before)
        known = [form for form in leaves(given) if isinstance(form, Form)]
        if len(known) < sum(map(is_tensor, leaves(outcome.before))):
            return False
        inferred = attributes.infer(call.op, given, {})
        if inferred is None:
            return False
        result, after, _ = inferred
        if not any(isinstance(leaf, Form) for leaf in leaves(result)):
            return False  # An answer comes from the worker, whatever is inferred.
        for outcome in call.working:
            changed = [leaf for leaf in leaves(outcome.args) if is_tensor(leaf)]
            for told, real in ((leaves(result), leaves(outcome.result)), (after, changed)):
                assert [*map(_shown, told)] == [_real(hook, leaf) for leaf in real], f"{call}: {told} is inferred"
        return True

    def _form(self, hook: FrameworkHook, tensor: Tensor) -> Form:
        form = hook.attributes.form_of(tensor)
        if form is None:
            pytest.skip("the backend knows no forms, says `FrameworkAttributes.form_of`")
        return form


def _shown(leaf: Any) -> object:
    if not isinstance(leaf, Form):
        return leaf
    return tuple(leaf.shape), str(leaf.dtype), (leaf.strides, leaf.requires_grad)


def _real(hook: FrameworkHook, leaf: Any) -> object:
    return form_of(hook.attributes, leaf) if is_tensor(leaf) else leaf
