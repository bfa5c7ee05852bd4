from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import toy
from syft_toy.hook import ToyHook
from toy_layers import Watcher

import syft_core
from syft_core.hook.operators import operation_name
from syft_core.messages import (
    Describe,
    Fetch,
    FetchAll,
    Forward,
    Message,
    MessageFacts,
    Run,
    Search,
    Store,
    Tag,
)
from syft_core.pointers.pointer_tensor import PointerTensor
from syft_core.workers.party.base import BaseWorker
from syft_core.workers.seeing.trace import Trace, trace, traces
from tests.messages import list_commands

SECRET = 8675309.0


@pytest.fixture
def me(hook: ToyHook) -> Any:
    return hook.local_worker


@pytest.fixture
def bob(hook: ToyHook) -> BaseWorker:
    return BaseWorker(hook, id="bob")


def add(worker: BaseWorker, hook: ToyHook, first: int, second: int, result: int) -> Any:
    pointers = [PointerTensor(worker, id, hook.attributes, garbage_collect_data=False) for id in (first, second)]
    return hook.local_worker.location_of(worker).ask(Run("toy", "toy.Vector.__add__", tuple(pointers), {}, result))


def test_a_trace_records_who_computed_what(hook: ToyHook, me: Any, bob: BaseWorker) -> None:
    with trace() as seen:
        me.location_of(bob).ask(Store(1, toy.Vector([SECRET, SECRET])))
        me.location_of(bob).ask(Store(2, toy.Vector([1.0, 1.0])))
        add(bob, hook, 1, 2, 3)
        me.location_of(bob).ask(Fetch(3))

    assert [(e.kind, e.operation, e.sender, e.receiver, e.objects, e.results, e.form, e.departs) for e in seen] == [
        ("Store", "send", "me", "bob", (), (1,), "Vector[2]", False),
        ("Store", "send", "me", "bob", (), (2,), "Vector[2]", False),
        ("Run", "add", "me", "bob", (1, 2), (3,), "Vector[2]", False),
        ("Fetch", "get", "me", "bob", (3,), (), "Vector[2]", True),
    ]
    assert all(event.seconds > 0 for event in seen)
    assert all(event.bytes is None for event in seen)


def test_a_trace_records_no_values(hook: ToyHook, me: Any, bob: BaseWorker) -> None:
    with trace() as seen:
        me.location_of(bob).ask(Store(1, toy.Vector([SECRET])))
        add(bob, hook, 1, 1, 2)
        me.location_of(bob).ask(Fetch(2))

    shown = "".join([str(seen), seen.svg(), seen._repr_html_(), repr(seen.events)])
    assert str(SECRET) not in shown
    assert str(2 * SECRET) not in shown


def test_a_trace_keeps_no_data_alive(me: Any, bob: BaseWorker) -> None:
    x = Watcher().on(toy.Vector([1.0]))
    with trace() as seen:
        me.location_of(bob).ask(Store(1, x))
        bob.clear_objects()
    gone = weakref.ref(x)

    del x
    gc.collect()

    assert gone() is None
    assert len(seen) == 1


def test_nothing_is_recorded_outside_the_block(me: Any, bob: BaseWorker) -> None:
    with trace() as seen:
        pass
    me.location_of(bob).ask(Store(1, toy.Vector([1.0])))

    assert len(seen) == 0
    assert traces == []
    assert str(seen) == "no messages"
    assert seen._repr_html_() == "<div>no messages</div>"
    assert ElementTree.fromstring(seen.svg()).tag.endswith("svg")


def test_traces_overlap_and_end_in_any_order(me: Any, bob: BaseWorker) -> None:
    first, second = Trace(), Trace()
    with first:
        second.__enter__()
        me.location_of(bob).ask(Search(()))
    me.location_of(bob).ask(Search(()))
    second.__exit__()

    assert (len(first), len(second)) == (1, 2)
    assert traces == []


def test_a_trace_ends_when_the_block_fails(bob: BaseWorker) -> None:
    with pytest.raises(ZeroDivisionError), trace():
        _ = 1 / 0

    assert traces == []


def test_a_failure_is_recorded_and_raised(me: Any, bob: BaseWorker) -> None:
    with trace() as seen, pytest.raises(syft_core.exceptions.ObjectNotFoundError):
        me.location_of(bob).ask(Fetch(404))

    assert seen[0].error == "ObjectNotFoundError"
    assert not seen[0].departs
    assert "✗ ObjectNotFoundError" in str(seen)
    assert "refused or failed" in seen.svg()


def test_data_that_a_worker_forwards_is_a_departure(hook: ToyHook, me: Any, bob: BaseWorker) -> None:
    alice = BaseWorker(hook, id="alice")
    with trace() as seen:
        me.location_of(bob).ask(Store(1, toy.Vector([1.0])))
        me.location_of(bob).ask(Forward(1, None, alice.id, 2))

    assert [(e.operation, e.sender, e.receiver) for e in seen] == [
        ("send", "me", "bob"),
        ("move to alice", "me", "bob"),
        ("send", "bob", "alice"),
    ]
    assert [(e.sender, e.receiver) for e in seen.departures] == [("bob", "alice")]


