"""Layers: they stack, keep their attributes, and refuse incompatible layers."""

from __future__ import annotations

from typing import Any

import pytest

from syft_core.exceptions import MixedLayersError
from syft_core.hook import hook_args
from syft_core.hook.hook import FrameworkHook
from syft_core.hook.overload import overloaded
from syft_core.tensors.abstract import AbstractTensor
from syft_core.tensors.logging import LoggingTensor
from syft_core.tensors.plus_is_minus import PlusIsMinusTensor
from syft_core.tensors.polynomial import PolynomialTensor
from syft_core.testing.section import VALUES, Section, fix
from syft_core.values import Kwargs, Tensor


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
