"""FederatedTrainer: rounds, engines, evaluation, reports, checkpoints, and bad input."""

from __future__ import annotations

import copy
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import syft_core as sy

torch = pytest.importorskip("torch")

from torch import nn, optim  # noqa: E402  # torch may be missing

from syft_core.plans.errors import PlanError  # noqa: E402
from syft_torch import federated as fl  # noqa: E402

from .trainers import STRATEGIES, cross_entropy, make_data, make_model, make_samples, make_trainer, sgd, wide  # noqa: E402

# --- rounds


def test_a_round_of_one_worker_is_a_plain_training_loop(hook: Any) -> None:
    trainer = make_trainer(hook, make_data(hook, [40]), shuffle=False, epochs=2)
    model, (x, y) = make_model(), make_samples(40, 0)
    optimizer = sgd(model.parameters())
    for _ in range(2):
        for rows in torch.arange(40).split(16):
            optimizer.zero_grad()
            cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()

    trainer.fit(1)

    for found, expected in zip(trainer.model.parameters(), model.parameters(), strict=True):
        assert torch.allclose(found, expected, atol=1e-7)


def test_a_model_learns(hook: Any) -> None:
    trainer = make_trainer(hook, optimizer=lambda p: optim.Adam(p, lr=0.01), epochs=3)
    before = trainer.evaluate()

    history = trainer.fit(10)

    after = trainer.evaluate()
    assert history is trainer.history
    assert history.losses[-1] < 0.7 * history.losses[0]
    assert after["accuracy"] > before["accuracy"] + 0.2


def test_all_samples_of_a_worker_can_be_one_batch(hook: Any) -> None:
    trainer = make_trainer(hook, make_data(hook, [40, 31]), batch_size=None)

    trainer.fit(1)

    weights = make_model()
    total = torch.zeros(len(trainer.weights))
    for number, count in enumerate((40, 31)):
        x, y = make_samples(count, number)
        found = torch.autograd.grad(cross_entropy(weights(x), y), [*weights.parameters()])
        total -= 0.1 * torch.cat([g.flatten() for g in found]) * count / 71
    start = torch.cat([p.detach().flatten() for p in weights.parameters()])
    assert torch.allclose(trainer.weights, start + total, atol=1e-6)


def test_buffers_are_averaged_by_samples(hook: Any) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.linear = nn.BatchNorm1d(4), nn.Linear(4, 3)

        def forward(self, x: Any) -> Any:
            return self.linear(self.norm(x))

    trainer = make_trainer(hook, make_data(hook, [10, 30]), model=Net(), batch_size=None, strategy=fl.FedAdam())
    trainer.fit(1)

    means = [0.1 * make_samples(count, number)[0].mean(0) for number, count in enumerate((10, 30))]
    assert torch.allclose(trainer.model.norm.running_mean, (means[0] + 3 * means[1]) / 4, atol=1e-6)


def test_further_calls_continue(hook: Any) -> None:
    whole = make_trainer(hook)
    whole.fit(5)
    parts = make_trainer(hook)
    parts.fit(2)
    history = parts.fit(3)

    assert [row.round for row in history] == [1, 2, 3, 4, 5]
    assert torch.equal(parts.weights, whole.weights)


def test_only_changes_and_losses_leave_the_workers(hook: Any) -> None:
    data = make_data(hook, [40, 40])
    trainer = make_trainer(hook, data)
    trainer.fit(2)

    for name in data.workers:
        worker = hook.local_worker.get_worker(name)
        assert [str(line.form) for line in worker.ledger] == ["Tensor[67]", "Tensor[] float64"] * 2
        assert worker.objects_count == 3  # The data and the plan.


# --- what is left out


@pytest.mark.parametrize("make", [fl.Median, lambda: fl.TrimmedMean(0.3), lambda: fl.Krum(1)])
def test_a_round_with_fewer_updates_than_a_robust_strategy_needs_changes_nothing(hook: Any, make: Any) -> None:
    needed = make().needed
    data = make_data(hook, [40] * needed)
    trainer = make_trainer(hook, data, strategy=make(), engine="workers", min_results=1)
    trainer.fit(1)
    before = trainer.weights
    hook.local_worker.get_worker("w0").object_store.entry(data["w0"].targets.child.id_at_location).value[0] = 77

    with pytest.raises(fl.FederatedError, match=f"cannot finish round 2: {needed - 1} of {needed} needed workers"):
        trainer.fit(1)

    assert torch.equal(trainer.weights, before)
    assert len(trainer.history) == 1


