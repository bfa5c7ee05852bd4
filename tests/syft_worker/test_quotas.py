"""Users get what their owner allows: errors name the quota, nothing is lost, and others notice nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields, replace
from itertools import product
from typing import Any
from weakref import ref

import pytest

from syft_core.exceptions import AuthenticationError, GetNotPermittedError, OperationNotAllowedError, SyftError
from syft_core.hook.forms import form
from syft_core.messages import (
    HANDLERS,
    Batch,
    Call,
    Fetch,
    FetchAll,
    Forward,
    Lease,
    Message,
    Release,
    Run,
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
from syft_core.workers.seeing.permissions import unless_private
from syft_worker.allowances import Allowance, make_policy
from syft_worker.desk.errors import ReleaseError
from syft_worker.desk.messages import AskRelease
from syft_worker.desk.requests import MAX_OPEN
from syft_worker.errors import QuotaExceededError
from syft_worker.incidents import Incident, Incidents
from syft_worker.quotas import MAX_DELAY, QuotaGuard
from tests.messages import list_commands

from ..network.conftest import Connect

torch = pytest.importorskip("torch")

Limit = Callable[..., Any]


@pytest.fixture
def limit(far: Any, connect: Connect) -> Limit:
    """Connect as ana, who has an allowance; others have none."""

    def limit(**allowance: Any) -> Any:
        users = {"ana": Allowance(**allowance)}
        far.guard = QuotaGuard(far, users)
        far.policy = make_policy(users, unless_private)
        return connect("ana")

    return limit


def do(far: Any, call: Callable[[], Any]) -> None:
    """Execute a call, and wait for its failure."""
    kept = call()
    far.flush()
    del kept


def connect_other(connect: Connect, hook: Any, name: str = "other", user: str = "bo") -> tuple[Any, Any]:
    client = VirtualWorker(hook, id=name, auto_add=False)
    return connect(user, client=client), client


@pytest.mark.parametrize(
    "call",
    [
        lambda x, far: far.remote.torch.zeros(10**12),
        lambda x, far: far.remote.torch.ones(10**6, 10**6, device="cpu:0"),
        lambda x, far: x.expand(10**9, 100, 100).contiguous(),
        lambda x, far: torch.outer(x.flatten(), x.flatten()),
        lambda x, far: x.repeat(1000, 1000),
        lambda x, far: torch.cat([x] * 1000),
        lambda x, far: torch.nn.functional.pad(x, (10**9, 0)),
        lambda x, far: x.new_zeros(10**12),
        lambda x, far: x.resize_(10**6, 10**6),
        lambda x, far: x.unsqueeze(0).broadcast_to(10**8, 100, 100).clone(),
        lambda x, far: torch.add(x.unsqueeze(0).expand(10**8, 100, 100), 1, out=x),
    ],
)
def test_a_result_that_is_too_large_is_refused_without_running(limit: Limit, call: Any) -> None:
    far = limit(bytes=10**6)
    x = torch.ones(100, 100).send(far)

    with pytest.raises(QuotaExceededError, match=r"cannot run 'torch.*': user 'ana' would then have [\d,]+ bytes"):
        do(far, lambda: call(x, far))

    assert x.copy().get().sum() == 10_000


def test_views_need_no_memory(limit: Limit) -> None:
    far = limit(bytes=10**5)
    x = torch.ones(100, 100).send(far)

    views = [x.t(), x.expand(10**9, 100, 100), x[0], x.view(-1), *x.unbind()]
    far.flush()

    assert (x[0] + views[2]).get().sum() == 200


def test_an_object_that_is_too_large_is_not_stored_and_dropping_pointers_makes_room(limit: Limit, hook: Any) -> None:
    far = limit(bytes=100_000)
    x = torch.ones(20_000).send(far)
    with pytest.raises(
        QuotaExceededError, match="user 'ana' would then have 160,000 bytes on the worker, and the limit"
    ):
        do(far, lambda: torch.ones(20_000).send(far))

    del x
    far.flush()
    y = torch.ones(20_000).send(far)

    assert y.get().sum() == 20_000


def test_a_small_view_counts_with_all_the_memory_that_it_keeps(limit: Limit, far: Any) -> None:
    location = limit(bytes=10**6)
    part = torch.ones(100_000).send(location)[:1]
    location.flush()

    (account,) = far.guard.accounts

    assert part.shape == (1,)
    assert account.bytes == 400_000


def test_too_many_objects_are_refused_before_they_are_made(limit: Limit) -> None:
    far = limit(objects=10)
    x = torch.ones(100).send(far)

    with pytest.raises(QuotaExceededError, match="cannot run 'torch.Tensor.unbind': .* 101 objects .* limit is 10;"):
        do(far, lambda: x.unbind())
    many = [x + 1 for _ in range(9)]
    far.flush()
    with pytest.raises(QuotaExceededError, match="11 objects"):
        do(far, lambda: many.append(x + 1))

    x.add_(1)  # This creates nothing.
    assert x.get()[0] == 2


def test_too_many_leases_are_refused(limit: Limit, far: Any) -> None:
    location = limit(leases=5)
    far.load_data([torch.ones(1).tag("#many") for _ in range(3)])

    found = [location.search("#many"), location.search("#many")]
    with pytest.raises(QuotaExceededError, match=r"cannot execute a Search: user 'ana' would then have 7 leases"):
        location.search("#many")

    assert len(found[0]) == 3


def test_others_are_not_affected_by_the_quota_of_a_user(limit: Limit, connect: Connect, hook: Any) -> None:
    far = limit(bytes=1000, objects=2)
    theirs, _client = connect_other(connect, hook)

    with pytest.raises(QuotaExceededError):
        do(far, lambda: torch.ones(1000).send(far))
    zeros = theirs.remote.torch.zeros(100_000)

    assert zeros.get().shape == (100_000,)


def test_who_has_used_up_the_cpu_seconds_has_to_wait(limit: Limit, connect: Connect, hook: Any) -> None:
    far = limit(cpu_seconds=0.001)
    theirs, _client = connect_other(connect, hook)
    x = torch.ones(300, 300).send(far)
    for _ in range(20):
        x = x @ x
    with pytest.raises(QuotaExceededError, match="'ana' has used up the 0.001 CPU seconds per minute; wait .* seconds"):
        do(far, lambda: far.search("#secret"))

    assert theirs.remote.torch.zeros(3).get().tolist() == [0, 0, 0]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which stands still."""
    now = [1000.0]
    monkeypatch.setattr("syft_worker.accounts.monotonic", lambda: now[0])
    return now


