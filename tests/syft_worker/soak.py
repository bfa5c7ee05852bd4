"""Visits of all kinds to a worker that is served, and what they leave behind in its memory.

The worker counts its own objects and bytes, after a garbage collection: numbers of a busy machine would differ.
"""

from __future__ import annotations

import gc
import os
import secrets
import socket
import struct
import sys
import tracemalloc
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import HTTPError

import numpy as np
import torch

from syft_core.exceptions import SyftError
from syft_core.hook.forms import form
from syft_core.hook.hook import attached_hooks
from syft_core.messages import Fetch, FetchAll, Run, Store
from syft_core.network.client import WebsocketClientWorker
from syft_core.network.session import CLIENT, PROTOCOL, SESSION
from syft_core.plans.messages import RunPlan
from syft_core.plans.program import Program, Routine, Slot, Step
from syft_core.pointers.object_pointer import new_id
from syft_core.workers.party.virtual import VirtualWorker
from syft_core.workers.seeing.ledger import MAX_REMEMBERED
from syft_worker.desk.requests import MAX_OPEN
from syft_worker.tokens import TokenFile
from tests.network.supervised import SupervisedWorker, supervise

# --- in the worker

_snapshots: list[tracemalloc.Snapshot] = []


def measure(x: Any) -> Any:
    """Return the bytes of Python objects, their number, and the bytes of the process."""
    for _ in range(3):
        gc.collect()
    resident = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return x.new_tensor([tracemalloc.get_traced_memory()[0], len(gc.get_objects()), resident])


def explain(x: Any) -> Any:
    """Write to the log which lines have allocated most since the last time."""
    gc.collect()
    _snapshots.append(tracemalloc.take_snapshot())
    for stat in _snapshots[-1].compare_to(_snapshots[0], "lineno")[:20]:
        sys.stderr.write(f"{stat.size_diff:+,} bytes, {stat.count_diff:+,} objects: {stat.traceback}\n")
    del _snapshots[:-1]
    return x


def load() -> dict[str, Any]:
    """Return the data of a worker, which can measure itself from now on."""
    (hook,) = attached_hooks()
    for function in (measure, explain):
        hook.attributes.allow(function, f"soak.{function.__name__}", writes=frozenset(), reads_beyond=False)
    tracemalloc.start()
    return {}


# --- in the program that visits it

FORMS = (
    form((4, 3), None, torch.float32, None, True),
    form((-1, 4), None, torch.float32),
    form((-1,), None, torch.int64),
)


class Growth(NamedTuple):
    """What one visit has left behind, on average."""

    bytes: float
    objects: float
    resident: float

    def __str__(self) -> str:
        return f"{self.bytes:,.0f} bytes in {self.objects:,.2f} objects, and {self.resident:,.0f} bytes of the process"