class Sabotage(nn.Module):
    """A model whose update depends on the data of a worker."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x: Any) -> Any:
        return self.linear(x)


def poison(hook: Any, data: Any, name: str, value: float) -> None:
    worker = hook.local_worker.get_worker(name)
    worker.object_store.entry(data[name].data.child.id_at_location).value[:] = value


@pytest.mark.parametrize("engine", ["workers", "stacked"])
def test_updates_that_are_not_finite_or_too_large_are_left_out(hook: Any, engine: str) -> None:
    data = make_data(hook)
    poison(hook, data, "w1", float("nan"))
    poison(hook, data, "w3", 1e6)

    trainer = make_trainer(hook, data, model=Sabotage(), engine=engine, max_norm=100.0)
    history = trainer.fit(1)

    assert history[0].workers == ["w0", "w2", "w4"]
    assert history[0].left_out["w1"] == "its update has values that are not finite"
    assert history[0].left_out["w3"] == "the norm of its update is larger than 100.0"
    assert bool(torch.isfinite(trainer.weights).all())
    assert "w1: its update has values" in str(history)


def test_too_few_updates_end_the_run_with_the_reasons_and_lose_nothing(hook: Any) -> None:
    data = make_data(hook)
    trainer = make_trainer(hook, data, model=Sabotage(), min_results=5)
    trainer.fit(1)
    weights = trainer.weights
    poison(hook, data, "w2", float("nan"))

    with pytest.raises(fl.FederatedError, match="cannot finish round 2: 4 of 5 needed .*w2: its update has values"):
        trainer.fit(3)

    assert len(trainer.history) == 1
    assert torch.equal(trainer.weights, weights)
    poison(hook, data, "w2", 0.5)
    assert len(trainer.fit(1)) == 2


def test_an_owner_who_does_not_decide_in_time_is_named_with_the_option_that_waits_longer(hook: Any) -> None:
    trainer = make_trainer(hook, make_data(hook, (40,), private=True), reason="a study", patience=0.01)

    with pytest.raises(fl.FederatedError, match=r"0\.01 seconds; .* `options=fl\.Options\(patience=3600\)`, and ask"):
        trainer.fit(1)


def test_private_updates_are_refused_and_the_reason_is_told(hook: Any) -> None:
    trainer = make_trainer(hook, make_data(hook, private=True))

    with pytest.raises(
        fl.FederatedError, match="0 of 3 needed workers.*w0: .*it is private.*, or let the trainer ask.*reason="
    ):
        trainer.fit(1)


def test_a_batch_that_the_model_cannot_take_leaves_its_worker_out(hook: Any) -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))

    trainer = make_trainer(hook, make_data(hook, [40, 1]), model=model)
    history = trainer.fit(1)

    assert history[0].workers == ["w0"]
    assert "Expected more than 1 value per channel" in history[0].left_out["w1"]


@pytest.mark.parametrize("drop_last", [False, True])
def test_a_worker_with_one_sample_more_takes_part_with_batch_norm(hook: Any, tmp_path: Path, drop_last: bool) -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))
    trainer = make_trainer(hook, make_data(hook, [40, 33]), model=model, drop_last=drop_last, epochs=2)

    history = trainer.fit(2)
    trainer.report(tmp_path / "run.html")

    assert [row.workers for row in history] == [["w0", "w1"]] * 2
    assert not trainer.evaluate().left_out
    text = "left out if not full" if drop_last else "of one sample: joins the one before"
    assert text in (tmp_path / "run.html").read_text()


@pytest.mark.parametrize("serialize", [False, True], ids=["in process", "by wire"])
def test_batches_are_counted_as_if_one_program_had_trained(hook: Any, serialize: bool) -> None:
    workers = [sy.VirtualWorker(hook, id=name, serialize=serialize) for name in ("a", "b")]
    parts = [fl.BaseDataset(*make_samples(n)).send(w) for n, w in zip((40, 33), workers, strict=True)]
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))

    make_trainer(hook, fl.FederatedDataset(parts), model=model, epochs=2).fit(3)

    # Three rounds of two epochs: 16 + 16 + 8 samples, and 16 + 17.
    assert model[1].num_batches_tracked.item() == 3 * 2 * (3 + 2)
    assert model[1].num_batches_tracked.dtype == torch.int64


def test_a_strategy_that_returns_no_numbers_does_not_spoil_the_model(hook: Any, tmp_path: Path) -> None:
    class Broken(fl.Strategy):
        def aggregate(self, weights: Any, _updates: Any) -> Any:
            return weights * float("nan")

    trainer = make_trainer(hook, strategy=Broken())

    with pytest.raises(fl.FederatedError, match="returned values that are not finite"):
        trainer.fit(1, checkpoint=tmp_path / "run")

    assert trainer.weights.isfinite().all()
    assert not (tmp_path / "run").exists()


def test_a_trainer_trains_in_one_thread_at_a_time(hook: Any) -> None:
    trainer, seen = make_trainer(hook), []

    class Inner(fl.FedAvg):
        def aggregate(self, weights: Any, updates: Any) -> Any:
            with pytest.raises(fl.FederatedError, match="this trainer trains in another thread; wait for it"):
                trainer.fit(1)
            seen.append(len(updates))
            return super().aggregate(weights, updates)

    trainer.strategy = Inner()
    trainer.fit(1)

    assert seen == [5]
    assert len(trainer.fit(1)) == 2


def test_trainings_with_random_numbers_do_not_disturb_each_other(hook: Any) -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 3))
    data = [make_data(hook), fl.FederatedDataset(list(make_data(hook)))]
    alone = make_trainer(hook, data[0], model=copy.deepcopy(model), epochs=10)
    alone.fit(2)
    trainers = [make_trainer(hook, each, model=copy.deepcopy(model), epochs=10) for each in data * 2]
    state = torch.get_rng_state()

    threads = [threading.Thread(target=trainer.fit, args=(2,)) for trainer in trainers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert all(torch.equal(trainer.weights, alone.weights) for trainer in trainers)
    assert torch.equal(torch.get_rng_state(), state)


def test_allowed_users_train_on_private_data(hook: Any) -> None:
    hook.local_worker.user = "board"
    trainer, public = make_trainer(hook, make_data(hook, private=True)), make_trainer(hook)
    trainer.fit(2)
    public.fit(2)

    assert torch.allclose(trainer.weights, public.weights, atol=1e-6)
    assert trainer.evaluate()["loss"] == pytest.approx(public.evaluate()["loss"], rel=1e-4)


def test_owners_are_asked_to_release_updates(hook: Any) -> None:
    import threading  # noqa: PLC0415  # for the owners

    data = make_data(hook, [40, 40], private=True)
    trainer = make_trainer(hook, data, reason="a study", engine="workers")
    stop = threading.Event()

    def decide() -> None:
        while not stop.wait(0.02):
            for name in data.workers:
                worker = hook.local_worker.get_worker(name)
                for request in list(worker.requests):
                    if request.state == "open":
                        assert request.reason == "a study"
                        if name == "w0":
                            worker.approve(request)
                        else:
                            worker.deny(request, "no studies here")

    owners = threading.Thread(target=decide)
    owners.start()
    try:
        history = trainer.fit(1)
    finally:
        stop.set()
        owners.join(60)

    assert history[0].workers == ["w0"]
    assert "no studies here" in history[0].left_out["w1"]


def test_the_evaluation_of_private_data_is_refused(hook: Any) -> None:
    trainer = make_trainer(hook, make_data(hook, private=True))

    with pytest.raises(fl.FederatedError, match="no worker could evaluate the model .w0: .*it is private"):
        trainer.evaluate()


# --- evaluation and reports


def test_an_evaluation_has_means_over_all_samples_and_of_each_worker(hook: Any) -> None:
    data = make_data(hook, [10, 30])
    trainer = make_trainer(hook, data, model=nn.Sequential(nn.Linear(4, 3), nn.Dropout()))

    found = trainer.evaluate(metrics={"largest": lambda output, _target: output.max(dim=1).values.mean()})

    model = trainer.model.eval()
    outputs = [model(make_samples(count, n)[0]) for n, count in enumerate((10, 30))]
    expected = [output.max(dim=1).values.mean().item() for output in outputs]
    assert [found.workers[name]["largest"] for name in data.workers] == pytest.approx(expected, rel=1e-5)
    assert found["largest"] == pytest.approx((expected[0] + 3 * expected[1]) / 4, rel=1e-5)
    assert list(found) == ["loss", "largest"]
    assert found.samples == 40
    assert "w1      30" in str(found)


def test_the_evaluation_leaves_the_model_in_its_mode(hook: Any) -> None:
    trainer = make_trainer(hook)
    trainer.evaluate()

    assert trainer.model.training


def test_other_data_can_be_used_for_evaluation(hook: Any, bob: Any) -> None:
    trainer = make_trainer(hook)
    x, y = make_samples(12, 99)

    found = trainer.evaluate(fl.FederatedDataset([fl.BaseDataset(x, y).send(bob)]))

    assert found["loss"] == pytest.approx(cross_entropy(trainer.model(x), y).item(), rel=1e-5)
    assert list(found.workers) == ["bob"]


# --- checkpoints


@pytest.mark.parametrize("make", STRATEGIES)
@pytest.mark.parametrize("has_safetensors", [True, False])
def test_a_run_continues_bit_for_bit(
    hook: Any, tmp_path: Path, make: Any, has_safetensors: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if has_safetensors:
        pytest.importorskip("safetensors")
    else:
        monkeypatch.setitem(sys.modules, "safetensors.torch", None)
    path = tmp_path / "run.safetensors"
    options = {"data": make_data(hook, [40] * 6), "clients_per_round": 5}
    whole = make_trainer(hook, strategy=make(), **options)
    whole.fit(5)
    make_trainer(hook, strategy=make(), **options).fit(3, checkpoint=path)

    resumed = make_trainer(hook, strategy=make(), **options, model=make_model(seed=9))
    history = resumed.fit(5, checkpoint=path)

    assert torch.equal(resumed.weights, whole.weights)
    assert history.losses == whole.history.losses
    assert [row.workers for row in history] == [row.workers for row in whole.history]


def test_a_run_that_is_complete_does_nothing_more(hook: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.safetensors"
    make_trainer(hook).fit(3, checkpoint=path)
    trainer = make_trainer(hook)

    assert len(trainer.fit(3, checkpoint=path)) == 3


def test_a_user_strategy_is_saved_too(hook: Any, tmp_path: Path) -> None:
    class Momentum(fl.Strategy):
        def __init__(self) -> None:
            self.speed: Any = None

        def aggregate(self, weights: Any, updates: Any) -> Any:
            mean = sum(update.difference for update in updates) / len(updates)
            self.speed = mean if self.speed is None else 0.9 * self.speed + mean
            return weights + self.speed

    path = tmp_path / "run.safetensors"
    whole = make_trainer(hook, strategy=Momentum())
    whole.fit(4)
    make_trainer(hook, strategy=Momentum()).fit(2, checkpoint=path)
    resumed = make_trainer(hook, strategy=Momentum())
    resumed.fit(4, checkpoint=path)

    assert torch.equal(resumed.weights, whole.weights)


KILLED = """
import os, signal, sys
sys.path.insert(0, {root!r})
import torch, syft_core as sy
from tests.syft_torch.federated.test_trainer import make_killed
with sy.TorchHook(torch) as hook:
    trainer = make_killed(hook)
    save, after, place = trainer._save, int(sys.argv[2]), sys.argv[3]
    def save_and_die(path):
        if place == "after":
            save(path)
        if len(trainer.history) == after:
            os.kill(os.getpid(), signal.SIGKILL)
        if place == "before":
            save(path)
    trainer._save = save_and_die
    trainer.fit(4, checkpoint=sys.argv[1])
    print(trainer.weights.double().sum().item())
