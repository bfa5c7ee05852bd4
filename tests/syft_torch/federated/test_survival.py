"""Rounds on a network: workers that are lost in any phase of a round, killed, or come back."""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import syft_core as sy
from syft_core.exceptions import WorkerError
from syft_core.network.client import WebsocketClientWorker
from syft_core.network.server import Server
from syft_core.workers.party.virtual import VirtualWorker
from syft_worker.allowances import Allowance
from syft_worker.quotas import QuotaGuard
from tests.network.processes import authenticate, start_worker
from tests.network.proxy import Proxy
from tests.network.supervised import supervise

torch = pytest.importorskip("torch")

from torch import nn, optim  # noqa: E402  # torch may be missing

from syft_torch import federated as fl  # noqa: E402
from syft_torch.federated.training import Evaluate, Train  # noqa: E402
from tests.waiting import wait_for_end, wait_until  # noqa: E402

from .test_trainer import make_model, make_samples  # noqa: E402
from .trainers import gather_options  # noqa: E402

TOKEN = "secret of ana"


class Dying(Proxy):
    """A proxy that refuses all connections after it has cut one."""

    def _pass_on(self, source: Any, target: Any, left: list[int], to_worker: bool) -> None:
        super()._pass_on(source, target, left, to_worker)
        if left[0] <= 0:
            self.close()


class Network:
    """Workers of this process that only the network leads to, each behind a proxy."""

    def __init__(self, hook: Any, stack: ExitStack) -> None:
        self.hook, self._stack = hook, stack
        self.workers: dict[str, VirtualWorker] = {}
        self.proxies: dict[str, Dying] = {}
        self.locations: dict[str, Any] = {}
        self.servers: dict[str, Server] = {}

    def add(self, name: str, seed: int, port: int = 0, heartbeat: float = 0.2, samples: int = 40) -> None:
        worker = VirtualWorker(self.hook, id=name, auto_add=False, serialize=False)
        worker.load_data([part.tag(tag) for part, tag in zip(make_samples(samples, seed), ("#x", "#y"), strict=True)])
        server = Server(worker, "127.0.0.1", port, authenticate, heartbeat=heartbeat)
        server.start()
        self._stack.callback(server.stop, 1)
        self.workers[name], self.servers[name] = worker, server

    def connect(self, name: str, proxy: Any = Dying, timeout: float = 0.7, budgets: tuple[int, ...] = ()) -> Any:
        """Connect to a worker, by a proxy or without, in place of the connection from before."""
        if name in self.locations:
            self.locations[name].close()
        self.hook.local_worker._known_workers.pop(name, None)
        port = self.servers[name].port
        if proxy is not None:
            self.proxies[name] = proxy(port)
            self.proxies[name].budgets.extend(budgets)
            self._stack.callback(self.proxies[name].close)
            port = self.proxies[name].port
        location = self.locations[name] = sy.connect(f"ws://127.0.0.1:{port}", token=TOKEN, timeout=timeout)
        self._stack.callback(location.close)
        self._stack.callback(self.hook.local_worker._known_workers.pop, name, None)
        return location

    def make_trainer(self, **options: Any) -> Any:
        data = fl.find("#x", "#y", workers=list(self.locations.values()))
        given = {"batch_size": 16, **options}
        return fl.FederatedTrainer(
            make_model(), nn.functional.cross_entropy, lambda p: optim.SGD(p, lr=0.1), data, **gather_options(given)
        )


@pytest.fixture
def network(hook: Any) -> Iterator[Network]:
    hook.attributes.warm_up()
    with ExitStack() as stack:
        network = Network(hook, stack)
        for seed, name in enumerate(("north", "south", "east")):
            network.add(name, seed)
            network.connect(name)
        yield network


def test_served_workers_give_the_model_of_virtual_ones(hook: Any, network: Network) -> None:
    there = network.make_trainer()
    there.fit(3)
    virtual = [sy.VirtualWorker(hook, id=f"{name} here") for name in network.workers]
    for seed, worker in enumerate(virtual):
        worker.load_data([part.tag(tag) for part, tag in zip(make_samples(40, seed), ("#x", "#y"), strict=True)])
    data = fl.find("#x", "#y", workers=virtual)
    here = fl.FederatedTrainer(
        make_model(), nn.functional.cross_entropy, lambda p: optim.SGD(p, lr=0.1), data, batch_size=None
    )
    again = network.make_trainer(batch_size=None)
    here.fit(2)
    again.fit(2)

    assert torch.allclose(again.weights, here.weights, atol=1e-6)
    assert there.history.losses[-1] < there.history.losses[0]
    assert there.evaluate()["loss"] == pytest.approx(there.evaluate()["loss"])


