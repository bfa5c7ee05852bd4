"""Joint training: each worker executes its own message, and only the computation is shared."""

from __future__ import annotations

import sys
import threading
from dataclasses import replace
from typing import Any

import pytest

import syft_core as sy

torch = pytest.importorskip("torch")

from syft_core.exceptions import (  # noqa: E402  # torch may be missing
    ConnectionLostError,
    IdNotUniqueError,
    OperandChangedError,
    PolicyError,
)
from syft_core.serde import deserialize, serialize  # noqa: E402
from syft_core.workers.party.turns import is_wanted  # noqa: E402
from syft_torch import federated as fl  # noqa: E402
from syft_torch.federated import joint, loops  # noqa: E402
from syft_torch.federated.joint import Company, train_together  # noqa: E402
from syft_worker.allowances import Allowance  # noqa: E402
from syft_worker.errors import QuotaExceededError  # noqa: E402
from syft_worker.quotas import QuotaGuard  # noqa: E402

from .trainers import make_data, make_trainer  # noqa: E402


class Group:
    """Several workers, and the messages that train on them."""

    def __init__(self, hook: Any, data: Any = None, **options: Any) -> None:
        self.data = make_data(hook) if data is None else data
        self.trainer = make_trainer(hook, self.data, **options)
        self.clients = list(self.trainer.clients.values())
        self.workers = [client.location.face for client in self.clients]
        self.weights = self.trainer.weights
        self.messages = self.make()

    def make(self) -> list[Any]:
        return [client.make_training(self.trainer._job, self.weights, 5, None) for client in self.clients]

    def train(self, *places: int) -> list[Exception | None]:
        chosen = places or range(len(self.clients))
        return train_together([(self.clients[place].location, self.messages[place]) for place in chosen])

    def fetch(self, place: int) -> Any:
        return self.clients[place].fetch_training(self.trainer._job, self.messages[place].result)[0]

    def train_alone(self, place: int) -> Any:
        return self.clients[place].train(self.trainer._job, lambda: self.weights, 5, None)[0]

    def has_result(self, place: int) -> bool:
        return self.workers[place].object_store.get(self.messages[place].result) is not None


@pytest.fixture
def group(hook: Any) -> Group:
    return Group(hook)


