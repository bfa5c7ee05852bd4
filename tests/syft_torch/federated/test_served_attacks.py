"""Hand-made ``Train`` messages to a served worker: each is refused, and the worker and its other users go on."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

import syft_core as sy
from syft_core.exceptions import (
    AuthenticationError,
    ConnectionLostError,
    ObjectNotFoundError,
    OperationNotAllowedError,
    SyftError,
)
from syft_core.hook.forms import form
from syft_core.messages import FetchAll, Store
from syft_core.network.client import WebsocketClientWorker
from syft_core.network.server import Server
from syft_core.plans.program import Program, Routine, Slot, Step
from syft_core.pointers.object_pointer import new_id
from syft_worker.allowances import Allowance
from syft_worker.errors import QuotaExceededError
from syft_worker.quotas import QuotaGuard
from syft_worker.tokens import TokenFile
from tests.network.processes import authenticate
from tests.network.supervised import SupervisedWorker, supervise

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")
pytest.importorskip("resource")

from syft_torch.federated.training import Train  # noqa: E402  # torch may be missing
from tests.meanwhile import meanwhile  # noqa: E402
from tests.waiting import wait_for_end, wait_until  # noqa: E402

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the tests rely on the isolation of Linux")

FORMS = (
    form((4, 3), None, torch.float32, None, True),
    form((-1, 4), None, torch.float32),
    form((-1,), None, torch.int64),
)
SETTINGS = {"epochs": 1, "batch_size": 8, "optimizer": "SGD", "groups": (({"lr": 0.1}, (0,)),)}
LOSS = Step("torch", "torch.nn.functional.cross_entropy", (Slot(3), Slot(2)), {}, 1)


def make_loss(hook: Any, *steps: Step) -> Program:
    """Return a loss that multiplies the batch by the weights, followed by steps with one result each."""
    first = Step("torch", "torch.Tensor.matmul", (Slot(1), Slot(0)), {}, 1, hook.attributes.modes())
    return Program("loss", FORMS, (), 0, (Routine((first, *steps), Slot(3 + len(steps))),))


def make_message(hook: Any, far: Any, *steps: Step, **changes: Any) -> Train:
    """Store a loss, and return a message that trains with it."""
    plan = new_id()
    far.tell(Store(plan, make_loss(hook, *(steps or (LOSS,)))))
    data = tuple([far.search(tag)[0].child for tag in ("#x", "#y")])
    settings = {**SETTINGS, **changes.pop("settings", {})}
    given = {"plans": (plan,), "weights": torch.zeros(12), "fixed": (), "data": data, "parts": 2, "seed": 1}
    return Train(**{**given, "settings": settings, "result": new_id(), **changes})


def train_on(hook: Any, far: Any, *steps: Step, **changes: Any) -> Any:
    message = make_message(hook, far, *steps, **changes)
    far.tell(message)
    return far.ask(FetchAll((message.result, message.result + 1)))[0]


# --- a worker of `syft-core worker`


class Served(NamedTuple):
    worker: SupervisedWorker
    hook: Any
    tokens: dict[str, str]

    def connect(self, user: str) -> Any:
        client = sy.VirtualWorker(self.hook, id=f"program of {user} {new_id()}", auto_add=False)
        return self.worker.connect(self.hook, self.tokens[user], client=client)


@pytest.fixture
def served(hook: Any, supervised: tuple[SupervisedWorker, dict[str, str]]) -> Served:
    return Served(supervised[0], hook, supervised[1])


@pytest.fixture(scope="module")
def supervised(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SupervisedWorker, dict[str, str]]]:
    folder = tmp_path_factory.mktemp("north")
    np.save(folder / "x.npy", np.random.default_rng(0).standard_normal((50, 4)).astype("float32"))
    np.save(folder / "y.npy", np.arange(50) % 3)
    config = folder / "worker.toml"
    config.write_text(
        f"""
        id = "north"
        framework = "torch"
        data = ["{folder}/x.npy#x", "{folder}/y.npy#y"]
        token_file = "tokens.json"
        [limits]
        operation_seconds = 4.0
        memory = "3GB"
        [users.ana]
        bytes = 50_000_000
        """
    )
    tokens = folder / "tokens.json"
    tokens.write_text('{"format": 1, "tokens": []}')
    tokens.chmod(0o600)
    with supervise(str(config)) as worker:
        yield worker, {user: TokenFile(tokens).add(user, None)[1] for user in ("ana", "bo")}


def repeat(rows: int, columns: int) -> Step:
    return Step("torch", "torch.Tensor.repeat", (Slot(3), rows, columns), {}, 1)


def group(**numbers: Any) -> dict[str, Any]:
    return {"settings": {"groups": ((numbers, (0,)),)}}


def adam(**numbers: Any) -> dict[str, Any]:
    return {"settings": {"optimizer": "Adam", "groups": ((numbers, (0,)),)}}


WRONG: dict[str, Any] = {
    "negative epochs": {"settings": {"epochs": -1}},
    "endless epochs": {"settings": {"epochs": 10**12}},
    "epochs that are a flag": {"settings": {"epochs": True}},
    "a huge batch": {"settings": {"batch_size": 10**15}},
    "a larger batch": {"settings": {"batch_size": 2**63}},
    "a learning rate of NaN": group(lr=float("nan")),
    "an infinite learning rate": group(lr=float("inf")),
    "a negative learning rate": group(lr=-1.0),
    "a missing learning rate": group(lr=None),
    "a pair as momentum": group(lr=0.1, momentum=(1, 2)),
    "three betas": adam(lr=0.1, betas=(0.9, 0.9, 0.9)),
    "betas of NaN": adam(lr=0.1, betas=(0.9, float("nan"))),
    "a negative epsilon": adam(lr=0.1, eps=-1.0),
    "an infinite pull": {"settings": {"proximal": float("inf")}},
    "weights of another length": {"weights": torch.zeros(13)},
    "a correction of another length": {"correction": torch.zeros(13)},
    "ids instead of data": {"data": (1, 2)},
    "no data": {"data": ()},
    "a plan that does not exist": {"plans": (17,)},
    "more parts than inputs": {"parts": 3},
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_message_is_refused_and_the_worker_trains_on(served: Served, name: str) -> None:
    far = served.connect("ana")

    with pytest.raises(SyftError):
        train_on(served.hook, far, **WRONG[name])

    assert train_on(served.hook, far).any()
    far.close()


def test_objects_of_others_can_be_neither_plans_nor_results(served: Served) -> None:
    far, theirs = served.connect("ana"), served.connect("bo")
    plan, secret = new_id(), new_id()
    theirs.tell(Store(plan, make_loss(served.hook, LOSS)))
    theirs.tell(Store(secret, torch.ones(50, 4)))
    theirs.flush()

    with pytest.raises(SyftError):
        train_on(served.hook, far, plans=(plan,))
    with pytest.raises(SyftError):
        train_on(served.hook, far, result=secret)

    assert torch.equal(theirs.ask(FetchAll((secret,)))[0], torch.ones(50, 4))
    far.close()
    theirs.close()


@pytest.mark.parametrize("size", [(20_000, 200), (2_000_000, 2_000)])
def test_the_memory_of_a_step_counts_against_the_quota(served: Served, size: tuple[int, int]) -> None:
    far = served.connect("ana")
    total = Step("torch", "torch.Tensor.sum", (Slot(4),), {}, 1)

    with pytest.raises(QuotaExceededError, match=r"federated\.train.*the limit is 50,000,000"):
        train_on(served.hook, far, repeat(*size), total)

    assert train_on(served.hook, far).any()
    far.close()


@pytest.mark.slow
def test_a_loss_that_ends_the_process_is_refused_and_others_are_not(served: Served) -> None:
    far = served.connect("bo")
    slow = [
        repeat(1_000, 2_700),
        Step("torch", "torch.Tensor.t", (Slot(4),), {}, 1),
        Step("torch", "torch.Tensor.matmul", (Slot(4), Slot(5)), {}, 1),
        Step("torch", "torch.Tensor.sum", (Slot(6),), {}, 1),
    ]

    with pytest.raises(ConnectionLostError, match=r"federated\.train#\w+\(.*ran longer than 4 seconds"):
        train_on(served.hook, far, *slow)

    with pytest.raises(OperationNotAllowedError, match="ran longer than 4 seconds before"):
        train_on(served.hook, far, *slow)
    assert train_on(served.hook, far).any()
    ana = served.connect("ana")
    assert train_on(served.hook, ana).any()
    far.close()
    ana.close()


# --- a worker of this process


@pytest.fixture
def server(hook: Any) -> Iterator[Server]:
    worker = sy.VirtualWorker(hook, id="north", auto_add=False, serialize=False)
    worker.load_data([torch.randn(50, 4).tag("#x"), (torch.arange(50) % 3).tag("#y")])
    server = Server(worker, "127.0.0.1", 0, authenticate, heartbeat=0.05, session_timeout=0.2)
    server.start()
    yield server
    server.stop(1)
    hook.local_worker._known_workers.pop("north", None)


def connect(hook: Any, server: Server, user: str) -> Any:
    client = sy.VirtualWorker(hook, id=f"program of {user}", auto_add=False)
    return WebsocketClientWorker(hook, "127.0.0.1", server.port, token=f"secret of {user}", client=client, timeout=1)


class LongTraining:
    """A training that nobody can wait for, and its client, which can be lost."""

    def __init__(self, hook: Any, server: Server) -> None:
        self.server, self.far = server, connect(hook, server, "ana")
        self.message = make_message(hook, self.far, settings={"epochs": 1 << 20})
        self.far.tell(self.message)
        self._thread = threading.Thread(target=self._wait)
        self._thread.start()
        wait_until(lambda: self.runs)

    @property
    def runs(self) -> bool:
        return any(session.busy_since for session in self.server.sessions)

    def _wait(self) -> None:
        with pytest.raises((AuthenticationError, ConnectionLostError, ObjectNotFoundError)):
            self.far.ask(FetchAll((self.message.result,)))

    def lose(self) -> None:
        """Accept no more connections, and cut those that exist."""
        self.server._listener.shutdown(socket.SHUT_RDWR)  # A thread that accepts would accept one more.
        self.server._listener.close()
        for session in self.server.sessions:
            if session.connection is not None:
                session.connection.interrupt()
        self.end()

    def end(self) -> None:
        """Wait until the client has noticed that it is lost, and nothing is executed."""
        wait_for_end(self._thread)
        self.far.close()
        wait_until(lambda: not self.runs)


def test_others_take_turns_while_a_long_training_runs(hook: Any, server: Server) -> None:
    training, other = LongTraining(hook, server), connect(hook, server, "bo")

    for _ in range(5):
        assert torch.equal(torch.ones(2).send(other).get(), torch.ones(2))

    assert train_on(hook, other).any()
    assert training.runs
    other.close()
    training.lose()


def test_a_training_whose_client_is_gone_ends(hook: Any, server: Server) -> None:
    training = LongTraining(hook, server)

    training.lose()

    assert not training.runs


def test_a_training_of_a_user_whose_token_was_revoked_ends(hook: Any, server: Server) -> None:
    training = LongTraining(hook, server)

    server.admission.is_valid = lambda _identity: False
    training.end()

    assert not training.runs


def test_a_user_who_has_used_up_the_processor_time_waits_between_turns(hook: Any, server: Server) -> None:
    worker = server.worker
    guard = worker.guard = QuotaGuard(worker, {"ana": Allowance(cpu_seconds=30)})
    far = connect(hook, server, "ana")
    message = make_message(hook, far, settings={"epochs": 1 << 20})
    far.flush()
    peer = next(session.peer for session in server.sessions)
    used: list[float] = []
    count_seconds = guard.account_of("ana").cpu.wait

    def use(_message: Any) -> None:
        used.append(count_seconds())
        if len(used) == 2:
            raise ConnectionLostError("by a test")
        guard.account_of("ana").cpu.use(31)

    with meanwhile(worker, use), worker.lock, pytest.raises(ConnectionLostError, match="by a test"):
        worker.handle(message, peer)

    assert used == [0.0, 0.0]  # It has waited.
    far.close()
