"""``deliver``: every message gets a reply, and workers that need each other do not deadlock."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_core.exceptions import SerdeError, TooManyHopsError  # noqa: E402
from syft_core.messages import Batch, Call, Fetch, Forward, Placed, Release, Reply, Run, Store  # noqa: E402
from syft_core.peer import Peer  # noqa: E402
from syft_core.pointers.callable_pointer import ObjectWrapper  # noqa: E402
from syft_core.serde import Context, frames, from_frames  # noqa: E402
from syft_core.workers.addresses.local import LocalLocation  # noqa: E402
from syft_core.workers.party.store import Stored  # noqa: E402
from syft_core.workers.party.virtual import VirtualWorker  # noqa: E402

STRANGER = Peer("stranger")


@pytest.fixture
def bob(hook: Any) -> Any:
    return VirtualWorker(hook, id="bob")


def say(worker: Any, *commands: Any, number: int = 1, asks: bool = True, sender: Peer = STRANGER) -> Reply:
    sent = frames(Batch(number, commands, asks), Context(worker=worker))
    reply = from_frames(worker.deliver(sent, sender), Context(worker=worker))
    assert type(reply) is Reply
    return reply


# --- a failure is a reply


@pytest.mark.parametrize(
    "received",
    [
        [],
        [b""],
        [b"hello"],
        None,
        7,
        [None],
        ["text"],
        [b"", b""],
        [[1]],
        frames(5),
        frames(Fetch(1)),
        frames(Placed(1)),
    ],
)
def test_every_message_gets_a_reply(bob: Any, received: Any) -> None:
    answer = bob.deliver(received, STRANGER)

    reply = from_frames(answer, Context(worker=bob))
    assert isinstance(reply.failure.error, Exception)
    assert (reply.number, reply.value) == (-1, None)


def test_a_pointer_of_a_message_to_its_receiver_is_not_stored(bob: Any, me: Any) -> None:
    x = torch.ones(2).send(bob)
    sent = frames(Batch(1, (Store(7, x.child),), True), Context(worker=me, receiver=bob.id))

    reply = from_frames(bob.deliver(sent, STRANGER), Context(worker=me))

    assert isinstance(reply.failure.error, TooManyHopsError)
    assert 7 not in bob.object_store


def test_a_setter_without_a_value_is_refused_by_the_framework(bob: Any) -> None:
    x = torch.ones(2).send(bob)

    reply = say(bob, Run("torch", "torch.Tensor.grad.__set__", (x.child,), None, 7), sender=x.owner.peer)

    assert isinstance(reply.failure.error, TypeError)


@pytest.mark.parametrize("command", [5, None, "Fetch", Placed(1), Batch(1, (), True), [Fetch(1)]])
def test_messages_other_than_commands_are_refused(bob: Any, command: Any) -> None:
    reply = say(bob, command)

    assert isinstance(reply.failure.error, SerdeError)
    assert "it is not a command" in str(reply.failure.error)


def test_corrupted_messages_are_answered(bob: Any) -> None:
    rng = random.Random(1)
    sent = bytes(frames(Batch(1, (Store(1, torch.ones(3)), Fetch(1)), True), Context(worker=bob))[0])
    for _ in range(500):
        mutant = bytearray(sent)
        for _ in range(rng.randint(1, 8)):
            mutant[rng.randrange(len(mutant))] = rng.randrange(256)

        reply = from_frames(bob.deliver([mutant[: rng.randint(0, len(mutant))]], STRANGER), Context(worker=bob))

        assert type(reply) is Reply


def test_an_answer_that_cannot_be_encoded_is_a_failure(bob: Any) -> None:
    bob.load_data([lambda: None])
    (id,) = bob.object_store

    reply = say(bob, Fetch(id))

    assert isinstance(reply.failure.error, SerdeError)


def test_commands_run_in_order_and_the_last_is_answered(bob: Any) -> None:
    add = Run("torch", "torch.Tensor.add_", (), {}, 9)
    add.args = (torch.ones(2), 1)

    reply = say(bob, Store(1, torch.ones(2)), Store(2, torch.zeros(1)), Release((2,)), Fetch(1), number=7)

    assert (reply.number, reply.failure) == (7, None)
    assert reply.value.tolist() == [1.0, 1.0]
    assert bob.objects_count == 0


def test_the_trace_of_a_failure_names_lines_and_no_values(bob: Any) -> None:
    failure = say(bob, Store(1, torch.tensor([86753.0])), Fetch(404)).failure

    assert "syft_core.workers.moving.fetching, line" in failure.trace
    assert "86753" not in failure.trace
    assert (failure.number, failure.place) == (1, 1)


# --- bytes of its own


def test_a_reply_does_not_change_with_what_is_stored(bob: Any) -> None:
    kept = torch.zeros(10_000)
    bob.register_obj(kept, "kept")

    answer = bob.deliver(frames(Batch(1, (Fetch("kept", None, True),), True), Context(worker=bob)), STRANGER)
    kept.fill_(86753.0)

    assert all(memoryview(frame).readonly for frame in answer)
    assert from_frames(answer, Context(worker=bob)).value.sum() == 0


# --- other parties


def test_two_workers_that_forward_to_each_other_do_not_deadlock(hook: Any) -> None:
    workers = {name: VirtualWorker(hook, id=name, auto_add=False) for name in ("bob", "alice")}
    both_wait = threading.Barrier(2)
    for one, other in (("bob", "alice"), ("alice", "bob")):
        workers[one].add_worker(_Slow(workers[one], workers[other], both_wait))
        say(workers[one], Store(1, torch.full((2,), float(len(one)))))

    with ThreadPoolExecutor(2) as threads:
        moves = [("bob", "alice"), ("alice", "bob")]
        answers = [threads.submit(say, workers[one], Forward(1, None, other, 5)) for one, other in moves]
        replies = [answer.result(60) for answer in answers]

    assert [reply.failure for reply in replies] == [None, None]
    assert workers["alice"].get_obj(5).tolist() == [3.0, 3.0]
    assert workers["bob"].get_obj(5).tolist() == [5.0, 5.0]


class _Slow(LocalLocation):
    """The location of a worker that gets the message when others wait, too."""

    def __init__(self, client: Any, worker: Any, others: threading.Barrier) -> None:
        super().__init__(client, worker)
        self.others = others

    def ask(self, message: Any) -> Any:
        self.others.wait(60)
        return super().ask(message)


def test_a_message_does_not_contain_its_sender(hook: Any, bob: Any) -> None:
    bob.load_data([torch.ones(2).private_tensor(["board"]).tag("#minutes")])
    (id,) = bob.object_store

    as_worker = say(bob, Fetch(id), sender=Peer("board"))
    as_user = say(bob, Fetch(id, None, True), sender=Peer("laptop", "board"))

    assert "you are not among its allowed users" in str(as_worker.failure.error)
    assert as_user.failure is None


def test_a_failure_names_modules_and_lines_but_no_path_of_the_worker(bob: Any) -> None:
    x = torch.ones(2).send(bob)
    bob.object_store.put(8, Stored(ObjectWrapper(lambda: open("/srv/owner/data.csv"), 8), None))  # noqa: SIM115

    for command in (Fetch(404), Run("torch", "torch.Tensor.view", (x.child, 3), None, 7), Call(8, (), {}, 9)):
        failure = say(bob, command, sender=x.owner.peer).failure

        assert "syft_core.workers." in failure.trace
        assert ", line " in failure.trace
        assert not {"/", "\\"} & {*failure.trace, *str(failure.error)}


def test_a_list_of_numbers_is_as_long_as_the_limit_of_nodes_says(bob: Any) -> None:
    x = torch.ones(2).send(bob)

    reply = say(bob, Run("torch", "torch.Tensor.new_tensor", (x.child, [0] * 1_000_000), None, 7))

    assert isinstance(reply.failure.error, SerdeError)
    assert "of more than 100000 parts" in str(reply.failure.error)
