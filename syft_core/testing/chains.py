"""Chains and layers: they compute what the framework computes, nothing bypasses them, and layers keep their rules."""

from __future__ import annotations

import operator
from functools import partial
from typing import Any

import pytest

from syft_core.exceptions import MixedLayersError, OperationNotAllowedError, WrapperLeakError
from syft_core.hook import hook_args
from syft_core.hook.hook import FrameworkHook
from syft_core.hook.operators import COMPARATORS
from syft_core.hook.overload import overloaded
from syft_core.tensors.abstract import AbstractTensor
from syft_core.tensors.logging import LoggingTensor
from syft_core.tensors.plus_is_minus import PlusIsMinusTensor
from syft_core.tensors.polynomial import PolynomialTensor
from syft_core.testing.section import VALUES, Section, fix
from syft_core.values import Kwargs, Tensor

_WRAPPER = "the wrapper's bases (Forwarding)"
_ARITHMETIC = ("add", "sub", "mul", "truediv", "pow")


class ChainSection(Section):
    """A chain behaves like the tensor at its end."""

    @fix("the wrapper's __repr__")
    def test_a_chain_shows_itself(self, plain: Tensor) -> None:
        assert str(LoggingTensor().on(plain)) == f"(Wrapper)>LoggingTensor>{plain!r}"

    @fix("FrameworkAttributes._methods", _WRAPPER)
    def test_a_chain_has_the_metadata_of_its_data(self, plain: Tensor) -> None:
        x = LoggingTensor().on(plain)
        assert tuple(x.shape) == tuple(plain.shape)
        assert x.dtype == plain.dtype
        assert len(x) == len(plain)

    @pytest.mark.parametrize("name", _ARITHMETIC)
    @fix("FrameworkAttributes._methods", "register_backward_func")
    def test_operators_compute_on_chains_plain_tensors_and_numbers(
        self, plain: Tensor, other: Tensor, name: str
    ) -> None:
        compute = getattr(operator, name)
        x, y = LoggingTensor().on(plain), LoggingTensor().on(other)
        self.assert_chain(compute(x, y), compute(plain, other), LoggingTensor)
        self.assert_chain(compute(x, other), compute(plain, other), LoggingTensor)
        self.assert_chain(compute(plain, y), compute(plain, other), LoggingTensor)
        self.assert_chain(compute(x, 2), compute(plain, 2), LoggingTensor)
        self.assert_chain(compute(2, x), compute(2, plain), LoggingTensor)

    @pytest.mark.parametrize("name", sorted(COMPARATORS))
    @fix("FrameworkAttributes._methods", _WRAPPER)
    def test_every_comparison_is_dispatched(self, plain: Tensor, other: Tensor, name: str) -> None:
        compute = getattr(operator, name)
        x, y = LoggingTensor().on(plain), LoggingTensor().on(other)
        self.assert_chain(compute(x, y), compute(plain, other), LoggingTensor)

    @fix("FrameworkAttributes._collect", "describe_op(inplace=...)")
    def test_in_place_operators_keep_the_object_or_make_a_new_one(self, hook: FrameworkHook) -> None:
        x = LoggingTensor().on(hook.create_tensor(VALUES))
        same = x
        x += 1
        x *= 2
        assert self.numbers(x.child.child) == [(v + 1) * 2 for v in VALUES]
        assert (x is same) is self.mutable
        assert self.numbers(same.child.child) == (self.numbers(x.child.child) if self.mutable else VALUES)

    @fix("FrameworkAttributes._methods")
    def test_methods_indexing_and_iteration_return_chains(self, plain: Tensor) -> None:
        x = LoggingTensor().on(plain)
        self.assert_chain(x.sum(), plain.sum(), LoggingTensor)
        self.assert_chain(x[1:], plain[1:], LoggingTensor)
        assert [self.numbers(item.child.child) for item in x] == VALUES

    @fix("FrameworkAttributes._collect")
    def test_assignment_changes_the_data_or_is_refused(self, hook: FrameworkHook) -> None:
        data = hook.create_tensor(VALUES)
        assign = partial(operator.setitem, LoggingTensor().on(data), 0, 9.0)
        if self.mutable:
            assign()
        else:
            with pytest.raises((OperationNotAllowedError, TypeError)):
                assign()
        assert self.numbers(data) == [9.0 if self.mutable else VALUES[0], *VALUES[1:]]

    @fix("the wrapper's protocol method")
    def test_functions_take_lists_of_chains(self, plain: Tensor, other: Tensor) -> None:
        joined = self.concatenate([LoggingTensor().on(plain), other, LoggingTensor().on(plain)])
        self.assert_chain(joined, self.concatenate([plain, other, plain]), LoggingTensor)

    @fix("the wrapper's protocol method")
    def test_the_number_of_arguments_may_change_from_call_to_call(self, plain: Tensor, other: Tensor) -> None:
        x = LoggingTensor().on(plain)
        for tensors in ([x, other], [x], [x, other, x, other], [x, x]):
            bare = [plain if t is x else t for t in tensors]
            self.assert_chain(self.concatenate(tensors), self.concatenate(bare), LoggingTensor)

    # --- identity

    @fix("FrameworkAttributes.copy")
    def test_a_copy_has_a_new_id_and_a_clone_keeps_the_id(self, plain: Tensor) -> None:
        layer = LoggingTensor(id=7, tags={"#x"}).on(plain, wrap=False)
        assert layer.copy().id != 7
        assert layer.clone().id == 7
        assert layer.clone().tags == {"#x"}
        assert layer.copy().child is not plain

    @fix("the wrapper's bases (Identified)")
    def test_tags_and_descriptions_are_shown(self, plain: Tensor) -> None:
        x = LoggingTensor().on(plain).tag("#b", "#a").describe("three numbers\nand more")
        assert x.tags == {"#a", "#b"}
        assert str(x).endswith("\n\tTags: #a #b\n\tDescription: three numbers")

    @fix("the wrapper's bases (Identified)")
    def test_a_local_chain_has_no_location(self, plain: Tensor) -> None:
        x = LoggingTensor().on(plain)
        assert x.location is None
        assert x.id_at_location is None

    # --- leaks

    @fix("the wrapper's __reduce_ex__")
    def test_every_way_around_the_protocol_raises_the_same_error(self, plain: Tensor) -> None:
        for leak in self.leaks(LoggingTensor().on(plain)):
            with pytest.raises(WrapperLeakError, match="holds no data of its own|cannot see them"):
                leak()