def test_who_sends_too_many_messages_is_slowed_down(clock: list[float], far: Any) -> None:
    guard = QuotaGuard(far, {"ana": Allowance(messages=100)})
    peer = Peer("me@ana", "ana")

    guard.account_of("ana").messages.since = clock[0]
    guard.account_of("ana").messages.use(250)

    assert guard.admit(peer, 1) == 1.5
    assert guard.admit(Peer("me@bo", "bo"), 1) == 0
    guard.account_of("ana").messages.use(10**6)
    assert guard.admit(peer, 2) == MAX_DELAY


def test_a_user_has_so_many_connections_and_can_connect_again(limit: Limit, connect: Connect, hook: Any) -> None:
    far = limit(connections=1)

    with pytest.raises(
        AuthenticationError, match="user 'ana' has 1 connections, and the limit is 1; close other connections"
    ):
        connect_other(connect, hook, user="ana")
    connect_other(connect, hook, "third", user="bo")

    far._connection.abort()
    assert far.remote.torch.zeros(1).get().tolist() == [0]


def test_a_user_of_the_reviewed_tier_cannot_run_other_operations(limit: Limit, hook: Any) -> None:
    far = limit(tier="reviewed")
    x = torch.ones(3, 3).send(far)
    public = next(op.name for op in hook.attributes.ops if op.tier == "public" and not (op.local or op.reveals))

    with pytest.raises(OperationNotAllowedError, match="user 'ana' may run only reviewed operations; ask the owner"):
        far.ask(Run("torch", public, (x.child,), None, 1))

    assert (x + x).get().sum() == 18


