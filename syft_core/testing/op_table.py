"""The op table: what is in it, under which names, and that all spellings of an operation are one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from operator import add, mul, sub, truediv
from typing import Any

import pytest

from syft_core.exceptions import OperationNotAllowedError
from syft_core.hook.attributes import COMPARATORS, INPLACE_OPERATORS, OPERATORS, SYNONYMS, UNARY_OPERATORS, Op
from syft_core.hook.dispatch import dispatch
from syft_core.hook.hook import FrameworkHook
from syft_core.tensors.logging import LoggingTensor
from syft_core.tensors.plus_is_minus import PlusIsMinusTensor
from syft_core.testing.calls import Call, is_tensor
from syft_core.testing.section import Section, fix
from syft_core.values import Function, Tensor

_ARITHMETIC: dict[str, Function] = {"add": add, "sub": sub, "mul": mul, "div": truediv}


class OpTableSection(Section):
    """The table is the permission: it is exact, and lists nothing that a chain must not run."""

    @fix("FrameworkAttributes._collect", "FrameworkAttributes.ALIAS")
    def test_the_op_table_reads_both_ways(self, hook: FrameworkHook) -> None:
        table = hook.attributes.ops
        assert len(table)
        for op in table:
            assert op.name.startswith(f"{hook.attributes.ALIAS}."), op.name
            assert table.named(op.name) is op, op.name
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
    def test_in_place_names_are_the_ones_that_change_a_tensor(self, hook: FrameworkHook) -> None:
        for name in ("__invert__", "__index__", "__int__", "__init__", "__iter__"):
            assert not hook.attributes.is_inplace_method(name), name
        assert hook.attributes.is_inplace_method("__iadd__") is self.mutable

    @fix("FrameworkAttributes._methods")
    def test_a_tensor_has_operators_under_their_names(self, hook: FrameworkHook) -> None:
        wanted = [*COMPARATORS, *UNARY_OPERATORS, *OPERATORS, *(INPLACE_OPERATORS if self.mutable else ())]
        lacking = [name for name in wanted if _has(hook, name) and name not in hook.attributes.methods]
        assert lacking == [], f"the framework has these operators, its chains do not: {lacking}"


class SpellingSection(Section):
    """Operators, methods, functions and attributes are spellings; none goes around a layer's rule."""

    @fix("FrameworkAttributes._collect", "describe_op(synonyms=...)")
    def test_what_computes_the_same_is_the_same_operation(self, calls: Sequence[Call]) -> None:
        for call in calls:
            known = SYNONYMS.get(call.op.attr, call.op.operation)
            if call.op.each is None:
                assert call.op.operation == known, f"{call.op.name} is {known!r}, not {call.op.operation!r}"
        for call, name in self._arithmetic(calls):
            assert call.op.operation == name, (
                f"{call.op.name} computes what {name!r} does: a rule would not hold for it"
            )

    def _arithmetic(self, calls: Sequence[Call]) -> Iterator[tuple[Call, str]]:
        """Yield the calls on two tensors that give the numbers of an operator, whatever the values."""
        for call in calls:
            if call.op.tier != "reviewed" or not _is_binary(call) or call.op.inplace or call.op.reflected:
                continue
            for name, compute in _ARITHMETIC.items():
                if all(self._gives(outcome.result, partial(compute, *outcome.before)) for outcome in call.working):
                    yield call, name
                    break

    def _gives(self, result: Any, compute: Function) -> bool:
        try:
            expected = compute()
        except (ArithmeticError, TypeError, RuntimeError):
            return False
        return is_tensor(result) and repr(self.numbers(result)) == repr(self.numbers(expected)) and len(expected) > 1

    @fix("FrameworkAttributes._collect", "describe_op")
    def test_a_rule_holds_in_every_spelling_of_an_operation(self, hook: FrameworkHook, calls: Sequence[Call]) -> None:
        for op in self._spellings(calls, "add"):
            self._check_rule(hook, op, sub)
        for op in self._spellings(calls, "sub"):
            self._check_rule(hook, op, add)

    def _spellings(self, calls: Sequence[Call], operation: str) -> list[Op]:
        found = {call.op: None for call in calls if call.op.operation == operation and _is_binary(call)}
        assert found, f"no operation in the table is called {operation!r}"
        return list(found)

    def _check_rule(self, hook: FrameworkHook, op: Op, meaning: Function) -> None:
        x, y = hook.create_tensor([1.0, 2.0, 4.0]), hook.create_tensor([3.0, 5.0, 2.0])
        expected = meaning(y, x) if op.reflected else meaning(x, y)
        result = dispatch(op, (PlusIsMinusTensor().on(x), PlusIsMinusTensor().on(y)), {})
        assert getattr(result, "is_wrapper", False), f"{op.name} does not return a chain"
        assert self.numbers(result.child.child) == self.numbers(expected), f"{op.name} goes around a layer's rule"

    @fix("the wrapper's protocol method", "FrameworkAttributes._collect")
    def test_a_function_that_is_given_a_chain_returns_a_chain(self, hook: FrameworkHook, calls: Sequence[Call]) -> None:
        for operation in ("add", "sub"):
            for op in self._spellings(calls, operation):
                if op.spelling == "function":
                    x, y = (LoggingTensor().on(hook.create_tensor(values)) for values in ([1.0, 2.0], [3.0, 5.0]))
                    result = op.func(x, y)
                    assert getattr(result, "is_wrapper", False), f"{op.name} went around the chain"

    @fix("FrameworkAttributes._methods", "the wrapper's attributes")
    def test_an_attribute_of_a_chain_is_that_of_its_data(self, hook: FrameworkHook, calls: Sequence[Call]) -> None:
        getters = {call.op for call in calls if call.op.spelling == "getter" and len(call.outcomes[0].before) == 1}
        for op in getters & set(hook.attributes.methods.values()):
            plain = hook.create_tensor([1.0, 2.0, 4.0])
            expected, found = getattr(plain, op.attr, None), getattr(LoggingTensor().on(plain), op.attr)
            if is_tensor(expected):
                assert self.numbers(found.child.child) == self.numbers(expected), op.attr
            else:
                assert found == expected, f"{op.attr} of a chain is {found!r}, of its data {expected!r}"


def _has(hook: FrameworkHook, name: str) -> bool:
    """Return whether the framework's tensors have an operator that works on themselves."""
    x: Tensor = hook.create_tensor([1.0, 2.0])
    try:
        return getattr(type(x), name)(*[x] * (1 if name in UNARY_OPERATORS else 2)) is not NotImplemented
    except Exception:  # noqa: BLE001  # whatever a framework raises for operands that are not for it
        return False


def _is_binary(call: Call) -> bool:
    """Return whether a call takes two tensors with fractions, and nothing else."""
    before = call.outcomes[0].before
    return call.op.each is None and len(before) == 2 and all(is_tensor(x) and "float" in str(x.dtype) for x in before)