class Soaked:
    """A worker as it is served by ``syft-core worker``, with a ledger, a store, quotas and a page."""

    def __init__(self, hook: Any, worker: SupervisedWorker, tokens: dict[str, str]) -> None:
        self.hook, self.worker, self.tokens = hook, worker, tokens
        self.visits = 0
        self._has_full_histories = self._has_all_requests = False
        self._observer = self.connect("owner")
        self._x = torch.ones(1, dtype=torch.float64).send(self._observer)

    def connect(self, user: str = "ana") -> Any:
        """Connect as a client that was never there before."""
        self.visits += 1
        client = VirtualWorker(self.hook, id=f"visitor {self.visits}", auto_add=False)
        token = self.tokens.get(user, "syft-wrong")
        self.worker.wait_for("worker is ready")
        return WebsocketClientWorker(self.hook, "127.0.0.1", self.worker.port, token=token, client=client, timeout=60)

    def measure(self) -> np.ndarray[Any, Any]:
        """Return what the worker counts."""
        id = new_id()
        self._observer.tell(Run("torch", "soak.measure", (self._x.child,), None, id))
        return np.array(self._observer.ask(Fetch(id)).tolist())

    def explain(self) -> str:
        """Return where memory was allocated since the last time."""
        before = len(self.worker.lines)
        self._observer.ask(Run("torch", "soak.explain", (self._x.child,), None, new_id()))
        self._observer.flush()
        return "".join([line for line in self.worker.lines[before:] if " objects: " in line])

    def fill_histories(self) -> None:
        """Let so many objects leave, and be dropped, that the worker remembers no more of them than now."""
        if self._has_full_histories:
            return
        for size in (2_000,) * (MAX_REMEMBERED // 2_000 + 1):
            first = new_id()
            for number in range(size):
                self._observer.tell(Store(first + number, torch.zeros(1)))
            self._observer.ask(FetchAll(tuple(range(first, first + size))))
        dropped = [torch.ones(1).send(self._observer) for _ in range(1_100)]
        del dropped[:]
        self._observer.flush()
        self._has_full_histories = True

    def fill_requests(self) -> None:
        """Ask for as many releases as a user may have waiting."""
        if self._has_all_requests:
            return
        far = self.connect()
        (secret,) = far.search("#secret")
        mean = secret.mean()
        for _ in range(MAX_OPEN):
            mean.request("why")
        far.close()
        self._has_all_requests = True

    def soak(self, visits: Sequence[Callable[[Soaked], None]], count: int, warm_up: int) -> Growth:
        """Return how much memory grows with one round of visits, after a warm-up."""
        for _ in range(warm_up):
            self.visit(visits)
        self.explain()
        before = self.measure()
        for _ in range(count):
            self.visit(visits)
        return Growth(*((self.measure() - before) / count))

    def close(self) -> None:
        """Disconnect."""
        self._observer.close()

    def visit(self, visits: Sequence[Callable[[Soaked], None]]) -> None:
        """Make some visits."""
        for visit in visits:
            visit(self)


@contextmanager
def serve(hook: Any, folder: Path) -> Iterator[Soaked]:
    """Serve a worker in a new folder."""
    np.save(folder / "x.npy", np.zeros((8, 4), dtype="float32"))
    np.save(folder / "y.npy", np.zeros(8, dtype="int64"))
    np.save(folder / "secret.npy", np.ones(8))
    (folder / "log").mkdir()
    file = folder / "tokens.json"
    file.write_text('{"format": 1, "tokens": []}')
    file.chmod(0o600)
    tokens = {user: TokenFile(file).add(user, None, admin=user == "owner")[1] for user in ("ana", "owner")}
    (folder / "worker.toml").write_text(
        'id = "north"\nframework = "torch"\ntoken_file = "tokens.json"\nledger = "log/ledger"\nstore = "store"\n'
        'data = ["x.npy#x", "y.npy#y", "secret.npy#secret:private=", "tests.syft_worker.soak:load"]\npage_port = 0\n'
        "[users.ana]\nbytes = 50_000_000\nobjects = 10_000\n"
    )
    with supervise(str(folder / "worker.toml")) as worker:
        soaked = Soaked(hook, worker, tokens)
        try:
            yield soaked
        finally:
            soaked.close()


def visit_in_order(soaked: Soaked) -> None:
    """Connect, compute, fetch, and leave."""
    far = soaked.connect()
    x = torch.ones(3, 3).send(far)
    ((x @ x) + 1).get()
    far.search("#x")[0].sum().get()
    far.close()


def vanish(soaked: Soaked) -> None:
    """Leave objects behind, and a reply that nobody has read."""
    far = soaked.connect()
    x = torch.ones(3, 3).send(far)
    kept = x @ x
    far.flush()
    far.disconnect()
    far._closed = True
    for pointer in (x, kept):
        pointer.child.garbage_collect_data = False


def connect_again(soaked: Soaked) -> None:
    """Lose the connection several times."""
    far = soaked.connect()
    x = torch.ones(3).send(far)
    for _ in range(3):
        far.disconnect()
        far.connect()
        (x + 1).get()
    far.close()


def present_a_wrong_token(soaked: Soaked) -> None:
    """Be refused."""
    with suppress(SyftError):
        soaked.connect("nobody")


def ask_for_a_release(soaked: Soaked) -> None:
    """Ask for private data, which nobody answers; later requests are refused, and so are fetches."""
    far = soaked.connect()
    (secret,) = far.search("#secret")
    for act in (lambda: secret.mean().request("why"), lambda: secret.copy().get()):
        with suppress(SyftError):
            act()
    far.close()


def send_garbage(soaked: Soaked) -> None:
    """Send what is not a handshake, and, after a handshake, what is not a message."""
    name, secret, key = f"garbage {soaked.visits}", secrets.token_hex(16), "dGhlIHNhbXBsZSBub25jZQ=="
    soaked.visits += 1
    head = (
        f"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
        f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: {PROTOCOL}\r\n{CLIENT}: {name}\r\n"
        f"{SESSION}: {secret}\r\nAuthorization: Bearer {soaked.tokens['ana']}\r\n\r\n"
    ).encode()
    wrong = b"\x82\xff" + struct.pack(">Q", 1 << 20) + os.urandom(64)
    for sent in (os.urandom(200), b"\x16\x03\x01" + os.urandom(100), head + os.urandom(50), head + wrong):
        with suppress(OSError), socket.create_connection(("127.0.0.1", soaked.worker.port), timeout=60) as sock:
            sock.sendall(sent)
            sock.shutdown(socket.SHUT_WR)
            while sock.recv(4096):
                pass


def fail(soaked: Soaked) -> None:
    """Run what fails."""
    far = soaked.connect()
    x, y = torch.ones(3).send(far), torch.ones(4).send(far)
    for act in (lambda: (x + y).get(), lambda: far.ask(Run("torch", "no such operation", (), None, new_id()))):
        with suppress(SyftError, RuntimeError):
            act()
    far.close()


def run_a_plan(soaked: Soaked) -> None:
    """Send a plan that differs from those of all others, and run it."""
    far = soaked.connect()
    steps = (Step("torch", "torch.Tensor.mul", (Slot(0), float(soaked.visits)), {}, 1),)
    plan, result, x = new_id(), new_id(), torch.ones(3).send(far)
    far.tell(Store(plan, Program("double", (form((3,), None, torch.float32),), (), 0, (Routine(steps, Slot(1)),))))
    far.tell(RunPlan(plan, (x.child,), result, 1))
    far.ask(Fetch(result))
    far.close()


def train(soaked: Soaked) -> None:
    """Train a model, whose loss differs from those of all others."""
    from syft_torch.federated.training import Train  # noqa: PLC0415  # the worker imports this module first

    far = soaked.connect()
    steps = (
        Step("torch", "torch.Tensor.matmul", (Slot(1), Slot(0)), {}, 1, soaked.hook.attributes.modes()),
        Step("torch", "torch.nn.functional.cross_entropy", (Slot(3), Slot(2)), {}, 1),
        Step("torch", "torch.Tensor.mul", (Slot(4), float(soaked.visits)), {}, 1),
    )
    plan, result = new_id(), new_id()
    far.tell(Store(plan, Program("loss", FORMS, (), 0, (Routine(steps, Slot(5)),))))
    data = tuple([far.search(tag)[0].child for tag in ("#x", "#y")])
    settings = {"epochs": 1, "batch_size": 8, "optimizer": "SGD", "groups": (({"lr": 0.1}, (0,)),)}
    far.tell(Train((plan,), torch.zeros(12), (), data, 2, settings, result, seed=1))
    far.ask(FetchAll((result, result + 1)))
    far.close()


def look_at_the_page(soaked: Soaked) -> None:
    """Look at the page, and fail to."""
    url = soaked.worker.wait_for("serving the page")["url"]
    for path, user in (("", "owner"), ("metrics", "ana"), ("", "ana"), ("login", ""), ("health", "")):
        headers = {"Authorization": f"Bearer {soaked.tokens[user]}"} if user else {}
        try:
            answer = urllib.request.urlopen(urllib.request.Request(url + path, headers=headers), timeout=60)
        except HTTPError as refusal:
            answer = refusal
        with answer:
            answer.read()


VISITS: tuple[Callable[[Soaked], None], ...] = (
    visit_in_order,
    vanish,
    connect_again,
    present_a_wrong_token,
    ask_for_a_release,
    send_garbage,
    fail,
    run_a_plan,
    train,
    look_at_the_page,
)