@pytest.fixture
def loops_run(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the loops that were run: how many models each has trained."""
    found: list[str] = []
    alone, stacked = loops.train, loops.train_stacked

    def train(*args: Any) -> Any:
        found.append("1")
        return alone(*args)

    def train_stacked(*args: Any) -> Any:
        found.append(str(len(args[3])))
        return stacked(*args)

    monkeypatch.setattr(loops, "train", train)
    monkeypatch.setattr(loops, "train_stacked", train_stacked)
    return found


def test_one_loop_gives_each_worker_its_own_result(group: Group, loops_run: list[str]) -> None:
    assert group.train() == [None] * 5
    assert loops_run == ["5"]

    for place in range(5):
        assert torch.allclose(group.fetch(place), group.train_alone(place), atol=1e-6)


def test_a_result_was_computed_from_the_data_of_its_worker_alone(group: Group) -> None:
    group.train()

    for worker, message in zip(group.workers, group.messages, strict=True):
        store = worker.object_store
        data = [store.entry(pointer._id_at_location) for pointer in message.data]
        found = set(store.entry(message.result).sources)
        assert {source for entry in data for source in entry.sources} <= found
        others = [each for other in group.workers if other is not worker for each in other.object_store.iter_all()]
        assert not {source for entry in others for source in entry.sources} & found


def test_each_worker_gets_its_message_and_counts_its_operation(group: Group) -> None:
    for worker in group.workers:
        worker.log_msgs = True
    before = [worker.stats.operations for worker in group.workers]

    group.train()

    assert [worker.stats.operations for worker in group.workers] == [count + 1 for count in before]
    for worker in group.workers:
        assert [type(message).__name__ for message in worker.msg_history] == ["Train"]


@pytest.mark.parametrize("refuses", [False, True])
def test_a_worker_with_a_policy_is_asked_and_trains_by_itself(
    group: Group, loops_run: list[str], refuses: bool
) -> None:
    asked = []

    def decide(verb: str, stored: Any, _peer: Any, _value: Any) -> str | None:
        asked.append(verb)
        return "no" if refuses and verb in ("read", "call") else None

    group.workers[2].policy = decide
    outcomes = group.train()

    assert asked
    assert loops_run == (["4"] if refuses else ["4", "1"])
    assert [place for place in range(5) if group.has_result(place)] == ([0, 1, 3, 4] if refuses else [0, 1, 2, 3, 4])
    assert isinstance(outcomes[2], PolicyError | PermissionError) if refuses else outcomes[2] is None


def test_a_worker_with_private_data_trains_by_itself(hook: Any, loops_run: list[str]) -> None:
    private = make_data(hook, (40, 40), private=True)
    workers = [sy.VirtualWorker(hook, id=f"p{number}") for number in range(2)]
    public = make_data_on(workers)
    group = Group(hook, fl.FederatedDataset([*private, *public]))

    assert group.train() == [None] * 4

    assert loops_run == ["2", "1", "1"]
    for place in (0, 1):
        with pytest.raises(sy.exceptions.GetNotPermittedError):
            group.fetch(place)
    assert [group.workers[place].object_store.entry(group.messages[place].result).access for place in (0, 3)] == [
        frozenset({"board"}), None,
    ]  # fmt: skip


def make_data_on(workers: list[Any]) -> Any:
    from .trainers import make_samples  # noqa: PLC0415  # torch may be missing

    return [fl.BaseDataset(*make_samples(40, place)).send(worker) for place, worker in enumerate(workers)]


@pytest.mark.parametrize(("allowance", "what"), [(Allowance(objects=1), "objects"), (Allowance(bytes=2000), "bytes")])
def test_quotas_hold_in_company(hook: Any, allowance: Allowance, what: str) -> None:
    hook.local_worker.user = "eve"
    group = Group(hook)
    group.workers[1].guard = QuotaGuard(group.workers[1], {"eve": allowance})

    outcomes = group.train()

    assert isinstance(outcomes[1], QuotaExceededError)
    assert what in str(outcomes[1])
    assert [place for place in range(5) if group.has_result(place)] == [0, 2, 3, 4]


def test_a_worker_that_cannot_keep_its_result_does_not_spoil_the_others(hook: Any, group: Group) -> None:
    group.workers[3].register_obj(torch.ones(1), group.messages[3].result + 1)

    outcomes = group.train()

    assert isinstance(outcomes[3], IdNotUniqueError)
    assert [outcome for place, outcome in enumerate(outcomes) if place != 3] == [None] * 4
    assert torch.allclose(group.fetch(4), group.train_alone(4), atol=1e-6)


def test_data_that_changes_in_a_turn_ends_the_training_of_its_worker_only(
    group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loops, "TURN_SECONDS", 0)
    entry = group.workers[1].object_store.entry(group.messages[1].data[0]._id_at_location)
    token = is_wanted.set(lambda: bool(entry.value.add_(1).any()) or True)
    try:
        outcomes = group.train()
    finally:
        is_wanted.reset(token)

    assert isinstance(outcomes[1], OperandChangedError)
    assert [place for place in range(5) if group.has_result(place)] == [0, 2, 3, 4]


def test_others_use_the_workers_in_turns(hook: Any, group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "TURN_SECONDS", 0)
    free = []

    def look() -> bool:
        def take() -> None:
            found = [worker.lock.acquire(blocking=False) for worker in group.workers]
            for worker, is_taken in zip(group.workers, found, strict=True):
                if is_taken:
                    worker.lock.release()
            free.append(all(found))

        thread = threading.Thread(target=take)
        thread.start()
        thread.join(60)
        return True

    token = is_wanted.set(look)
    try:
        group.train()
    finally:
        is_wanted.reset(token)

    assert free == [True] * (5 + 3)  # before each worker comes, and after each batch


def test_nothing_is_kept_if_nobody_waits_for_the_results(group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "TURN_SECONDS", 0)
    token = is_wanted.set(lambda: False)
    try:
        outcomes = group.train()
    finally:
        is_wanted.reset(token)

    assert all(isinstance(outcome, ConnectionLostError) for outcome in outcomes)
    assert not any(group.has_result(place) for place in range(5))
    assert all(worker.lock.acquire(blocking=False) for worker in group.workers)


def test_companies_of_the_same_workers_do_not_wait_for_each_other_forever(hook: Any) -> None:
    data = make_data(hook)
    groups = [Group(hook, fl.FederatedDataset(list(data)), epochs=3) for _ in range(2)]
    outcomes: list[Any] = []
    threads = [
        threading.Thread(target=lambda g=g, order=order: outcomes.extend(g.train(*order)))
        for g, order in zip(groups, [(0, 1, 2, 3, 4), (4, 3, 2, 1, 0)], strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert outcomes == [None] * 10


def test_other_weights_and_data_of_another_form_are_another_loop(hook: Any, loops_run: list[str]) -> None:
    group = Group(hook, make_data(hook, (40, 33, 40, 33, 40, 20)))
    group.messages[4] = replace(group.messages[4], weights=group.weights + 1)

    assert group.train() == [None] * 6

    assert sorted(loops_run) == ["1", "1", "2", "2"]
    assert torch.allclose(group.fetch(1), group.train_alone(1), atol=1e-6)


def test_fixed_tensors_are_those_that_each_worker_has(hook: Any, loops_run: list[str]) -> None:
    group = Group(hook, model=torch.nn.Sequential(torch.nn.Linear(4, 8).requires_grad_(False), torch.nn.Linear(8, 3)))
    changed = group.workers[0].object_store.entry(group.messages[0].fixed[0]._id_at_location)
    with torch.no_grad():
        changed.value.add_(1)

    group.train()

    assert sorted(loops_run) == ["1", "4"]
    assert not torch.allclose(group.fetch(0), group.fetch(1))


@pytest.mark.parametrize("layer", [torch.nn.Dropout(), torch.nn.BatchNorm1d(4)], ids=["random", "statistics"])
def test_models_that_differ_in_company_are_trained_alone(hook: Any, loops_run: list[str], layer: Any) -> None:
    group = Group(hook, model=torch.nn.Sequential(layer, torch.nn.Linear(4, 3)))

    assert group.train() == [None] * 5

    assert loops_run == ["1"] * 5
    assert torch.equal(group.fetch(3), group.train_alone(3))


def test_more_workers_than_fit_a_loop_are_several_companies(hook: Any, loops_run: list[str]) -> None:
    group = Group(hook, make_data(hook, (20,) * 23))

    assert group.train() == [None] * 23
    assert loops_run == [str(joint.MOST), str(joint.MOST), "3"]


def test_workers_by_wire_train_by_themselves(hook: Any, loops_run: list[str]) -> None:
    workers = [sy.VirtualWorker(hook, id=f"s{number}", serialize=True) for number in range(2)]
    near = [sy.VirtualWorker(hook, id=f"n{number}") for number in range(2)]
    group = Group(hook, fl.FederatedDataset(make_data_on([*workers, *near])))

    assert group.train() == [None] * 4
    assert loops_run == ["2", "1", "1"]


def test_company_is_not_a_part_of_a_message(hook: Any, group: Group) -> None:
    message = group.messages[0]
    message.company = Company([])

    received = deserialize(serialize(replace(message, data=())))
    message = replace(message, data=())
    assert type(received) is type(message)
    assert not hasattr(received, "company")
    assert not hasattr(message, "company")


def test_a_company_needs_few_frames(group: Group) -> None:
    before = sys.getrecursionlimit()
    depth = 0
    frame: Any = sys._getframe()
    while frame is not None:
        depth, frame = depth + 1, frame.f_back
    sys.setrecursionlimit(depth + 400)
    try:
        outcomes = group.train()
    finally:
        sys.setrecursionlimit(before)

    assert outcomes == [None] * 5
