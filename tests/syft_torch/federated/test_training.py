"""The message ``Train``: the loop of the worker, as one operation that obeys the rules for all operations."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import pytest

import syft_core as sy
from syft_core.exceptions import (
    ConnectionLostError,
    GetNotPermittedError,
    ObjectNotFoundError,
    OperandChangedError,
    OperationFailedError,
    OperationNotAllowedError,
    SerdeError,
    SyftError,
)
from syft_core.hook.forms import form
from syft_core.messages import FetchAll, Store
from syft_core.peer import acting_for
from syft_core.plans.program import Program, Routine, Slot, Step
from syft_core.pointers.object_pointer import new_id
from syft_core.serde import Context, frames, from_frames
from syft_core.workers.party.turns import is_wanted
from syft_worker.allowances import Allowance
from syft_worker.desk.messages import AskRelease
from syft_worker.errors import QuotaExceededError
from syft_worker.quotas import QuotaGuard

torch = pytest.importorskip("torch")

from syft_torch import federated as fl  # noqa: E402  # torch may be missing
from syft_torch.federated import loops  # noqa: E402
from syft_torch.federated.training import Evaluate, Train  # noqa: E402
from tests.waiting import wait_until  # noqa: E402

from ...meanwhile import meanwhile  # noqa: E402
from .settings import SAMPLES, Setting, cross_entropy  # noqa: E402


def look(worker: Any, id: int) -> Any:
    return worker.object_store.entry(id)


# --- what it computes


def test_running_statistics_are_part_of_the_weights_and_other_tensors_stay(hook: Any, bob: Any) -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.linear = torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 3)
            self.frozen = torch.nn.Linear(4, 4)
            self.frozen.requires_grad_(False)
            self.register_buffer("places", torch.tensor([3, 2, 1, 0]))

        def forward(self, x: Any) -> Any:
            return self.linear(self.norm(self.frozen(x)[:, self.places]))

    setting = Setting(hook, bob, model=Net())

    difference, _ = setting.train()

    assert len(setting.recorded.trained) == 7  # four parameters, the mean, the variance and the count of batches
    assert setting.recorded.parameters == 4
    assert torch.equal(difference, setting.train_here()[0])


# --- private data


def test_an_update_of_private_data_is_private(private: Setting) -> None:
    with pytest.raises(GetNotPermittedError, match="it is private, or was computed from something private"):
        private.train()

    message = private.message()
    private.location.tell(message)
    for place in range(2):
        entry = look(private.worker, message.result + place)
        assert entry.access == frozenset({"board"})
        assert len(entry.sources) == 2
    assert not [line for line in private.worker.ledger if line.id in (message.result, message.result + 1)]


def test_an_allowed_user_gets_the_update_and_the_bits_are_the_same(hook: Any, alice: Any) -> None:
    hook.local_worker.user = "board"
    private = Setting(hook, alice, private=True)

    difference, _ = private.train()

    assert torch.equal(difference.child if hasattr(difference, "child") else difference, private.train_here()[0])


def test_an_owner_can_approve_an_update(private: Setting) -> None:
    message = private.message()
    private.location.tell(message)
    ids = (message.result, message.result + 1)
    private.location.ask(AskRelease(ids, None, "a study"))

    private.worker.approve(private.worker.requests[-1])

    difference, _ = private.location.ask(FetchAll(ids))
    assert torch.equal(difference, private.train_here()[0])
    assert [line.id for line in private.worker.ledger][-2:] == [*ids]


def test_training_on_private_data_that_fails_because_of_values_gives_zeros(hook: Any, alice: Any) -> None:
    private = Setting(hook, alice, private=True)
    labels = torch.full((SAMPLES,), 99).private_tensor(["board"])  # There are three classes.
    alice.load_data([labels.tag("#bad")])
    message = private.message(data=(private.data[0], alice.search("#bad")[0].child))

    private.location.tell(message)

    entry = look(alice, message.result)
    assert entry.value.shape == private.weights.shape
    assert not entry.value.any()
    hook.local_worker.user = "board"
    with pytest.raises(OperationFailedError, match="federated.train"):
        private.location.ask(FetchAll((message.result, message.result + 1)))


def test_an_error_because_of_values_is_shown_to_who_may_see_them(setting: Setting) -> None:
    labels = torch.full((SAMPLES,), 99).send(setting.worker)

    with pytest.raises(IndexError, match="Target 99 is out of bounds"):
        setting.train(data=(setting.data[0], labels.child))


def test_an_operation_that_was_not_reviewed_is_refused_on_private_data_only(hook: Any, bob: Any, alice: Any) -> None:
    unreviewed = next(op for op in hook.attributes.ops if op.name == "torch.Tensor.exponential_")
    assert unreviewed.tier != "reviewed" or unreviewed.writes
    hook.attributes.allow(_shift, "shift", discloses="nothing", writes=frozenset(), reads_beyond=False)
    forms = [
        form((4, 3), None, torch.float32, None, True),
        form((-1, 4), None, torch.float32),
        form((-1,), None, torch.int64),
    ]
    steps = (
        Step("torch", "torch.Tensor.matmul", (Slot(1), Slot(0)), {}, 1, hook.attributes.modes()),
        Step("torch", "shift", (Slot(3),), {}, 1),
        Step("torch", "torch.nn.functional.cross_entropy", (Slot(4), Slot(2)), {}, 1),
    )
    program = Program("loss", tuple(forms), (), 0, (Routine(steps, Slot(5)),))
    groups = (({"lr": 0.1}, (0,)),)
    try:
        for worker, private in ((bob, False), (alice, True)):
            setting = Setting(hook, worker, private=private)
            changes = {"plans": (setting.store(program),), "weights": torch.zeros(12), "fixed": ()}
            changes["settings"] = {**setting.settings, "groups": groups}
            if private:
                with pytest.raises(
                    fl.FederatedError, match="uses 'shift', which was not reviewed.*; use operations that are"
                ):
                    setting.train(**changes)
            else:
                assert setting.train(**changes)[0].shape == (12,)
    finally:
        hook.attributes.ops.by_name.pop("shift")


def _shift(x: Any) -> Any:
    return x + 1


def test_recurrent_models_train_on_private_data(hook: Any, alice: Any) -> None:
    class Series(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gru, self.linear = torch.nn.GRU(1, 5, batch_first=True), torch.nn.Linear(5, 3)

        def forward(self, x: Any) -> Any:
            return self.linear(self.gru(x.unsqueeze(2))[0][:, -1])

    private = Setting(hook, alice, private=True, model=Series())
    message = private.message()

    private.location.tell(message)

    assert torch.equal(look(alice, message.result).value, private.train_here()[0])


def test_random_numbers_on_private_data_do_not_follow_the_seed_of_the_sender(hook: Any, alice: Any) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(), torch.nn.Linear(8, 3))
    private = Setting(hook, alice, private=True, model=model)
    messages = [private.message(), private.message()]

    for message in messages:
        private.location.tell(message)

    one, two = (look(alice, message.result).value for message in messages)
    assert not torch.equal(one, two)


def test_the_forms_of_private_training_are_inferred_once(private: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    from syft_torch.federated import training  # noqa: PLC0415  # its class is patched

    calls = []
    rehearse = training.LoopOp.rehearse
    for _ in range(3):
        private.location.tell(private.message(seed=len(calls)))
    monkeypatch.setattr(training.LoopOp, "rehearse", lambda *args: calls.append(1) or rehearse(*args))

    private.location.tell(private.message(seed=77))

    assert not calls


# --- others


def test_others_get_turns_while_a_worker_trains(setting: Setting) -> None:
    turns, began, ends = [], threading.Event(), Countdown(10_000)

    def use() -> None:
        began.wait(60)
        while len(turns) < 5:
            turns.append(torch.ones(1).send(setting.worker).get().item())

    def goes_on() -> bool:
        began.set()
        return other.is_alive() and ends.goes_on()

    other = threading.Thread(target=use)
    other.start()
    with wanted_while(goes_on), pytest.raises(ConnectionLostError):
        setting.train(settings={**setting.settings, "epochs": 1 << 20})

    assert turns == [1.0] * 5


def test_a_thread_that_waits_goes_first_when_the_turn_of_a_training_ends(setting: Setting) -> None:
    worker, order, ends = setting.worker, [], Countdown(10)

    def take_turns() -> None:
        while ends.left:
            with worker.lock:
                order.append("other")

    other = threading.Thread(target=take_turns)

    def end_turn() -> None:
        order.append("training")
        wait_until(lambda: worker.lock.queue or not other.is_alive())

    other.start()
    worker.save = end_turn  # The worker calls it under its lock, after each turn.
    with wanted_while(ends.goes_on), pytest.raises(ConnectionLostError):
        setting.location.tell(setting.message(settings={**setting.settings, "epochs": 1 << 20}))
    other.join(60)

    turns = "".join([name[0] for name in order]).strip("o")
    assert turns.count("t") >= 10
    assert "tt" not in turns


class Countdown:
    """Ends a training after a number of turns."""

    def __init__(self, turns: int) -> None:
        self.left = turns

    def goes_on(self) -> bool:
        self.left -= 1
        return self.left > 0


@contextlib.contextmanager
def wanted_while(condition: Any) -> Any:
    """Let trainings of this thread go on as long as a condition holds, as a server does while a client waits."""
    token = is_wanted.set(condition)
    try:
        yield
    finally:
        is_wanted.reset(token)


def test_data_that_changes_meanwhile_ends_the_training(setting: Setting) -> None:
    x = look(setting.worker, setting.data[0]._id_at_location)
    changed = pytest.raises(
        OperandChangedError, match="cannot finish 'train' on worker 'bob': meanwhile another command"
    )

    with meanwhile(setting.worker, lambda _message: x.value.add_(1)), changed:
        setting.location.ask(setting.message(settings={**setting.settings, "epochs": 4000}))


def make_search(hook: Any, bob: Any, is_random: bool = False) -> Setting:
    """Return a setting in which an epoch is one step, which computes the loss many times."""
    layers = [torch.nn.Linear(4, 8), *[torch.nn.Dropout(0.1)] * is_random, torch.nn.Linear(8, 3)]
    setting = Setting(hook, bob, model=torch.nn.Sequential(*layers))
    setting.make = lambda p: torch.optim.LBFGS(p, lr=0.1, max_iter=20, tolerance_grad=0.0, tolerance_change=0.0)
    return setting


def train_in_one_step(setting: Setting) -> list[Any]:
    return setting.train(settings={**setting.settings, "batch_size": SAMPLES, "epochs": 1}, plans=setting.plans[:1])


@pytest.mark.parametrize("is_random", [False, True], ids=["fixed", "random"])
def test_others_get_turns_within_a_step_of_many_losses(
    hook: Any, bob: Any, monkeypatch: pytest.MonkeyPatch, is_random: bool
) -> None:
    setting = make_search(hook, bob, is_random)
    expected, state = train_in_one_step(setting), torch.get_rng_state()
    monkeypatch.setattr(loops, "TURN_SECONDS", -1)

    def use(_message: Any) -> None:
        assert torch.equal(torch.get_rng_state(), state)
        assert torch.is_grad_enabled()
        turns.append(torch.ones(1).send(bob).get().item())

    turns: list[float] = []
    with meanwhile(bob, use, Train):
        found = train_in_one_step(setting)

    assert turns == [1.0] * len(turns)
    assert len(turns) > 20
    assert all(map(torch.equal, found, expected))


def test_data_that_becomes_private_within_a_step_ends_the_training(
    hook: Any, bob: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting = make_search(hook, bob)
    monkeypatch.setattr(loops, "TURN_SECONDS", -1)
    entry, losses = look(bob, setting.data[0]._id_at_location), Countdown(5)

    def restrict(_message: Any) -> None:
        if not losses.goes_on():
            entry.restrict(frozenset({"zoe"}))

    with (
        meanwhile(bob, restrict, Train) as turns,
        pytest.raises(OperandChangedError, match="meanwhile another command"),
    ):
        train_in_one_step(setting)

    assert len(turns) == 5


@pytest.mark.parametrize("field", ["weights", "correction"])
def test_a_training_works_on_copies_of_weights_and_correction(
    hook: Any, bob: Any, monkeypatch: pytest.MonkeyPatch, field: str
) -> None:
    setting = Setting(hook, bob)
    flat = {"weights": setting.weights, "correction": torch.full_like(setting.weights, 0.1)}
    expected = setting.train(**flat)
    stored = {name: tensor.clone().send(bob) for name, tensor in flat.items()}
    value = bob.object_store.entry(stored[field].id_at_location).value
    monkeypatch.setattr("syft_torch.federated.loops.TURN_SECONDS", -1)

    with meanwhile(bob, lambda _message: value.add_(1)):
        found = setting.train(**{name: pointer.child for name, pointer in stored.items()})

    assert not value.equal(flat[field])
    assert all(one.equal(other) for one, other in zip(found, expected, strict=True))


def test_quotas_count_a_training_as_one_operation(hook: Any, bob: Any) -> None:
    hook.local_worker.user = "ana"
    setting = Setting(hook, bob)
    bob.guard = QuotaGuard(bob, {"ana": Allowance(objects=7)})
    before = bob.stats.operations

    setting.train()

    assert bob.stats.operations == before + 1
    bob.guard = QuotaGuard(bob, {"ana": Allowance(bytes=100)})
    with pytest.raises(QuotaExceededError, match=r"federated\.train|a Train"):
        setting.train()


def test_trainings_reserve_what_they_need_until_they_end(hook: Any, bob: Any) -> None:
    hook.local_worker.user = "ana"
    setting = Setting(hook, bob)
    guard = bob.guard = QuotaGuard(bob, {"ana": Allowance(bytes=10**9)})
    account, reserved = guard.account_of("ana"), []

    def start() -> None:
        with acting_for(()):
            setting.location.ask(setting.message(settings={**setting.settings, "epochs": 4000}))

    def start_another(_message: Any) -> None:
        reserved.append(account.reserved.bytes)
        if len(reserved) == 1:
            kept = next(each.bytes for each in guard.accounts)
            guard.configure({"ana": Allowance(bytes=int(kept + 2.5 * reserved[0]))})
            with pytest.raises(ValueError, match="by a test"):
                start()
        else:
            with pytest.raises(QuotaExceededError):
                start()
        reserved.append(account.reserved.bytes)
        raise ValueError("by a test")

    with meanwhile(bob, start_another), pytest.raises(ValueError, match="by a test"):
        start()

    needed = reserved[0]
    assert needed >= setting.x.nbytes + setting.y.nbytes + 3 * setting.weights.nbytes
    assert reserved == [needed, 2 * needed, 2 * needed, needed]
    assert account.reserved == (0, 0, 0)
    assert setting.train()[0].any()
    assert account.held == {}


def test_a_worker_may_allow_reviewed_operations_only(hook: Any, bob: Any) -> None:
    hook.local_worker.user = "ana"
    setting = Setting(hook, bob)
    bob.guard = QuotaGuard(bob, {"ana": Allowance(tier="reviewed")})

    assert setting.train()[0].any()


def test_a_plan_of_somebody_else_is_refused(hook: Any, bob: Any) -> None:
    setting = Setting(hook, bob)
    other = sy.VirtualWorker(hook, id="other")
    foreign = new_id()
    other.location_of(bob).tell(Store(foreign, setting.recorded.programs.all[0]))

    with pytest.raises(fl.FederatedError, match="somebody else has sent it"):
        setting.train(plans=(foreign,))


# --- malformed and malicious messages


def wrong_messages(setting: Setting) -> list[tuple[dict[str, Any], str]]:
    good, worker = setting.settings, setting.worker
    x, y = setting.data
    send = lambda tensor: tensor.send(worker).child  # noqa: E731  # short
    empty = (send(torch.zeros(0, 4)), send(torch.zeros(0, dtype=torch.int64)))
    return [
        ({"weights": setting.weights[:-1]}, "the weights do not have the form"),
        ({"weights": setting.weights.double()}, "the weights do not have the form"),
        ({"weights": 3}, "the weights do not have the form"),
        ({"weights": setting.weights.to_sparse()}, "the weights do not have the form"),
        ({"weights": setting.weights.to("meta")}, "the weights do not have the form"),
        ({"correction": setting.weights[:3]}, "the weights do not have the form"),
        ({"data": (x,)}, "a part of the data is missing"),
        ({"data": ()}, "a part of the data is missing"),
        ({"data": (y, x)}, "its data has the form"),
        ({"data": (x, send(setting.y[:-1]))}, "differ in length"),
        ({"data": empty}, "it has no samples"),
        ({"data": (send(setting.x.to_sparse()), y)}, "not a plain, dense tensor"),
        ({"plans": ()}, "its plans differ"),
        ({"parts": 0}, "fewer inputs"),
        ({"parts": 99}, "fewer inputs"),
        ({"settings": {**good, "epochs": 0}}, "'epochs' has a wrong type"),
        ({"settings": {**good, "epochs": 10**9}}, "'epochs' has a wrong type"),
        ({"settings": {**good, "batch_size": -1}}, "'batch_size' has a wrong type"),
        ({"settings": {**good, "clip": float("nan")}}, "'clip' has a wrong type"),
        ({"settings": {**good, "clip": 10**400}}, "'clip' has a wrong type"),
        ({"settings": {**good, "proximal": 1 << 63}}, "'proximal' has a wrong type"),
        ({"settings": {**good, "groups": (({"lr": 10**400}, (0,)),)}}, "'groups' has a wrong type"),
        ({"settings": {**good, "noise": 1.0}}, "'noise' is unknown here"),
        ({"settings": {**good, "optimizer": "SparseAdam"}}, "not in the table of optimizers"),
        ({"settings": {**good, "optimizer": "LBFGS"}}, "needs 'max_iter' from 1 to 100"),
        ({"settings": {**good, "optimizer": "__init__"}}, "not in the table of optimizers"),
        ({"settings": {**good, "groups": ()}}, "does not name each parameter once"),
        ({"settings": {**good, "groups": (({"lr": 0.1}, (0, 0)),)}}, "does not name each parameter once"),
        ({"settings": {**good, "groups": (({"lr": 0.1}, (99,)),)}}, "does not name each parameter once"),
        ({"settings": {**good, "groups": (({"lr": "x"}, (0,)),)}}, "'groups' has a wrong type"),
        ({"settings": {**good, "groups": (({"fused": True}, (0,)),)}}, "the unknown option 'fused'"),
        ({"settings": {**good, "groups": (({"params": 1}, (0,)),)}}, "the unknown option 'params'"),
    ]  # fmt: skip


@pytest.mark.parametrize("number", range(32))
def test_a_malformed_message_gets_a_clear_error(setting: Setting, number: int) -> None:
    changes, text = wrong_messages(setting)[number]

    with pytest.raises(SyftError, match=text):
        setting.train(**changes)
    assert setting.train()[0].any()


def test_all_malformed_messages_are_tried(setting: Setting) -> None:
    assert len(wrong_messages(setting)) == 32


def attack(setting: Setting, *steps: Any, answer: Any = None) -> Any:
    """Train with a program of these steps after the first; the model is one matrix."""
    first = Step("torch", "torch.Tensor.matmul", (Slot(1), Slot(0)), {}, 1, setting.hook.attributes.modes())
    forms = (
        form((4, 3), None, torch.float32, None, True),
        form((-1, 4), None, torch.float32),
        form((-1,), None, torch.int64),
    )
    made = sum(step.count for step in steps)
    program = Program("loss", forms, (), 0, (Routine((first, *steps), answer or Slot(3 + made)),))
    settings = {**setting.settings, "groups": (({"lr": 0.1}, (0,)),)}
    return setting.train(plans=(setting.store(program),), weights=torch.zeros(12), fixed=(), settings=settings)


ATTACKS = {
    "read other memory": (Step("torch", "torch.Tensor.as_strided", (Slot(3), (99,), (1,)), {}, 1), "may read other"),
    "a backward pass": (Step("torch", "torch.Tensor.backward", (Slot(3),), {}, 0), "changes gradients"),
    "a gradient": (Step("torch", "torch.Tensor.sum", (Slot(0, "grad"),), {}, 1), "it reads a gradient"),
    "a number": (Step("", "read number", (Slot(3),), {}, 1), "it reads a value"),
    "a vector": (Step("torch", "torch.Tensor.sum", (Slot(3), 1), {}, 1), "does not return a tensor with one number"),
    "a value": (Step("torch", "torch.Tensor.item", (Slot(3),), {}, 1), "reveal"),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
@pytest.mark.parametrize("is_private", [False, True])
def test_a_malicious_loss_is_refused(hook: Any, bob: Any, name: str, is_private: bool) -> None:
    setting = Setting(hook, bob, private=is_private)
    step, text = ATTACKS[name]

    with pytest.raises((SyftError, RuntimeError), match=text):
        attack(setting, step, answer=Slot(3) if name == "a number" else None)


def test_a_form_that_depends_on_private_values_is_refused(hook: Any, alice: Any) -> None:
    private = Setting(hook, alice, private=True)
    mask = Step("torch", "torch.Tensor.__gt__", (Slot(3), 0), {}, 1)
    choose = Step("torch", "torch.Tensor.__getitem__", (Slot(3), Slot(4)), {}, 1)
    total = Step("torch", "torch.Tensor.sum", (Slot(5),), {}, 1)

    with pytest.raises(SyftError, match="depends on values"):
        attack(private, mask, choose, total)


def test_an_unknown_operation_is_refused_when_the_plan_is_stored(setting: Setting) -> None:
    with pytest.raises(OperationNotAllowedError):
        attack(setting, Step("torch", "torch.load", ("/etc/passwd",), {}, 1))


def test_a_message_whose_fields_have_wrong_types_is_not_read(hook: Any, setting: Setting) -> None:
    context = Context(worker=hook.local_worker)
    for wrong in ({"parts": "2"}, {"seed": 0.5}, {"settings": []}, {"plans": [1]}, {"result": 1 << 80}):
        with pytest.raises(SerdeError):
            from_frames(frames(setting.message(**wrong), context), context)


# --- evaluation


def test_evaluation_returns_sums(setting: Setting) -> None:
    message = setting.message()
    id = new_id()

    setting.location.tell(
        Evaluate(message.plans, message.weights, message.fixed, message.data, 2, {"batch_size": 7}, id)
    )

    (sums,) = setting.location.ask(FetchAll((id,)))
    expected = cross_entropy(setting.model(setting.x), setting.y).item() * SAMPLES
    assert sums.tolist() == [pytest.approx(expected, rel=1e-5)]


def test_an_evaluation_of_private_data_is_private(private: Setting) -> None:
    message, id = private.message(), new_id()
    private.location.tell(Evaluate(message.plans, message.weights, (), message.data, 2, {"batch_size": 7}, id))

    with pytest.raises(GetNotPermittedError):
        private.location.ask(FetchAll((id,)))


def test_results_of_a_training_that_failed_are_missing(setting: Setting) -> None:
    message = setting.message(weights=setting.weights[:3])
    with contextlib.suppress(fl.FederatedError):
        setting.location.tell(message)

    with pytest.raises((ObjectNotFoundError, fl.FederatedError)):
        setting.location.ask(FetchAll((message.result,)))