def test_the_program_of_the_docs_runs_on_served_workers(
    network: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[3] / "docs" / "federated.md").read_text(encoding="utf-8")
    program = page.partition("This is the whole program:")[2].partition("```python\n")[2].partition("```")[0]
    for seed, worker in enumerate(network.workers.values()):
        parts = zip(make_samples(40, seed), ("#scans", "#labels"), strict=True)
        worker.load_data([part.tag(tag) for part, tag in parts])
    urls = [f"ws://127.0.0.1:{server.port}" for server in network.servers.values()]
    for name, location in network.locations.items():
        location.close()
        network.hook.local_worker._known_workers.pop(name)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"sy": sy, "fl": fl, "nn": nn, "optim": optim}

    exec(program, {**names, "urls": urls, "token": TOKEN, "model": make_model()}, names)  # our own page

    shown = capsys.readouterr().out
    assert len(program.strip().splitlines()) <= 15
    assert len(names["history"]) == 20
    assert names["history"].losses[-1] < names["history"].losses[0]
    assert "accuracy" in shown
    assert {path.name for path in tmp_path.iterdir()} == {"run.safetensors", "run.html"}
    for location in names["hospitals"]:
        location.close()


@pytest.mark.parametrize("part", [0.01, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9, 0.99])
def test_a_worker_that_is_lost_in_any_phase_is_named_and_the_round_completes(network: Network, part: float) -> None:
    trainer = network.make_trainer(min_results=2)
    lost = network.locations["south"]
    before = network.locations["north"].bytes_moved
    trainer.fit(1)
    size = network.locations["north"].bytes_moved - before  # of a round with all parts
    fresh = network.make_trainer(min_results=2)
    network.proxies["south"].budgets.append(700 + int(part * size))  # The handshake has about 700 bytes.
    network.proxies["south"].cut()

    history = fresh.fit(2)

    assert history[0].workers in (["north", "east"], ["north", "south", "east"])
    assert history[1].workers == ["north", "east"]
    assert "cannot reach the worker" in history[1].left_out["south"]
    assert fresh.history.losses[1] < trainer.history.losses[0]
    assert lost is network.locations["south"]


@pytest.mark.parametrize("part", [0.01, 0.5, 0.99])
def test_a_worker_that_is_lost_during_the_evaluation_is_named(network: Network, part: float) -> None:
    trainer = network.make_trainer()
    trainer.fit(1)
    whole = trainer.evaluate()
    before = network.locations["north"].bytes_moved
    trainer.evaluate()
    size = network.locations["north"].bytes_moved - before  # of one that sends no program
    network.proxies["south"].budgets.append(700 + int(part * size))
    network.proxies["south"].cut()

    trainer.evaluate()  # It may arrive: the handshake does not always have the same size.
    found = trainer.evaluate()

    assert list(found.workers) == ["north", "east"]
    assert "cannot reach the worker" in found.left_out["south"]
    assert "south was left out: " in str(found)
    assert found.workers["north"] == whole.workers["north"]
    assert found.samples == 80


def test_workers_evaluate_at_the_same_time(network: Network) -> None:
    trainer = network.make_trainer()
    all_have_begun = threading.Barrier(3)
    for worker in network.workers.values():
        worker.guard = Meeting(worker, all_have_begun)

    assert not trainer.evaluate().left_out


def test_a_worker_that_trains_longer_than_the_timeout_is_not_lost(hook: Any, network: Network) -> None:
    network.add("west", 3, heartbeat=1.0)
    network.connect("west", proxy=None, timeout=0.1)
    network.workers["west"].guard = Slow(network.workers["west"], {})

    history = network.make_trainer(timeout=0.1).fit(1)

    assert history[0].workers == ["north", "south", "east", "west"]