def test_each_user_has_a_policy(limit: Limit, connect: Connect, hook: Any) -> None:
    far = limit(policy="nothing")
    theirs, _client = connect_other(connect, hook)
    x = torch.ones(3).send(far)

    with pytest.raises(GetNotPermittedError, match="this worker lets nothing leave"):
        (x + 1).get()

    assert theirs.remote.torch.zeros(1).get().tolist() == [0]


def refuse(user: str, operation: str) -> Incidents:
    return Incidents(3600, None, [Incident(user, operation, "ended the process (SIGSEGV)", True, time.time())])


def test_a_refused_signature_is_refused_to_its_user_only_and_other_forms_are_not(
    far: Any, connect: Connect, hook: Any
) -> None:
    far.guard = QuotaGuard(far, {}, refuse("ana", "torch.Tensor.__add__(float32[3]/1, 1)"))
    location = connect("ana")
    x = torch.ones(3).send(location)
    theirs, _client = connect_other(connect, hook)

    why = r"it ended the process \(SIGSEGV\) before, and is refused to user 'ana' until .* UTC; use another operation, "
    for _ in range(2):
        with pytest.raises(OperationNotAllowedError, match=f"{why}or operands of another form, or ask the owner"):
            do(location, lambda: x + 1)
        assert (theirs.remote.torch.ones(3) + 1).get().tolist() == [2, 2, 2]

    assert (x + 2).get().tolist() == [3, 3, 3]


def test_what_is_allowed_again_is_run(far: Any, connect: Connect) -> None:
    far.guard = QuotaGuard(far, {}, refuse("ana", "torch.Tensor.__add__(float32[3]/1, 1)"))
    location = connect("ana")
    x = torch.ones(3).send(location)
    with pytest.raises(OperationNotAllowedError):
        do(location, lambda: x + 1)

    (ban,) = far.guard.bans
    far.guard.lift(ban)

    assert far.guard.bans == []
    assert (x + 1).get().tolist() == [2, 2, 2]


def test_a_client_that_has_gone_is_forgotten_unless_it_is_the_holder_of_objects(far: Any, connect: Connect) -> None:
    guard = far.guard = QuotaGuard(far, {})
    location = connect("ana")
    x = torch.ones(3).send(location)
    location.flush()
    (holder,) = guard._accounts._holders

    guard.forget(holder)
    assert holder in guard._accounts._holders

    del x
    location.flush()
    guard.forget(holder)
    assert (guard._accounts._holders, guard._accounts.known) == ({}, {})


def test_a_worker_without_a_guard_asks_nobody(far: Any, connect: Connect) -> None:
    assert far.guard is None
    assert (connect("ana").remote.torch.zeros(2) + 1).get().tolist() == [1, 1]


def test_a_refused_function_of_the_owner_is_not_called(far: Any, connect: Connect) -> None:
    location = connect("ana")
    (count,) = location.search("#count")
    far.guard = QuotaGuard(far, {}, refuse("ana", f"Call({count.id_at_location!a})"))

    with pytest.raises(OperationNotAllowedError, match=r"cannot run 'Call\(.*\)' on a worker: it ended the process"):
        count()


def ask(worker: Any, *commands: Any, sender: Peer, behalf: tuple[Peer, ...] = ()) -> None:
    """Deliver a batch that was written by hand."""
    sent = frames(Batch(1, commands, True, behalf), Context(worker=worker))
    reply = from_frames(worker.deliver(sent, sender, delegates=lambda _peer: True), Context(worker=worker))
    if reply.failure is not None:
        raise reply.failure.error


MALLORY, ANA = Peer("phone@eve", "eve"), Peer("laptop@ana", "ana")


