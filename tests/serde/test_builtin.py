import math
import traceback
from collections import OrderedDict, namedtuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syft_core import exceptions
from syft_core.exceptions import ObjectNotFoundError, ResponseSignatureError
from syft_core.serde import (
    Context,
    Limits,
    SerdeError,
    deserialize,
    frames,
    from_frames,
    register_failure,
    serialize,
)
from syft_core.serde.failures import failures

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


def test_an_object_that_contains_itself_is_refused():
    loop = [1]
    loop.append({"again": loop})
    with pytest.raises(SerdeError, match="may contain itself"):
        serialize(loop)


def test_an_object_that_unfolds_endlessly_is_refused():
    laughs = ["ha"]
    for _ in range(60):
        laughs = [laughs, laughs]
    with pytest.raises(SerdeError, match=r"more than 10000 parts"):
        serialize(laughs, Context(limits=Limits(max_nodes=10_000)))


def test_depth_is_bounded_on_both_sides():
    deep = []
    for _ in range(50):
        deep = [deep]
    message = serialize(deep)
    assert deserialize(message) == deep
    shallow = Context(limits=Limits(max_depth=20))
    with pytest.raises(SerdeError, match="deeper than 20"):
        serialize(deep, shallow)
    with pytest.raises(SerdeError, match="deeper than 20"):
        deserialize(message, shallow)


def test_an_exception_is_data_and_is_not_raised():
    received = deserialize(serialize([ValueError("no such worker")]))
    assert same(received, [ValueError("no such worker")])


def test_a_key_error_is_not_quoted_twice():
    assert str(deserialize(serialize(KeyError("x")))) == str(KeyError("x"))


def test_our_own_exceptions_keep_class_text_and_plain_attributes():
    error = ResponseSignatureError([3, 4])
    error.pointer = object()

    received = deserialize(serialize(error))

    assert type(received) is ResponseSignatureError
    assert str(received) == str(error)
    assert received.ids_generated == [3, 4]
    assert not hasattr(received, "pointer")


def test_every_syft_exception_is_registered():
    for kind in vars(exceptions).values():
        if isinstance(kind, type) and issubclass(kind, Exception):
            assert type(deserialize(serialize(kind.__new__(kind, "text")))) is kind


def test_an_unregistered_exception_arrives_as_its_nearest_registered_base():
    class GridDownError(ObjectNotFoundError):
        pass

    received = deserialize(serialize(GridDownError("gone")))

    assert type(received) is ObjectNotFoundError
    assert received.raised_as.endswith("GridDownError")


def test_a_registered_exception_arrives_as_itself():
    class GridUpError(Exception):
        pass

    register_failure(GridUpError)
    assert type(deserialize(serialize(GridUpError("here")))) is GridUpError


def test_requests_to_stop_are_not_sent():
    with pytest.raises(SerdeError, match="asks this process to stop"):
        serialize(KeyboardInterrupt())


def test_every_registered_exception_can_be_printed_after_it_was_read():
    for sent in map(_make, failures.values()):
        received = deserialize(serialize(sent))

        assert type(received) is type(sent)
        assert str(received) == str(sent)
        assert repr(received)
        assert str(sent).strip("'") in "".join(traceback.format_exception(received))


def _make(kind):
    """Return an exception as its class makes it from a text, or without it."""
    try:
        return kind("text")
    except TypeError:
        return kind.__new__(kind, "text")


def test_an_exception_with_slots_keeps_its_attributes():
    class SlottedError(ValueError):
        __slots__ = ("_place", "missing")

        def __init__(self, place):
            self._place = place

        def __str__(self):
            return f"text about {self._place}"

    register_failure(SlottedError)

    received = deserialize(serialize(SlottedError("a place")))

    assert str(received) == "text about a place"
    assert not hasattr(received, "missing")


def test_an_exception_that_could_not_be_printed_is_refused():
    class BrokenError(ValueError):
        __slots__ = ("place",)

        def __str__(self):
            return self.place.name

    register_failure(BrokenError)

    error = BrokenError("text")
    error.place = 3  # a plain value, but not one that the class prints

    with pytest.raises(SerdeError, match="it cannot be printed"):
        deserialize(serialize(error))


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("cannot read '/home/owner/my data/x.csv': it is empty", "cannot read 'x.csv': it is empty"),
        ("/usr/lib/python3/torch/nn.py:33: failed", "nn.py:33: failed"),
        (r"cannot open C:\Users\owner\x.csv", "cannot open x.csv"),
        ("see file:///srv/data/x", "see file://x"),
        ("ws://10.0.0.1:8080/a/b, docs/security.md, 1 / 2 / 3", "ws://10.0.0.1:8080/a/b, docs/security.md, 1 / 2 / 3"),
    ],
)
def test_the_text_of_an_exception_is_sent_without_directories(text, sent):
    error = ValueError(text)
    error.place, error.places = text, (text,)

    received = deserialize(serialize(error))

    assert (str(received), received.place, received.places) == (sent, sent, (sent,))


def test_an_error_about_a_file_is_sent_without_its_name():
    with pytest.raises(OSError, match="missing") as caught:
        open("/home/owner/missing.csv")  # noqa: SIM115  # raises

    received = deserialize(serialize(caught.value))

    assert str(received) == "[Errno 2] No such file or directory"
    assert received.raised_as == "FileNotFoundError"


@pytest.mark.parametrize("make", [list, tuple, set, lambda many: dict.fromkeys(many), lambda many: [[n] for n in many]])
def test_every_value_of_a_container_counts_towards_the_limit(make):
    data = serialize(make(range(1001)))

    with pytest.raises(SerdeError, match="of more than 1000 parts: that is the limit"):
        deserialize(data, context=Context(limits=Limits(max_nodes=1000)))
    with pytest.raises(SerdeError, match="of more than 1000 parts: that is the limit"):
        serialize(make(range(1001)), context=Context(limits=Limits(max_nodes=1000)))
