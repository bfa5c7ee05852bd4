"""What a command refers to is held while others go first, whatever the message, and a change of it ends the command."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")


import syft_core as sy  # noqa: E402  # torch may be missing
from syft_core.exceptions import ObjectNotFoundError, OperandChangedError  # noqa: E402
from syft_core.messages import (  # noqa: E402
    HANDLERS,
    Describe,
    Fetch,
    FetchAll,
    Forward,
    GetBack,
    Message,
    Run,
    SendOn,
    Tag,
)
from syft_core.plans.messages import RunPlan  # noqa: E402
from syft_core.pointers.object_pointer import new_id  # noqa: E402
from syft_core.workers.seeing.visibility import find_ids  # noqa: E402
from syft_mpc.messages import Deposit, OpenChannel, Prepare, RunProtocol  # noqa: E402
from syft_torch.federated.training import Evaluate, Train  # noqa: E402
from tests.messages import list_commands  # noqa: E402

from ...meanwhile import meanwhile  # noqa: E402
from ...syft_torch.federated.settings import Setting  # noqa: E402
from ..conftest import worker as make_worker  # noqa: E402
from ..secrets_of_others import store  # noqa: E402

TEXT = (
    r"cannot finish '.+' on worker 'bob': meanwhile another command changed what it uses, or who may have that; "
    "run it again when nobody changes its operands"
)


@pytest.fixture(autouse=True)
def short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let others go first after each step."""
    monkeypatch.setattr("syft_core.plans.running.TURN_SECONDS", -1)
    monkeypatch.setattr("syft_torch.federated.loops.TURN_SECONDS", -1)


# --- messages that wait


def _here(bob: Any) -> Any:
    return torch.zeros(3).send(bob)


def _elsewhere(bob: Any) -> Any:
    """Return a pointer to a pointer that bob has, to an object of alice."""
    return torch.zeros(3).send(bob.get_worker("alice")).send(bob)


def _ask(bob: Any, message: Message, *_kept: object) -> Any:
    """Send a message; the pointers to its operands are kept until it has been answered."""
    return bob.hook.local_worker.location_of(bob).ask(message)


def _run(bob: Any) -> Callable[[], Any]:
    x, y = _elsewhere(bob), _elsewhere(bob)
    return lambda: _ask(bob, Run("torch", "torch.Tensor.add_", (x.child, y.child), {}, new_id()))


def _fetch(bob: Any) -> Callable[[], Any]:
    x = _elsewhere(bob)
    return lambda: _ask(bob, Fetch(x.id_at_location, keep=True), x)


def _fetch_all(bob: Any) -> Callable[[], Any]:
    x, y = _elsewhere(bob), _here(bob)
    bob.object_store.entry(x.id_at_location).lease("alice")  # So that a copy of what it points to is fetched.
    return lambda: _ask(bob, FetchAll((x.id_at_location, y.id_at_location)), x, y)


def _forward(bob: Any) -> Callable[[], Any]:
    x = _here(bob)
    return lambda: _ask(bob, Forward(x.id_at_location, None, "alice", new_id(), True), x)


def _copy_here(bob: Any) -> Callable[[], Any]:
    x = _elsewhere(bob)
    return lambda: _ask(bob, Forward(x.id_at_location, None, "bob", new_id(), True), x)


def _describe(bob: Any) -> Callable[[], Any]:
    x, y = _elsewhere(bob), _elsewhere(bob)
    return lambda: _ask(bob, Describe((x.id_at_location, y.id_at_location)), x, y)


def _send_on(bob: Any) -> Callable[[], Any]:
    x = _here(bob)
    return lambda: _ask(bob, SendOn(x.id_at_location, "alice", new_id()), x)


def _get_back(bob: Any) -> Callable[[], Any]:
    x = _elsewhere(bob)
    return lambda: _ask(bob, GetBack(x.id_at_location), x)


def _run_plan(bob: Any) -> Callable[[], Any]:
    weight = torch.zeros(3)

    def compute(x: Any, w: Any) -> Any:
        for _ in range(5):
            x = x + 1
        return x * 0 + w * 1 + weight

    plan = sy.Plan("slow", compute).build(torch.zeros(3), torch.zeros(3)).send(bob)
    x, w = _here(bob), _here(bob)
    return lambda: _ask(bob, RunPlan(plan.id_at_location, (x.child, w.child), new_id()), plan)


def _make_training(bob: Any) -> tuple[Train, Setting]:
    setting = Setting(bob.hook, bob)
    setting.location.flush()
    flat = [setting.weights.clone().send(bob), torch.zeros_like(setting.weights).send(bob)]
    data = [part.clone().send(bob) for part in (setting.x, setting.y)]
    given = {"weights": flat[0].child, "correction": flat[1].child, "data": tuple([part.child for part in data])}
    return setting.message(**given), setting


