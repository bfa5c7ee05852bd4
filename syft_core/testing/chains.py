"""Chains: they compute what the framework computes, and nothing bypasses them."""

from __future__ import annotations

import operator
from functools import partial

import pytest

from syft_core.exceptions import OperationNotAllowedError, WrapperLeakError
from syft_core.hook.attributes import COMPARATORS
from syft_core.hook.hook import FrameworkHook
from syft_core.tensors.logging import LoggingTensor
from syft_core.testing.section import VALUES, Section, fix
from syft_core.values import Tensor

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

    @fix("FrameworkAttributes._methods", "register_ambiguous_method")
    def test_methods_indexing_and_iteration_return_chains(self, plain: Tensor) -> None:
        x = LoggingTensor().on(plain)
        self.assert_chain(x.sum(), plain.sum(), LoggingTensor)
        self.assert_chain(x[1:], plain[1:], LoggingTensor)
        assert [self.numbers(item.child.child) for item in x] == VALUES

    @fix("FrameworkAttributes._collect", "register_ambiguous_method")
    def test_assignment_changes_the_data_or_is_refused(self, hook: FrameworkHook) -> None:
        data = hook.create_tensor(VALUES)
        assign = partial(operator.setitem, LoggingTensor().on(data), 0, 9.0)
        if self.mutable:
            assign()
        else:
            with pytest.raises((OperationNotAllowedError, TypeError)):
                assign()
        assert self.numbers(data) == [9.0 if self.mutable else VALUES[0], *VALUES[1:]]

    @fix("the wrapper's protocol method", "register_ambiguous_function")
    def test_functions_take_lists_of_chains(self, plain: Tensor, other: Tensor) -> None:
        joined = self.concatenate([LoggingTensor().on(plain), other, LoggingTensor().on(plain)])
        self.assert_chain(joined, self.concatenate([plain, other, plain]), LoggingTensor)

    @fix("the wrapper's protocol method", "register_ambiguous_function")
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
            with pytest.raises(WrapperLeakError, match="holds no data of its own"):
                leak()
