"""A hidden object does not exist for others: every message gets the same answer as for an id that was never used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

import syft_core as sy
from syft_core.exceptions import IdNotUniqueError, ObjectNotFoundError, SerdeError
from syft_core.hook.forms import form
from syft_core.ids import IdProvider
from syft_core.messages import (
    AskSchema,
    Batch,
    Call,
    Describe,
    Fetch,
    FetchAll,
    Forward,
    GetBack,
    GetTicket,
    Introduce,
    Lease,
    Redeem,
    Release,
    Run,
    Search,
    SendOn,
    Store,
    Tag,
)
from syft_core.peer import Peer
from syft_core.plans.messages import RunPlan
from syft_core.plans.program import Program, Routine, Slot, Step
from syft_core.pointers.callable_pointer import ObjectWrapper
from syft_core.pointers.pointer_tensor import PointerTensor
from syft_core.serde import Context, frames, from_frames
from syft_core.workers.party.virtual import VirtualWorker
from syft_core.workers.seeing.ledger import Ledger
from syft_core.workers.seeing.visibility import find_ids
from syft_mpc.messages import Deposit, OpenChannel, Prepare, RunProtocol
from syft_sums.messages import AskMember, JoinSum, MaskSum, RevealSum
from syft_torch.federated.arranging import Arrange
from syft_torch.federated.statistics import Summarize
from syft_torch.federated.training import Evaluate, Train
from syft_torch.hook import TorchHook
from syft_worker.allowances import Allowance
from syft_worker.desk.messages import (
    AddApproval,
    AskRelease,
    AskStudy,
    DecideRequest,
    FetchReleased,
    FollowRequests,
    ListApprovals,
    ReviewRequests,
    RevokeApproval,
    ShowValues,
)
from syft_worker.quotas import QuotaGuard
from tests.messages import list_commands

EVE = Peer("phone@eve", "eve")
ids = IdProvider()


current: dict[str, Any] = {}
"""The worker of the test that runs."""


def at(id: Any, attr: str | None = None) -> PointerTensor:
    """Return a pointer that nobody gave, as a message of ours contains it."""
    bob = current["bob"]
    pointer = PointerTensor(bob, id, bob.hook.attributes, garbage_collect_data=False, owner=bob)
    pointer.point_to_attr = attr
    return pointer


def run(op: str, *args: Any, **kwargs: Any) -> Run:
    return Run("torch", f"torch.{op}", args, kwargs, ids.pop())


def train(**changes: Any) -> Train:
    """Return a message that the worker could execute, apart from the changes."""
    bob = current["bob"]
    known = (form((1,), None, torch.float32, None, True), form((2, 1), None, torch.float32))
    steps = (
        Step("torch", "torch.Tensor.mul", (Slot(1), Slot(0)), {}, 1, bob.hook.attributes.modes()),
        Step("torch", "torch.Tensor.sum", (Slot(2),), {}, 1),
    )
    program = Program("loss", known, (), 0, (Routine(steps, Slot(3)),))
    plan, data = ids.pop(), ids.pop()
    for stored in (Store(plan, program), Store(data, torch.ones(2, 1))):
        assert ask(bob, stored).failure is None
    settings = {"optimizer": "SGD", "groups": (({"lr": 0.1}, (0,)),)}
    return replace(Train((plan,), torch.ones(1), (), (at(data),), 1, settings, ids.pop()), **changes)


def evaluate(**changes: Any) -> Evaluate:
    made = train(**changes)
    return Evaluate(*[getattr(made, field.name) for field in fields(Evaluate)])


MESSAGES: dict[type, list[Callable[[Any], Any]]] = {
    Store: [lambda x: Store(ids.pop(), torch.ones(1), description=str(x))],
    Run: [
        lambda x: run("Tensor.add", at(x), 1),
        lambda x: run("Tensor.add_", at(x), 1),
        lambda x: run("Tensor.shape.__get__", at(x)),
        lambda x: run("cat", [at(x), at(x)]),
        lambda x: run("Tensor.mul", at(x, "grad"), 1),
        lambda x: run("Tensor.mul", at(x), other=at(x)),
        lambda x: run("no such operation", at(x)),
        lambda x: Run("numpy", "numpy.add", (at(x), 1), {}, ids.pop()),
    ],
    Fetch: [
        Fetch,
        lambda x: Fetch(x, keep=True),
        lambda x: Fetch(x, "grad"),
        lambda x: Fetch(x, "data"),
        lambda x: Fetch(x, user="boss"),
    ],
    FetchAll: [lambda x: FetchAll((x,)), lambda x: FetchAll((x, x))],
    AskRelease: [lambda x: AskRelease((x,), None, "please"), lambda x: AskRelease((x,), "grad", "please")],
    AskStudy: [lambda x: AskStudy((x,), "please", (), 3), lambda x: AskStudy((x,), "please", (), 3, "icu", 3, 1)],
    FollowRequests: [lambda x: FollowRequests((str(x),))],
    FetchReleased: [lambda x: FetchReleased(str(x))],
    ReviewRequests: [lambda x: ReviewRequests((str(x),))],
    DecideRequest: [lambda x: DecideRequest(str(x), "approve")],
    ShowValues: [lambda x: ShowValues(str(x))],
    ListApprovals: [lambda x: ListApprovals((str(x),))],
    AddApproval: [lambda x: AddApproval(str(x), {"user": "eve", "computed_from": ["#hidden"]})],
    RevokeApproval: [lambda x: RevokeApproval(str(x))],
    Forward: [
        lambda x: Forward(x, None, "bob", ids.pop(), True),
        lambda x: Forward(x, None, "alice", ids.pop()),
        lambda x: Forward(x, "grad", "nobody", ids.pop()),
    ],
    Lease: [lambda x: Lease((x,)), lambda x: Lease((x,), "alice")],
    Release: [lambda x: Release((x,)), lambda x: Release((x,), "alice")],
    Describe: [lambda x: Describe((x,)), lambda x: Describe((x,), "grad")],
    AskSchema: [AskSchema],
    Tag: [lambda x: Tag(x, ("#mine",)), lambda x: Tag(x, publish=True), lambda x: Tag(x, description="mine")],
    Search: [lambda x: Search((x,)), lambda _id: Search(("#hidden",)), lambda _id: Search(("in years",))],
    Call: [lambda x: Call(x, (), {}, ids.pop()), lambda x: Call("open", (at(x),), {}, ids.pop())],
    RunPlan: [lambda x: RunPlan(x, (), ids.pop()), lambda x: RunPlan(x, (at(x),), ids.pop())],
    Train: [
        lambda x: Train((x,), torch.ones(1), (), (), 1, {}, ids.pop()),
        lambda x: Train((x,), torch.ones(1), (at(x),), (at(x),), 1, {}, ids.pop()),
        lambda x: train(weights=at(x)),
        lambda x: train(correction=at(x)),
        lambda x: train(fixed=(at(x),)),
        lambda x: train(data=(at(x),)),
        lambda x: train(settings={"clip": at(x)}),
    ],
    Evaluate: [
        lambda x: Evaluate((x,), torch.ones(1), (), (at(x),), 1, {}, ids.pop()),
        lambda x: evaluate(weights=at(x)),
    ],
    Arrange: [
        lambda x: Arrange((at(x),), "half", {"test_size": 0.5, "is_test": True}, ids.pop()),
        lambda x: Arrange((at(x),), "columns", {"inputs": ("a",), "label": "b", "dtype": "float32"}, ids.pop()),
        lambda x: Arrange((at(x),), "scale", {}, ids.pop(), torch.ones(2, 4)),
        lambda x: Arrange((at(x),), "scale", {}, ids.pop(), at(x)),
    ],
    Summarize: [
        lambda x: Summarize((at(x),), "moments", ids.pop()),
        lambda x: Summarize((at(x),), "histogram", ids.pop(), torch.tensor([0.0, 1.0], dtype=torch.float64)),
        lambda x: Summarize((at(x),), "histogram", ids.pop(), at(x)),
    ],
    AskMember: [lambda _id: AskMember()],
    JoinSum: [lambda x: JoinSum("icu", (bytes(32),), 1, 1, (x,), "samples")],
    MaskSum: [lambda _id: MaskSum(bytes(32), 1, ())],
    RevealSum: [lambda _id: RevealSum(bytes(32), 1, bytes(32), ())],
    SendOn: [lambda x: SendOn(x, "alice", ids.pop()), lambda x: SendOn(x, "bob", ids.pop())],
    GetBack: [GetBack],
    GetTicket: [lambda x: GetTicket("alice", (x,))],
    Introduce: [lambda x: Introduce(x, "ticket")],
    OpenChannel: [lambda x: OpenChannel(x, "torch", ("bob", x), None, 1, x)],
    RunProtocol: [lambda x: RunProtocol(x, 1, "spdz_mul", (at(x), at(x)), {}, ids.pop(), 1, True)],
    Prepare: [lambda x: Prepare(x, 1, "spdz_mul", (((1,), "int64"),) * 2, {}, 1)],
    Deposit: [lambda x: Deposit(x, 1, None)],
    Redeem: [lambda x: Redeem(str(x))],
}
CASES = [
    pytest.param(make, id=f"{kind.__name__}-{number}")
    for kind, made in MESSAGES.items()
    for number, make in enumerate(made)
]


def test_the_table_has_every_message() -> None:
    ours = set(list_commands())
    assert set(MESSAGES) == {Redeem, *ours}


@pytest.mark.parametrize("kind", [kind for kind in MESSAGES if kind is not Redeem], ids=lambda kind: kind.__name__)
def test_the_operands_of_a_message_are_in_every_field_that_may_contain_a_pointer(bob: Any, kind: Any) -> None:
    """Every field that can be sent with a pointer in it, anywhere, is looked at; a new field need not be listed."""
    sample, id = MESSAGES[kind][0](7), ids.pop()
    for field in fields(kind):
        for part in (at(id), (at(id),), [at(id)], {"key": at(id)}, (slice(at(id)),)):
            try:
                sent = from_frames(
                    frames(replace(sample, **{field.name: part}), Context(worker=bob)), Context(worker=bob)
                )
            except SerdeError:
                continue
            assert (id in find_ids(bob, sent)) is (field.name != kind.facts.gives), field.name


@pytest.mark.parametrize("policy", ["only_published"])
def test_the_training_of_the_table_is_valid(bob: Any, policy: str) -> None:
    assert ask(bob, train()).failure is None


@pytest.fixture(scope="module")
def hook() -> Iterator[Any]:
    with TorchHook(torch) as hook:
        yield hook


def tensor() -> torch.Tensor:
    return torch.ones(3, 4, requires_grad=True)


KINDS: dict[str, Callable[[Any, Any], Any]] = {
    "tensor": lambda _hook, _alice: tensor(),
    "private": lambda _hook, _alice: tensor().private_tensor(["ana"]),
    "function": lambda _hook, _alice: ObjectWrapper(lambda x: x, id="function"),
    "pointer": lambda _hook, alice: torch.ones(2).send(alice),
    "plan": lambda hook, _alice: _make_plan(hook),
}


def _make_plan(hook: Any) -> Any:
    worker = VirtualWorker(hook, id="planner", auto_add=False)

    @sy.func2plan()
    def plan(x: Any) -> Any:
        return x + 1

    plan.build(torch.ones(2))
    plan.send(worker)
    return next(entry.value for entry in worker.object_store.entries())


@pytest.fixture(params=["only_published", "nothing"])
def policy(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def bob(hook: Any, policy: str, tmp_path: Any) -> Iterator[Any]:
    bob = VirtualWorker(hook, id="bob", auto_add=False, ledger=Ledger("bob", tmp_path / "ledger"))
    alice = VirtualWorker(hook, id="alice", auto_add=False)
    bob.add_worker(alice)
    bob.register_obj(ObjectWrapper(lambda x: x, id="open"), "open")
    current["bob"] = bob
    yield bob
    bob.ledger.close()


def ask(worker: Any, command: Any, sender: Peer = EVE) -> Any:
    sent = frames(Batch(1, (command,), True), Context(worker=worker))
    return from_frames(worker.deliver(sent, sender), Context(worker=worker))


def answer(worker: Any, command: Any, id: Any) -> tuple[Any, ...]:
    """Return everything that the sender of a command sees, without the id that differs."""
    reply = ask(worker, command)
    failure = reply.failure
    if failure is None:
        value = "a ticket" if type(command) is GetTicket else reply.value
        return "value", str(value).replace(repr(id), "ID")
    return type(failure.error), str(failure.error).replace(repr(id), "ID"), failure.trace


@pytest.mark.parametrize("make", CASES)
def test_a_hidden_object_and_none_at_all_give_the_same_answer(hook: Any, bob: Any, policy: str, make: Any) -> None:
    for kind, make_object in KINDS.items():
        for hidden, unused in ((f"patients, a {kind}", "doctors"), (ids.pop(), ids.pop())):
            bob.policy = "unless_private"
            bob.register_obj(make_object(hook, bob.get_worker("alice")), hidden)
            bob.object_store.tag(hidden, ("#hidden",), "in years")
            entry = bob.object_store.entry(hidden)
            entry.leases, entry.published = 1, policy == "nothing"
            bob.policy = policy
            bob.guard = QuotaGuard(bob, {"eve": Allowance(bytes=1_000_000, objects=100, leases=100)})

            about_hidden, about_none = answer(bob, make(hidden), hidden), answer(bob, make(unused), unused)

            assert about_hidden == about_none
            assert bob.object_store.get(hidden) is entry
            assert not entry.is_leased_to(EVE.id)


@pytest.mark.parametrize("make", CASES)
def test_an_object_of_another_client_and_its_end_are_hidden(bob: Any, policy: str, make: Any) -> None:
    gone, kept, unused = ids.pop(), ids.pop(), ids.pop()
    ana = Peer("laptop@ana", "ana")
    for id in (gone, kept):
        assert ask(bob, Store(id, torch.ones(2)), ana).failure is None
    bob.policy = policy
    ask(bob, Release((gone,)), ana)

    assert answer(bob, make(gone), gone) == answer(bob, make(kept), kept) == answer(bob, make(unused), unused)


def test_who_held_an_object_learns_what_happened_to_it(bob: Any, policy: str) -> None:
    id = ids.pop()
    bob.policy = policy
    ask(bob, Store(id, torch.ones(2)))
    ask(bob, Release((id,)))

    with pytest.raises(ObjectNotFoundError, match="its last pointer was dropped"):
        raise ask(bob, Fetch(id)).failure.error


@pytest.mark.parametrize("id", ["patients", "doctors"])
def test_a_peer_does_not_choose_names_that_can_be_guessed(bob: Any, policy: str, id: str) -> None:
    bob.register_obj(torch.ones(2), "patients")
    bob.policy = policy

    failure = ask(bob, Store(id, torch.ones(1))).failure

    assert type(failure.error) is IdNotUniqueError
    assert "lets only its owner name them" in str(failure.error)


def test_the_tags_of_hidden_objects_cannot_be_guessed(bob: Any) -> None:
    bob.register_obj(torch.ones(2), "patients")
    bob.object_store.tag("patients", ("#patients",))
    bob.policy = "nothing"

    for tag in ("#patients", "#doctors"):
        assert answer(bob, Store(id := ids.pop(), torch.ones(1), tags=(tag,)), id) == ("value", "None")
        assert [found[0] for found in ask(bob, Search((tag,))).value] == [id]