def _train(bob: Any) -> Callable[[], Any]:
    message, setting = _make_training(bob)
    return lambda: _ask(bob, message, setting)


def _evaluate(bob: Any) -> Callable[[], Any]:
    sent, setting = _make_training(bob)
    metric = (sent.plans, sent.weights, sent.fixed, sent.data, sent.parts, {"batch_size": 8}, new_id())
    return lambda: _ask(bob, Evaluate(*metric), setting)


def _run_protocol(bob: Any) -> Callable[[], Any]:
    alice = bob.get_worker("alice")
    carol = make_worker(bob.hook, "carol", bob.serialize)
    x, y = (torch.tensor([1, 2, 3]).share(bob, alice, crypto_provider=carol) for _ in "xy")
    return lambda: (x * y).get()


CASES: dict[type, list[Callable[[Any], Callable[[], Any]]]] = {
    Run: [_run],
    Fetch: [_fetch],
    FetchAll: [_fetch_all],
    Forward: [_forward, _copy_here],
    Describe: [_describe],
    SendOn: [_send_on],
    GetBack: [_get_back],
    RunPlan: [_run_plan],
    Train: [_train],
    Evaluate: [_evaluate],
    RunProtocol: [_run_protocol],
}
"""What lets a worker wait, by the type of the message: makes an operand, and returns a function that sends it."""
WITHOUT_OPERANDS = {OpenChannel, Prepare, Deposit}
WAITING = [pytest.param(kind, make, id=make.__name__[1:]) for kind, made in CASES.items() for make in made]


def test_every_message_that_waits_is_tried() -> None:
    ours = set(list_commands())
    assert {kind for kind in ours if kind.facts.waits} == CASES.keys() | WITHOUT_OPERANDS


