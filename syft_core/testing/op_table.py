"""The op table: its operations and their names."""

from __future__ import annotations

import pytest

from syft_core.exceptions import OperationNotAllowedError
from syft_core.hook.attributes import COMPARATORS, INPLACE_OPERATORS, OPERATORS, UNARY_OPERATORS
from syft_core.hook.hook import FrameworkHook
from syft_core.testing.section import Section, fix
from syft_core.values import Tensor


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


def _has(hook: FrameworkHook, name: str) -> bool:
    """Return whether the framework's tensors support an operator."""
    x: Tensor = hook.create_tensor([1.0, 2.0])
    try:
        return getattr(type(x), name)(*[x] * (1 if name in UNARY_OPERATORS else 2)) is not NotImplemented
    except Exception:  # noqa: BLE001  # frameworks raise various errors for unsupported operands
        return False