def test_forwarding_a_pointer_is_not_a_departure(hook: ToyHook, me: Any, bob: BaseWorker) -> None:
    alice = BaseWorker(hook, id="alice")
    pointer = PointerTensor(alice, 1, hook.attributes, garbage_collect_data=False)
    with trace() as seen:
        alice.location_of(bob).ask(Store(1, hook.attributes.wrapper(pointer)))

    assert seen.departures == []


def test_fetched_data_goes_to_the_client_that_asked(me: Any, bob: BaseWorker) -> None:
    for id in (1, 2, 3):
        me.location_of(bob).ask(Store(id, toy.Vector([1.0])))
    with trace() as seen:
        me.location_of(bob).ask(Fetch(1))
        me.location_of(bob).ask(FetchAll((2, 3)))

    assert [(e.direction, e.form) for e in seen] == [(("bob", "me"), "Vector[1]"), (("bob", "me"), "2 x Vector[1]")]
    assert seen.departures == list(seen)


def test_every_message_has_a_description() -> None:
    assert [kind for kind in list_commands() if kind.facts.text is MessageFacts.text] == []


@pytest.mark.parametrize(
    ("message", "operation"),
    [
        (Describe((1,)), "ask the form"),
        (Tag(1, ("#a",)), "tag"),
        (Search(("#a", "#b")), "search #a #b"),
        (Fetch(1, keep=True), "get a copy"),
        (Store(9, toy.Vector([1.0]), publish=True), "publish"),
    ],
)
def test_messages_are_named_after_user_actions(me: Any, bob: BaseWorker, message: Message, operation: str) -> None:
    me.location_of(bob).ask(Store(1, toy.Vector([1.0])))
    with trace() as seen:
        me.location_of(bob).ask(message)

    assert seen[0].operation == operation


@pytest.mark.parametrize(
    ("op", "name"),
    [
        ("toy.Vector.__radd__", "add"),
        ("toy.Vector.__ge__", "ge"),
        ("toy.Vector.grad.__set__", "set grad"),
        ("toy.nn.functional.relu", "relu"),
        ("toy.Vector.__getitem__", "getitem"),
        ("toy.Vector.add_", "add_"),
    ],
)
def test_operations_have_short_names(op: str, name: str) -> None:
    assert operation_name(op) == name


def test_a_loop_is_shown_once(hook: ToyHook, me: Any, bob: BaseWorker) -> None:
    me.location_of(bob).ask(Store(0, toy.Vector([1.0])))
    with trace() as seen:
        for number in range(0, 200, 2):
            add(bob, hook, number, 0, number + 1)
            me.location_of(bob).ask(Describe((number + 1,)))
            bob.object_store.put(number + 2, bob.object_store.remove(number + 1, "renamed"))

    assert len(seen) == 200
    table = str(seen).splitlines()
    assert len(table) == 4
    assert table[1].startswith("┌ 100 x")
    assert table[-1].startswith("200 messages, 0 departures")
    assert "100 ×" in seen.svg()  # noqa: RUF001  # times
    assert seen.svg().count("<g>") == 2


def test_immediately_repeated_questions_are_one_arrow(hook: ToyHook, me: Any, bob: BaseWorker) -> None:
    me.location_of(bob).ask(Store(1, toy.Vector([1.0])))
    with trace() as seen:
        for _ in range(3):
            me.location_of(bob).ask(Describe((1,)))
            me.location_of(bob).ask(Describe((1,)))
            me.location_of(bob).ask(Tag(1, ("#a",)))

    drawn = seen.svg()
    assert drawn.count("<g>") == 2
    assert ">ask the form #1 (2 ×)<" in drawn  # noqa: RUF001  # times
    assert ">3 ×<" in drawn  # noqa: RUF001  # times


def test_similar_results_are_counted(hook: ToyHook, me: Any, bob: BaseWorker) -> None:
    me.location_of(bob).ask(Store(1, toy.Vector([1.0, 2.0, 3.0])))
    pointer = PointerTensor(bob, 1, hook.attributes, garbage_collect_data=False)
    with trace() as seen:
        me.location_of(bob).ask(Run("toy", "toy.split", (pointer, 1), {}, 10))

    assert seen[0].form == "3 x Vector[1]"


def test_a_diagram_is_saved_as_a_file_that_a_browser_opens(me: Any, bob: BaseWorker, tmp_path: Path) -> None:
    with trace() as seen:
        me.location_of(bob).ask(Search(("<&>",)))

    path = seen.save(tmp_path / "seen.svg")

    assert ElementTree.parse(path).getroot().tag == "{http://www.w3.org/2000/svg}svg"
    assert seen._repr_svg_() == path.read_text(encoding="utf-8")


def test_the_facade_has_trace() -> None:
    assert syft_core.trace is trace
