from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn, optim  # noqa: E402  # torch may be missing

from syft_core.exceptions import GetNotPermittedError  # noqa: E402
from syft_core.workers.party.turns import is_wanted  # noqa: E402
from syft_torch import federated as fl  # noqa: E402
from syft_torch.federated.engines import explain  # noqa: E402
from syft_worker.desk.errors import ReleaseDeniedError, ReleasePendingError  # noqa: E402

from .trainers import STRATEGIES, make_data, make_samples, make_trainer, sgd, wide  # noqa: E402


@pytest.mark.parametrize("make", STRATEGIES)
@pytest.mark.parametrize(
    "make_optimizer", [sgd, lambda p: optim.Adam(p, lr=0.01), lambda p: optim.SGD(p, lr=0.1, momentum=0.9)]
)
def test_stacked_clients_give_the_same_model(hook: Any, make: Any, make_optimizer: Any) -> None:
    make_optimizer = sgd if make is fl.Scaffold else make_optimizer  # It needs plain SGD.
    counts = [40, 40, 33, 40, 40]
    found = {}
    for engine in ("workers", "stacked"):
        data = make_data(hook, counts)
        trainer = make_trainer(hook, data, engine=engine, strategy=make(), optimizer=make_optimizer, clip_grad=1.0)
        trainer.fit(3)
        found[engine] = trainer.weights

    assert torch.allclose(found["workers"], found["stacked"], atol=1e-6)