def test_a_message_that_does_not_say_that_it_waits_is_refused(bob: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(HANDLERS, Tag, lambda worker, _message, _sender: worker.yield_turn())

    with pytest.raises(TypeError, match="cannot handle a Tag: its handler waits; declare that in its facts"):
        _ask(bob, Tag(1))


def test_only_a_command_can_wait(bob: Any) -> None:
    with bob.lock, pytest.raises(RuntimeError, match="worker 'bob' executes no command that could wait"), bob.waiting():
        pass


@pytest.mark.usefixtures("alice")
def test_a_command_waits_while_another_one_does(bob: Any) -> None:
    x, y = _elsewhere(bob), _elsewhere(bob)
    commands: list[Any] = []

    def run_another(_message: Message) -> None:
        commands.append(bob.command)
        if len(commands) == 1:
            y.add_(2)

    with meanwhile(bob, run_another, Run):
        x.add_(1)

    assert commands == [None, None]
    assert (x.get().get().tolist(), y.get().get().tolist()) == ([1.0] * 3, [2.0] * 3)
    assert bob.command is bob.held is None


class Meanwhile:
    """Does something when a worker lets others go first with a kind of message, for each of its operands in turn."""

    def __init__(self, worker: Any, kind: type, do: Callable[[Any], None]) -> None:
        self.worker, self.do = worker, do
        self.place, self.count, self.done = 0, 0, False
        self.watch = meanwhile(worker, self.once, kind)
        self.watch.__enter__()

    def once(self, message: Any) -> None:
        if not self.done:
            self.done = True
            entries = self.find_operands(message)
            self.count = len(entries)
            self.do(entries[self.place])

    def find_operands(self, message: Any) -> list[Any]:
        entries = [self.worker.object_store.entry(id) for id in dict.fromkeys(find_ids(self.worker, message))]
        return entries + [state() for entry in entries for state in (entry.state or {}).values()]

    def again(self) -> bool:
        """Go on to the next operand; return whether there is one."""
        self.place, self.done = self.place + 1, False
        return self.place < self.count


def each_operand(bob: Any, kind: type, make: Any, do: Callable[[Any], None]) -> Iterator[Callable[[], Any]]:
    """Yield a function that sends the message, during which something happens to one of its operands."""
    meanwhile = Meanwhile(bob, kind, do)
    while True:
        yield make(bob)
        assert meanwhile.done
        assert not bob.object_store._held
        if not meanwhile.again():
            break


@pytest.mark.usefixtures("alice")
@pytest.mark.parametrize(("kind", "make"), WAITING)
def test_an_operand_that_becomes_private_ends_the_command(bob: Any, kind: type, make: Any) -> None:
    for send in each_operand(bob, kind, make, lambda entry: entry.restrict(frozenset({"zoe"}))):
        with pytest.raises(OperandChangedError, match=TEXT):
            send()


@pytest.mark.usefixtures("alice")
@pytest.mark.parametrize(("kind", "make"), WAITING)
def test_an_operand_that_is_dropped_is_held_until_the_end(bob: Any, kind: type, make: Any) -> None:
    dropped: list[Any] = []

    def drop(entry: Any) -> None:
        bob.object_store.remove(entry.id, "it was dropped")
        assert bob.object_store.find_sharing(entry.value)[:1] == [entry] or not entry.is_plain
        dropped.append(entry)

    for send in each_operand(bob, kind, make, drop):
        send()
        assert not bob.object_store.alike.get(dropped[-1].key)


@pytest.mark.usefixtures("alice")
@pytest.mark.parametrize(("kind", "make"), WAITING)
def test_what_is_written_into_a_dropped_operand_through_a_view_ends_the_command(
    bob: Any, kind: type, make: Any
) -> None:
    secret = store(bob, ["zoe"], [7.0])

    def write(entry: Any) -> None:
        if not (entry.is_plain and isinstance(entry.value, torch.Tensor) and entry.value.is_floating_point()):
            entry.restrict(frozenset({"zoe"}))
            return
        view = bob.hook.local_worker.location_of(bob)
        id = new_id()
        view.ask(Run("torch", "torch.Tensor.detach", (_point(bob, entry.id),), {}, id))
        bob.object_store.remove(entry.id, "it was dropped")
        view.ask(Run("torch", "torch.Tensor.copy_", (_point(bob, id), secret.child), {}, new_id()))

    for send in each_operand(bob, kind, make, write):
        with pytest.raises(OperandChangedError, match=TEXT):
            send()


def _point(bob: Any, id: Any) -> Any:
    pointer = _here(bob).child.sibling(garbage_collect_data=False)
    pointer._id_at_location = id
    return pointer


@pytest.mark.usefixtures("alice")
def test_the_error_is_the_same_whatever_went_wrong_inside(bob: Any) -> None:
    """A training on labels that become private, and wrong, tells nothing about them."""

    def write(entry: Any) -> None:
        if getattr(entry.value, "dtype", None) is torch.int64:
            entry.value.fill_(99)  # There are three classes.
        entry.restrict(frozenset({"zoe"}))

    for send in each_operand(bob, Train, _train, write):
        with pytest.raises(OperandChangedError, match=TEXT):
            send()


def test_what_has_arrived_stays_in_the_ledger_although_its_command_ends(bob: Any, alice: Any) -> None:
    x, sent = _here(bob), new_id()
    private = bob.object_store.entry(x.id_at_location)
    before = len(bob.ledger)

    with (
        meanwhile(bob, lambda _message: private.restrict(frozenset({"zoe"})), Forward),
        pytest.raises(OperandChangedError),
    ):
        _ask(bob, Forward(x.id_at_location, None, "alice", sent, True), x)

    assert alice.object_store.get(sent) is not None
    assert [left.event for left in bob.ledger][before:] == ["departed"]


def test_a_policy_that_changes_ends_the_command(bob: Any, alice: Any) -> None:
    for send in each_operand(bob, Fetch, _fetch, lambda _entry: setattr(bob, "policy", "nothing")):
        with pytest.raises(OperandChangedError, match=TEXT):
            send()


def test_an_owner_who_removes_a_user_ends_the_command(bob: Any, alice: Any, me: Any) -> None:
    data = torch.ones(3).private_tensor(["me", "zoe"])
    bob.load_data([data.tag("#data")])
    (x,) = bob.search("#data")
    plan = sy.Plan("slow", lambda x: ((x + 1) + 1) + 1).build(torch.ones(3)).send(bob)

    layer = bob.object_store.entry(x.id_at_location).value.child

    def send() -> Any:
        layer.register_credentials(["me", "zoe"])
        return _ask(bob, RunPlan(plan.id_at_location, (x.child,), new_id()))

    for again in each_operand(bob, RunPlan, lambda _bob: send, lambda _entry: layer.register_credentials(["zoe"])):
        with pytest.raises(OperandChangedError, match=TEXT):
            again()


def test_commands_that_end_with_an_error_let_go_of_their_operands(bob: Any, alice: Any) -> None:
    x = _elsewhere(bob)
    alice.clear_objects()

    with pytest.raises(ObjectNotFoundError):
        _ask(bob, GetBack(x.id_at_location))

    assert not bob.object_store._held