def test_leases_that_are_given_to_others_count_for_the_giver(far: Any) -> None:
    far.guard = QuotaGuard(far, {"ana": Allowance(leases=10), "eve": Allowance(leases=10)})
    ask(far, Store(1, torch.ones(2)), sender=ANA)
    ask(far, Store(2, torch.ones(2)), sender=MALLORY)
    ask(far, Store(3, torch.ones(2), holder=ANA.id), sender=MALLORY, behalf=(ANA,))

    ask(far, *[Lease((2,), ANA.id)] * 8, sender=MALLORY)
    with pytest.raises(QuotaExceededError, match="user 'eve' would then have 11 leases"):
        ask(far, Lease((2,), ANA.id), sender=MALLORY)

    assert {account.user: account.leases for account in far.guard.accounts} == {"ana": 1, "eve": 10}


def test_copies_for_release_requests_count(far: Any) -> None:
    far.guard = QuotaGuard(far, {"eve": Allowance(bytes=10_000)})
    ask(far, Store(1, torch.ones(1000)), sender=MALLORY)
    ask(far, AskRelease((1,), None, "a copy"), sender=MALLORY)

    with pytest.raises(QuotaExceededError, match="cannot execute a AskRelease"):
        ask(far, AskRelease((1,), None, "another"), sender=MALLORY)

    far.deny(far.requests[0], "no")
    ask(far, AskRelease((1,), None, "another"), sender=MALLORY)


def test_a_request_does_not_keep_its_object_in_memory(far: Any) -> None:
    ask(far, Store(1, torch.ones(10)), sender=MALLORY)
    entry = ref(far.object_store.entry(1))
    ask(far, AskRelease((1,), None, "a copy"), sender=MALLORY)
    ask(far, Release((1,)), sender=MALLORY)

    assert entry() is None


def test_the_number_of_open_requests_is_that_of_a_user(far: Any) -> None:
    ask(far, Store(1, torch.ones(2)), Tag(1, ("#mine",)), sender=MALLORY)

    for number in range(MAX_OPEN):
        ask(far, AskRelease((1,), None, "please"), sender=Peer(f"phone{number}@eve", "eve"))

    with pytest.raises(ReleaseError, match="64"):
        ask(far, AskRelease((1,), None, "please"), sender=MALLORY)


REPEATING = [Fetch(2), Fetch(2, None, True), Forward(2, None, "alice", 3), FetchAll((1,) * 10_000)]