class Words(nn.Module):
    """A model that reads numbers as words."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.linear = nn.Embedding(8, 4), nn.Linear(16, 3)

    def forward(self, x: Any) -> Any:
        return self.linear(self.embed((x.abs() * 3).long().clamp(max=7)).flatten(1))


class Series(nn.Module):
    """A recurrent model."""

    def __init__(self) -> None:
        super().__init__()
        self.gru, self.linear = nn.GRU(1, 5, batch_first=True), nn.Linear(5, 3)

    def forward(self, x: Any) -> Any:
        return self.linear(self.gru(x.unsqueeze(2))[0][:, -1])


class Cast(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.bfloat16()


class Small(nn.Module):
    def forward(self, x: Any) -> Any:
        return (x.half() * 3).float()


class Mixed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: Any) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.linear(x).float()


MODELS: dict[str, Any] = {
    "batch norm": (lambda: wide(nn.BatchNorm1d(8)), "running statistics"),
    "dropout": (lambda: wide(nn.Dropout()), "random numbers"),
    "fixed batch norm": (lambda: wide(nn.BatchNorm1d(8)).eval(), None),
    "other norms": (lambda: wide(nn.LayerNorm(8), nn.GELU(), nn.GroupNorm(2, 8)), None),
    "changes in place": (lambda: wide(nn.ReLU(inplace=True)), None),
    "embeddings": (Words, None),
    "convolutions": (lambda: nn.Sequential(nn.Unflatten(1, (1, 4)), nn.Conv1d(1, 3, 2), nn.Flatten()), None),
    "recurrent": (Series, "random numbers"),  # torch's own function has dropout
    "small floats": (lambda: nn.Sequential(Cast(), wide().bfloat16()), "less than 32 bits"),
    "autocast": (lambda: wide(Mixed()), "less than 32 bits"),
    "small floats within": (lambda: wide(Small()), "less than 32 bits"),
}


@pytest.mark.parametrize("name", MODELS)
def test_stacked_models_give_the_same_or_train_alone_and_say_why(
    hook: Any, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    make, obstacle = MODELS[name]
    found = {}
    for engine in ("workers", "stacked"):
        torch.manual_seed(0)
        data = make_data(hook, [40, 31, 40, 31])
        trainer = make_trainer(hook, data, model=make(), engine=engine, optimizer=lambda p: optim.RMSprop(p, lr=0.01))
        trainer.fit(2)
        found[engine] = trainer.weights

    assert torch.allclose(found["workers"], found["stacked"], atol=1e-6)
    assert trainer._engine.name == ("stacked" if obstacle is None else "workers")
    assert (obstacle or "") in caplog.text
    assert bool(caplog.text) == (obstacle is not None)


def test_stacking_is_chosen_where_it_gives_the_same(hook: Any, bob: Any) -> None:
    dropout = nn.Sequential(nn.Linear(4, 3), nn.Dropout())

    assert make_trainer(hook)._engine.name == "stacked"
    assert make_trainer(hook, model=dropout)._engine.name == "workers"
    assert make_trainer(hook, engine="workers")._engine.name == "workers"
    assert (
        make_trainer(hook, fl.FederatedDataset([fl.BaseDataset(*make_samples(9)).send(bob)]))._engine.name == "workers"
    )


def test_large_models_are_stacked_only_if_that_is_asked_for(hook: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = make_trainer(hook)
    monkeypatch.setattr("syft_torch.federated.engines.MAX_STACKED_WEIGHTS", len(trainer.weights))
    assert make_trainer(hook)._engine.name == "stacked"

    monkeypatch.setattr("syft_torch.federated.engines.MAX_STACKED_WEIGHTS", len(trainer.weights) - 1)
    assert make_trainer(hook)._engine.name == "workers"
    assert make_trainer(hook, engine="stacked")._engine.name == "stacked"


@pytest.mark.parametrize("drop_last", [False, True])
def test_stacked_clients_have_the_same_last_batch(hook: Any, drop_last: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for engine, limit in (("workers", 1 << 20), ("stacked", 1 << 20), ("stacked", 1)):
        monkeypatch.setattr("syft_torch.federated.loops.MAX_STACKED", limit)
        trainer = make_trainer(hook, make_data(hook, [33, 33, 33]), engine=engine, drop_last=drop_last, epochs=2)
        trainer.fit(2)
        assert trainer._engine.name == engine
        found.append(trainer.weights)

    assert torch.allclose(found[0], found[1], atol=1e-6)
    assert torch.equal(found[1], found[2])


@pytest.mark.parametrize("engine", ["workers", "stacked"])
def test_long_trainings_give_signs_of_life(hook: Any, monkeypatch: pytest.MonkeyPatch, engine: Any) -> None:
    monkeypatch.setattr("syft_torch.federated.loops.TURN_SECONDS", 0)
    trainer, signs = make_trainer(hook, engine=engine, epochs=3), []
    token = is_wanted.set(lambda: signs.append(1) or True)
    try:
        trainer.fit(1)
    finally:
        is_wanted.reset(token)

    steps = max(client.count_steps(trainer._job.settings) for client in trainer.clients.values())
    assert trainer._engine.name == engine
    assert len(signs) >= steps - 1


def test_workers_record_what_leaves_when_they_are_stacked(hook: Any) -> None:
    data = make_data(hook)
    make_trainer(hook, data, engine="stacked").fit(1)

    for name in data.workers:
        assert len(hook.local_worker.get_worker(name).ledger) == 2


def test_a_client_that_fails_does_not_spoil_the_stack(hook: Any) -> None:
    data = make_data(hook, [40, 40, 40])
    worker = hook.local_worker.get_worker("w1")
    entry = worker.object_store.entry(data["w1"].targets.child.id_at_location)
    entry.value[0] = 77

    history = make_trainer(hook, data, engine="stacked").fit(1)

    assert history[0].workers == ["w0", "w2"]
    assert "Target 77 is out of bounds" in history[0].left_out["w1"]


def test_the_advice_for_what_did_not_leave_is_not_what_was_done_already() -> None:
    refused = GetNotPermittedError.to("ana", 7, "bob", "it is private")
    pending = ReleasePendingError.in_time("a1", "bob", 600.0, "options=fl.Options(patience=3600)")
    denied = ReleaseDeniedError.denied("a1", "bob", " (no)")

    assert explain(refused).endswith('let the trainer ask for each result: `options=fl.Options(reason="why")`')
    assert explain(pending) == str(pending)
    assert explain(denied) == str(denied)
