from __future__ import annotations

from syft_core.hook.operators import INPLACE_OPERATORS, OPERATORS, REFLECTED_OPERATORS


def test_each_operator_has_an_in_place_and_a_reflected_form() -> None:
    assert set(INPLACE_OPERATORS) == {name.replace("__", "__i", 1) for name in OPERATORS}
    assert set(REFLECTED_OPERATORS) == {name.replace("__", "__r", 1) for name in OPERATORS}
