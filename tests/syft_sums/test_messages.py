from __future__ import annotations

from typing import Any

import pytest

from syft_core.exceptions import SerdeError
from syft_core.plugins.manager import plugin_manager
from syft_core.serde import deserialize, serialize
from syft_sums.messages import AskMember, JoinSum, MaskSum, RevealSum

KEYS = (bytes(32), bytes([1] * 32))
MESSAGES = [
    AskMember(bytes(32)),
    JoinSum("icu", KEYS, 1, 7, (1, "x"), "samples"),
    MaskSum(bytes(32), 7, ((bytes(32), 1),)),
    RevealSum(bytes(32), 7, bytes(32), ((bytes(32),),), KEYS, (b"sealed", b"")),
]


@pytest.fixture(autouse=True)
def loaded() -> None:
    plugin_manager().load_all()


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_a_message_arrives_as_it_was_sent(message: Any) -> None:
    assert deserialize(serialize(message)) == message


@pytest.mark.parametrize(
    "message",
    [
        AskMember("x"),  # type: ignore[arg-type]
        JoinSum("icu", ("x",), 1, 7, (1,), "samples"),  # type: ignore[arg-type]
        JoinSum("icu", KEYS, "1", 7, (1,), "samples"),  # type: ignore[arg-type]
        RevealSum(bytes(32), 7, bytes(32), (), (1,)),  # type: ignore[arg-type]
    ],
)
def test_a_field_of_another_type_is_refused(message: Any) -> None:
    with pytest.raises(SerdeError, match="has a wrong type"):
        deserialize(serialize(message))


def test_nobody_asks_for_sums_on_behalf_of_others() -> None:
    assert all(type(message).facts.is_personal for message in MESSAGES)


def test_messages_are_described_without_their_fields() -> None:
    assert [message.facts.text(message) for message in MESSAGES] == [
        "ask the key for sums",
        "join round 7 of sums",
        "mask round 7",
        "reveal round 7",
    ]
