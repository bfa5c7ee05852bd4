"""BackendConformance: what the core expects of a backend, as tests.

Subclass it in a test file of your backend and set two attributes; pytest does the rest::

    class TestMyBackend(BackendConformance):
        framework = my_framework
        hook_class = MyHook

Some things differ so much between frameworks that you say how yours does them: override ``concatenate``, ``leaks`` and
``patched``.
"""

from __future__ import annotations

import operator
import pickle
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import pytest

from syft_core.exceptions import (
    MixedLayersError,
    NotTheFrameworkError,
    OperationNotAllowedError,
    WrapperLeakError,
)
from syft_core.hook import hook_args
from syft_core.hook.attributes import COMPARATORS, OPERATORS
from syft_core.hook.hook import FrameworkHook
from syft_core.hook.overload import overloaded
from syft_core.tensors.abstract import AbstractTensor
from syft_core.tensors.logging import LoggingTensor
from syft_core.tensors.plus_is_minus import PlusIsMinusTensor
from syft_core.tensors.polynomial import PolynomialTensor
from syft_core.values import Kwargs, Tensor

VALUES = [1.0, 2.0, 4.0]
OTHERS = [3.0, 5.0, 2.0]
_ARITHMETIC = ("add", "sub", "mul", "truediv", "pow")


