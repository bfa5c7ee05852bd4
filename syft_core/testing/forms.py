"""Forms: they describe tensors correctly without their values."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from syft_core.hook.forms import Form
from syft_core.hook.hook import FrameworkHook
from syft_core.hook.rules import leaves, map_leaves
from syft_core.testing.calls import SampleCall, form_of, is_tensor
from syft_core.testing.section import OTHERS, VALUES, Section, fix
from syft_core.values import Tensor


class FormSection(Section):
    """``form_of`` and ``infer`` are optional: without them, pointers ask the worker for forms, and wait."""

    @fix("FrameworkAttributes.form_of")
    def test_a_form_has_the_metadata_of_its_tensor(self, hook: FrameworkHook, plain: Tensor) -> None:
        form = self._form(hook, plain)
        assert (tuple(form.shape), form.dtype) == (tuple(plain.shape), plain.dtype)
        assert form.strides is not None, "a form without strides is not used: return None instead"

    @fix("FrameworkAttributes.form_of")
    def test_tensors_that_differ_only_in_values_have_the_same_form(self, hook: FrameworkHook) -> None:
        one, other = (self._form(hook, hook.create_tensor(values)) for values in (VALUES, OTHERS))
        assert one is other, "create forms with `form(...)`, from nothing that depends on values"

    @fix("FrameworkAttributes.form_of")
    def test_tensors_of_different_shapes_or_dtypes_have_different_forms(self, hook: FrameworkHook) -> None:
        found = [self._form(hook, hook.create_tensor(values)) for values in (VALUES, VALUES[:2], [1, 2, 4])]
        assert len({id(form) for form in found}) == len(found)

    @fix("FrameworkAttributes.form_of_copy")
    def test_the_predicted_form_of_a_copy_is_right(self, hook: FrameworkHook, plain: Tensor) -> None:
        attributes = hook.attributes
        for tensor in (plain, plain[1:]):
            predicted = attributes.form_of_copy(tensor)
            if predicted is not None:
                assert predicted is attributes.form_of(attributes.transfer(tensor))

    @fix("FrameworkAttributes.answer_from_form", "FrameworkAttributes.facts_of_form")
    def test_facts_of_form_follow_from_the_form(self, hook: FrameworkHook, calls: Sequence[SampleCall]) -> None:
        attributes = hook.attributes
        for call in calls:
            if call.op.attr not in attributes.facts_of_form or len(call.outcomes[0].before) > 1:
                continue
            for outcome in call.working:
                (tensor,) = outcome.before
                form = attributes.form_of(tensor) if is_tensor(tensor) else None
                if form is not None:
                    found = attributes.answer_from_form(call.op, form, ())
                    assert found == outcome.result, f"{call} is {outcome.result!r}, but {found!r} according to the form"

    @fix("FrameworkAttributes.infer")
    def test_inferred_results_have_the_forms_of_real_ones(
        self, hook: FrameworkHook, calls: Sequence[SampleCall]
    ) -> None:
        if hook.attributes.state() is None:
            pytest.skip("the backend does not infer forms (`FrameworkAttributes.state` returns None)")
        inferred = [call for call in calls if self._is_inferred(hook, call)]
        assert inferred, "`state` returns a value, so `infer` must infer some results"

    def _is_inferred(self, hook: FrameworkHook, call: SampleCall) -> bool:
        """Compare the inferred result of a call, if there is one, with each outcome."""
        attributes, outcome = hook.attributes, call.working[0]
        given = map_leaves(lambda leaf: attributes.form_of(leaf) if is_tensor(leaf) else leaf, outcome.before)
        known = [form for form in leaves(given) if isinstance(form, Form)]
        if len(known) < sum(map(is_tensor, leaves(outcome.before))):
            return False
        inferred = attributes.infer(call.op, given, {})
        if inferred is None:
            return False
        result, after = inferred.result, inferred.after
        if not any(isinstance(leaf, Form) for leaf in leaves(result)):
            return False  # The worker returns plain results.
        for outcome in call.working:
            changed = [leaf for leaf in leaves(outcome.args) if is_tensor(leaf)]
            for predicted, real in ((leaves(result), leaves(outcome.result)), (after, changed)):
                seen = [form_of(hook.attributes, leaf) if is_tensor(leaf) else leaf for leaf in real]
                assert [*map(_describe, predicted)] == seen, f"{call}: inferred {predicted}"
        return True

    def _form(self, hook: FrameworkHook, tensor: Tensor) -> Form:
        form = hook.attributes.form_of(tensor)
        if form is None:
            pytest.skip("the backend has no forms (`FrameworkAttributes.form_of` returns None)")
        return form


def _describe(leaf: Tensor) -> object:
    if not isinstance(leaf, Form):
        return leaf
    return tuple(leaf.shape), str(leaf.dtype), (leaf.strides, leaf.requires_grad)
