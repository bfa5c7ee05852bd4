"""A study on private data of served workers of which only sums leave: one rule each, no click, and lost workers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import syft_core as sy  # noqa: E402
from syft_core.exceptions import GetNotPermittedError  # noqa: E402
from syft_core.tensors.schema import Column  # noqa: E402
from syft_core.workers.seeing.ledger import Ledger, read_ledger  # noqa: E402
from syft_sums.messages import JoinSum, MaskSum, RevealSum  # noqa: E402
from syft_torch import federated as fl  # noqa: E402
from syft_torch.federated.training import Train  # noqa: E402
from syft_worker.quotas import QuotaGuard  # noqa: E402

from .proxy import Proxy  # noqa: E402
from .served import Served, serve  # noqa: E402

NAMES = ("north", "south", "west", "east")
TAGS = ["#patients"]
ROUNDS = 5


class Study:
    """Hospitals with private tables, each served behind a proxy, whose owners made one rule each."""

    def __init__(self, hook: Any, folder: Path, stack: ExitStack, count: int) -> None:
        self.hook, self.folder, self._stack = hook, folder, stack
        self.served: dict[str, Served] = {}
        self.proxies: dict[str, Proxy] = {}
        self.locations: dict[str, Any] = {}
        for place, name in enumerate(NAMES[:count]):
            served = stack.enter_context(serve(hook, name, ledger=Ledger(name, path=folder / name)))
            served.worker.load_data([_make_table(place).private_tensor([]).tag(*TAGS)])
            self.served[name] = served
            self.connect(name)
        members = {name: served.worker.studies.fingerprint for name, served in self.served.items()}
        for served in self.served.values():
            fl.release_only_aggregates(
                served.worker, user="ana", computed_from=TAGS, members=members, any_program=True, changes=3
            )

    def connect(self, name: str) -> None:
        """Connect to a worker by a new proxy."""
        if name in self.locations:
            self.locations[name].close()
        self.hook.local_worker._known_workers.pop(name, None)
        self.proxies[name] = proxy = Proxy(self.served[name].server.port)
        self._stack.callback(proxy.close)
        url = f"ws://127.0.0.1:{proxy.port}"
        self.locations[name] = sy.connect(url, token="ana-secret", timeout=1)
        self._stack.callback(self.locations[name].close)
        self._stack.callback(self.hook.local_worker._known_workers.pop, name, None)

    def lose(self, name: str, kind: type) -> None:
        """Cut a worker off when it gets a message of this kind for the first time."""
        worker = self.served[name].worker
        worker.guard = Leaving(worker, self.proxies[name], kind)

    def find(self) -> fl.FederatedDataset:
        return fl.find(*TAGS, label="ill", workers=list(self.locations.values()))

    def make_trainer(self, data: Any = None, **options: Any) -> fl.FederatedTrainer:
        torch.manual_seed(0)
        return fl.FederatedTrainer(
            torch.nn.Linear(2, 2), torch.nn.functional.cross_entropy, lambda p: torch.optim.SGD(p, lr=0.5),
            self.find() if data is None else data, batch_size=16, options=fl.Options(**options),
            aggregation=fl.SecureAggregation("icu"),
        )  # fmt: skip

    def read_released(self, name: str) -> list[Any]:
        return [entry for entry in read_ledger(self.folder / name) if entry.event == "released"]


class Leaving(QuotaGuard):
    """The guard of a worker whose connection is cut when a message arrives, so that it cannot answer."""

    def __init__(self, worker: Any, proxy: Proxy, kind: type) -> None:
        super().__init__(worker, {})
        self._proxy, self._kind = proxy, kind

    def handle(self, handler: Any, worker: Any, message: Any, sender: Any) -> Any:
        if isinstance(message, self._kind):
            threading.Thread(target=self._proxy.close).start()
        return super().handle(handler, worker, message, sender)


def _make_table(place: int) -> torch.Tensor:
    rows = torch.randn(48 + place, 3, generator=torch.Generator().manual_seed(place)) * 4 + 100
    rows[:, 2] = (rows[:, 0] > rows[:, 1]).float()
    columns = Column("age"), Column("weight"), Column("ill", "category", categories=("no", "yes"))
    found: torch.Tensor = rows.name_columns(*columns)
    return found


@pytest.fixture
def study(torch_hook: Any, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Study]:
    torch_hook.attributes.warm_up()
    with ExitStack() as stack:
        yield Study(torch_hook, tmp_path, stack, getattr(request, "param", 3))


three = pytest.mark.parametrize("study", [3], indirect=True)
four = pytest.mark.parametrize("study", [4], indirect=True)


@pytest.mark.slow
@three
def test_five_rounds_need_one_rule_of_each_owner_and_no_click(study: Study, tmp_path: Path) -> None:
    icu, data = fl.SecureAggregation("icu"), study.find()
    train, test = fl.train_test_split(data, test_size=0.25)
    scaling = fl.Scaling.fit(train, aggregation=icu)
    train, test = scaling.apply(train), scaling.apply(test)
    trainer = fl.FederatedTrainer(
        torch.nn.Linear(2, 2), torch.nn.functional.cross_entropy, lambda p: torch.optim.SGD(p, lr=0.5), train,
        aggregation=icu,
    )  # fmt: skip

    history = trainer.fit(ROUNDS, checkpoint=tmp_path / "run", evaluate_every=ROUNDS, held_out=test)

    assert [row.workers for row in history] == [list(NAMES[:3])] * ROUNDS
    assert history.losses[-1] < history.losses[0]
    assert history[-1].evaluation["accuracy"] > 0.8
    for name, served in study.served.items():
        released = study.read_released(name)
        assert len(released) == ROUNDS + 2  # with the scaling and the evaluation
        assert all(entry.form.partition(" of ")[2].startswith('sum(study="icu"') for entry in released)
        assert {(entry.rule, entry.user, entry.names) for entry in released} == {("aggregates", "ana", ("#patients",))}
        assert not served.worker.requests
    with pytest.raises(GetNotPermittedError):
        train["north"].data.get()


@pytest.mark.slow
@four
@pytest.mark.parametrize(("kind", "is_member"), [(Train, False), (JoinSum, False), (MaskSum, False), (RevealSum, True)])
def test_a_worker_may_be_lost_in_each_phase_of_a_round(study: Study, kind: type, is_member: bool) -> None:
    trainer = study.make_trainer()
    trainer.fit(1)
    study.lose("east", kind)

    row = trainer.fit(1)[-1]

    assert row.workers == [*NAMES[:3], "east"] if is_member else list(NAMES[:3])
    assert list(row.left_out) == ([] if is_member else ["east"])
    samples = [48 + place for place in range(4)]
    assert row.samples == sum(samples if is_member else samples[:3])


@pytest.mark.slow
@three
@pytest.mark.parametrize("kind", [Train, JoinSum, MaskSum, RevealSum])
def test_a_round_that_too_few_finish_changes_nothing_and_is_repeated(study: Study, kind: type, tmp_path: Path) -> None:
    path = tmp_path / "run"
    trainer = study.make_trainer()
    trainer.fit(1, checkpoint=path)
    before, saved = trainer.weights, path.read_bytes()
    study.lose("west", kind)

    with pytest.raises(fl.FederatedError, match="cannot finish round 2: "):
        trainer.fit(1)
    assert torch.equal(trainer.weights, before)
    assert (len(trainer.history), path.read_bytes()) == (1, saved)

    study.served["west"].worker.guard = None
    study.connect("west")
    again = study.make_trainer()
    again.fit(2, checkpoint=path)

    assert [row.workers for row in again.history] == [list(NAMES[:3])] * 2
