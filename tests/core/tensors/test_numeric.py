from __future__ import annotations

from typing import Any

import pytest
import toy
from syft_toy.attributes import ToyAttributes
from toy_layers import Scaled, Watcher

from syft_core.exceptions import MixedLayersError, OperationNotAllowedError
from syft_core.hook import hook_args
from syft_core.hook.forms import form
from syft_core.hook.overload import overloaded
from syft_core.tensors.numeric import NumericTensor

pytestmark = pytest.mark.usefixtures("hook")


class Cents(NumericTensor):
    """Amounts of money, as integers."""

    dtype = float

    @overloaded.method
    def add(self, _self: Any, other: Any) -> Any:
        return _self + other


hook_args.default_register_tensor(Cents)


@pytest.fixture
def cents() -> Cents:
    return Cents().on(toy.Vector([150, 250]), wrap=False)


def test_the_form_is_that_of_the_values_and_not_of_the_encoding(cents: Cents) -> None:
    assert cents.form is form((2,), (1,), float)
    assert (cents.shape, cents.device) == ((2,), None)


def test_layers_that_do_not_encode_do_not_change_the_form() -> None:
    amount = Cents().on(Watcher().on(Scaled().on(toy.Vector([1, 2, 3]), wrap=False), wrap=False), wrap=False)

    assert amount.form is form((3,), (1,), float)
    assert Watcher().on(amount, wrap=False).child.form is amount.form


def test_a_rule_computes_on_the_encoding(cents: Cents) -> None:
    result = cents.add(cents)

    assert type(result) is Cents
    assert result.child.tolist() == [300, 500]


def test_an_operation_without_a_rule_is_refused_with_the_name_of_the_rule(cents: Cents) -> None:
    with pytest.raises(OperationNotAllowedError, match="has no rule for it; .* give Cents a rule called 'sum'"):
        cents.sum()
    with pytest.raises(OperationNotAllowedError, match="it would reveal a value"):
        cents.tolist()


def test_an_alternative_of_the_framework_is_part_of_the_refusal(cents: Cents, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ToyAttributes, "alternatives", {"mean": "write `x.sum() / n`"})

    with pytest.raises(OperationNotAllowedError, match="write `x.sum\\(\\) / n`, or fetch the value"):
        cents.mean()


def test_plain_operands_are_refused_unless_the_layer_encodes_them(cents: Cents) -> None:
    with pytest.raises(MixedLayersError):
        cents.encode(toy.Vector([1.0]))
    with pytest.raises(MixedLayersError):
        Cents.lift(toy.Vector([1.0]))


def test_an_assignment_changes_the_encoding_in_place(cents: Cents) -> None:
    encoding = cents.child

    cents.assign(toy.Vector([7, 8]))

    assert cents.child is encoding
    assert encoding.tolist() == [7, 8]


def test_it_shows_the_form_and_no_values(cents: Cents) -> None:
    assert str(cents) == repr(cents) == "Cents>(<class 'float'> values of shape (2,))"
    assert str(Cents()) == "Cents"


def test_a_framework_without_a_numeric_wrapper_cannot_wrap_it(cents: Cents) -> None:
    with pytest.raises(OperationNotAllowedError, match="toy"):
        cents.wrap()
