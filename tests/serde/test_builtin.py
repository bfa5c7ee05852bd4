import math
from collections import OrderedDict, namedtuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syft_core.serde import (
    Limits,
    SerdeError,
    deserialize,
    frames,
    from_frames,
    serialize,
)

from .equality import same

VALUES = [
    None,
    True,
    0,
    -1,
    2**63 - 1,
    2**64 - 1,
    2**64,
    -(2**63),
    -(2**63) - 1,
    2**64 + 1,
    3**2000,
    -(3**2000),
    0.0,
    -0.0,
    1.5,
    math.inf,
    -math.inf,
    math.nan,
    1e-320,
    complex(-0.0, math.inf),
    "",
    "grün",
    "\ud800 alone",
    "x" * 5000,
    b"",
    b"short",
    b"long" * 1000,
    bytearray(b""),
    bytearray(b"ba" * 2000),
    [],
    (),
    {},
    set(),
    frozenset(),
    [1, (2, [3, {4: 5}])],
    (((),),),
    {"b": 1, "a": 2},
    {1: "int", 1.5: "float", (1, 2): "tuple", None: "none", frozenset({1}): "set", b"k": "bytes"},
    OrderedDict([("z", 1), ("a", [2])]),
    {1, "two", (3,)},
    frozenset({frozenset({1})}),
    range(0),
    range(10, -5, -3),
    range(2**70),
    slice(None),
    slice(1, (2, 3), [4]),
    ...,
    int,
    float,
    complex,
    list(range(10_000)),
    tuple("abc" * 3000),
    {i: str(i) for i in range(5000)},
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_a_value_comes_back_with_its_exact_type(value):
    assert same(deserialize(serialize(value)), value)
    assert same(from_frames(frames([value])), [value])


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.complex_numbers() | st.text() | st.binary()
keys = st.none() | st.integers() | st.text() | st.binary() | st.tuples(st.integers(), st.text())
nested = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(keys, inner)
        | st.dictionaries(keys, inner).map(OrderedDict)
        | st.sets(keys)
        | st.frozensets(keys)
        | st.binary().map(bytearray)
        | st.builds(slice, inner, inner, inner)
    ),
    max_leaves=30,
)


@given(nested)
def test_any_nesting_comes_back(value):
    assert same(deserialize(serialize(value)), value)


def test_attributes_of_an_ordered_dict_are_preserved():
    state = OrderedDict(weight=1)
    state._metadata = OrderedDict({"": {"version": 1}})

    received = deserialize(serialize(state))

    assert received == state
    assert same(received._metadata, state._metadata)


def test_attributes_that_would_hide_a_method_are_refused():
    state = OrderedDict(weight=1)
    state.popitem = 5
    with pytest.raises(SerdeError, match="hide one of its methods"):
        deserialize(serialize(state))


def test_named_tuples_need_their_own_codec():
    with pytest.raises(SerdeError, match="derives from tuple"):
        serialize(namedtuple("Pair", "a b")(1, 2))


def test_an_int_subclass_is_not_sent_as_an_int():
    with pytest.raises(SerdeError, match="derives from int"):
        serialize(type("Level", (int,), {})(3))


@pytest.mark.parametrize("kind", [Limits, list, type])
def test_classes_are_refused(kind):
    with pytest.raises(SerdeError, match="classes are code"):
        serialize(kind)


@pytest.mark.parametrize("function", [len, lambda: 0, serialize])
def test_functions_are_refused(function):
    with pytest.raises(SerdeError, match="has no codec"):
        serialize(function)
