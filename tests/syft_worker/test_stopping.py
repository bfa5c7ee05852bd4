"""A worker that is asked to stop ends in order, whatever it is doing, and its clients learn why."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest

from syft_core.cli import main
from syft_core.exceptions import SyftError
from syft_core.hook.forms import form
from syft_core.messages import FetchAll, Run, Store
from syft_core.plans.messages import RunPlan
from syft_core.plans.program import Program, Routine, Slot, Step
from syft_core.plugins.manager import load_backend
from syft_core.pointers.object_pointer import new_id
from syft_core.workers.party.virtual import VirtualWorker
from syft_worker.activity import STOP_SECONDS
from syft_worker.tokens import TokenFile

from ..network.processes import find_port
from ..network.supervised import SupervisedWorker, supervise

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")
pytest.importorskip("resource")

from syft_torch.federated.training import Evaluate, Train  # noqa: E402  # torch may be missing

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the tests rely on the isolation of Linux")

STOPPING = "cannot continue on worker 'north': the worker is stopping; repeat the command when it is served again"
ROWS = 400_000
FORMS = (
    form((4, 3), None, torch.float32, None, True),
    form((-1, 4), None, torch.float32),
    form((-1,), None, torch.int64),
)
LIMIT = STOP_SECONDS + 10
"""Seconds in which a worker must end here: the machine of the tests may be busy."""


class Served(NamedTuple):
    worker: SupervisedWorker
    hook: Any
    folder: Path
    token: str

    def connect(self) -> Any:
        client = VirtualWorker(self.hook, id=f"program {new_id()}", auto_add=False)
        return self.worker.connect(self.hook, self.token, client=client)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.worker.process.send_signal(number)
        return self.worker.process.wait(LIMIT)


@contextmanager
def serve(hook: Any, folder: Path, *options: str) -> Iterator[Served]:
    """Serve a worker with data, a ledger and a store."""
    np.save(folder / "x.npy", np.zeros((ROWS, 4), dtype="float32"))
    np.save(folder / "y.npy", np.zeros(ROWS, dtype="int64"))
    tokens = folder / "tokens.json"
    tokens.write_text('{"format": 1, "tokens": []}')
    tokens.chmod(0o600)
    token = TokenFile(tokens).add("ana", None)[1]
    (folder / "log").mkdir()
    (folder / "worker.toml").write_text(
        'id = "north"\ndata = ["x.npy#x", "y.npy#y"]\ntoken_file = "tokens.json"\n'
        'ledger = "log/ledger"\nstore = "store"\n'
    )
    with supervise(str(folder / "worker.toml"), *(options or ("--framework", "torch"))) as worker:
        yield Served(worker, hook, folder, token)


def require_order(served: Served) -> None:
    """Check that nothing was aborted or blamed, and that ledger and store are in order."""
    text = "".join(served.worker.lines)
    assert "Traceback" not in text, text
    assert served.worker.wait_for("worker stopped")["code"] == 0
    assert not (served.folder / "store" / "incidents.json").exists()
    assert main(["ledger", "verify", str(served.folder / "log" / "ledger")]) == 0


@pytest.fixture
def numpy_hook() -> Iterator[Any]:
    with load_backend("numpy")(np) as hook:
        yield hook


# --- what clients do meanwhile

Ask = Callable[[], object]
"""Waits for the result of what was sent."""


def run_model(served: Served, far: Any, kind: type[Any]) -> Ask:
    """Train or evaluate for a long time."""
    step = Step("torch", "torch.Tensor.matmul", (Slot(1), Slot(0)), {}, 1, served.hook.attributes.modes())
    loss = Step("torch", "torch.nn.functional.cross_entropy", (Slot(3), Slot(2)), {}, 1)
    plan, result = new_id(), new_id()
    far.tell(Store(plan, Program("loss", FORMS, (), 0, (Routine((step, loss), Slot(4)),))))
    data = tuple([far.search(tag)[0].child for tag in ("#x", "#y")])
    settings = {"epochs": 1000, "batch_size": 1, "optimizer": "SGD", "groups": (({"lr": 0.1}, (0,)),)}
    further = {"seed": 1} if kind is Train else {}
    far.tell(kind((plan,), torch.zeros(12), (), data, 2, settings, result, **further))
    return lambda: far.ask(FetchAll((result, result + 1) if kind is Train else (result,)))


def run_plan(served: Served, far: Any) -> Ask:
    """Run a plan with many steps."""
    steps = tuple([Step("torch", "torch.Tensor.matmul", (Slot(n), Slot(n)), {}, 1) for n in range(3_000)])
    plan, x = new_id(), torch.zeros(600, 600).send(far)
    inputs = (form((600, 600), None, torch.float32),)
    far.tell(Store(plan, Program("slow", inputs, (), 0, (Routine(steps, Slot(3_000)),))))
    return lambda: far.ask(RunPlan(plan, (x.child,), new_id()))


def run_batch(_served: Served, far: Any) -> Ask:
    """Send many commands at once."""
    x = torch.zeros(700, 700).send(far)
    for _ in range(3_000):
        x = x @ x
    return x.get


class Doing(threading.Thread):
    """A client that does something until it fails."""

    def __init__(self, served: Served, act: Callable[[Served, Any], Ask]) -> None:
        super().__init__(daemon=True)
        self.far, self.error = served.connect(), ""
        self._ask = act(served, self.far)
        self.far._post(asks=False)
        self.start()

    def run(self) -> None:
        try:
            self._ask()
        except SyftError as error:
            self.error = str(error)


@pytest.mark.slow
def test_whatever_a_worker_does_it_stops_in_order_and_clients_learn_why(torch_hook: Any, tmp_path: Path) -> None:
    with serve(torch_hook, tmp_path) as served, ExitStack() as stack:
        idle = stack.enter_context(closing(served.connect()))
        kept = torch.ones(3).tag("#kept").send(idle).publish()
        doing = [
            Doing(served, lambda served, far: run_model(served, far, Train)),
            Doing(served, lambda served, far: run_model(served, far, Evaluate)),
            Doing(served, run_plan),
            Doing(served, run_batch),
        ]
        half = stack.enter_context(closing(served.connect()))
        half._connection._send_all([b"\x82\xff" + (1 << 25).to_bytes(8) + bytes(4), bytes(1 << 20)], (1 << 20) + 14)
        time.sleep(2)  # Let them begin; what has arrived, and has not begun, ends all the same.

        assert served.stop() == 0

        for thread in doing:
            thread.join(LIMIT)
            assert thread.error == STOPPING
            thread.far.disconnect()
        assert kept.child.id_at_location
        require_order(served)


@pytest.mark.slow
def test_a_party_that_computes_on_shares_stops_in_order(numpy_hook: Any) -> None:
    ports = {name: find_port() for name in ("north", "south", "east")}
    with ExitStack() as stack:
        served = {}
        folder = Path(stack.enter_context(TemporaryDirectory()))
        for name, port in ports.items():
            others = [f'[peers.{other}]\nurl = "ws://127.0.0.1:{ports[other]}"' for other in ports if other != name]
            (folder / f"{name}.toml").write_text("\n".join([f'id = "{name}"', 'framework = "numpy"', *others]))
            served[name] = stack.enter_context(supervise(str(folder / f"{name}.toml"), "--port", str(port)))
        parties = [served[name].connect(numpy_hook, served[name].read_token()) for name in ports]
        x = numpy_hook.array(np.arange(20_000)).share(*parties[:2], crypto_provider=parties[2])
        y = x * x
        for _ in range(300):
            y = y * x

        for party in parties:
            party._post(asks=False)
        time.sleep(1)
        served["north"].process.send_signal(signal.SIGTERM)

        assert served["north"].process.wait(LIMIT) == 0
        assert "Traceback" not in "".join(served["north"].lines)
        for name in ("south", "east"):  # They go on.
            served[name].process.send_signal(signal.SIGTERM)
            assert served[name].process.wait(LIMIT) == 0
        for party in parties:
            party.disconnect()
            numpy_hook.local_worker.remove_worker_from_registry(party.id)


# --- when there is nothing to end, and when somebody is in a hurry

NUMPY = ("--framework", "numpy", "--data", "tests.network.dangers:load")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_worker_that_nobody_has_used_stops(numpy_hook: Any, tmp_path: Path, number: signal.Signals) -> None:
    with serve(numpy_hook, tmp_path, *NUMPY) as served:
        served.worker.wait_for("worker is ready")

        assert served.stop(number) == 0
        require_order(served)


@pytest.mark.parametrize("event", ["", "starting the worker", "hooked numpy"])
def test_a_worker_that_starts_stops(numpy_hook: Any, tmp_path: Path, event: str) -> None:
    with serve(numpy_hook, tmp_path, *NUMPY) as served:
        if event:
            served.worker.wait_for(event)
        else:
            time.sleep(0.5)  # It imports its own modules.

        assert served.stop() in ((0,) if event else (0, -signal.SIGTERM))  # Python itself may not be ready.
        assert "Traceback" not in "".join(served.worker.lines)


@pytest.mark.slow
def test_an_operation_that_does_not_end_holds_up_nothing_else(numpy_hook: Any, tmp_path: Path) -> None:
    with serve(numpy_hook, tmp_path, *NUMPY) as served, closing(served.connect()) as far:
        x = numpy_hook.make_taggable(np.ones(3)).tag("#kept").send(far).publish()
        far.flush()
        far.submit(Run("numpy", "test.hang", (x.child,), None, new_id()))
        time.sleep(0.5)

        begun = time.monotonic()
        assert served.stop() == 0

        assert time.monotonic() - begun < LIMIT
        require_order(served)
        far.disconnect()
    with supervise(str(tmp_path / "worker.toml"), *NUMPY) as worker:
        again = served._replace(worker=worker).connect()
        assert len(again.search("#kept")) == 1
        again.close()


def test_who_asks_twice_does_not_wait(numpy_hook: Any, tmp_path: Path) -> None:
    with serve(numpy_hook, tmp_path, *NUMPY) as served, closing(served.connect()) as far:
        x = numpy_hook.make_taggable(np.ones(3)).send(far)
        far.submit(Run("numpy", "test.hang", (x.child,), None, new_id()))
        time.sleep(0.5)

        for _ in range(2):  # Both at once: they count as one.
            served.worker.process.send_signal(signal.SIGTERM)
        time.sleep(1.2)
        assert served.stop(signal.SIGINT) == 0

        assert served.worker.wait_for("worker stopped")["code"] == -signal.SIGKILL
        far.disconnect()


@pytest.mark.slow
def test_a_serving_process_that_somebody_else_stops_is_started_again_and_nobody_is_blamed(
    numpy_hook: Any, tmp_path: Path
) -> None:
    with serve(numpy_hook, tmp_path, *NUMPY) as served, closing(served.connect()) as far:
        x = numpy_hook.make_taggable(np.ones(3)).send(far)
        far.submit(Run("numpy", "test.hang", (x.child,), None, new_id()))
        time.sleep(0.5)

        os.kill(served.worker.wait_for("worker is ready")["process"], signal.SIGTERM)

        served.worker.wait_for("worker is ready", 2)
        assert not (tmp_path / "store" / "incidents.json").exists()
        far.disconnect()
        assert served.stop() == 0
