"""A restriction that a feature adds holds for every message that computes with objects or lets them leave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import syft_core as sy  # noqa: E402  # torch may be missing
from syft_core import messages  # noqa: E402
from syft_core.exceptions import ValueRefusedError  # noqa: E402
from syft_core.messages import Call, Forward, Message, Run  # noqa: E402
from syft_core.peer import Peer  # noqa: E402
from syft_core.pointers.callable_pointer import ObjectWrapper  # noqa: E402
from syft_core.pointers.object_pointer import new_id  # noqa: E402
from syft_core.workers.party.status import add_bit  # noqa: E402
from syft_core.workers.road import procedure  # noqa: E402
from syft_core.workers.road.procedure import add_stage  # noqa: E402
from syft_core.workers.seeing.visibility import find_ids  # noqa: E402
from syft_mpc.messages import Deposit, OpenChannel, Prepare, RunProtocol  # noqa: E402
from syft_sums import messages as sums  # noqa: E402
from syft_torch.federated.arranging import Arrange  # noqa: E402
from syft_torch.federated.statistics import Summarize  # noqa: E402
from syft_worker.desk import messages as desk  # noqa: E402
from tests.messages import list_commands  # noqa: E402

from ..party import test_waiting as waiting  # noqa: E402

EMBARGO, SECRET = add_bit("tests: embargo"), add_bit("tests: secret", inherited=True)


@pytest.fixture(autouse=True)
def _embargo() -> Any:
    """A restriction whose stage always refuses."""
    kept = list(procedure._added)

    def refuse(_proceed: Any, task: Any) -> Any:
        raise PermissionError(f"cannot {task.kind}: by a test")

    add_stage(EMBARGO, refuse)
    yield
    procedure._added[:] = kept
    procedure._procedures.clear()


def embargo_operands(worker: Any, kind: type[Message]) -> None:
    """Restrict everything to which the next message of a kind refers, when it arrives."""
    handle = worker.handle

    def restrict(message: Message, sender: Peer) -> Any:
        if type(message) is kind:
            for id in find_ids(worker, message):
                worker.object_store.entry(id).mark(EMBARGO)
        return handle(message, sender)

    worker.handle = restrict


# --- what each message does with objects


def _call(bob: Any) -> Callable[[], Any]:
    bob.register_obj(ObjectWrapper(lambda x: x + 1, "add"), "add")
    x = torch.ones(3).send(bob)
    return lambda: waiting._ask(bob, Call("add", (x.child,), {}, new_id()))


def _run_here(bob: Any) -> Callable[[], Any]:
    x = torch.ones(3).send(bob)
    return lambda: waiting._ask(bob, Run("torch", "torch.Tensor.add", (x.child, 1), {}, new_id()))


def _backward_to_a_copy(bob: Any) -> Callable[[], Any]:
    """Return a backward pass at bob whose gradient goes back to alice."""
    origin = torch.ones(3, requires_grad=True).send(bob.get_worker("alice"))
    copy = origin.move(bob, requires_grad=True)
    loss = (copy * 2).sum()
    bob.object_store.entry(copy.id_at_location).mark(EMBARGO)
    return loss.backward


def _run_protocol(bob: Any) -> Callable[[], Any]:
    bob.trust("alice", "carol")
    return waiting._run_protocol(bob)


def _arrange(bob: Any) -> Callable[[], Any]:
    x = torch.ones(4).send(bob)
    return lambda: waiting._ask(bob, Arrange((x.child,), "half", {"test_size": 0.5, "is_test": True}, new_id()))


def _summarize(bob: Any) -> Callable[[], Any]:
    x = torch.ones(4).send(bob)
    return lambda: waiting._ask(bob, Summarize((x.child,), "moments", new_id()))


CASES: dict[type, list[Callable[[Any], Callable[[], Any]]]] = {
    **waiting.CASES,
    Run: [_run_here, waiting._run, _backward_to_a_copy],
    Call: [_call],
    RunProtocol: [_run_protocol],
    Arrange: [_arrange],
    Summarize: [_summarize],
}
"""How each message is sent that does something with objects."""
del CASES[messages.Describe]
WITHOUT: dict[type, str] = {
    messages.Store: "brings an object",
    messages.Describe: "form, not values",
    messages.AskSchema: "form, not values",
    messages.Search: "names, not values",
    messages.Tag: "names, not values",
    messages.Lease: "who keeps it alive",
    messages.Release: "who keeps it alive",
    messages.GetTicket: "names, not values",
    messages.Introduce: "names, not values",
    OpenChannel: "no objects",
    Prepare: "forms of shares, no objects",
    Deposit: "what another party sends for a run, which is a task",
    sums.AskMember: "no objects",
    sums.JoinSum: "keeps results that leave with the next message",
    sums.MaskSum: "refers to results by a round: tested in tests/syft_sums/test_handlers.py",
    sums.RevealSum: "no objects",
    desk.AskRelease: "makes the copy that the owner reviews; what leaves is fetched",
    desk.AskStudy: "the objects are examples of what a rule would cover, and stay",
    desk.FollowRequests: "the sender's own requests",
    desk.FetchReleased: "refers to objects by a request: tested below",
    desk.ReviewRequests: "the owner's",
    desk.DecideRequest: "the owner's",
    desk.ListApprovals: "the owner's",
    desk.AddApproval: "the owner's",
    desk.RevokeApproval: "the owner's",
    desk.ShowValues: "the owner's",
}
"""Why the other messages need not take the road."""


def test_every_message_takes_the_road_or_says_why_not() -> None:
    ours = set(list_commands())

    assert ours == CASES.keys() | WITHOUT.keys()
    assert not CASES.keys() & WITHOUT.keys()


@pytest.mark.usefixtures("alice")
@pytest.mark.parametrize(
    ("kind", "make"), [pytest.param(kind, make, id=make.__name__[1:]) for kind, made in CASES.items() for make in made]
)
def test_a_restriction_holds_whatever_the_message(bob: Any, kind: type, make: Any) -> None:
    send = make(bob)
    before = len(bob.ledger)
    embargo_operands(bob, kind)

    with pytest.raises(PermissionError, match="by a test"):
        send()

    assert len(bob.ledger) == before


def test_a_reviewed_copy_has_the_restriction_of_its_object(bob: Any, me: Any) -> None:
    me.user = "eve"
    bob.load_data([torch.ones(3).private_tensor(["zoe"]).tag("#x")])
    (x,) = bob.search("#x")
    handle = x.request("table 1")
    bob.approve(handle)
    (request,) = bob.requests
    for requested in request.objects:
        requested.copy.mark(EMBARGO)

    with pytest.raises(PermissionError, match="cannot leave"):
        handle.get()

    for requested in request.objects:
        requested.copy.status &= ~EMBARGO
    assert handle.get().tolist() == [1.0] * 3


def test_what_a_restricted_object_was_copied_to_for_review_is_restricted(bob: Any, me: Any) -> None:
    me.user = "eve"
    bob.load_data([torch.ones(3).private_tensor(["zoe"]).tag("#x")])
    (x,) = bob.search("#x")
    bob.object_store.entry(x.id_at_location).mark(EMBARGO)
    handle = x.request("table 1")
    bob.approve(handle)

    with pytest.raises(PermissionError, match="cannot leave"):
        handle.get()


def test_a_copy_on_the_same_worker_of_a_restricted_object_is_refused(bob: Any) -> None:
    x = torch.ones(3).send(bob)
    bob.object_store.entry(x.id_at_location).mark(EMBARGO)

    with pytest.raises(PermissionError, match="by a test"):
        waiting._ask(bob, Forward(x.id_at_location, None, "bob", new_id(), True))


def test_a_copy_on_the_same_worker_has_the_restrictions_of_its_object(bob: Any) -> None:
    procedure._added.pop()
    add_stage(EMBARGO, _keep_here, kinds={"leave"})
    x = torch.ones(3).send(bob)
    bob.object_store.mark(x.id_at_location, EMBARGO)
    waiting._ask(bob, Forward(x.id_at_location, None, "bob", 77, True))

    with pytest.raises(PermissionError, match="by a test"):
        waiting._ask(bob, messages.Fetch(77))


def test_a_restriction_may_concern_some_kinds_of_tasks_only(bob: Any) -> None:
    procedure._added.pop()
    add_stage(EMBARGO, lambda _proceed, _task: pytest.fail("it left"), kinds={"leave"})
    x = torch.ones(3).send(bob)
    bob.object_store.entry(x.id_at_location).mark(EMBARGO)

    assert (x + 1).get().tolist() == [2.0] * 3
    with pytest.raises(pytest.fail.Exception, match="it left"):
        x.get()


def test_the_road_of_a_plan_is_that_of_its_steps(bob: Any) -> None:
    plan = sy.Plan("double", lambda x: x * 2).build(torch.ones(3)).send(bob)
    x = torch.ones(3).send(bob)
    bob.object_store.entry(x.id_at_location).mark(EMBARGO)

    with pytest.raises(PermissionError, match="cannot run"):
        plan(x)


# --- a message without the road


@pytest.mark.parametrize("returns_objects", [False, True])
@pytest.mark.parametrize("answer", [lambda value: value, lambda value: {"all": [value]}], ids=["bare", "nested"])
def test_an_object_that_a_handler_returns_without_letting_it_leave_stays(
    bob: Any, monkeypatch: pytest.MonkeyPatch, answer: Any, returns_objects: bool
) -> None:
    x = torch.ones(3).send(bob)
    facts = replace(messages.AskSchema.facts, returns_objects=returns_objects)
    monkeypatch.setattr(messages.AskSchema, "facts", facts)
    monkeypatch.setitem(
        messages.HANDLERS,
        messages.AskSchema,
        lambda worker, message, _sender: answer(worker.object_store.entry(message.id).value),
    )

    with pytest.raises(TypeError, match="cannot answer AskSchema: its handler returns an object without `leave`"):
        waiting._ask(bob, messages.AskSchema(x.id_at_location))


# --- a restriction whose objects others may compute with, but not have


@pytest.fixture
def secret(bob: Any) -> Any:
    """Two numbers at bob that may not leave, nor may what is computed from them."""
    procedure._added.pop()
    add_stage(SECRET, _keep_here, kinds={"leave"})
    return put_secret(bob, torch.tensor([0.5, 7.0]))


def _keep_here(_proceed: Any, _task: Any) -> Any:
    raise PermissionError("cannot leave: by a test")


def put_secret(bob: Any, tensor: Any) -> Any:
    pointer = tensor.send(bob)
    bob.object_store.entry(pointer.id_at_location).mark(SECRET)
    return pointer


def _write(bob: Any, secret: Any) -> Any:
    return torch.zeros(2).send(bob).add_(secret)


def _write_into_a_view(bob: Any, secret: Any) -> Any:
    y = torch.zeros(2).send(bob)
    y[0:1].copy_(secret[0:1])
    return y


def _write_under_a_view(bob: Any, secret: Any) -> Any:
    y = torch.zeros(2).send(bob)
    view = y.view(2)
    y.copy_(secret)
    return view


def _differentiate(bob: Any, secret: Any) -> Any:
    w = torch.ones(2, requires_grad=True).send(bob)
    (w * secret).sum().backward()
    return w.grad


def _fail(_bob: Any, secret: Any) -> Any:
    return torch.bernoulli(secret)


@pytest.mark.parametrize("compute", [_write, _write_into_a_view, _write_under_a_view, _differentiate, _fail])
def test_what_is_computed_from_restricted_objects_is_restricted(bob: Any, secret: Any, compute: Any) -> None:
    with pytest.raises(PermissionError, match="by a test"):
        compute(bob, secret).get()


def test_a_restriction_stays_when_a_gradient_arrives(bob: Any, secret: Any) -> None:
    w = torch.ones(2, requires_grad=True).send(bob)
    loss = (w * 2).sum()
    bob.object_store.entry(w.id_at_location).mark(SECRET)
    loss.backward()

    with pytest.raises(PermissionError, match="by a test"):
        w.get()


@pytest.mark.parametrize("compute", [lambda x: x[x > 1], lambda x: torch.nonzero(x > 1)], ids=["mask", "nonzero"])
def test_the_shape_of_a_result_does_not_disclose_restricted_values(secret: Any, compute: Any) -> None:
    with pytest.raises(ValueRefusedError):
        compute(secret)


def test_a_failure_does_not_disclose_restricted_values(bob: Any, secret: Any) -> None:
    valid = put_secret(bob, torch.tensor([0.5, 0.2]))

    assert torch.bernoulli(secret).shape == torch.bernoulli(valid).shape == (2,)


def test_a_function_of_the_owner_cannot_copy_restricted_values_into_another_argument(bob: Any, secret: Any) -> None:
    bob.register_obj(ObjectWrapper(lambda x, y: y.copy_(x).sum(), "leak"), "leak")
    y = torch.zeros(2).send(bob)

    waiting._ask(bob, Call("leak", (secret.child, y.child), {}, new_id()))

    assert y.get().tolist() == [0.0, 0.0]
