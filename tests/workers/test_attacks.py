"""Attacks by messages written by hand: gradients, plans, tickets and releases do not get around the checks."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_core.exceptions import (  # noqa: E402
    GetNotPermittedError,
    ObjectNotFoundError,
    OperandChangedError,
    SerdeError,
    TicketError,
    ValueRefusedError,
    WriteNotPermittedError,
)
from syft_core.hook import caches  # noqa: E402
from syft_core.hook.forms import form  # noqa: E402
from syft_core.messages import (  # noqa: E402
    MAX_TEXT,
    Batch,
    Call,
    Fetch,
    FetchAll,
    Forward,
    GetTicket,
    Introduce,
    Lease,
    Release,
    Run,
    Search,
    SendOn,
    Store,
)
from syft_core.peer import Peer  # noqa: E402
from syft_core.plans.errors import PlanError  # noqa: E402
from syft_core.plans.messages import RunPlan  # noqa: E402
from syft_core.plans.program import MAX_SLOTS, Program, Routine, Slot, Step  # noqa: E402
from syft_core.pointers.callable_pointer import ObjectWrapper  # noqa: E402
from syft_core.serde import Context, frames, from_frames  # noqa: E402
from syft_core.workers.addresses.tickets import Mandate  # noqa: E402
from syft_core.workers.party.virtual import VirtualWorker  # noqa: E402
from syft_worker.desk.messages import AskRelease  # noqa: E402

from ..meanwhile import meanwhile  # noqa: E402
from ..syft_torch.federated.settings import Setting  # noqa: E402
from .test_authority import ANN, MALLORY, ask, at, load, run  # noqa: E402

SECRET = [86753.0, 1.0, 4.0]
X = form((3,), None, torch.float32)


@pytest.fixture
def bob(hook: Any) -> Any:
    made = VirtualWorker(hook, id="bob")
    load(made, torch.tensor(SECRET).private_tensor(["owner"]), "secret")
    return made


def step(op: str, *args: Any, count: int = 1, **kwargs: Any) -> Step:
    return Step("torch", f"torch.{op}", args, kwargs, count)


def program(*steps: Any, answer: Any = None, carry: Any = (), inputs: Any = (X,), state: Any = ()) -> Program:
    return Program("p", inputs, state, 0, (Routine(steps, answer, carry),))


def differentiate(bob: Any, pointer: Any) -> None:
    """Let a gradient be the secret, of everything that ``pointer`` was computed from."""
    ask(bob, run("Tensor.mul", pointer, at(bob, "secret"), result=300), run("Tensor.sum", at(bob, 300), result=301))
    ask(bob, run("Tensor.backward", at(bob, 301)))


# --- gradients of objects that nobody tracks


def test_a_tensor_under_two_ids_is_tracked_when_one_of_them_is_gone(bob: Any) -> None:
    ask(bob, Store(1, torch.zeros(3)), run("Tensor.contiguous", at(bob, 1), result=2))
    ask(bob, run("Tensor.requires_grad_", at(bob, 1)), Release((1,)))

    differentiate(bob, at(bob, 2))

    with pytest.raises(GetNotPermittedError, match="it is private"):
        ask(bob, Fetch(2, "grad", True))


def test_a_retained_gradient_is_tracked_under_the_other_id(bob: Any) -> None:
    ask(bob, Store(1, torch.zeros(3, requires_grad=True)), run("Tensor.mul", at(bob, 1), 1, result=5))
    ask(bob, run("Tensor.contiguous", at(bob, 5), result=2), run("Tensor.retain_grad", at(bob, 5)), Release((5,)))

    differentiate(bob, at(bob, 2))

    with pytest.raises(GetNotPermittedError, match="it is private"):
        ask(bob, Fetch(2, "grad", True))


@pytest.mark.parametrize("op", ["Tensor.backward", "autograd.backward"])
def test_a_gradient_is_tracked_that_a_backward_pass_was_asked_to_keep(bob: Any, op: str) -> None:
    ask(bob, Store(1, torch.zeros(3, requires_grad=True)), run("Tensor.mul", at(bob, 1), 1, result=2))
    ask(bob, run("Tensor.mul", at(bob, 2), at(bob, "secret"), result=300), run("Tensor.sum", at(bob, 300), result=301))

    ask(bob, run(op, at(bob, 301), inputs=[at(bob, 2)]))  # Torch makes 2, which is not a leaf, retain its gradient.

    with pytest.raises(GetNotPermittedError, match="it is private"):
        ask(bob, Fetch(2, "grad", True))


@pytest.mark.parametrize("op", ["view", "contiguous"])
@pytest.mark.parametrize("reuse", [False, True])
def test_the_gradient_of_a_removed_tensor_is_tracked_although_its_id_is_used_again(
    bob: Any, op: str, reuse: bool
) -> None:
    leaf = Store(1, torch.zeros(3, requires_grad=True))
    ask(bob, leaf, run("Tensor.sum", at(bob, 1), result=9), run("Tensor.backward", at(bob, 9)))
    ask(bob, run(f"Tensor.{op}", at(bob, 1, "grad"), *((3,) if op == "view" else ()), result=2))
    ask(bob, run("Tensor.mul", at(bob, 1), 1, result=3), Release((1,)), *([leaf] if reuse else []))

    differentiate(bob, at(bob, 3))

    with pytest.raises(GetNotPermittedError, match="it is private"):
        ask(bob, Fetch(2, None, True))


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
@pytest.mark.parametrize("way", ["needs gradients", "was set"])
def test_a_gradient_has_no_gradient_that_is_not_tracked(bob: Any, way: str) -> None:
    ask(bob, Store(1, torch.zeros(3, requires_grad=True)), run("Tensor.sum", at(bob, 1), result=9))
    ask(bob, run("Tensor.backward", at(bob, 9)))
    if way == "was set":
        ask(bob, Store(2, torch.zeros(3, requires_grad=True)), run("Tensor.grad.__set__", at(bob, 1), at(bob, 2)))
        ask(bob, run("Tensor.mul", at(bob, 2), 1, result=3), Release((2,)))
    else:
        ask(bob, run("Tensor.requires_grad_", at(bob, 1, "grad")), run("Tensor.mul", at(bob, 1, "grad"), 1, result=3))

    with contextlib.suppress(RuntimeError):
        differentiate(bob, at(bob, 3))
    ask(bob, run("Tensor.contiguous", at(bob, 1, "grad"), result=5))

    assert ask(bob, Fetch(5, "grad", True)) is None


def test_a_fact_about_form_cannot_be_asked_for_at_a_private_position(bob: Any) -> None:
    load(bob, torch.tensor(1).private_tensor(["owner"]), "n")
    ask(bob, Store(1, torch.ones(5, 6, 7)))

    for op in ("Tensor.size", "Tensor.stride"):
        for call in (
            run(op, at(bob, 1), at(bob, "n")),
            run(op, at(bob, 1), dim=at(bob, "n")),
            run(op, torch.ones(5, 6, 7), at(bob, "n")),
        ):
            with pytest.raises(ValueRefusedError):
                ask(bob, call)
    load(bob, torch.ones(5, 6, 7).private_tensor(["owner"]), "x")
    assert ask(bob, run("Tensor.size", at(bob, "x"), 1)) == 6
    assert ask(bob, run("Tensor.is_same_size", at(bob, "x"), at(bob, 1))) is True


# --- plans


@pytest.mark.filterwarnings("ignore:Using backward")
def test_a_plan_does_not_follow_the_graph_of_a_gradient_to_tensors_of_others(bob: Any) -> None:
    model = load(bob, torch.ones(3, requires_grad=True), "model")
    ask(bob, Store(1, torch.ones(3, requires_grad=True)), run("Tensor.mul", at(bob, 1), at(bob, 1), result=2))
    ask(bob, run("Tensor.mul", at(bob, 2), at(bob, "model"), result=3), run("Tensor.sum", at(bob, 3), result=4))
    ask(bob, run("Tensor.backward", at(bob, 4), None, None, True, [at(bob, 1)]))  # with a graph
    ask(bob, Store(50, program(step("Tensor.sum", Slot(0, "grad")), step("Tensor.backward", Slot(1), count=0))))

    with pytest.raises(WriteNotPermittedError):
        ask(bob, RunPlan(50, (at(bob, 1),), 60))
    assert model.grad is None


GRADIENT = step("Tensor.grad.__set__", Slot(0), Slot(1), count=0)
LEAF = step("ones_like", Slot(0), requires_grad=True)


@pytest.mark.parametrize(
    "steps",
    [
        [GRADIENT, step("Tensor.zero_", Slot(0, "grad"), count=0)],
        [
            LEAF,
            step("Tensor.grad.__set__", Slot(2), Slot(1), count=0),
            step("Tensor.sum", Slot(2)),
            step("Tensor.backward", Slot(3), count=0),
        ],
    ],
    ids=["zero", "backward"],
)
def test_a_plan_does_not_write_to_others_through_a_gradient(bob: Any, steps: Any) -> None:
    model = load(bob, torch.ones(3), "model")
    ask(bob, Store(1, torch.ones(3)), Store(50, program(*steps, inputs=(X, X))))

    with pytest.raises(WriteNotPermittedError):
        ask(bob, RunPlan(50, (at(bob, 1), at(bob, "model")), 60))
    assert model.tolist() == [1.0, 1.0, 1.0]


def test_a_gradient_that_a_plan_has_set_is_guarded(bob: Any) -> None:
    model = load(bob, torch.ones(3), "model")
    ask(bob, Store(1, torch.ones(3)), Store(50, program(GRADIENT, inputs=(X, X))))
    ask(bob, RunPlan(50, (at(bob, 1), at(bob, "model")), 60))

    with pytest.raises(WriteNotPermittedError):
        ask(bob, run("Tensor.zero_", at(bob, 1, "grad")))
    assert model.tolist() == [1.0, 1.0, 1.0]


def test_a_view_that_becomes_the_state_of_a_plan_is_guarded(bob: Any) -> None:
    model = load(bob, torch.ones(3), "model")
    ask(bob, Store(1, torch.zeros(3)))
    ask(bob, Store(50, program(step("Tensor.view", Slot(0), 3), carry=((1, 2),), state=(1,))))
    ask(bob, RunPlan(50, (at(bob, "model"),), 60))

    with pytest.raises(WriteNotPermittedError):
        ask(bob, run("Tensor.zero_", at(bob, 1)))
    assert model.tolist() == [1.0, 1.0, 1.0]


def test_a_leaf_that_becomes_the_state_of_a_plan_is_tracked(bob: Any) -> None:
    ask(bob, Store(1, torch.zeros(3)), Store(50, program(LEAF, carry=((0, 1),), inputs=(), state=(1,))))
    ask(bob, RunPlan(50, (), 60))

    differentiate(bob, at(bob, 1))

    with pytest.raises(GetNotPermittedError, match="it is private"):
        ask(bob, Fetch(1, "grad", True))


def test_a_leaf_that_only_a_plan_has_seen_is_tracked(bob: Any) -> None:
    steps = [
        LEAF,
        step("Tensor.sum", Slot(1)),
        step("Tensor.backward", Slot(2), count=0),
        step("Tensor.contiguous", Slot(1, "grad")),
        step("Tensor.mul", Slot(1), 2),
    ]
    ask(bob, Store(1, torch.zeros(3)), Store(50, program(*steps, answer=[Slot(3), Slot(4)])))
    ask(bob, RunPlan(50, (at(bob, 1),), 60))

    differentiate(bob, at(bob, 61))

    with pytest.raises(GetNotPermittedError, match="it is private"):
        ask(bob, Fetch(60, None, True))


def test_state_that_a_plan_replaces_stays_private(bob: Any) -> None:
    ask(bob, Store(5, torch.ones(3).private_tensor(["ann"])), Lease((5,), "mallory"), sender=ANN)
    ask(bob, Store(50, program(step("Tensor.mul", Slot(0), 1), carry=((0, 1),), inputs=(), state=(5,))))

    ask(bob, RunPlan(50, (), 60))  # Mallory has a pointer to it, and may change it.

    with pytest.raises(GetNotPermittedError, match="it is private"):
        ask(bob, Fetch(5, None, True))


def test_only_who_sent_a_plan_makes_the_call_that_creates_its_state(bob: Any) -> None:
    first = Routine((step("zeros_like", Slot(0)),), None, ((1, 2),))
    later = Routine((step("Tensor.add", Slot(1), Slot(0)),), None, ((1, 2),))
    ask(bob, Store(50, Program("train", (X,), (51,), 1, (first, later)), True), sender=ANN)
    for sender in (MALLORY, ANN):
        ask(bob, Store(f"x of {sender.user}", torch.ones(3)), sender=sender)

    with pytest.raises(WriteNotPermittedError):
        ask(bob, RunPlan(50, (at(bob, "x of mallory"),), 60))
    for _ in range(2):
        ask(bob, RunPlan(50, (at(bob, "x of ann"),), 60), sender=ANN)
    assert bob.get_obj(51).tolist() == [1.0, 1.0, 1.0]


def test_an_id_that_is_free_again_does_not_become_the_state_of_a_plan(bob: Any) -> None:
    plan = program(step("Tensor.mul", Slot(0), Slot(1)), answer=Slot(2), state=(51,))
    ask(bob, Store(51, torch.ones(3)), Store(50, plan, True), sender=ANN)
    bob.forget_client(ANN)
    ask(bob, Store(51, torch.zeros(3)), Store(1, torch.ones(3)))

    with pytest.raises(PlanError, match="object 51, a part of its state, is not the one it was sent with"):
        ask(bob, RunPlan(50, (at(bob, 1),), 60))


def test_a_refused_call_of_a_plan_keeps_no_results(bob: Any) -> None:
    load(bob, torch.ones(3), "model")
    ask(bob, Store(1, torch.ones(3)))
    ask(bob, Store(50, program(step("Tensor.add", Slot(0), 1), answer=Slot(2), carry=((1, 2),), state=("model",))))

    with pytest.raises(WriteNotPermittedError):
        ask(bob, RunPlan(50, (at(bob, 1),), 60))
    assert 60 not in bob.object_store


def test_the_ledger_names_the_data_of_a_plan_that_differentiates(bob: Any) -> None:
    load(bob, torch.ones(3), "patients")
    bob.object_store.tag("patients", ("#patients",))
    steps = [
        step("Tensor.mul", Slot(0), Slot(1)),
        step("Tensor.sum", Slot(2)),
        step("Tensor.backward", Slot(3), count=0),
    ]
    ask(bob, Store(1, torch.ones(3, requires_grad=True)), run("Tensor.mul", at(bob, 1), 1, result=2))
    ask(bob, Store(50, program(*steps, inputs=(X, X))), RunPlan(50, (at(bob, 2), at(bob, "patients")), 60))

    ask(bob, Fetch(1, "grad", True))

    assert "#patients" in bob.ledger[-1].names


def test_a_plan_contains_no_pointer_which_would_act_for_the_worker(hook: Any, bob: Any) -> None:
    alice = VirtualWorker(hook, id="alice")
    ask(alice, Store(5, torch.ones(3)), sender=bob.peer)
    pointer = hook.attributes.wrapper(at(alice, 5))

    for made in (
        lambda: program(step("Tensor.add_", pointer, 41, count=0)),
        lambda: program(step("Tensor.add", Slot(0), [at(bob, "secret")]), answer=Slot(1)),
        lambda: program(Step("", "copy constant", (pointer,), {}, 1), answer=Slot(1)),
        lambda: program(answer=pointer),
        lambda: program(step("isin", Slot(0), torch.ones(3, device="meta")), answer=Slot(1)),
    ):
        with pytest.raises(SerdeError, match="a constant is a pointer, another layer, or a tensor without data"):
            made()
    assert alice.get_obj(5).tolist() == [1.0, 1.0, 1.0]


def test_a_short_plan_has_no_large_number_of_results() -> None:
    steps = [step("Tensor.abs", Slot(0), count=1 << 16)] * 3

    assert len(steps) << 16 > MAX_SLOTS
    with pytest.raises(SerdeError, match="its steps have too many results"):
        program(*steps)


# --- tickets


def test_a_ticket_is_not_extended_by_naming_other_objects_as_results(bob: Any) -> None:
    ask(bob, Store(1, torch.ones(2)), Store(7, torch.ones(2)), sender=ANN)
    mandate = Mandate(bob.tickets.redeem(ask(bob, GetTicket("alice", (1,)), sender=ANN), "alice"))

    def act(*commands: Any) -> Any:
        sent = frames(Batch(1, commands, True), Context(worker=bob))
        reply = from_frames(bob.deliver(sent, Peer("alice"), mandate), Context(worker=bob))
        if reply.failure is not None:
            raise reply.failure.error
        return reply.value

    for command in (
        run("zeros", 2, result=7),
        Forward(1, None, "nowhere", 7, True),
        run("Tensor.abs_", at(bob, 1), result=7),
    ):
        with contextlib.suppress(Exception):
            act(command)
        with pytest.raises(TicketError, match="its ticket does not cover it"):
            act(Fetch(7, None, True))
    assert act(run("Tensor.add", at(bob, 1), 1, result=8), Fetch(8)).tolist() == [2.0, 2.0]


def test_a_ticket_does_not_release_what_others_lent_to_a_worker_of_that_name(bob: Any) -> None:
    ask(bob, Store(7, torch.ones(2)), Lease((7,), "alice"), Release((7,)), sender=ANN)
    mandate = Mandate(bob.tickets.redeem(ask(bob, GetTicket("alice", ())), "alice"))

    sent = frames(Batch(1, (Release((7,), ANN.id), Release((7,))), True), Context(worker=bob))
    bob.deliver(sent, Peer("alice"), mandate)

    assert 7 in bob.object_store


def test_nobody_introduces_a_worker_on_behalf_of_others(hook: Any, bob: Any) -> None:
    VirtualWorker(hook, id="alice")

    with pytest.raises(TicketError, match="only the client itself may do that"):
        ask(bob, Introduce("alice", "junk"), behalf=(ANN,))


def test_unused_tickets_name_a_bounded_number_of_objects(bob: Any) -> None:
    ask(bob, GetTicket("alice", tuple(range(40_000))))

    with pytest.raises(TicketError):
        ask(bob, GetTicket("alice", tuple(range(40_000))))


# --- what leaves


def test_a_release_contains_what_the_owner_has_seen_and_no_gradient(bob: Any) -> None:
    ask(bob, Store(1, torch.zeros(3, requires_grad=True)))
    differentiate(bob, at(bob, 1))
    number = ask(bob, AskRelease((1,), None, "my zeros"))
    assert bob.requests[0].values[0].grad is None

    bob.approve(number)

    assert ask(bob, Fetch(1)).grad is None


@pytest.mark.parametrize("message", [Fetch("data", None, True), Forward("data", None, "alice", 5, True)])
def test_an_object_leaves_without_a_gradient_that_the_policy_refuses(hook: Any, bob: Any, message: Any) -> None:
    alice = VirtualWorker(hook, id="alice")
    load(bob, torch.ones(2, requires_grad=True)).grad = torch.ones(2)
    bob.policy = "only_published"

    left = ask(bob, message)

    assert (alice.get_obj(5) if left is None else left).grad is None
    assert bob.get_obj("data").grad is not None


def test_an_approval_does_not_disclose_what_failed_after_it(bob: Any) -> None:
    ask(bob, run("Tensor.mul", at(bob, "secret"), 0.0, result=1))
    bob.approve(ask(bob, AskRelease((1,), None, "zeros")))
    raised = []

    for threshold in (0.0, 90_000.0):  # ``bernoulli`` fails if the difference is negative.
        ask(bob, run("Tensor.sub", at(bob, "secret"), threshold, result=2), run("Tensor.sign", at(bob, 2), result=3))
        ask(bob, run("bernoulli", at(bob, 3), result=4), run("Tensor.copy_", at(bob, 1), at(bob, 4)))
        with pytest.raises(ObjectNotFoundError) as error:
            ask(bob, FetchAll((1, "no such object")))  # does not use up the approval
        raised.append(str(error.value))
        ask(bob, Release((2, 3, 4)))

    assert raised[0] == raised[1]
    assert ask(bob, Fetch(1)).tolist() == [0.0] * 3


@pytest.mark.parametrize("message", [Fetch(1), Fetch(1, None, True), FetchAll((1,))], ids=["fetch", "keep", "all"])
@pytest.mark.parametrize("policy", ["unless_private", "only_published"])
def test_what_is_written_into_an_object_while_it_leaves_stays(bob: Any, message: Any, policy: str) -> None:
    ask(bob, Store(1, torch.zeros(3), True))
    bob.policy = policy

    left = bob.handle(message, MALLORY)  # The reply is encoded later, while other commands are executed.
    ask(bob, run("Tensor.add_", at(bob, 1), at(bob, "secret") if policy == "unless_private" else 1))

    (value,) = left if type(left) is list else [left]
    assert value.tolist() == [0.0] * 3


@pytest.mark.parametrize("message", [Fetch(1), Fetch(1, None, True), FetchAll((1,))], ids=["fetch", "keep", "all"])
def test_the_first_private_object_of_a_worker_stays_if_it_is_written_into_an_object_that_leaves(
    hook: Any, message: Any
) -> None:
    bob = VirtualWorker(hook, id="bob")
    ask(bob, Store(1, torch.zeros(3)))

    left = bob.handle(message, MALLORY)  # The reply is encoded later, while other commands are executed.
    ask(bob, Store(2, torch.tensor(SECRET).private_tensor(["ann"])), sender=ANN)
    ask(bob, run("Tensor.copy_", at(bob, 1), at(bob, 2)))

    (value,) = left if type(left) is list else [left]
    assert value.tolist() == [0.0] * 3


def test_an_unreviewed_operation_runs_on_public_data_only(hook: Any) -> None:
    bob = VirtualWorker(hook, id="bob")
    ask(bob, Store(1, torch.zeros(3)), sender=ANN)
    ask(bob, Store(2, torch.zeros(3)))
    ask(bob, run("Tensor.copy_", at(bob, 1), torch.tensor(SECRET).private_tensor(["ann"])), sender=ANN)

    ask(bob, run("histogram", at(bob, 2), 2, result=901))

    with pytest.raises(ValueRefusedError, match="it has not been reviewed for private data"):
        ask(bob, run("histogram", at(bob, 1), 2, result=903))
    with pytest.raises(ValueRefusedError, match="it has not been reviewed for private data"):
        ask(bob, run("histogram", at(bob, 2), at(bob, 1), result=903))


@pytest.mark.parametrize("message", [Forward(1, None, "alice", 2), SendOn(1, "alice", 2)], ids=["move", "send on"])
def test_what_is_written_into_an_object_while_it_moves_stays(hook: Any, bob: Any, message: Any) -> None:
    alice = VirtualWorker(hook, id="alice")
    ask(bob, Store(1, torch.zeros(3)))

    def write(_message: Any) -> None:
        ask(bob, run("Tensor.copy_", at(bob, 1), at(bob, "secret")))

    changed = pytest.raises(
        OperandChangedError, match="on worker 'bob': meanwhile another command changed what it uses"
    )
    with meanwhile(bob, write), changed, bob.lock:
        bob.handle(message, MALLORY)

    assert alice.get_obj(2).tolist() == [0.0] * 3
    assert bob.get_obj(1).tolist() == SECRET


def test_a_private_tensor_that_a_function_of_the_owner_returns_stays_private(bob: Any) -> None:
    table = torch.tensor(SECRET).private_tensor(["owner"])
    bob.register_obj(ObjectWrapper(lambda: table, "read"), "read")
    ask(bob, Call("read", (), {}, 900))

    with pytest.raises(GetNotPermittedError, match="it is private"):
        ask(bob, Fetch(900))

    assert ask(bob, Fetch(900), sender=Peer("desk", "owner")).child.child.tolist() == SECRET


@pytest.mark.parametrize(
    ("make", "shape", "options"),
    [
        (lambda: torch.zeros(1), (1, 3, 50, 50), {"memory_format": torch.channels_last}),
        (lambda: torch.zeros(1).expand(5000), (5001,), {}),
        (lambda: torch.zeros(2, 3).t(), (100, 100), {}),
    ],
)
def test_a_tensor_that_is_enlarged_shows_no_old_memory(hook: Any, make: Any, shape: Any, options: Any) -> None:
    bob = VirtualWorker(hook, id="open")
    bob.register_obj(make(), 1)
    junk = [torch.full(shape, 7.0) for _ in range(50)]
    del junk

    ask(bob, run("Tensor.resize_", at(bob, 1), shape, **options), sender=bob.peer)

    assert not ask(bob, Fetch(1)).any()


@pytest.mark.parametrize(
    ("call", "is_received"),
    [
        (lambda x, out: run("diff", x, 0, 0, out=out), True),
        (lambda x, out: run("diff", x, 0, 0, out=out), False),  # fails because of the dtype
        (lambda x, out: run("cumsum", x, 0, out=out), True),
        (lambda x, out: run("Tensor.resize_", out, (1 << 40,)), False),
    ],
    ids=["received", "another dtype", "another operation", "no memory"],
)
def test_a_target_that_is_resized_before_an_operation_fails_shows_no_other_memory(
    hook: Any, call: Any, is_received: bool
) -> None:
    """The storage of a received tensor cannot be resized; when torch notices that, the tensor has its new shape."""
    bob = VirtualWorker(hook, id="open")
    ask(bob, Store(1, torch.ones(100_000)), Store(2, torch.zeros(1, dtype=torch.int64)))
    ask(bob, run("Tensor.narrow", at(bob, 2), 0, 0, 0, result=3), run("Tensor.add", at(bob, 3), 0, result=4))
    target = 3 if is_received else 4
    with pytest.raises(RuntimeError):
        ask(bob, call(at(bob, 1), at(bob, target)))

    assert ask(bob, Fetch(target)).shape == (0,)


# --- time and memory


@pytest.mark.parametrize(
    "message",
    [
        lambda text: Run("torch", text, (), {}, 1),
        lambda text: Forward(1, None, text, 2),
        lambda text: Fetch(text),
        lambda text: Introduce(text, ""),
        lambda text: Search((text,)),
        lambda text: Store(1, program(step(text, count=0))),
    ],
)
def test_a_long_name_is_refused_before_it_is_compared_with_others(bob: Any, message: Any) -> None:
    with pytest.raises(SerdeError, match="has a wrong type or is too large"):
        ask(bob, message("x" * (MAX_TEXT + 1)))


def test_a_cache_holds_a_bounded_number_of_parts() -> None:
    cache: dict[Any, Any] = {}

    for n in range(10):
        caches.remember(cache, (n, "x" * (20 * caches.MAX_WEIGHT)), None)
        assert sum(len(text) for _, text in cache) <= 64 * caches.MAX_WEIGHT
    assert 1 <= len(cache) < 10


# --- memory of numpy


@pytest.mark.parametrize(
    ("op", "options"),
    [
        ("numpy.log", {"where": False, "out": None}),
        ("numpy.hypot", {"where": False, "out": None}),
        ("numpy.multiply.outer", {"where": False, "out": None}),
        ("numpy.clip", {"where": False, "out": None}),
    ],
)
def test_elements_that_a_function_of_numpy_leaves_out_show_no_old_memory(
    numpy_hook: Any, op: str, options: dict[str, Any]
) -> None:
    numpy = pytest.importorskip("numpy")
    bob = VirtualWorker(numpy_hook, id="numbers")
    ask(bob, Store(1, numpy.ones(1000)))
    operands = {"numpy.log": 1, "numpy.clip": 3}.get(op, 2)
    junk = [numpy.full(size, 7.0) for size in (1000, 1000_000) for _ in range(50)]
    del junk

    ask(bob, Run("numpy", op, (at(bob, 1),) * operands, options, 900))

    assert not ask(bob, Fetch(900)).any()


# --- memory that two commands bring


@pytest.mark.parametrize(
    "make",
    [
        lambda secret: step("Tensor.__add__", Slot(0), secret),
        lambda secret: step("Tensor.view", secret, 3),
        lambda secret: step("cat", [secret, secret]),
        lambda secret: Step("", "copy constant", (secret,), {}, 1),
    ],
)
def test_a_stored_tensor_is_no_constant_of_a_plan_in_the_same_batch(bob: Any, make: Any) -> None:
    """A private object in memory that nobody tracks could be read with any computation."""
    tensor = torch.zeros(3)
    ask(bob, Store(1, tensor), Store(2, torch.zeros(3)), Store(3, program(make(tensor), answer=(Slot(1),))))
    ask(bob, run("Tensor.copy_", at(bob, 1), at(bob, "secret")))

    ask(bob, RunPlan(3, (at(bob, 2),), 4))

    assert not ask(bob, Fetch(4)).any()


@pytest.mark.parametrize("field", ["weights", "correction"])
def test_a_stored_tensor_is_no_argument_of_a_training_in_the_same_batch(hook: Any, field: str) -> None:
    setting = Setting(hook, VirtualWorker(hook, id="carol", serialize=True))
    setting.location.flush()
    flat = torch.zeros_like(setting.weights)
    sent = Batch(1, (Store(1, flat), setting.message(**{field: flat})))

    stored, training = from_frames(frames(sent), Context(worker=setting.worker)).commands

    argument = getattr(training, field)
    assert argument.equal(stored.value)
    assert argument.data_ptr() != stored.value.data_ptr()
