from __future__ import annotations

import subprocess
import sys

import pytest

from syft_core.exceptions import PlanMismatchError
from syft_core.hook import folds
from syft_core.hook.folds import get_child, get_element_at, one, one_fold, typed_identity, zero, zero_fold

EXACT = {
    1: one_fold(return_tuple=True),
    2: folds.two_fold,
    3: folds.three_fold,
    4: folds.four_fold,
    5: folds.five_fold,
    6: folds.six_fold,
    7: folds.seven_fold,
    8: folds.eight_fold,
    11: folds.many_fold,
}


def slots(n: int) -> list:
    """Return n functions with different results."""
    return [lambda x, k=k, **kwargs: (k, x, kwargs) for k in range(n)]


@pytest.mark.parametrize("n", EXACT)
def test_a_fold_applies_each_function_to_its_own_argument(n: int) -> None:
    assert EXACT[n](slots(n), list("abcdefghijk"[:n])) == tuple((k, "abcdefghijk"[k], {}) for k in range(n))


@pytest.mark.parametrize("n", EXACT)
def test_a_fold_passes_keywords_to_every_function(n: int) -> None:
    assert EXACT[n](slots(n), range(n), owner="bob") == tuple((k, k, {"owner": "bob"}) for k in range(n))


@pytest.mark.parametrize("n", EXACT)
def test_a_fold_refuses_an_argument_too_many_instead_of_dropping_it(n: int) -> None:
    with pytest.raises(PlanMismatchError) as caught:
        EXACT[n](slots(n), range(n + 1))

    assert str(caught.value) == str(PlanMismatchError.arity(n, n + 1))


@pytest.mark.parametrize("n", EXACT)
def test_a_fold_raises_index_error_on_an_argument_too_few(n: int) -> None:
    with pytest.raises(IndexError):
        EXACT[n](slots(n), list(range(n - 1)))


def test_zero_fold_returns_the_empty_tuple() -> None:
    assert zero_fold() == ()
    assert zero_fold([], [], owner="bob") == ()


def test_one_fold_returns_the_value_or_a_tuple_of_one() -> None:
    assert one_fold(return_tuple=False)([abs], [-1]) == 1
    assert one_fold(return_tuple=True)([abs], [-1]) == (1,)


def test_one_fold_of_a_value_refuses_two_arguments_and_none() -> None:
    fold = one_fold(return_tuple=False)

    with pytest.raises(PlanMismatchError):
        fold([abs], [1, 2])
    with pytest.raises(IndexError):
        fold([abs], [])


def test_the_rules_of_one_slot() -> None:
    assert (one("anything"), zero("anything")) == (1, 0)


def test_get_child_returns_the_child() -> None:
    class Layer:
        child = "what is under it"

    assert get_child(Layer()) == "what is under it"


# --- typed_identity


@pytest.mark.parametrize("value", [None, 1, 2.5, True, "a", b"a", ..., (), [1]])
def test_typed_identity_passes_values_of_its_type(value: object) -> None:
    assert typed_identity(value)(value, owner="bob") is value


@pytest.mark.parametrize(
    ("built_for", "met", "text"),
    [
        (None, 2, "cannot apply a plan for a NoneType to a int"),
        (1, None, "cannot apply a plan for a int to a NoneType"),
        (1, 1.0, "cannot apply a plan for a int to a float"),
        (True, 1, "cannot apply a plan for a bool to a int"),
        ("a", 1, "cannot apply a plan for a str to a int"),
        ((), [], "cannot apply a plan for a tuple to a list"),
    ],
)
def test_typed_identity_refuses_another_type(built_for: object, met: object, text: str) -> None:
    with pytest.raises(AssertionError, match=text):
        typed_identity(built_for)(met)


def test_typed_identity_of_an_int_accepts_a_bool() -> None:
    assert typed_identity(1)(True) is True


def test_plans_refuse_the_same_things_under_python_o() -> None:
    program = """
import sys
from syft_core.exceptions import PlanMismatchError
from syft_core.hook.folds import typed_identity, two_fold

def refused(f, *args):
    try:
        f(*args)
    except PlanMismatchError:
        return "refused"
    return "passed"

print(sys.flags.optimize, refused(typed_identity(None), 2), refused(typed_identity(1), "a"))
print(refused(typed_identity(1), 2), refused(two_fold, [abs, abs], [1, 2, 3]))
"""

    done = subprocess.run(
        [sys.executable, "-O", "-c", program], capture_output=True, text=True, check=True, timeout=120
    )

    assert done.stdout.split() == ["1", "refused", "refused", "passed", "refused"]


# --- layers

NESTED = ("a", ["b", ("c", ["d", ("e", "f")])])


def test_getters_reach_one_to_four_levels_deep() -> None:
    assert folds.one_layer(0)(NESTED) == "a"
    assert folds.two_layers(1, 0)(NESTED) == "b"
    assert folds.three_layers(1, 1, 0)(NESTED) == "c"
    assert folds.four_layers(1, 1, 1, 0)(NESTED) == "d"


def test_the_published_example_of_two_layers() -> None:
    assert folds.two_layers(1, 0)([0, [5]]) == 5


def test_get_element_at_maps_one_to_four_to_the_layers() -> None:
    assert get_element_at == {
        1: folds.one_layer,
        2: folds.two_layers,
        3: folds.three_layers,
        4: folds.four_layers,
    }


def test_deep_layers_reach_any_depth() -> None:
    assert folds.deep_layers(1, 1, 1, 1, 1)(NESTED) == "f"
    assert folds.deep_layers(0)(NESTED) == "a"


def test_a_getter_that_reaches_too_far_raises_index_error() -> None:
    with pytest.raises(IndexError):
        folds.two_layers(1, 9)(NESTED)