@pytest.mark.parametrize("cuts", [1, 2])
def test_a_client_that_connects_again_during_a_training_longer_than_the_timeout_gets_its_result(
    network: Network, cuts: int
) -> None:
    network.add("west", 3)
    network.connect("west", Proxy, timeout=0.7)
    trainer, west = network.make_trainer(timeout=0.7), network.proxies["west"]
    guard = network.workers["west"].guard = Waiting(network.workers["west"], {})

    def cut() -> None:
        guard.begins.wait(60)
        for _ in range(cuts):
            before = west.connections
            west.cut()
            wait_until(lambda n=before: west.connections > n)
        time.sleep(1.5)  # longer than the timeout, and than two heartbeats
        guard.ends.set()

    thread = threading.Thread(target=cut)
    thread.start()
    history = trainer.fit(2)
    thread.join(60)

    assert [row.workers for row in history] == [["north", "south", "east", "west"]] * 2
    assert guard.trainings == 2


class Waiting(QuotaGuard):
    """A guard of a worker whose first training waits for a test."""

    def __init__(self, worker: Any, allowances: Any) -> None:
        super().__init__(worker, allowances)
        self.begins, self.ends, self.trainings = threading.Event(), threading.Event(), 0

    def handle(self, handler: Any, worker: Any, message: Any, sender: Any) -> Any:
        if isinstance(message, Train):
            self.trainings += 1
            self.begins.set()
            self.ends.wait(60)
        return super().handle(handler, worker, message, sender)


class Slow(QuotaGuard):
    """A guard of a worker that lets each training begin after a while."""

    def handle(self, handler: Any, worker: Any, message: Any, sender: Any) -> Any:
        if isinstance(message, Train):
            time.sleep(1.0)
        return super().handle(handler, worker, message, sender)


class Meeting(QuotaGuard):
    """A guard of a worker that lets an evaluation begin when those of all others do."""

    def __init__(self, worker: Any, barrier: threading.Barrier) -> None:
        super().__init__(worker, {})
        self._barrier = barrier

    def handle(self, handler: Any, worker: Any, message: Any, sender: Any) -> Any:
        if isinstance(message, Evaluate):
            self._barrier.wait(60)
        return super().handle(handler, worker, message, sender)


def test_a_connection_that_is_cut_in_mid_round_loses_nothing(network: Network) -> None:
    whole = network.make_trainer()
    whole.fit(3)
    for name in list(network.locations):
        network.connect(name, Proxy, timeout=20, budgets=(900, 2000, 3000))
    trainer = network.make_trainer()

    history = trainer.fit(3)

    assert torch.equal(trainer.weights, whole.weights)
    assert not any(row.left_out for row in history)
    assert all(proxy.connections > 2 for proxy in network.proxies.values())


def test_a_worker_that_was_started_again_takes_part_again(network: Network) -> None:
    network.connect("south", proxy=None)
    trainer = network.make_trainer(min_results=2)
    trainer.fit(1)
    network.servers["south"].stop(1)
    without = trainer.fit(1)[1]
    network.add("south", 1, network.servers["south"].port)  # with other ids

    history = trainer.fit(1)

    assert without.workers == ["north", "east"]
    assert "south" in without.left_out
    assert history[2].workers == ["north", "south", "east"]
    assert not history[2].left_out


def test_a_worker_that_comes_back_with_other_data_counts_with_its_new_samples(network: Network) -> None:
    network.connect("south", proxy=None)
    trainer = network.make_trainer(min_results=2)
    trainer.fit(1)
    network.servers["south"].stop(1)
    trainer.fit(1)
    network.add("south", 1, network.servers["south"].port, samples=24)

    history = trainer.fit(1)

    assert [row.samples for row in history] == [120, 80, 104]


def test_a_worker_that_reports_nothing_for_too_long_is_left_out(hook: Any, network: Network) -> None:
    silent = socket.create_server(("127.0.0.1", 0))
    try:
        trainer = network.make_trainer(timeout=0.5, min_results=2)
        trainer.fit(1)
        location = network.locations["south"]
        network.proxies["south"].close()
        location._address = type(location._address)("127.0.0.1", silent.getsockname()[1], secure=False)

        history = trainer.fit(1)
    finally:
        silent.close()

    assert history[1].workers == ["north", "east"]
    assert "no connection for 0.5 seconds" in history[1].left_out["south"]
    assert location.timeout == 0.7


def test_the_error_of_a_worker_arrives_with_its_text(network: Network) -> None:
    worker = network.workers["south"]
    for entry in list(worker.object_store.iter_all()):
        if entry.value.dtype is torch.int64:
            entry.value[:] = 44

    history = network.make_trainer().fit(1)

    assert "Target 44 is out of bounds" in history[0].left_out["south"]


