"""Old messages stay readable: wire codes and messages are compared with stored ones, byte for byte."""

import json
import warnings

import pytest

from syft_core.serde import deserialize, serialize

from .equality import same
from .golden_messages import GOLDEN, builtin, current_codes, make_installed

STORED = json.loads(GOLDEN.read_text())
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # torch calls its compressed sparse layouts a beta feature
    OBJECTS = make_installed()


def test_wire_codes_are_frozen():
    current, stored = current_codes(), STORED["codes"]
    assert {code for code in current if int(code) < 1000} <= set(stored)
    assert {code: current[code] for code in stored if code in current} == {
        code: name for code, name in stored.items() if code in current
    }


def test_every_golden_object_is_stored():
    assert set(OBJECTS) <= set(STORED["messages"])


@pytest.mark.parametrize("name", OBJECTS)
def test_a_golden_message_is_written_byte_for_byte(name):
    assert serialize(OBJECTS[name]).hex() == STORED["messages"][name]


@pytest.mark.parametrize("name", OBJECTS)
def test_a_golden_message_is_read_exactly(name):
    assert same(deserialize(bytes.fromhex(STORED["messages"][name])), OBJECTS[name])


def test_a_compressed_golden_message_is_read_exactly():
    # Only read, because another release of zlib may compress differently.
    assert same(deserialize(bytes.fromhex(STORED["compressed"]["long"])), builtin()["long"])