class ScaledTensor(AbstractTensor):
    """A layer with an attribute and a rule, as a user might write it."""

    def __init__(self, scale: int = 1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.scale = scale

    def get_class_attributes(self) -> Kwargs:
        """Results keep the scale."""
        return {"scale": self.scale}

    @overloaded.method
    def mul(self, _self: Tensor, other: Tensor) -> Tensor:
        """Multiply, and by the scale too."""
        return _self * other * self.scale


hook_args.default_register_tensor(ScaledTensor)


class BackendConformance:
    """The contract of a backend; a third party subclasses it and gets the whole of it tested."""

    framework: ClassVar[Any]
    """The framework's module."""
    hook_class: ClassVar[type[FrameworkHook]]
    """The backend's hook."""

    # --- what a backend may say differently

    def concatenate(self, tensors: Sequence[Tensor]) -> Tensor:
        """Join tensors with a function of the framework that takes a list."""
        raise NotImplementedError("override `concatenate` with your framework's function")

    def numbers(self, tensor: Tensor) -> Any:
        """Return a plain tensor's content as a number or a nested list."""
        return tensor.tolist()

    def leaks(self, wrapper: Tensor) -> Sequence[Callable[[], object]]:
        """Return calls that go around the framework's protocol; each must raise ``WrapperLeakError``."""
        return [lambda: pickle.dumps(wrapper)]

    def patched(self) -> Sequence[Any]:
        """Return the objects of the framework on which the hook sets attributes."""
        return [self.framework]

    # --- the tools of the tests

    @pytest.fixture
    def hook(self) -> Iterator[FrameworkHook]:
        """Put the hook on for one test."""
        with self.hook_class(self.framework) as hook:
            yield hook

    @pytest.fixture
    def plain(self, hook: FrameworkHook) -> Tensor:
        """Return a plain tensor."""
        return hook.create_tensor(VALUES)

    @pytest.fixture
    def other(self, hook: FrameworkHook) -> Tensor:
        """Return another plain tensor of the same shape."""
        return hook.create_tensor(OTHERS)

    def same(self, chain: Tensor, expected: Tensor, *layers: Any) -> None:
        """Assert that ``chain`` is a wrapper on exactly ``layers`` with the numbers of ``expected``."""
        assert chain.is_wrapper
        below: Any = chain.child
        for layer in layers:
            assert type(below) is layer
            below = below.child
        assert type(below) is type(expected) or tuple(below.shape) == ()
        assert self.numbers(below) == self.numbers(expected)

    # --- putting it on and taking it off

    def test_unhooking_leaves_the_framework_exactly_as_it_was(self) -> None:
        before = [dict(vars(target)) for target in self.patched()]
        with self.hook_class(self.framework):
            pass
        after = [dict(vars(target)) for target in self.patched()]
        for was, now in zip(before, after, strict=True):
            assert was.keys() == now.keys()
            assert [name for name in was if was[name] is not now[name]] == []

    def test_a_second_hook_warns_and_shares_the_local_worker(self, hook: FrameworkHook) -> None:
        with pytest.warns(UserWarning, match="hooked already"):
            second = self.hook_class(self.framework)
        assert second.local_worker is hook.local_worker
        assert second.attributes is hook.attributes
        second.unhook()
        assert (LoggingTensor().on(hook.create_tensor(VALUES)) + 1).is_wrapper

    def test_unhooking_twice_is_harmless(self) -> None:
        hook = self.hook_class(self.framework)
        hook.unhook()
        hook.unhook()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.hook_class(self.framework).unhook()

    def test_something_that_is_not_the_framework_is_refused(self) -> None:
        with pytest.raises(NotTheFrameworkError, match="takes the .* module itself"):
            self.hook_class(pytest)

    def test_the_local_worker_is_called_me(self, hook: FrameworkHook) -> None:
        assert hook.local_worker.id == "me"
        assert hook.local_worker.is_client_worker

    # --- the factories

    def test_factories_make_plain_tensors(self, hook: FrameworkHook) -> None:
        assert self.numbers(hook.create_tensor(VALUES)) == VALUES
        assert self.numbers(hook.create_zeros(2)) == [0.0, 0.0]
        assert tuple(hook.create_shape([2, 3])) == (2, 3)
        assert len(hook.create_wrapper(None)) == 0

    def test_a_wrapper_of_an_impossible_type_is_refused(self, hook: FrameworkHook) -> None:
        with pytest.raises(ValueError, match="cannot create a wrapper"):
            hook.create_wrapper("no type at all")

    # --- the op table

    def test_the_op_table_reads_both_ways(self, hook: FrameworkHook) -> None:
        table = hook.attributes.ops
        for op in table:
            assert op.name.startswith(f"{hook.attributes.ALIAS}.")
            assert table.named(op.name) is op
            assert table.of(op.func).func == op.func

    def test_excluded_and_global_names_are_not_in_the_table(self, hook: FrameworkHook) -> None:
        attributes = hook.attributes
        forbidden = attributes.exclude | attributes.global_state_change_methods
        listed = {op.attr for op in attributes.ops}
        assert forbidden & listed == set()

    def test_an_operation_that_is_not_in_the_table_is_refused(self, hook: FrameworkHook) -> None:
        name = f"{hook.attributes.ALIAS}.no_such_operation"
        with pytest.raises(OperationNotAllowedError, match="not in the .* op table"):
            hook.attributes._command_guard(name)
        assert not hook.attributes._is_command_valid_guard(name)

    def test_in_place_names_are_the_ones_that_change_a_tensor(self, hook: FrameworkHook) -> None:
        for name in ("__invert__", "__index__", "__int__", "__init__", "__iter__"):
            assert not hook.attributes.is_inplace_method(name)
        assert hook.attributes.is_inplace_method("__iadd__")

    # --- a chain computes what the framework computes

    def test_a_chain_shows_itself(self, plain: Tensor) -> None:
        assert str(LoggingTensor().on(plain)) == f"(Wrapper)>LoggingTensor>{plain!r}"

    def test_metadata_is_that_of_the_data(self, plain: Tensor) -> None:
        x = LoggingTensor().on(plain)
        assert tuple(x.shape) == tuple(plain.shape)
        assert x.dtype == plain.dtype
        assert len(x) == len(plain)

    @pytest.mark.parametrize("name", _ARITHMETIC)
    def test_operators_compute_on_chains_plain_tensors_and_numbers(
        self, plain: Tensor, other: Tensor, name: str
    ) -> None:
        compute = getattr(operator, name)
        x, y = LoggingTensor().on(plain), LoggingTensor().on(other)
        self.same(compute(x, y), compute(plain, other), LoggingTensor)
        self.same(compute(x, other), compute(plain, other), LoggingTensor)
        self.same(compute(plain, y), compute(plain, other), LoggingTensor)
        self.same(compute(x, 2), compute(plain, 2), LoggingTensor)
        self.same(compute(2, x), compute(2, plain), LoggingTensor)

    @pytest.mark.parametrize("name", sorted(COMPARATORS))
    def test_every_comparator_is_routed(self, plain: Tensor, other: Tensor, name: str) -> None:
        compute = getattr(operator, name)
        x, y = LoggingTensor().on(plain), LoggingTensor().on(other)
        self.same(compute(x, y), compute(plain, other), LoggingTensor)

    def test_in_place_operators_keep_the_object(self, hook: FrameworkHook) -> None:
        x = LoggingTensor().on(hook.create_tensor(VALUES))
        same = x
        x += 1
        x *= 2
        assert x is same
        assert self.numbers(x.child.child) == [(v + 1) * 2 for v in VALUES]

    def test_methods_indexing_and_iteration_come_back_as_chains(self, plain: Tensor) -> None:
        x = LoggingTensor().on(plain)
        self.same(x.sum(), plain.sum(), LoggingTensor)
        self.same(x[1:], plain[1:], LoggingTensor)
        assert [self.numbers(item.child.child) for item in x] == VALUES

    def test_assignment_into_a_chain_changes_the_data(self, hook: FrameworkHook) -> None:
        data = hook.create_tensor(VALUES)
        LoggingTensor().on(data)[0] = 9.0
        assert self.numbers(data) == [9.0, *VALUES[1:]]

    def test_functions_take_lists_of_chains(self, plain: Tensor, other: Tensor) -> None:
        joined = self.concatenate([LoggingTensor().on(plain), other, LoggingTensor().on(plain)])
        self.same(joined, self.concatenate([plain, other, plain]), LoggingTensor)

    def test_the_number_of_arguments_may_change_from_call_to_call(self, plain: Tensor, other: Tensor) -> None:
        x = LoggingTensor().on(plain)
        for tensors in ([x, other], [x], [x, other, x, other], [x, x]):
            bare = [plain if t is x else t for t in tensors]
            self.same(self.concatenate(tensors), self.concatenate(bare), LoggingTensor)

    # --- layers

    def test_a_layer_without_a_wrapper_computes_too(self, plain: Tensor, other: Tensor) -> None:
        layer = LoggingTensor().on(plain, wrap=False)
        result = layer + other
        assert type(result) is LoggingTensor
        assert self.numbers(result.child) == self.numbers(plain + other)
        joined = self.concatenate([layer, layer])
        assert type(joined) is LoggingTensor

    def test_a_rule_holds_in_every_spelling(self, plain: Tensor, other: Tensor) -> None:
        x = PlusIsMinusTensor().on(plain)
        y = PlusIsMinusTensor().on(other)
        self.same(x + y, plain - other, PlusIsMinusTensor)
        self.same(x - y, plain + other, PlusIsMinusTensor)
        self.same(1 + x, 1 - plain, PlusIsMinusTensor)
        self.same(x * y, plain * other, PlusIsMinusTensor)

    def test_a_rule_holds_in_place(self, hook: FrameworkHook) -> None:
        x = PlusIsMinusTensor().on(hook.create_tensor(VALUES))
        same = x
        x += 1
        assert x is same
        assert self.numbers(x.child.child) == [v - 1 for v in VALUES]

    def test_layers_stack(self, plain: Tensor, other: Tensor) -> None:
        inner = PlusIsMinusTensor().on(plain)
        x = LoggingTensor().on(inner)
        assert x is inner
        self.same(x + other, plain - other, LoggingTensor, PlusIsMinusTensor)

    def test_a_watching_layer_goes_with_any_other(self, plain: Tensor, other: Tensor) -> None:
        result = LoggingTensor().on(plain) + PlusIsMinusTensor().on(other)
        self.same(result, plain - other, LoggingTensor, PlusIsMinusTensor)

    def test_layers_of_two_meanings_are_refused(self, plain: Tensor, other: Tensor) -> None:
        with pytest.raises(MixedLayersError, match="mixes a PlusIsMinusTensor with a PolynomialTensor"):
            PlusIsMinusTensor().on(plain) * PolynomialTensor().on(other)

    def test_results_keep_the_attributes_of_their_layer(self, plain: Tensor) -> None:
        x = ScaledTensor(scale=3).on(plain)
        result = (x + 1) * 2
        self.same(result, (plain + 1) * 2 * 3, ScaledTensor)
        assert result.child.scale == 3

    def test_layers_with_different_attributes_are_refused(self, plain: Tensor, other: Tensor) -> None:
        with pytest.raises(MixedLayersError, match="two ScaledTensors that differ in scale"):
            ScaledTensor(scale=2).on(plain) + ScaledTensor(scale=3).on(other)

    def test_polynomials_are_as_exact_as_they_promise(self, hook: FrameworkHook) -> None:
        points = [-3.0, -1.0, 0.0, 0.5, 3.0]
        x = PolynomialTensor().on(hook.create_tensor(points), wrap=False)
        for value, point in zip(x.get_val("sigmoid", x.child), points, strict=True):
            assert abs(float(value) - 1 / (1 + 2.718281828459045**-point)) <= 1e-3
        assert self.numbers(x.child) == points

    # --- identity

    def test_a_copy_has_an_id_of_its_own_and_a_clone_keeps_it(self, plain: Tensor) -> None:
        layer = LoggingTensor(id=7, tags={"#x"}).on(plain, wrap=False)
        assert layer.copy().id != 7
        assert layer.clone().id == 7
        assert layer.clone().tags == {"#x"}
        assert layer.copy().child is not plain

    def test_tags_and_descriptions_are_shown(self, plain: Tensor) -> None:
        x = LoggingTensor().on(plain).tag("#b", "#a").describe("three numbers\nand more")
        assert x.tags == {"#a", "#b"}
        assert str(x).endswith("\n\tTags: #a #b\n\tDescription: three numbers")

    def test_what_is_here_has_no_location(self, plain: Tensor) -> None:
        x = LoggingTensor().on(plain)
        assert x.location is None
        assert x.id_at_location is None

    # --- nothing gets around

    def test_every_road_around_the_protocol_ends_in_one_error(self, plain: Tensor) -> None:
        for leak in self.leaks(LoggingTensor().on(plain)):
            with pytest.raises(WrapperLeakError, match="holds no data of its own"):
                leak()


assert {f"__{name}__" for name in _ARITHMETIC} <= set(OPERATORS)
