from __future__ import annotations

import pytest

from syft_core.hook.guards import integer_of, limit_integers


class Number:
    """A number of a framework, without dimensions."""

    ndim = 0

    def __init__(self, value: object) -> None:
        self._value = value

    def __index__(self) -> int:
        if not isinstance(self._value, int):
            raise TypeError("not an integer")
        return self._value


def repeat(text: str, times: object, **_options: object) -> str:
    return text * integer_of(times)


def test_integers_up_to_the_limit_pass() -> None:
    guarded = limit_integers(repeat, 3)

    assert guarded("a", 3) == "aaa"
    assert guarded("a", Number(2)) == "aa"
    assert guarded("a", -3) == ""


@pytest.mark.parametrize("times", [4, -4, Number(4), [1, [4]], {"deep": (4,)}])
def test_a_larger_integer_is_refused_wherever_it_is(times: object) -> None:
    with pytest.raises(OverflowError, match="cannot run 'repeat' with an integer above 3: use a smaller one"):
        limit_integers(repeat, 3)("a", times)
    with pytest.raises(OverflowError, match="above 3"):
        limit_integers(repeat, 3)("a", 1, option=times)


@pytest.mark.parametrize("leaf", [10**9 + 0.5, "1000000000", None, Number(1.5), [1]])
def test_what_is_not_an_integer_counts_as_zero(leaf: object) -> None:
    assert integer_of(leaf) == 0
