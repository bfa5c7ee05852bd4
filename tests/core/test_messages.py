from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import msgpack
import pytest

from syft_core import messages
from syft_core.exceptions import AlreadyRegisteredError, RegistryError, SerdeError
from syft_core.hook.forms import form
from syft_core.messages import (
    MAX_RESULTS,
    MAX_TEXT,
    Batch,
    Call,
    Fetch,
    FetchAll,
    Forward,
    GetBack,
    GetTicket,
    Lease,
    Message,
    MessageFacts,
    Release,
    Reply,
    Run,
    Store,
    make_codec,
    read_note,
    register_message,
)
from syft_core.peer import Peer
from syft_core.serde import Context, deserialize, serialize
from syft_core.workers.party import handlers  # noqa: F401  # registers the messages of the kernel

CONTEXT = Context()


@dataclass(slots=True)
class Knock(Message):
    """A message of a plugin."""

    code: ClassVar[int] = 71_001
    facts: ClassVar[MessageFacts] = MessageFacts(is_note=True)
    name: str
    times: int | None = None
    rooms: tuple[int | str, ...] = ()

    def to_frames(self) -> list[Any]:
        return [msgpack.packb([self.code, self.name])]

    @classmethod
    def from_frames(cls, fields: list[Any], rest: Any) -> Knock:
        (name,) = fields
        if type(name) is not str:
            raise ValueError("its name is not a text")
        return cls(name, len(rest))


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables to which tests add messages."""
    for name in ("HANDLERS", "ABANDON", "_notes"):
        monkeypatch.setattr(messages, name, dict(getattr(messages, name)))


def answer(*_call: Any) -> None: ...


# --- the facts about each message


def test_a_message_names_the_objects_that_it_uses_creates_and_takes() -> None:
    facts = Store.facts

    assert facts.creates(Store(7, None), "bob") == (7,)
    assert Fetch.facts.uses(Fetch(7), "bob") == (7,)
    assert Lease.facts.leases(Lease((1, 2))) == 2
    assert Release.facts.leases(Release((1, 2))) == 0
    assert GetBack.facts.replaces(GetBack(7), "bob") == (7,)


def test_what_is_fetched_is_taken_unless_it_stays() -> None:
    takes = Fetch.facts.takes

    assert takes(Fetch(7), "bob") == (7,)
    assert takes(Fetch(7, keep=True), "bob") == ()
    assert takes(Fetch(7, attr="grad"), "bob") == ()
    assert FetchAll.facts.takes(FetchAll((7, 8)), "bob") == (7, 8)


def test_an_object_that_is_forwarded_to_its_own_worker_is_a_copy_there() -> None:
    facts, message = Forward.facts, Forward(7, None, "alice", 9)

    assert (facts.creates(message, "bob"), facts.copies(message, "bob"), facts.sends(message, "bob")) == ((), (), (7,))
    assert facts.creates(message, "alice") == (9,)
    assert facts.copies(message, "alice") == (7,)
    assert facts.sends(message, "alice") == ()


def test_nobody_gets_tickets_on_behalf_of_others() -> None:
    assert GetTicket.facts.is_personal
    assert not Fetch.facts.is_personal


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (Store(1, None), "send"),
        (Store(1, None, publish=True), "publish"),
        (Run("toy", "toy.Vector.__add__", (), None, 3), "add"),
        (Fetch(1, keep=True), "get a copy"),
        (Forward(1, None, "alice", 2), "move to alice"),
        (Forward(1, None, "alice", 2, keep=True), "copy to alice"),
    ],
)
def test_a_message_is_shown_as_the_action_of_a_user(message: Message, text: str) -> None:
    assert message.facts.text(message) == text


# --- the ids of results


@pytest.mark.parametrize(
    ("message", "ids"),
    [
        (Run("toy", "add", (), None, 5, count=3), [5, 6, 7]),
        (Run("toy", "add", (), None, 5), []),
        (Run("toy", "add", (), None, 5, count=0), []),
        (Run("toy", "add", (), None, 5, count=MAX_RESULTS + 1), []),
        (Store(5, None), [5]),
        (Store("name", None), []),
        (Forward(1, None, "alice", 5), [5]),
        (Fetch(5), []),
        (Call(1, (), {}, 5), []),
    ],
)
def test_a_failure_poisons_the_ids_that_the_sender_expects(message: Message, ids: list[int]) -> None:
    assert list(message.expected) == ids


# --- the door


@pytest.mark.usefixtures("tables")
def test_a_message_is_registered_once() -> None:
    register_message(Knock, answer)
    register_message(Knock, answer)

    with pytest.raises(AlreadyRegisteredError, match="cannot register Knock in 'messages'"):
        register_message(Knock, lambda *_call: None)
    assert messages.HANDLERS[Knock] is answer
    assert Knock not in messages.ABANDON


@pytest.mark.usefixtures("tables")
def test_what_happens_with_a_message_that_is_skipped_is_registered_with_it() -> None:
    def skip(*_call: Any) -> None: ...

    register_message(Knock, answer, abandon=skip)

    assert messages.ABANDON[Knock] is skip


@pytest.mark.usefixtures("tables")
def test_a_note_is_read_from_its_own_frames() -> None:
    register_message(Knock, answer)

    assert read_note([*Knock("ann").to_frames(), b"", b""]) == Knock("ann", 2)


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize(
    ("frames", "reason"),
    [
        ([], "list index out of range"),
        ([b""], ""),
        ([b"\xc1"], ""),
        ([msgpack.packb([Store.code, "ann"])], "it is not a note"),
        ([msgpack.packb([True, "ann"])], "it is not a note"),
        ([msgpack.packb([Knock.code])], "not enough values"),
        ([msgpack.packb([Knock.code, 1])], "its name is not a text"),
        ([msgpack.packb([Knock.code, *range(20)])], ""),
        ([msgpack.packb(7)], ""),
    ],
)
def test_a_malformed_note_is_refused(frames: list[bytes], reason: str) -> None:
    register_message(Knock, answer)

    with pytest.raises(SerdeError, match=rf"cannot read a note: .*{reason}.*\(malformed message\)"):
        read_note(frames)


# --- on the wire


def test_a_message_keeps_its_fields() -> None:
    codec = make_codec(Knock)
    message = Knock("ann", 3, (1, "hall"))

    assert codec.detail(codec.simplify(message, CONTEXT), CONTEXT) == message


@pytest.mark.parametrize(
    ("payload", "field"),
    [
        ((1, None, ()), "name"),
        (("ann", True, ()), "times"),
        (("ann", "3", ()), "times"),
        (("ann", 2**65, ()), "times"),
        (("ann", 3, [1]), "rooms"),
        (("ann", 3, (1.5,)), "rooms"),
        (("ann", 3, (None,)), "rooms"),
        (("ann", 3, ("x" * (MAX_TEXT + 1),)), "rooms"),
        (("ann", 3, (2**65,)), "rooms"),
        (("x" * (MAX_TEXT + 1), 3, ()), "name"),
    ],
)
def test_a_field_of_a_wrong_type_is_refused_by_name(payload: tuple[Any, ...], field: str) -> None:
    with pytest.raises(SerdeError, match=f"cannot read a Knock: its field '{field}' has a wrong type or is too large"):
        make_codec(Knock).detail(payload, CONTEXT)


def test_another_number_of_fields_is_that_of_another_release() -> None:
    with pytest.raises(SerdeError, match="its number of fields differs; install the same release at both ends"):
        make_codec(Knock).detail(("ann",), CONTEXT)


def test_the_names_of_arguments_are_texts() -> None:
    codec = make_codec(Run)

    assert codec.detail(("toy", "add", (), {"alpha": 1}, 3, None, -1), CONTEXT).kwargs == {"alpha": 1}
    with pytest.raises(SerdeError, match="its field 'kwargs'"):
        codec.detail(("toy", "add", (), {1: 1}, 3, None, -1), CONTEXT)


def test_a_batch_keeps_its_commands_and_for_whom_it_is_sent() -> None:
    batch = Batch(4, (Fetch(1), Release((2,))), True, (Peer("laptop", "ann"), Peer(7)))

    assert deserialize(serialize(batch)) == batch
    assert deserialize(serialize(Reply(4, [1], None, 2, 3))) == Reply(4, [1], None, 2, 3)


@pytest.mark.parametrize(
    "payload",
    [
        ("4", True, ()),
        (4, 1, ()),
        (4, True, []),
        (4, True, (("laptop",),)),
        (4, True, ((b"laptop", "ann"),)),
        (4, True, (("laptop", 3),)),
        (4, True, (("x" * (MAX_TEXT + 1), None),)),
    ],
)
def test_a_malformed_batch_is_refused(payload: tuple[Any, ...]) -> None:
    with pytest.raises(SerdeError, match="cannot read a Batch: .* wrong type"):
        messages._detail_batch(payload, CONTEXT)


@pytest.mark.parametrize(
    "payload",
    [
        ([2], None, "f4", None, False, True),
        ((True,), None, "f4", None, False, True),
        ((2,) * 65, None, "f4", None, False, True),
        ((2,), (1.0,), "f4", None, False, True),
        ((2,), None, 4.5, None, False, True),
        ((2,), None, "f4", b"cpu", False, True),
        ((2,), None, "f4", None, 0, True),
    ],
)
def test_a_malformed_form_is_refused(payload: tuple[Any, ...]) -> None:
    with pytest.raises(SerdeError, match="cannot read a form: a field has a wrong type"):
        messages._detail_form(payload, CONTEXT)


def test_a_form_that_arrives_is_the_one_that_is_known() -> None:
    known = form((2, 3), (3, 1), "f4", "cpu", requires_grad=True)

    assert deserialize(serialize(known)) is known


def make_kind(**parts: Any) -> Any:
    """Return a class of messages with these attributes and annotations."""
    annotations = parts.pop("annotations", {})
    return dataclass(slots=True)(type("Mine", (Message,), {"__annotations__": annotations, **parts}))


def handle(_worker: Any, _message: Any, _sender: Any) -> None: ...


class NotAMessage:
    code = 1_000_400


@pytest.mark.parametrize(
    ("kind", "handler", "error"),
    [
        (NotAMessage, handle, "NotAMessage: it is not a message; derive a dataclass from `Message`"),
        (make_kind(), handle, "Mine: it has no wire code; add `code"),
        (make_kind(code=1_000_400), 3, "Mine: its handler cannot be called; write `def handle"),
        (make_kind(code=1_000_400), lambda _worker, _message: None, "Mine: its handler cannot be called"),
        (
            make_kind(code=1_000_400, annotations={"a": "list[str]"}),
            handle,
            r"Mine: its field 'a' is annotated with 'list\[str\]', which cannot be checked; use int, str, bool",
        ),
        (
            make_kind(code=1_000_400, annotations={"a": float}),
            handle,
            "Mine: its field 'a' is annotated with 'float'",
        ),
    ],
)
def test_a_message_that_nobody_could_send_or_handle_is_refused(kind: Any, handler: Any, error: str) -> None:
    with pytest.raises(RegistryError, match=f"cannot register {error}"):
        register_message(kind, handler)


def test_a_message_may_have_no_field_and_annotations_may_be_types() -> None:
    empty, typed = make_kind(), make_kind(annotations={"a": int, "b": "tuple[int, ...]"})
    empty.code, typed.code = 1_000_401, 1_000_402

    for message in (empty(), typed(3, (1, 2))):
        codec = make_codec(type(message))
        assert codec.detail(codec.simplify(message, CONTEXT), CONTEXT) == message
