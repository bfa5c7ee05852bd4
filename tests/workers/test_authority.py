"""Attacks by peers who can only send messages: each is refused, and objects of others do not change."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import syft_core as sy  # noqa: E402
from syft_core.exceptions import (  # noqa: E402
    GetNotPermittedError,
    ObjectNotFoundError,
    PolicyError,
    SerdeError,
    TagNotPermittedError,
    TooManyHopsError,
    ValueRefusedError,
    WriteNotPermittedError,
)
from syft_core.messages import (  # noqa: E402
    Batch,
    Call,
    Describe,
    Fetch,
    FetchAll,
    Forward,
    GetBack,
    Lease,
    Release,
    Run,
    Search,
    SendOn,
    Store,
    Tag,
)
from syft_core.peer import Peer  # noqa: E402
from syft_core.pointers.callable_pointer import ObjectWrapper  # noqa: E402
from syft_core.pointers.object_pointer import Here  # noqa: E402
from syft_core.pointers.pointer_tensor import PointerTensor  # noqa: E402
from syft_core.serde import Context, frames, from_frames  # noqa: E402
from syft_core.workers.party.store import MAX_SOURCES  # noqa: E402
from syft_core.workers.party.virtual import VirtualWorker  # noqa: E402

MALLORY, ANN = Peer("mallory", "mallory"), Peer("laptop", "ann")


@pytest.fixture
def bob(hook: Any) -> Any:
    return VirtualWorker(hook, id="bob")


@pytest.fixture
def alice(hook: Any) -> Any:
    made = VirtualWorker(hook, id="alice")
    made.user = "alice"
    return made


def ask(worker: Any, *commands: Any, sender: Peer = MALLORY, behalf: tuple[Peer, ...] = ()) -> Any:
    """Deliver a batch that was written by hand, over a transport that believes its claims; return the answer."""
    sent = frames(Batch(1, commands, True, behalf), Context(worker=worker))
    reply = from_frames(worker.deliver(sent, sender, delegates=lambda _peer: True), Context(worker=worker))
    if reply.failure is not None:
        raise reply.failure.error
    return reply.value


def run(op: str, *args: Any, result: int = 900, **kwargs: Any) -> Run:
    return Run("torch", f"torch.{op}", args, kwargs, result)


def at(worker: Any, id: Any, attr: str | None = None) -> PointerTensor:
    """Return a pointer that nobody gave, as a message of ours contains it."""
    pointer = PointerTensor(worker, id, worker.hook.attributes, garbage_collect_data=False, owner=worker)
    pointer.point_to_attr = attr
    return pointer


def load(worker: Any, tensor: Any, id: str = "data") -> Any:
    """Let the owner of a worker publish a tensor."""
    worker.register_obj(tensor, id)
    return tensor


# --- serial numbers


def test_an_id_that_is_free_again_does_not_lift_a_restriction(bob: Any) -> None:
    load(bob, torch.ones(2).private_tensor(["ann"]), 5)
    ask(bob, Store(6, torch.zeros(2, requires_grad=True)))
    ask(bob, run("Tensor.mul", at(bob, 6), at(bob, 5)), run("Tensor.sum", at(bob, 900), result=901))
    ask(bob, run("Tensor.backward", at(bob, 901)))
    ask(bob, run("Tensor.add", at(bob, 6, "grad"), 0, result=7))  # plain, and restricted by its lineage alone
    bob.object_store.remove(5, "its owner took it away")

    ask(bob, Forward(7, None, "bob", 5, True))

    for id in (5, 7):
        with pytest.raises(GetNotPermittedError, match="it is private"):
            ask(bob, Fetch(id))


def test_lineage_does_not_name_a_later_object_with_the_same_id(bob: Any) -> None:
    load(bob, torch.ones(2).tag("#patients"), 5)
    bob.object_store.tag(5, ("#patients",))
    ask(bob, run("Tensor.add", at(bob, 5), 1, result=6), sender=ANN)
    bob.object_store.remove(5, "its owner took it away")
    ask(bob, Store(5, torch.zeros(2)), Tag(5, ("#harmless",)))

    ask(bob, Fetch(6), sender=ANN)

    assert bob.ledger[-1].names == ("#patients",)


# --- policies


def test_a_policy_is_asked_about_the_gradient_that_would_leave(bob: Any) -> None:
    def small(verb: str, stored: Any, peer: Peer, value: Any) -> str | None:
        return "too large" if verb in ("read", "move") and value.numel() > 2 else None

    ask(bob, Store(1, torch.zeros(1, requires_grad=True)))
    bob.policy = small
    bob.get_obj(1).grad = torch.zeros(1)
    assert ask(bob, Fetch(1, "grad")).tolist() == [0.0]

    bob.policy = lambda verb, stored, peer, value: "no gradients" if value is stored.value.grad else None

    with pytest.raises(GetNotPermittedError, match="no gradients"):
        ask(bob, Fetch(1, "grad"))
    assert ask(bob, Fetch(1)).tolist() == [0.0]


def test_the_gradient_of_a_published_object_is_not_published(bob: Any, alice: Any) -> None:
    load(bob, torch.ones(2, requires_grad=True)).grad = torch.ones(2)
    bob.policy = "only_published"

    assert ask(bob, Fetch("data", None, True)).tolist() == [1.0, 1.0]
    for message in (Fetch("data", "grad"), Forward("data", "grad", "alice", 5, True)):
        with pytest.raises(GetNotPermittedError, match="only published objects"):
            ask(bob, message)


def test_a_policy_is_asked_about_the_result_of_a_call(bob: Any) -> None:
    load(bob, ObjectWrapper(lambda x: x.sum().item(), id="sum"), "sum")
    ask(bob, Store(1, torch.tensor([86753.0])))
    bob.policy = lambda verb, stored, peer, value: "no numbers" if type(value) is float else None

    with pytest.raises(ValueRefusedError):
        ask(bob, Call("sum", (at(bob, 1),), {}, 5))


@pytest.mark.parametrize(
    ("verb", "message"),
    [
        ("read", Fetch(1)),
        ("read", FetchAll((1,))),
        ("move", Forward(1, None, "alice", 2)),
        ("move", SendOn(1, "alice", 99)),
        ("write", SendOn(1, "alice", 99)),
        ("write", Run("torch", "torch.Tensor.add_", (Here(_id_at_location=1, point_to_attr=None), 1), {}, 9)),
        ("tag", Tag(1, ("#x",))),
        ("lease", Lease((1,))),
        ("describe", Describe((1,))),
        ("call", Call("f", (), {}, 9)),
    ],
)
def test_every_verb_asks_the_policy(bob: Any, alice: Any, verb: str, message: Any) -> None:
    load(bob, ObjectWrapper(lambda: None, id="f"), "f")
    ask(bob, Store(1, torch.ones(2)))
    asked: list[Any] = []

    def note(*question: Any) -> str | None:
        asked.append(question)
        return "not today" if question[0] == verb else None

    bob.policy = note
    if type(message) is Run:
        message = run("Tensor.add_", at(bob, 1), 1)

    with pytest.raises(PermissionError, match="not today"):
        ask(bob, message)
    assert asked[-1][0] == verb
    assert asked[-1][2] == MALLORY


def test_a_search_finds_nothing_that_the_policy_hides(bob: Any) -> None:
    load(bob, torch.ones(2).tag("#x"))
    bob.object_store.tag("data", ("#x",), "the salaries of the board")
    assert len(ask(bob, Search(("salaries",)))) == 1

    bob.policy = lambda verb, stored, peer, value: "hidden" if verb == "search" else None

    assert ask(bob, Search(())) == ask(bob, Search(("data",))) == ask(bob, Search(("salaries",))) == []


@pytest.mark.parametrize("policy", ["nothing", sy.nothing])
def test_a_worker_that_lets_nothing_leave_hides_tags_and_forms_of_others(bob: Any, policy: Any) -> None:
    load(bob, torch.ones(2).tag("#x"))
    bob.object_store.tag("data", ("#x",), "the salaries of the board")
    bob.policy = policy
    ask(bob, Store(1, torch.ones(3)), Tag(1, ("#mine",)))

    assert [found[0] for found in ask(bob, Search(()))] == [1]
    assert tuple(ask(bob, Describe((1,)))[0].shape) == (3,)
    with pytest.raises(ObjectNotFoundError, match="cannot find object 'data'"):
        ask(bob, Describe(("data",)))


def test_policies_are_given_by_name_or_as_a_function_of_four(hook: Any) -> None:
    assert VirtualWorker(hook, id="a", policy="only_published").policy is sy.only_published
    assert VirtualWorker(hook, id="b").policy is sy.unless_private
    assert VirtualWorker(hook, id="a", policy=sy.only_published) is VirtualWorker(hook, id="a")

    for wrong in ("everything", 5, lambda stored, user: None, lambda *, verb: None):
        with pytest.raises(PolicyError):
            VirtualWorker(hook, id="c", policy=wrong)


# --- writing


WRITES = {
    "in place": lambda worker: run("Tensor.add_", at(worker, 5), 1),
    "by keyword": lambda worker: run("relu_", input=at(worker, 5)),
    "out": lambda worker: run("add", at(worker, 1), 0, out=at(worker, 5)),
    "item": lambda worker: run("Tensor.__setitem__", at(worker, 5), 0, 5.0),
    "data": lambda worker: run("Tensor.data.__set__", at(worker, 5), at(worker, 1)),
    "grad": lambda worker: run("Tensor.grad.__set__", at(worker, 5), at(worker, 1)),
    "no grad": lambda worker: run("Tensor.grad.__set__", at(worker, 5), None),
    "requires_grad": lambda worker: run("Tensor.requires_grad_", at(worker, 5)),
    "its data": lambda worker: (
        run("Tensor.data.__get__", at(worker, 5), result=6),
        run("Tensor.zero_", at(worker, 6)),
    ),
    "resize": lambda worker: run("Tensor.resize_", at(worker, 5), 1),
    "statistics": lambda worker: run(
        "nn.functional.batch_norm", at(worker, 2), at(worker, 5), at(worker, 3), None, None, True
    ),
    "list": lambda worker: run("_foreach_add_", [at(worker, 1), at(worker, 5)], 1),
    "view": lambda worker: (
        run("Tensor.view", at(worker, 5), -1, result=10),
        run("Tensor.zero_", at(worker, 10)),
    ),
    "view of a view": lambda worker: (
        run("Tensor.detach", at(worker, 5), result=10),
        run("Tensor.__getitem__", at(worker, 10), 0, result=11),
        run("Tensor.zero_", at(worker, 11)),
    ),
    "part": lambda worker: (
        run("Tensor.split", at(worker, 5), 1, result=10),
        run("Tensor.zero_", at(worker, 11)),
    ),
    "itself": lambda worker: (
        run("Tensor.contiguous", at(worker, 5), result=10),
        run("Tensor.zero_", at(worker, 10)),
    ),
    "gradient of another": lambda worker: (
        run("Tensor.grad.__set__", at(worker, 1), at(worker, 5)),
        run("Tensor.zero_", at(worker, 1, "grad")),
    ),
    "a call": lambda worker: (
        Call("same", (at(worker, 5),), {}, 10),
        run("Tensor.zero_", at(worker, 10)),
    ),
    "sent on": lambda worker: SendOn(5, "alice", 99),
    "tagged": lambda worker: Tag(5, ("#x",)),
    "published": lambda worker: Tag(5, publish=True),
}


def writes(way: str, worker: Any) -> tuple[Any, ...]:
    """Return messages that change object 5."""
    messages = WRITES[way](worker)
    return messages if type(messages) is tuple else (messages,)


@pytest.mark.parametrize("way", WRITES)
@pytest.mark.parametrize("whose", ["the owner's", "ann's", "published by ann"])
def test_objects_of_others_cannot_be_changed(bob: Any, alice: Any, way: str, whose: str) -> None:
    load(bob, ObjectWrapper(lambda x: x, id="same"), "same")
    if whose == "the owner's":
        load(bob, torch.tensor([1.0, 2.0]), 5)
    else:
        ask(bob, Store(5, torch.tensor([1.0, 2.0]), whose == "published by ann"), sender=ANN)
    kept = bob.get_obj(5)
    ask(bob, Store(1, torch.ones(2)), Store(2, torch.ones(3, 2)), Store(3, torch.ones(2)))

    with pytest.raises((WriteNotPermittedError, TagNotPermittedError)):
        ask(bob, *writes(way, bob))

    assert bob.get_obj(5) is kept
    assert (kept.tolist(), kept.grad, kept.requires_grad) == ([1.0, 2.0], None, False)
    assert bob.object_store.entry(5).access is None


@pytest.mark.parametrize("way", WRITES)
def test_own_objects_can_be_changed(bob: Any, alice: Any, way: str) -> None:
    load(bob, ObjectWrapper(lambda x: x, id="same"), "same")
    ask(bob, Store(5, torch.tensor([1.0, 2.0])))
    ask(bob, Store(1, torch.ones(2)), Store(2, torch.ones(3, 2)), Store(3, torch.ones(2)))

    ask(bob, *writes(way, bob))


@pytest.mark.parametrize("part", ["_values", "_indices", "detach", "t"])
def test_a_sparse_tensor_does_not_change_through_its_parts(bob: Any, part: str) -> None:
    kept = load(bob, torch.eye(2).to_sparse())

    with contextlib.suppress(WriteNotPermittedError):  # Some of the parts are copies.
        ask(bob, run(f"Tensor.{part}", at(bob, "data"), result=1), run("Tensor.zero_", at(bob, 1)))
    assert kept.to_dense().tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_the_copy_that_the_error_advises_can_be_changed(bob: Any) -> None:
    bob.load_data([torch.tensor([1.0, 2.0]).tag("#data")])
    (p,) = bob.search("#data")

    with pytest.raises(WriteNotPermittedError, match="it is published; .* e.g. `p = p.copy\\(\\)`"):
        p.add_(1)
    with pytest.raises(WriteNotPermittedError):
        p[:1].zero_()
    p = p.copy()

    assert p.add_(1).get().tolist() == [2.0, 3.0]
    assert bob.search("#data")[0].get().tolist() == [1.0, 2.0]


def test_the_owner_changes_what_is_published(bob: Any) -> None:
    load(bob, torch.ones(2))

    ask(bob, run("Tensor.add_", at(bob, "data"), 1), sender=bob.peer)

    assert bob.get_obj("data").tolist() == [2.0, 2.0]


def test_a_backward_pass_leaves_the_gradients_of_others_alone(bob: Any) -> None:
    load(bob, torch.ones(2, requires_grad=True), "model").grad = torch.tensor([7.0, 7.0])
    ask(bob, Store(1, torch.ones(2, requires_grad=True)), sender=ANN)
    load(bob, torch.ones(2).private_tensor(["ann"]), "secret")

    for leaf in ("model", 1):
        ask(bob, run("Tensor.mul", at(bob, leaf), at(bob, "secret")), run("Tensor.sum", at(bob, 900), result=901))
        with pytest.raises(WriteNotPermittedError, match="a backward pass would change its gradient"):
            ask(bob, run("Tensor.backward", at(bob, 901)))
        ask(bob, Release((900, 901)))

    assert bob.get_obj("model").grad.tolist() == [7.0, 7.0]
    assert bob.get_obj(1).grad is None
    assert bob.object_store.entry(1).access is None


def test_claiming_to_act_for_the_owner_of_a_leaf_grants_no_right(bob: Any) -> None:
    ask(bob, Store(1, torch.ones(2, requires_grad=True)), sender=ANN)
    ask(bob, run("Tensor.sum", at(bob, 1), result=2))

    for behalf in ((ANN,), (bob.peer,), (bob.peer, ANN)):
        for message in (run("Tensor.backward", at(bob, 2)), run("Tensor.zero_", at(bob, 1))):
            with pytest.raises(WriteNotPermittedError):
                ask(bob, message, behalf=behalf)
    assert bob.get_obj(1).grad is None


def test_a_backward_pass_does_not_make_objects_of_others_keep_a_gradient(bob: Any) -> None:
    ask(bob, Store(1, torch.ones(2, requires_grad=True)), run("Tensor.mul", at(bob, 1), 2, result=2), sender=ANN)
    ask(bob, run("Tensor.sum", at(bob, 2), result=3))

    with pytest.raises(WriteNotPermittedError, match="a backward pass would change its gradient"):
        ask(bob, run("Tensor.backward", at(bob, 3), inputs=[at(bob, 2)]))

    assert ask(bob, Fetch(2, "grad"), sender=ANN) is None


def test_claiming_to_move_an_object_for_its_owner_grants_no_right_to_gradients(bob: Any, alice: Any) -> None:
    ask(bob, Store(1, torch.ones(2, requires_grad=True)), sender=ANN)
    ask(bob, run("Tensor.sum", at(bob, 1), result=2), sender=ANN)
    ask(bob, Forward(2, None, "alice", 8, True, True), behalf=(ANN,))  # Mallory does it, and controls alice.

    with pytest.raises(WriteNotPermittedError):
        ask(bob, run("Tensor.backward", at(bob, 2)), sender=alice.peer, behalf=(ANN,))

    assert bob.get_obj(1).grad is None


@pytest.mark.parametrize("policy", ["only_published", "nothing"])
@pytest.mark.parametrize(
    "message",
    [
        lambda bob: run("Tensor.shape.__get__", at(bob, 5)),
        lambda bob: run("Tensor.clone", at(bob, 5)),
        lambda bob: run("Tensor.matmul", at(bob, 5), torch.ones(7, 1)),  # the text of the error names the form
        lambda bob: Forward(5, None, "bob", 8, True),
        lambda bob: Call("same", (at(bob, 5),), {}, 10),
    ],
    ids=["shape", "clone", "error", "copy", "call"],
)
def test_a_hidden_form_is_not_disclosed_by_computing_with_the_object(bob: Any, policy: str, message: Any) -> None:
    load(bob, ObjectWrapper(lambda x: x, id="same"), "same")
    ask(bob, Store(5, torch.ones(3, 4)), sender=ANN)
    bob.policy = policy

    with pytest.raises(ObjectNotFoundError, match="cannot find object"):
        ask(bob, message(bob))


# --- deputies


def test_a_worker_does_not_fetch_for_a_peer_who_may_not_have_the_object(bob: Any, alice: Any) -> None:
    load(bob, torch.ones(2).private_tensor(["alice"]))
    ask(alice, Store(5, alice.hook.attributes.wrapper(at(bob, "data"))))

    with pytest.raises(GetNotPermittedError, match="as 'mallory through alice'"):
        ask(alice, GetBack(5))
    ask(alice, Forward(5, None, "alice", 7, True))  # the copy stays at bob
    with pytest.raises(GetNotPermittedError):
        ask(alice, GetBack(7))


def test_the_ledger_names_the_peer_on_whose_behalf_a_worker_fetched(bob: Any, alice: Any) -> None:
    load(bob, torch.ones(2))
    ask(alice, Store(5, alice.hook.attributes.wrapper(at(bob, "data"))))

    ask(alice, GetBack(5))

    assert (bob.ledger[-1].user, bob.ledger[-1].to) == ("mallory through alice", "alice")


def test_a_worker_does_not_change_objects_for_a_peer_who_may_not(bob: Any, alice: Any, me: Any) -> None:
    """The pointer is lent to alice, who may change the object; a peer who asks alice to do so may not."""
    p = torch.ones(2).send(bob)
    q = p.send(alice)
    q.add_(1)

    with pytest.raises(WriteNotPermittedError, match="on worker 'alice' as 'mallory'"):
        ask(alice, run("Tensor.add_", at(alice, q.id_at_location), 1))
    ask(alice, Store(5, alice.hook.attributes.wrapper(at(bob, p.id_at_location))))
    with pytest.raises(WriteNotPermittedError, match="on worker 'bob' as 'mallory through alice'"):
        ask(alice, run("Tensor.add_", at(alice, 5), 1))

    assert p.get().tolist() == [2.0, 2.0]


def test_requests_are_not_forwarded_forever(bob: Any) -> None:
    load(bob, torch.ones(2))
    far = tuple([Peer(f"worker {n}") for n in range(17)])

    with pytest.raises(TooManyHopsError):
        ask(bob, Fetch("data", None, True), behalf=far)
    with pytest.raises(TooManyHopsError):
        ask(bob, Fetch("data", None, True), behalf=(ANN, Peer("bob")))
    assert ask(bob, Fetch("data", None, True), behalf=far[:16]).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(("id", "user"), [(1 << 80, None), ("ann", 5), (None, "ann"), (True, "ann"), (5.0, None)])
def test_malformed_peers_are_refused(bob: Any, id: Any, user: Any) -> None:
    with pytest.raises(SerdeError):
        ask(bob, Search(()), behalf=(Peer(id, user),))


def test_an_object_cannot_be_published_on_behalf_of_another(bob: Any) -> None:
    for message in (Store(1, torch.ones(2), True), Store(2, torch.ones(2), holder="bob")):
        with pytest.raises(PermissionError):
            ask(bob, message, behalf=(bob.peer,) if message.publish else ())


def test_a_gradient_does_not_come_from_a_worker_that_has_no_copy(bob: Any, alice: Any) -> None:
    ask(bob, Store(1, torch.ones(2, requires_grad=True)), sender=ANN)
    ask(alice, Store(2, torch.ones(2, requires_grad=True), origin=("bob", 1)))
    ask(alice, run("Tensor.sum", at(alice, 2), result=3))

    with pytest.raises(WriteNotPermittedError):
        ask(alice, run("Tensor.backward", at(alice, 3)))
    assert bob.get_obj(1).grad is None


# --- leases


def test_a_pointer_with_a_false_lease_releases_nothing(bob: Any, alice: Any) -> None:
    p = torch.ones(2).send(bob)
    q = p.send(alice)  # alice has a lease of her own
    entry = bob.object_store.entry(p.id_at_location)
    for id in (5, 6):
        pointer = at(bob, p.id_at_location)
        pointer.travels_with_lease = True
        ask(alice, Store(id, alice.hook.attributes.wrapper(pointer)))
        ask(alice, Release((id,)))
    ask(alice, run("Tensor.add", alice.hook.attributes.wrapper(pointer), 1))
    ask(alice, Store(7, torch.ones(2), origin=("bob", p.id_at_location)), Release((7,)))
    ask(bob, Release((p.id_at_location,), "me"), Release((p.id_at_location,), "alice"), Release((p.id_at_location,)))

    bob.collect_garbage()
    assert entry.pointers == 2
    del p
    assert q.get().get().tolist() == [1.0, 1.0]


def test_a_peer_cannot_lease_an_object_that_it_cannot_find(bob: Any) -> None:
    p = torch.ones(2).send(bob)
    id = p.id_at_location

    for message in (Lease((id,)), Lease((id,), "ann")):
        with pytest.raises(GetNotPermittedError, match="cannot lease"):
            ask(bob, message)
    assert ask(bob, Search((id,))) == ask(bob, Search((str(id),))) == []
    assert bob.object_store.entry(id).pointers == 1


def test_ids_of_different_types_are_different(bob: Any) -> None:
    ask(bob, Store(5, torch.ones(2)), Store("5", torch.zeros(2)))

    assert [found[0] for found in ask(bob, Search((5,)))] == [5]
    assert [found[0] for found in ask(bob, Search(("5",)))] == ["5"]
    with pytest.raises(WriteNotPermittedError):
        ask(bob, run("Tensor.add_", at(bob, 5), 1), sender=Peer("Mallory", "mallory"))


# --- what leaves


def test_a_reply_that_cannot_be_encoded_loses_nothing(bob: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ask(bob, Store(1, torch.ones(2)), Store(2, torch.ones(2)))
    encode = bob._encode
    monkeypatch.setattr(bob, "_encode", lambda reply, *_: encode(reply) if reply.value is None else 1 / 0)

    for message in (Fetch(1), FetchAll((1, 2))):
        with pytest.raises(ZeroDivisionError):
            ask(bob, message)

    monkeypatch.undo()
    assert ask(bob, Fetch(1, None, True)).tolist() == [1.0, 1.0]
    assert [value.tolist() for value in ask(bob, FetchAll((1, 2)))] == [[1.0, 1.0]] * 2
    assert bob.objects_count == 0


def test_a_long_lineage_still_names_published_objects(bob: Any) -> None:
    for n in range(MAX_SOURCES + 10):
        load(bob, torch.ones(1), f"data {n}")
        bob.object_store.tag(f"data {n}", (f"#{n}",))
    ask(bob, Store(1, torch.zeros(1)))
    for n in range(MAX_SOURCES + 10):
        ask(bob, run("Tensor.add_", at(bob, 1), at(bob, f"data {n}")))
    for n in range(3 * MAX_SOURCES):
        ask(bob, Store(1000 + n, torch.ones(1)), run("Tensor.add_", at(bob, 1), at(bob, 1000 + n)))

    ask(bob, Fetch(1))

    assert {f"#{n}" for n in range(MAX_SOURCES + 10)} <= set(bob.ledger[-1].names)


def test_lineage_names_published_results(bob: Any) -> None:
    load(bob, torch.ones(1))
    ask(bob, run("Tensor.add", at(bob, "data"), 1, result=1), Tag(1, ("#sum",), None, True))
    ask(bob, run("Tensor.add", at(bob, 1), 1, result=2), Fetch(2))

    assert bob.ledger[-1].sources == ("data", 1)
    assert bob.ledger[-1].names == ("", "#sum")


# --- names


def test_a_search_returns_the_publisher(bob: Any) -> None:
    bob.load_data([torch.ones(1).tag("#x")])
    ask(bob, Store(1, torch.ones(1), True), Tag(1, ("#y",)), sender=Peer("bob's cousin", "bob"))
    ask(bob, Store(2, torch.ones(1)), Tag(2, ("#y",)))

    publishers = {found[1][0]: found[4] for found in ask(bob, Search(())) if found[0] != 2}
    assert publishers == {"#x": ("bob", None), "#y": ("bob's cousin", "bob")}
    assert ask(bob, Search((2,)))[0][4] is None
    (found,) = bob.search("#x")
    assert found.child.published_by == Peer("bob")


def test_tags_of_the_owner_are_reserved(bob: Any) -> None:
    bob.load_data([torch.ones(1).tag("#mnist")])
    ask(bob, Store(1, torch.zeros(1)))

    for message in (Tag(1, ("#mine", "#mnist")), Store(2, torch.zeros(1), tags=("#mnist",))):
        with pytest.raises(TagNotPermittedError, match="'#mnist' is reserved for data that its owner published"):
            ask(bob, message)
    assert len(bob.search("#mnist")) == 1
    assert bob.search("#mine") == []
