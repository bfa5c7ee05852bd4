"""The op table: its operations, their names, and the spellings that are one operation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from operator import add, mul, sub, truediv

import pytest

from syft_core.exceptions import OperationNotAllowedError
from syft_core.hook.attributes import Op
from syft_core.hook.dispatch import dispatch
from syft_core.hook.hook import FrameworkHook
from syft_core.hook.operators import COMPARATORS, INPLACE_OPERATORS, OPERATORS, SYNONYMS, UNARY_OPERATORS
from syft_core.tensors.logging import LoggingTensor
from syft_core.tensors.plus_is_minus import PlusIsMinusTensor
from syft_core.testing.calls import SampleCall, is_tensor
from syft_core.testing.section import OTHERS, VALUES, Section, fix
from syft_core.values import Function, Nested, Tensor

_ARITHMETIC: dict[str, Function] = {"add": add, "sub": sub, "mul": mul, "div": truediv}


class OpTableSection(Section):
    """The table is an allow-list: it contains nothing that must not run on a chain."""

    @fix("FrameworkAttributes._collect", "FrameworkAttributes.ALIAS")
    def test_operations_are_found_by_name_and_by_function(self, hook: FrameworkHook) -> None:
        table = hook.attributes.ops
        assert len(table)
        for op in table:
            assert op.name.startswith(f"{hook.attributes.ALIAS}."), op.name
            assert table.look_up(op.name) is op, op.name
            assert table.of(op.func).func == op.func, op.name

    @fix("FrameworkAttributes._collect", "FrameworkAttributes.exclude")
    def test_excluded_and_global_names_are_not_in_the_table(self, hook: FrameworkHook) -> None:
        attributes = hook.attributes
        forbidden = attributes.exclude | attributes.global_state_change_methods
        listed = {op.attr for op in attributes.ops}
        assert forbidden & listed == set()

    @fix("FrameworkAttributes._collect")
    def test_an_operation_that_is_not_in_the_table_is_refused(self, hook: FrameworkHook) -> None:
        name = f"{hook.attributes.ALIAS}.no_such_operation"
        with pytest.raises(OperationNotAllowedError, match="not in the .* op table"):
            hook.attributes._command_guard(name)
        assert not hook.attributes._is_command_valid_guard(name)

    @fix("FrameworkAttributes.inplace_methods")
    def test_in_place_methods_are_those_that_change_a_tensor(self, hook: FrameworkHook) -> None:
        for name in ("__invert__", "__index__", "__int__", "__init__", "__iter__"):
            assert not hook.attributes.is_inplace_method(name), name
        assert hook.attributes.is_inplace_method("__iadd__") is self.mutable

    @fix("FrameworkAttributes._methods")
    def test_chains_have_the_operators_of_the_framework(self, hook: FrameworkHook) -> None:
        wanted = [*COMPARATORS, *UNARY_OPERATORS, *OPERATORS, *(INPLACE_OPERATORS if self.mutable else ())]
        lacking = [name for name in wanted if _has(hook, name) and name not in hook.attributes.methods]
        assert lacking == [], f"the framework has these operators, but its chains do not: {lacking}"


class SpellingSection(Section):
    """A layer's rule applies to every spelling of an operation: operator, method, function and attribute."""

    @fix("FrameworkAttributes._collect", "describe_op(synonyms=...)")
    def test_functions_that_compute_the_same_are_one_operation(self, calls: Sequence[SampleCall]) -> None:
        for call in calls:
            known = SYNONYMS.get(call.op.attr, call.op.operation)
            if call.op.each is None:
                assert call.op.operation == known, f"{call.op.name} is {known!r}, not {call.op.operation!r}"
        for call, name in self._arithmetic(calls):
            assert call.op.operation == name, (
                f"{call.op.name} computes what {name!r} does, but a rule for {name!r} would not apply"
            )

    def _arithmetic(self, calls: Sequence[SampleCall]) -> Iterator[tuple[SampleCall, str]]:
        """Yield the calls on two tensors that give the same result as an operator for all values."""
        for call in calls:
            if call.op.tier != "reviewed" or not _is_binary(call) or call.op.inplace or call.op.reflected:
                continue
            for name, compute in _ARITHMETIC.items():
                if all(self._gives(outcome.result, partial(compute, *outcome.before)) for outcome in call.working):
                    yield call, name
                    break

    def _gives(self, result: Nested, compute: Function) -> bool:
        try:
            expected = compute()
        except (ArithmeticError, TypeError, RuntimeError):
            return False
        return is_tensor(result) and repr(self.numbers(result)) == repr(self.numbers(expected)) and len(expected) > 1

    @fix("FrameworkAttributes._collect", "describe_op")
    def test_a_rule_applies_to_every_spelling_of_an_operation(
        self, hook: FrameworkHook, calls: Sequence[SampleCall]
    ) -> None:
        for op in self._spellings(calls, "add"):
            self._check_rule(hook, op, sub)
        for op in self._spellings(calls, "sub"):
            self._check_rule(hook, op, add)

    def _spellings(self, calls: Sequence[SampleCall], operation: str) -> list[Op]:
        found = {call.op: None for call in calls if call.op.operation == operation and _is_binary(call)}
        assert found, f"no operation in the table is called {operation!r}"
        return list(found)

    def _check_rule(self, hook: FrameworkHook, op: Op, meaning: Function) -> None:
        x, y = hook.create_tensor(VALUES), hook.create_tensor(OTHERS)
        expected = meaning(y, x) if op.reflected else meaning(x, y)
        result = dispatch(op, (PlusIsMinusTensor().on(x), PlusIsMinusTensor().on(y)), {})
        assert getattr(result, "is_wrapper", False), f"{op.name} does not return a chain"
        assert self.numbers(result.child.child) == self.numbers(expected), f"{op.name} bypasses a layer's rule"

    @fix("the wrapper's protocol method", "FrameworkAttributes._collect")
    def test_a_function_of_a_chain_returns_a_chain(self, hook: FrameworkHook, calls: Sequence[SampleCall]) -> None:
        for operation in ("add", "sub"):
            for op in self._spellings(calls, operation):
                if op.spelling == "function":
                    x, y = (LoggingTensor().on(hook.create_tensor(values)) for values in (VALUES, OTHERS))
                    result = op.func(x, y)
                    assert getattr(result, "is_wrapper", False), f"{op.name} bypassed the chain"

    @fix("FrameworkAttributes._methods", "the wrapper's attributes")
    def test_a_chain_has_the_attributes_of_its_data(self, hook: FrameworkHook, calls: Sequence[SampleCall]) -> None:
        getters = {call.op for call in calls if call.op.spelling == "getter" and len(call.outcomes[0].before) == 1}
        for op in getters & set(hook.attributes.methods.values()):
            plain = hook.create_tensor(VALUES)
            expected, found = getattr(plain, op.attr, None), getattr(LoggingTensor().on(plain), op.attr)
            if is_tensor(expected):
                assert self.numbers(found.child.child) == self.numbers(expected), op.attr
            else:
                assert found == expected, f"{op.attr} is {found!r} for a chain, but {expected!r} for its data"


def _is_binary(call: SampleCall) -> bool:
    """Return whether a call takes exactly two tensors of floats."""
    before = call.outcomes[0].before
    return call.op.each is None and len(before) == 2 and all(is_tensor(x) and "float" in str(x.dtype) for x in before)


def _has(hook: FrameworkHook, name: str) -> bool:
    """Return whether the framework's tensors support an operator."""
    x: Tensor = hook.create_tensor([1.0, 2.0])
    try:
        return getattr(type(x), name)(*[x] * (1 if name in UNARY_OPERATORS else 2)) is not NotImplemented
    except Exception:  # noqa: BLE001  # frameworks raise various errors for unsupported operands
        return False
