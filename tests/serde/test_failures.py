import traceback

import pytest

from syft_core import exceptions
from syft_core.exceptions import ObjectNotFoundError, ResponseSignatureError
from syft_core.serde import (
    SerdeError,
    deserialize,
    register_failure,
    serialize,
)
from syft_core.serde.failures import failures

from .equality import same


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