def test_a_quota_of_one_worker_is_reported(network: Network) -> None:
    worker = network.workers["south"]
    worker.guard = QuotaGuard(worker, {"ana": Allowance(bytes=200)})

    history = network.make_trainer().fit(1)

    assert history[0].workers == ["north", "east"]
    assert "QuotaExceeded" in history[0].left_out["south"] or "the limit is 200" in history[0].left_out["south"]


def test_asynchronous_rounds_do_not_wait_for_slow_workers(network: Network) -> None:
    trainer = network.make_trainer(buffer=2, clients_per_round=3)
    network.proxies["south"].close()

    history = trainer.fit(4)

    assert [len(row.workers) for row in history] == [2, 2, 2, 2]
    assert {name for row in history for name in row.workers} <= {"north", "east"}


@pytest.mark.slow
def test_a_worker_whose_process_is_killed_while_it_trains_is_named(hook: Any, network: Network, tmp_path: Path) -> None:
    np = pytest.importorskip("numpy")
    x, y = make_samples(40, 5)
    np.save(tmp_path / "x.npy", x.numpy())
    np.save(tmp_path / "y.npy", y.numpy())
    sources = [f"{tmp_path}/x.npy#x", f"{tmp_path}/y.npy#y"]
    with start_worker("torch syft_torch.hook TorchHook", "west", sources) as (process, port, _):
        west = WebsocketClientWorker(hook, "127.0.0.1", port, token=TOKEN, timeout=6)
        network.locations["west"] = west
        trainer = network.make_trainer(min_results=3)
        trainer.fit(1)
        slow = network.make_trainer(min_results=3, epochs=300)
        killer = threading.Timer(0.3, process.kill)
        killer.start()

        history = slow.fit(3)

        wait_for_end(killer)
        west.close()
    hook.local_worker._known_workers.pop("west", None)
    assert history[2].workers == ["north", "south", "east"]
    assert "west" in history[2].left_out


def test_connect_is_the_short_way_to_a_worker(hook: Any, network: Network) -> None:
    port = network.servers["north"].port
    network.locations["north"].close()
    hook.local_worker._known_workers.pop("north")

    found = sy.connect(f"127.0.0.1:{port}", token=TOKEN)

    assert found.id == "north"
    assert found is sy.connect(f"ws://127.0.0.1:{port}", TOKEN)
    found.close()
    for wrong in ("http://127.0.0.1:1", "ws://", ""):
        with pytest.raises(WorkerError, match="it is not a websocket URL"):
            sy.connect(wrong)
    with pytest.raises(WorkerError, match="without TLS"):
        sy.connect("ws://203.0.113.1:8777")


def test_connect_needs_a_hook() -> None:
    with pytest.raises(WorkerError, match="no framework is hooked"):
        sy.connect("127.0.0.1")


@pytest.mark.skipif(sys.platform != "linux", reason="it reads the peak of the memory from /proc")
def test_a_large_model_trains_on_a_worker_as_it_is_served_with_little_memory_here(hook: Any, tmp_path: Path) -> None:
    def train(side: int, learning_rate: float) -> Any:
        data = fl.FederatedDataset([fl.BaseDataset(torch.randn(8, side), torch.randn(8, side)).send(far)])
        models[side] = nn.Linear(side, side, bias=False)
        before = read_memory("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")  # The peak counts from now on.
        trainer = fl.FederatedTrainer(
            models[side], nn.functional.mse_loss, lambda p: optim.SGD(p, lr=learning_rate), data
        )
        return trainer.fit(2), read_memory("VmHWM") - before

    models: dict[int, Any] = {}
    with supervise("--id", "bob", cwd=tmp_path) as served:
        far = served.connect(hook, served.read_token())
        train(4, 0.1)  # What torch loads at first takes memory, too.

        history, growth = train(5_000, 1.0)  # 100 MB, more than the largest frame

        far.close()
    assert growth / models[5_000].weight.nbytes < 2  # And the model itself: three times its size.
    assert history.losses[1] < history.losses[0]
    hook.local_worker._known_workers.pop("bob", None)


def read_memory(name: str) -> int:
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(f"{name}:")]
    return 1024 * int(line.split()[1])
