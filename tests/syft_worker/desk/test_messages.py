from __future__ import annotations

import pytest

from syft_core.messages import Message
from syft_core.plugins.manager import plugin_manager
from syft_core.serde import SerdeError, deserialize, serialize
from syft_worker.desk.messages import (
    AddApproval,
    AskRelease,
    DecideRequest,
    FetchReleased,
    FollowRequests,
    ListApprovals,
    ReviewRequests,
    RevokeApproval,
    ShowValues,
)

plugin_manager()  # It registers the messages.

OF_OWNERS: list[Message] = [
    ReviewRequests(("r1",)),
    DecideRequest("r1", "approve", "fine", "digest"),
    ListApprovals(),
    AddApproval("rule", {"user": "eve", "uses": 3}, "r1"),
    RevokeApproval("rule"),
    ShowValues("r1"),
]
OF_USERS: list[Message] = [
    AskRelease((1, "x"), "grad", "why", ("weight",), ("bob", 7), "train.py:3"),
    FollowRequests(),
    FetchReleased("r1", "paper"),
]


@pytest.mark.parametrize("message", [*OF_OWNERS, *OF_USERS], ids=lambda message: type(message).__name__)
def test_a_message_arrives_as_it_was_sent(message: Message) -> None:
    assert deserialize(serialize(message)) == message


def test_nobody_decides_on_behalf_of_an_owner() -> None:
    assert all(message.facts.is_personal for message in OF_OWNERS)
    assert not any(message.facts.is_personal for message in OF_USERS)


def test_a_request_uses_and_copies_the_objects_that_it_names() -> None:
    asked = AskRelease((1, "x"), None, "why")

    assert asked.facts.uses(asked, "bob") == asked.facts.copies(asked, "bob") == (1, "x")
    assert asked.facts.mandate is None  # no ticket is enough


def test_a_decision_is_shown_as_what_it_is() -> None:
    assert DecideRequest.facts.text(DecideRequest("r1", "deny")) == "deny a request"


@pytest.mark.parametrize(
    "message",
    [AskRelease(1, None, "why"), AskRelease((1,), None, None), DecideRequest("r1", 1), AddApproval("rule", [])],  # type: ignore[arg-type]
)
def test_a_message_with_fields_of_other_types_is_not_read(message: Message) -> None:
    with pytest.raises(SerdeError, match="has a wrong type or is too large"):
        deserialize(serialize(message))