@pytest.mark.parametrize("message", REPEATING, ids=["fetch", "keep", "move", "all"])
@pytest.mark.parametrize("quota", [100_000, None])
def test_what_leaves_is_not_larger_than_the_quota_because_something_is_repeated(
    far: Any, message: Any, quota: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("syft_worker.quotas.MAX_COPIES", 100_000)
    far.guard = QuotaGuard(far, {"eve": Allowance(bytes=quota)})
    _store_view(far)

    with pytest.raises(QuotaExceededError, match="the objects would have 400,000 bytes when they leave"):
        ask(far, message, sender=MALLORY)

    ask(far, Fetch(1), sender=MALLORY)


def test_an_object_of_the_owner_that_is_larger_than_the_quota_can_be_fetched(far: Any) -> None:
    far.guard = QuotaGuard(far, {"eve": Allowance(bytes=1000)})
    far.register_obj(torch.ones(10_000), "large")

    ask(far, Fetch("large"), sender=MALLORY)


@pytest.mark.parametrize("message", [Forward(2, None, "far", 3), AskRelease((2,), None, "a copy")])
def test_a_copy_of_a_view_that_repeats_elements_counts_in_full(far: Any, message: Any) -> None:
    far.guard = QuotaGuard(far, {"eve": Allowance(bytes=100_000)})
    _store_view(far)

    with pytest.raises(QuotaExceededError, match="would then have 400,040 bytes"):
        ask(far, message, sender=MALLORY)


def test_the_tensors_and_the_steps_of_a_plan_count(far: Any) -> None:
    far.guard = QuotaGuard(far, {"eve": Allowance(bytes=1_000_000)})
    large = _plan(*[Step("torch", "torch.Tensor.add", (Slot(0), torch.ones(300_000)), {}, 1)])
    long = _plan(*[Step("torch", "torch.Tensor.add", (Slot(0), 1), {}, 1)] * 2000)

    for plan in (large, long):
        with pytest.raises(QuotaExceededError, match="cannot store object 1: user 'eve' would then have"):
            ask(far, Store(1, plan), sender=MALLORY)


def test_the_results_of_a_plan_are_refused_as_those_of_its_operations(far: Any) -> None:
    far.guard = QuotaGuard(far, {"eve": Allowance(bytes=1_000_000, objects=10)})
    large = _plan(*[Step("torch", "torch.ones", (50_000,), {}, 1)] * 6)
    many = _plan(*[Step("torch", "torch.ones", (1,), {}, 1)] * 10)
    ask(far, Store(1, torch.ones(3)), Store(2, large), Store(3, many), sender=MALLORY)

    for plan, what in ((2, "1,[0-9,]+ bytes"), (3, "11 objects")):
        with pytest.raises(QuotaExceededError, match=f"cannot run 'torch.ones': user 'eve' would then have {what}"):
            ask(far, RunPlan(plan, (_at(far, 1),), 100), sender=MALLORY)

    assert {account.user: account.objects for account in far.guard.accounts} == {"eve": 3}


def test_tags_and_descriptions_count(far: Any) -> None:
    far.guard = QuotaGuard(far, {"eve": Allowance(bytes=10_000)})
    words = {"tags": tuple([f"#{number}" + "x" * 4000 for number in range(2)]), "description": "x" * 4000}
    ask(far, Store(1, torch.ones(1)), sender=MALLORY)

    for message in (Store(2, torch.ones(1), **words), Tag(1, **words)):
        with pytest.raises(QuotaExceededError, match="would then have 12,0"):
            ask(far, message, sender=MALLORY)


FORM = form((3,), None, torch.float32)


def _plan(*steps: Step) -> Program:
    answer = tuple([Slot(1 + place) for place in range(len(steps))])
    return Program("p", (FORM,), (), 0, (Routine(steps, answer),))


def _at(worker: Any, id: int) -> PointerTensor:
    return PointerTensor(worker, id, worker.hook.attributes, garbage_collect_data=False, owner=worker)


def _store_view(worker: Any) -> None:
    """Store object 1, and a view of it that repeats its elements 10,000 times."""
    view = Run("torch", "torch.Tensor.expand", (_at(worker, 1), 10_000, 10), None, 2)
    ask(worker, Store(1, torch.ones(10)), view, sender=MALLORY)


def test_a_user_whom_nobody_configured_has_limits(far: Any) -> None:
    guard = QuotaGuard(far, {})
    user = guard.account_of("ana").allowance

    assert (user.objects, user.leases, user.connections, user.crashes) == (100_000, 1_000_000, 100, 5)
    assert guard.refuse_connection("ana", 99) is None
    assert guard.refuse_connection("ana", 100) == "user 'ana' has 100 connections, and the limit is 100"


STAND_INS: dict[str, Any] = {
    "int": 1,
    "int | str": 1,
    "str": "x",
    "bool": False,
    "bytes": b"",
    "dict[str, Any]": {},
    "Kwargs": {},
    "Args": (torch.ones(3),),
    "Any": torch.ones(3),
    "Tensor": torch.ones(3),
}


def make_message(kind: type[Message]) -> Message:
    """Return a message of a kind, with tensors wherever it may have some."""
    given = {}
    for each in fields(kind):
        annotation = str(each.type).removesuffix(" | None")
        is_tuple = annotation.startswith("tuple[")
        inner = STAND_INS.get(annotation.removeprefix("tuple[").partition(",")[0], 1)
        given[each.name] = (inner,) if is_tuple else STAND_INS.get(annotation)
    return kind(**given)


KINDS_OF_MESSAGES = list_commands()


def wait_with(worker: Any, message: Message, *did: Callable[[], object], sender: Peer = MALLORY) -> None:
    """Handle a message, whose handler waits while each of the functions is called."""

    def wait(worker: Any, _message: Message, _sender: Peer) -> None:
        for do in did or (lambda: None,):
            with worker.waiting():
                do()

    with worker.lock, pytest.MonkeyPatch.context() as patch:
        patch.setitem(HANDLERS, type(message), wait)
        patch.setattr(type(message), "facts", replace(message.facts, waits=True))
        worker.handle(message, sender)


def fail() -> None:
    raise SyftError("by a test")


def interrupt() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("kind", KINDS_OF_MESSAGES, ids=lambda kind: kind.__name__)
def test_nothing_stays_reserved_whichever_message_fails_at_whichever_stage(far: Any, kind: type[Message]) -> None:
    guard = far.guard = QuotaGuard(far, {"eve": Allowance(bytes=10**6)})
    account = guard.account_of("eve")

    def look() -> None:
        assert len(account.held) == 1

    for stage, end in product(range(3), (fail, interrupt, look)):
        with suppress(SyftError, KeyboardInterrupt):
            wait_with(far, make_message(kind), *[look] * stage, end, look)
        assert account.held == {}
        assert account.reserved == (0, 0, 0)


def test_what_a_waiting_command_needs_counts_for_the_next_one(far: Any) -> None:
    far.guard = QuotaGuard(far, {"eve": Allowance(bytes=10_000)})

    def store() -> None:
        with pytest.raises(QuotaExceededError, match="would then have 12,000 bytes"):
            ask(far, Store(1, torch.ones(1500)), sender=MALLORY)

    wait_with(far, Run("torch", "torch.cat", ([torch.ones(1500)],), None, 5), store)
    ask(far, Store(1, torch.ones(1500)), sender=MALLORY)


def test_copies_that_are_being_sent_count_together(far: Any) -> None:
    far.guard = QuotaGuard(far, {"eve": Allowance(bytes=10_000)})
    ask(far, Store(1, torch.ones(1500)), sender=MALLORY)
    message = Forward(1, None, "alice", 3)

    def send_again() -> None:
        with pytest.raises(QuotaExceededError, match="the objects would have 12,000 bytes when they leave"):
            wait_with(far, message)

    wait_with(far, message, send_again)
    wait_with(far, message)


def test_what_a_function_of_the_owner_returns_is_dropped_if_it_exceeds_the_quota(far: Any) -> None:
    far.guard = QuotaGuard(far, {"eve": Allowance(bytes=10_000)})
    far.load_data([ObjectWrapper(lambda: [torch.ones(2000), torch.ones(2000)], id="make", tags={"#make"})])
    (found,) = far.object_store.search(("#make",))

    with pytest.raises(QuotaExceededError, match="cannot execute a Call: user 'eve' would then have 16,000 bytes"):
        ask(far, Call(found, (), {}, 50), sender=MALLORY)

    assert far.object_store.get(50) is far.object_store.get(51) is None
    assert [account.bytes for account in far.guard.accounts] == [0]


@pytest.mark.parametrize("clients", [1, 5])
def test_the_connections_of_a_user_have_one_account(far: Any, clients: int) -> None:
    far.guard = QuotaGuard(far, {"eve": Allowance(bytes=10_000)})
    peers = [Peer(f"phone{number}@eve", "eve") for number in range(clients)]
    ask(far, Store(1, torch.ones(1500)), sender=peers[0])

    for number, peer in enumerate(peers):
        with pytest.raises(QuotaExceededError, match="12,000 bytes"):
            ask(far, Store(10 + number, torch.ones(1500)), sender=peer)


def test_commands_of_the_worker_itself_are_not_limited_when_they_wait(far: Any) -> None:
    """What the owner has loaded is not counted for a user afterwards."""
    far.guard = QuotaGuard(far, {"": Allowance(bytes=10)})
    far.load_data([torch.ones(100).tag("#large")])
    (found,) = far.object_store.search(("#large",))

    wait_with(far, Forward(found, None, "alice", 3), sender=far.peer)

    assert [account for account in far.guard.accounts if account.bytes] == []
    assert far.guard.account_of("").held == {}