class ScaledTensor(AbstractTensor):
    """A layer with an attribute and a rule, as a user might write it."""

    def __init__(self, scale: int = 1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.scale = scale

    def get_class_attributes(self) -> Kwargs:
        """Return the scale, which results keep."""
        return {"scale": self.scale}

    @overloaded.method
    def mul(self, _self: Tensor, other: Tensor) -> Tensor:
        """Multiply by ``other`` and by the scale."""
        return _self * other * self.scale


hook_args.default_register_tensor(ScaledTensor)


class LayerSection(Section):
    """The core's layers work on the framework's tensors."""

    @fix("FrameworkHook._install", "the protocol of layers without a wrapper")
    def test_a_layer_without_a_wrapper_computes_too(self, plain: Tensor, other: Tensor) -> None:
        layer = LoggingTensor().on(plain, wrap=False)
        result = layer + other
        assert type(result) is LoggingTensor
        assert self.numbers(result.child) == self.numbers(plain + other)
        joined = self.concatenate([layer, layer])
        assert type(joined) is LoggingTensor

    @fix("FrameworkAttributes._methods", "describe_op")
    def test_a_rule_applies_to_every_operator(self, plain: Tensor, other: Tensor) -> None:
        x = PlusIsMinusTensor().on(plain)
        y = PlusIsMinusTensor().on(other)
        self.assert_chain(x + y, plain - other, PlusIsMinusTensor)
        self.assert_chain(x - y, plain + other, PlusIsMinusTensor)
        self.assert_chain(1 + x, 1 - plain, PlusIsMinusTensor)
        self.assert_chain(x * y, plain * other, PlusIsMinusTensor)

    @fix("FrameworkAttributes.inplace_methods", "describe_op(inplace=...)")
    def test_a_rule_applies_to_in_place_operators(self, hook: FrameworkHook) -> None:
        x = PlusIsMinusTensor().on(hook.create_tensor(VALUES))
        same = x
        x += 1
        assert (x is same) is self.mutable
        assert self.numbers(x.child.child) == [v - 1 for v in VALUES]

    @fix("register_forward_func", "register_backward_func")
    def test_layers_stack(self, plain: Tensor, other: Tensor) -> None:
        inner = PlusIsMinusTensor().on(plain)
        x = LoggingTensor().on(inner)
        assert x is inner
        self.assert_chain(x + other, plain - other, LoggingTensor, PlusIsMinusTensor)

    @fix("register_forward_func", "register_backward_func")
    def test_a_transparent_layer_combines_with_any_other(self, plain: Tensor, other: Tensor) -> None:
        result = LoggingTensor().on(plain) + PlusIsMinusTensor().on(other)
        self.assert_chain(result, plain - other, LoggingTensor, PlusIsMinusTensor)

    @fix("register_type_rule", "register_forward_func")
    def test_two_types_of_opaque_layers_are_refused(self, plain: Tensor, other: Tensor) -> None:
        with pytest.raises(MixedLayersError, match="mixes a PlusIsMinusTensor with a PolynomialTensor"):
            PlusIsMinusTensor().on(plain) * PolynomialTensor().on(other)

    @fix("register_backward_func")
    def test_results_keep_the_attributes_of_their_layer(self, plain: Tensor) -> None:
        x = ScaledTensor(scale=3).on(plain)
        result = (x + 1) * 2
        self.assert_chain(result, (plain + 1) * 2 * 3, ScaledTensor)
        assert result.child.scale == 3

    @fix("register_type_rule")
    def test_layers_with_different_attributes_are_refused(self, plain: Tensor, other: Tensor) -> None:
        with pytest.raises(MixedLayersError, match="two ScaledTensors that differ in scale"):
            ScaledTensor(scale=2).on(plain) + ScaledTensor(scale=3).on(other)

    @fix("FrameworkAttributes._methods")
    def test_polynomials_have_the_documented_accuracy(self, hook: FrameworkHook) -> None:
        points = [-3.0, -1.0, 0.0, 0.5, 3.0]
        x = PolynomialTensor().on(hook.create_tensor(points), wrap=False)
        for value, point in zip(x.get_val("sigmoid", x.child), points, strict=True):
            assert abs(float(value) - 1 / (1 + 2.718281828459045**-point)) <= 1e-3
        assert self.numbers(x.child) == points