"""


def make_killed(hook: Any) -> Any:
    """Return a trainer with a state of every kind: of strategy, sampler, running statistics and random operations."""
    torch.manual_seed(0)
    model = wide(nn.BatchNorm1d(8), nn.Dropout())
    return make_trainer(hook, strategy=fl.FedAdam(), model=model, clients_per_round=3)


@pytest.mark.slow
def test_killing_a_run_between_any_two_rounds_loses_nothing(hook: Any, tmp_path: Path) -> None:
    expected = make_killed(hook)
    expected.fit(4)
    root = str(Path(__file__).parents[3])
    script, path = tmp_path / "run.py", tmp_path / "run.safetensors"
    script.write_text(KILLED.format(root=root))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    for after, place in ((1, "before"), (1, "after"), (2, "before"), (3, "after"), (99, "after")):
        call = [sys.executable, str(script), str(path), str(after), place]
        done = subprocess.run(call, capture_output=True, text=True, check=False, env=environment, timeout=300)
        assert done.returncode == (0 if after == 99 else -signal.SIGKILL), done.stderr

    assert float(done.stdout) == expected.weights.double().sum().item()


def test_an_update_that_is_a_pointer_or_has_a_loss_of_nan_is_rejected(hook: Any, bob: Any) -> None:
    trainer = make_trainer(hook)
    size = len(trainer.weights)
    pointer = torch.zeros(size).send(bob)

    assert "another size" in trainer._acceptance.find_fault(fl.Update("eve", pointer, 1, 0.0))
    assert "loss is not finite" in trainer._acceptance.find_fault(fl.Update("eve", torch.zeros(size), 1, float("nan")))
    assert "layout" in trainer._acceptance.find_fault(fl.Update("eve", torch.zeros(size).to_sparse(), 1, 0.0))
    assert "another dtype" in trainer._acceptance.find_fault(fl.Update("eve", torch.zeros(size).double(), 1, 0.0))
    assert trainer._acceptance.find_fault(fl.Update("bob", torch.full((size,), 3e38), 1, 0.0)) is None


# --- bad input


def test_bad_arguments_are_refused_before_training(hook: Any, bob: Any, alice: Any) -> None:
    data = make_data(hook, [40, 40])
    other = fl.FederatedDataset([*data, fl.BaseDataset(torch.ones(3, 5), torch.zeros(3).long()).send(bob)])
    kinds = fl.FederatedDataset([*data, fl.BaseDataset(torch.ones(3, 4), torch.zeros(3)).send(alice)])
    none = fl.FederatedDataset([fl.BaseDataset(torch.ones(0, 4), torch.zeros(0).long()).send(bob)])
    wrong = [
        ({"data": other}, "worker 'bob' has float32[n, 5], int64[n], and worker 'w0' has float32[n, 4], int64[n]"),
        ({"data": kinds}, "worker 'alice' has float32[n, 4], float32[n]"),
        ({"data": none}, "cannot train on worker 'bob': it has no samples"),
        ({"data": fl.FederatedDataset([])}, "the dataset has no workers"),
        ({"data": torch.ones(3)}, "the data is a Tensor"),
        ({"model": 3}, "the model is a int"),
        ({"model": nn.ReLU()}, "uses no parameter"),
        ({"loss": "mse"}, "the loss is a str"),
        ({"loss": lambda o, t: cross_entropy(o, t, reduction="none")}, "it returns float32[3]"),
        ({"loss": lambda o, t: (cross_entropy(o, t), o.sum())}, "it returns float32[], float32[]"),
        ({"loss": lambda o, _t: o.argmax(dim=1).sum()}, "it returns int64[]"),
        ({"loss": lambda o, _t: o.detach().sum()}, "the loss does not depend on the parameters"),
        ({"loss": lambda _o, _t: 3.0}, "it returns no tensor"),
        ({"loss": lambda o, t: cross_entropy(o, t).item()}, "reads a value"),
        ({"optimizer": lambda p: None}, "the optimizer is a NoneType"),
        ({"optimizer": sgd(make_model().parameters())}, "the optimizer is a SGD; pass a function"),
        ({"optimizer": lambda p: optim.SGD(p, lr=float("nan"))}, "the option 'lr' of the optimizer is not a number"),
        ({"model": make_model().send(bob)}, "the model is on a worker"),
        ({"clip": -1.0}, "clip is -1.0; pass a positive number"),
        ({"clip_grad": float("nan")}, "clip_grad is nan"),
        ({"max_norm": "large"}, "max_norm is 'large'"),
        ({"timeout": -1}, "timeout is -1"),
        ({"seed": "a"}, "seed is 'a'"),
        ({"strategy": fl.Krum(1)}, "it needs 5 updates, and there are 2"),
        ({"optimizer": lambda p: optim.SparseAdam(p)}, "workers do not have the optimizer SparseAdam"),
        ({"strategy": fl.FedAvg}, "the strategy is a type"),
        ({"epochs": 0}, "epochs is 0"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"batch_size": 2.5}, "batch_size is 2.5"),
        ({"clients_per_round": 3}, "clients_per_round is 3, and there are 2 workers"),
        ({"min_results": 3}, "min_results is 3"),
        ({"engine": "ray"}, "there is no engine 'ray'"),
        ({"buffer": 0}, "buffer is 0"),
    ]  # fmt: skip
    for options, text in wrong:
        with pytest.raises((fl.FederatedError, PlanError)) as caught:
            make_trainer(hook, **{"data": data, **options})
        assert text in str(caught.value), options
    with pytest.raises(fl.FederatedError, match=r"`staleness\(0\)` returns 0.0"):
        make_trainer(hook, data, buffer=1, staleness=lambda _age: 0).fit(1)
    with pytest.raises(fl.FederatedError, match=r"it returns float64\[2\], float32\[3, 3\]"):
        make_trainer(hook, data).evaluate(metrics={"output": lambda o, _t: o})
    with pytest.raises(fl.FederatedError, match="rounds is -1"):
        make_trainer(hook, data).fit(-1)
    with pytest.raises(fl.FederatedError, match="a population of 0 clients"):
        fl.Population(0, make_samples)
    with pytest.raises(fl.FederatedError, match="returns a Tensor"):
        make_trainer(hook, fl.Population(3, lambda _number: torch.ones(3)))


def test_clients_that_do_not_last_are_not_trained_apart(hook: Any) -> None:
    population = fl.Population(3, lambda number: make_samples(20, number))

    with pytest.raises(fl.FederatedError, match="the clients of a population do not last"):
        make_trainer(hook, population).train_apart()
