"""`syft-core worker`: whatever an operation does, the worker goes on, and the client learns why."""

from __future__ import annotations

import errno
import json
import os
import select
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from syft_core.cli import main
from syft_core.exceptions import AuthenticationError, ConnectionLostError, OperationNotAllowedError, StorageError
from syft_core.messages import Run, Store
from syft_core.network.client import WebsocketClientWorker
from syft_core.network.session import CLIENT, PROTOCOL, SESSION
from syft_core.pointers.object_pointer import new_id
from syft_core.workers.party.virtual import VirtualWorker
from syft_worker.errors import QuotaExceededError
from syft_worker.incidents import Incident, Incidents
from syft_worker.tokens import TokenFile

from ..network.dangers import Bomb
from ..network.supervised import ROOT, SupervisedWorker, supervise

np = pytest.importorskip("numpy")
pytest.importorskip("resource")

from syft_numpy.hook import NumpyHook  # noqa: E402

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the tests rely on the isolation of Linux")


@pytest.fixture(scope="module")
def numpy_hook() -> Iterator[Any]:
    with NumpyHook(np) as hook:
        yield hook


class Served(NamedTuple):
    worker: SupervisedWorker
    far: WebsocketClientWorker
    hook: Any
    store: Path
    tokens: dict[str, str]

    def run(self, name: str, *args: Any) -> Any:
        """Run a command on one object, which is sent first."""
        x = np.ones(3) if not args else args[0]
        pointer = self.hook.make_taggable(x).send(self.far)
        return self.far.ask(Run("numpy", name, (pointer.child,), None, new_id()))

    def ages(self) -> list[float]:
        (found,) = self.far.search("#ages")
        values: list[float] = found.copy().get().tolist()
        return values


def options(folder: Path) -> list[str]:
    config = folder / "worker.toml"
    config.write_text(
        """
        id = "north"
        framework = "numpy"
        data = ["tests.network.dangers:load"]
        token_file = "tokens.json"
        store = "store"
        [limits]
        operation_seconds = 5.0
        memory = "600MB"
        """
    )
    return [str(config)]


def add_tokens(folder: Path, *users: str) -> dict[str, str]:
    path = folder / "tokens.json"
    path.write_text('{"format": 1, "tokens": []}')
    path.chmod(0o600)
    return {user: TokenFile(path).add(user, None)[1] for user in users}


@pytest.fixture(scope="module")
def served(numpy_hook: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("north")
    tokens = add_tokens(folder, "ana", "bo")
    with supervise(*options(folder)) as worker:
        far = worker.connect(numpy_hook, tokens["ana"])
        yield Served(worker, far, numpy_hook, folder / "store", tokens)
        far.close()


def test_the_worker_reports_how_it_is_isolated(served: Served) -> None:
    ready = served.worker.wait_for("worker is ready")

    assert "limits" in ready["isolation"]
    assert "no-new-privileges" in ready["isolation"]


@pytest.mark.parametrize(
    ("name", "reason"), [("test.crash", r"ended the process \(SIGSEGV\)"), ("test.hang", "ran longer than 5 seconds")]
)
def test_an_operation_that_ends_the_process_is_named_and_refused_from_then_on(
    served: Served, name: str, reason: str
) -> None:
    pointer = served.hook.make_taggable(np.arange(2.0)).tag("#kept").send(served.far)
    pointer.publish()
    other = VirtualWorker(served.hook, id=f"other of {name}", auto_add=False)
    theirs = served.worker.connect(served.hook, served.tokens["bo"], client=other)

    with pytest.raises(ConnectionLostError, match=rf"the operation {name}\(float64\[3\]/8\) {reason} in batch"):
        served.run(name)

    assert served.ages() == [30.0, 40.0, 50.0]
    assert pointer.child.id_at_location in [found.id_at_location for found in served.far.search("#kept")]
    with pytest.raises(ConnectionLostError, match="the worker's process ended, and was started again"):
        theirs.search("#ages")
    assert len(theirs.search("#ages")) == 1
    why = rf"{name}.*it {reason} before, and is refused to user 'ana' until .* UTC; use another operation"
    with pytest.raises(OperationNotAllowedError, match=why):
        served.run(name)
    assert served.ages() == [30.0, 40.0, 50.0]
    theirs.close()


def test_the_log_names_user_session_batch_and_operation_of_what_ended_the_process(served: Served) -> None:
    event = served.worker.wait_for("an operation ended the process")

    assert (event["user"], event["operation"]) == ("ana", "test.crash(float64[3]/8)")
    assert event["client"].endswith("@ana")
    assert event["batch"] > 0


def test_an_operation_that_needs_too_much_memory_fails_and_nothing_else(served: Served) -> None:
    before = len(served.worker.events)

    with pytest.raises(MemoryError):
        served.run("test.hog")

    assert served.ages() == [30.0, 40.0, 50.0]
    assert not [event for event in served.worker.events[before:] if "starting" in event["event"]]


def test_a_user_without_quotas_has_at_most_half_of_the_memory(served: Served) -> None:
    kept = [served.hook.make_taggable(np.zeros(6_000_000)).send(served.far) for _ in range(6)]
    served.far.flush()
    kept.append(served.hook.make_taggable(np.zeros(6_000_000)).send(served.far))

    with pytest.raises(QuotaExceededError, match=r"user 'ana' would then have [\d,]+ bytes .* limit is 300,000,000"):
        served.far.flush()

    assert served.ages() == [30.0, 40.0, 50.0]
    kept.clear()
    served.far.flush()


@pytest.mark.parametrize("name", ["read_passwords", "start_program", "open_socket", "signal_supervisor"])
def test_an_operation_reaches_no_files_programs_machines_or_processes(served: Served, name: str) -> None:
    applied = served.worker.wait_for("worker is ready")["isolation"]
    if "landlock" not in applied or "seccomp" not in applied:
        pytest.skip("the kernel has no Landlock or seccomp")

    with pytest.raises(PermissionError):
        served.run(f"test.{name}")


def test_without_landlock_a_process_signals_only_its_own_threads() -> None:
    program = (
        "import ctypes, os, platform, signal, sys, threading\n"
        "from syft_worker import isolation\n"
        "needs = isolation.Isolation(1 << 30, 10)\n"
        "if not (isolation._forbid_privileges(needs) and isolation._restrict_calls(needs)): sys.exit(77)\n"
        "call = ctypes.CDLL(None, use_errno=True).syscall\n"
        "number = isolation._TGKILL[list(isolation._ARCHITECTURES).index(platform.machine())]\n"
        "signal.signal(signal.SIGUSR1, lambda *_: print('arrived'))\n"
        "signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)\n"
        "print(call(number, os.getppid(), os.getppid(), 0), ctypes.get_errno())\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60, cwd=ROOT)
    if done.returncode == 77:
        pytest.skip("the kernel has no seccomp")

    assert done.stdout.split() == ["arrived", "-1", str(errno.EPERM)], done.stderr


def test_a_worker_that_is_killed_comes_back_and_nobody_is_blamed(served: Served) -> None:
    served.ages()
    ready = [event for event in served.worker.events if event["event"] == "worker is ready"]
    os.kill(ready[-1]["process"], signal.SIGKILL)
    served.worker.wait_for("worker is ready", len(ready) + 1)

    with pytest.raises(ConnectionLostError, match="the worker's process ended"):
        served.ages()
    assert served.ages() == [30.0, 40.0, 50.0]
    assert served.worker.wait_for("ended while no operation was running")["process"] == ready[-1]["process"]


@pytest.mark.slow
def test_refusals_outlive_the_supervisor_and_end_with_the_users_crashes(numpy_hook: Any, tmp_path: Path) -> None:
    tokens = add_tokens(tmp_path, "ana")
    store = tmp_path / "store"
    store.mkdir()
    known = [
        Incident("ana", f"test.crash(float64[{n}]/8)", "ended the process (X)", True, time.time()) for n in range(4)
    ]
    Incidents.open(86_400, store).add(*known)
    with supervise(*options(tmp_path), "--id", "west") as worker:
        far = worker.connect(numpy_hook, tokens["ana"])
        served = Served(worker, far, numpy_hook, store, tokens)

        with pytest.raises(OperationNotAllowedError, match=r"it ended the process \(X\) before, and is refused"):
            served.run("test.crash")
        with pytest.raises(AuthenticationError, match="operations of user 'ana' ended the worker's process 5 times"):
            served.run("test.crash", np.ones((2, 2)))
        far.close()
        assert worker.stop() == 0


@pytest.mark.slow
def test_a_message_that_ends_the_process_counts_against_its_user(numpy_hook: Any, tmp_path: Path) -> None:
    tokens = add_tokens(tmp_path, "ana", "bo")
    with supervise(*options(tmp_path), "--id", "cape") as worker, ExitStack() as stack:
        far = worker.connect(numpy_hook, tokens["ana"])
        stack.callback(far.close)
        for _ in range(4):
            with pytest.raises(ConnectionLostError, match=r"reading a message ended the process \(SIGSEGV\) in batch"):
                far.ask(Store(new_id(), Bomb()))
        with pytest.raises(AuthenticationError, match="operations of user 'ana' ended the worker's process 5 times"):
            far.ask(Store(new_id(), Bomb()))

        other = VirtualWorker(numpy_hook, id="other at the cape", auto_add=False)
        theirs = worker.connect(numpy_hook, tokens["bo"], client=other)
        stack.callback(theirs.close)
        assert len(theirs.search("#ages")) == 1


def test_an_incident_that_cannot_be_written_does_not_end_the_supervisor(numpy_hook: Any, tmp_path: Path) -> None:
    tokens = add_tokens(tmp_path, "ana")
    with supervise(*options(tmp_path), "--id", "valley") as worker:
        served = Served(worker, worker.connect(numpy_hook, tokens["ana"]), numpy_hook, tmp_path / "store", tokens)
        (tmp_path / "store" / "incidents.json").mkdir()

        with pytest.raises(ConnectionLostError, match=r"the operation test.crash.* in batch"):
            served.run("test.crash")

        assert "Is a directory" in worker.wait_for("cannot write .*incidents.json")["event"]
        with pytest.raises(OperationNotAllowedError, match="before, and is refused"):
            served.run("test.crash")
        served.far.close()


def kill_during(served: Served) -> None:
    """Kill the serving process from outside while it runs an operation, and wait until it is there again."""
    ready = [event for event in served.worker.events if event["event"] == "worker is ready"]
    pointer = served.hook.make_taggable(np.ones(3)).send(served.far)
    served.far.submit(Run("numpy", "test.hang", (pointer.child,), None, new_id()))
    served.far._post(asks=False)
    time.sleep(0.3)
    os.kill(ready[-1]["process"], signal.SIGKILL)
    served.worker.wait_for("worker is ready", len(ready) + 1)
    with pytest.raises(ConnectionLostError, match=r"test.hang.* was running when the process was killed \(SIGKILL\)"):
        served.far.search("#ages")


@pytest.mark.slow
def test_a_kill_from_outside_counts_only_if_it_repeats_and_the_ban_is_lifted_while_the_worker_runs(
    numpy_hook: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tokens = add_tokens(tmp_path, "ana", "bo")
    given = [*options(tmp_path), "--id", "bluff", "--limits", "operation_seconds=600"]
    with supervise(*given) as worker, ExitStack() as stack:
        far = stack.enter_context(closing(worker.connect(numpy_hook, tokens["ana"])))
        served = Served(worker, far, numpy_hook, tmp_path / "store", tokens)
        kill_during(served)
        assert Incidents.open(86_400, tmp_path / "store").list_bans(lambda _user: 5) == []

        kill_during(served)
        with pytest.raises(
            OperationNotAllowedError, match=r"it was running when the process was killed .* 2 times before"
        ):
            served.run("test.hang")
        other = VirtualWorker(numpy_hook, id="other on the bluff", auto_add=False)
        theirs = stack.enter_context(closing(worker.connect(numpy_hook, tokens["bo"], client=other)))
        pointer = numpy_hook.make_taggable(np.ones(3)).send(theirs)
        theirs.submit(Run("numpy", "test.hang", (pointer.child,), None, new_id()))
        theirs._post(asks=False)
        time.sleep(0.3)
        os.kill(worker.wait_for("worker is ready", 3)["process"], signal.SIGKILL)  # It runs for another user.
        worker.wait_for("worker is ready", 4)
        for location in (far, theirs):
            with pytest.raises(ConnectionLostError):
                location.search("#ages")

        assert main(["worker", given[0], "--bans", "--json"]) == 0
        (ban,) = json.loads(capsys.readouterr().out)
        assert (ban["user"], ban["operation"]) == ("ana", "test.hang(float64[3]/8)")
        assert main(["worker", given[0], "--lift", ban["id"]]) == 0
        kill_during(served)  # It runs again.
        far.disconnect()
        theirs.disconnect()


@pytest.mark.slow
def test_a_full_disk_is_reported_to_clients_and_when_the_worker_stops(numpy_hook: Any, tmp_path: Path) -> None:
    tokens = add_tokens(tmp_path, "ana")
    with supervise(*options(tmp_path), "--id", "lagoon") as worker:
        far = worker.connect(numpy_hook, tokens["ana"])
        pointer = numpy_hook.make_taggable(np.ones(3)).tag("#first").send(far)
        Served(worker, far, numpy_hook, tmp_path / "store", tokens).run("test.fill_disk")
        pointer.tag("#second")
        with pytest.raises(StorageError, match="it cannot be written to disk"):
            far.flush()
        far.close()
        worker.stop()

        assert "it cannot be written to disk" in worker.wait_for("cannot store object")["event"]
        assert "Traceback" not in "".join(worker.lines)
    with supervise(*options(tmp_path), "--id", "lagoon") as worker:
        far = worker.connect(numpy_hook, tokens["ana"], client=VirtualWorker(numpy_hook, id="later", auto_add=False))
        assert [len(far.search(tag)) for tag in ("#first", "#second")] == [1, 0]
        far.close()


def test_a_process_that_executes_does_not_outlive_its_supervisor(numpy_hook: Any, tmp_path: Path) -> None:
    tokens = add_tokens(tmp_path, "ana")
    with supervise(*options(tmp_path), "--id", "islet", "--limits", "operation_seconds=600") as worker:
        far = worker.connect(numpy_hook, tokens["ana"])
        pointer = numpy_hook.make_taggable(np.ones(3)).send(far)
        far.submit(Run("numpy", "test.hang", (pointer.child,), None, new_id()))
        serving = os.pidfd_open(worker.wait_for("worker is ready")["process"])

        worker.process.kill()

        assert select.select([serving], [], [], 60)[0]
        os.close(serving)
    with supervise(*options(tmp_path), "--id", "islet") as worker:  # It uses the same store.
        worker.wait_for("worker is ready")
    far.disconnect()


def test_a_worker_that_cannot_start_gives_up_and_says_so() -> None:
    worker = SupervisedWorker("--framework", "numpy", "--data", "tests.network.dangers:end_at_once")

    assert worker.process.wait(300) == 1
    worker.stop()

    assert "its process ended 3 times before it was ready (exit code 7)" in "".join(worker.lines)


def test_a_mistake_in_the_configuration_ends_the_start_at_once(tmp_path: Path) -> None:
    worker = SupervisedWorker("--framework", "numpy", "--data", str(tmp_path / "missing.npy"))

    assert worker.process.wait(300) == 1
    worker.stop()

    assert [event["event"] for event in worker.events] == [worker.wait_for("cannot load")["event"]]
    assert "missing.npy: there is no such file" in worker.wait_for("cannot load")["event"]


def test_a_mistake_in_the_data_ends_the_start_at_once(tmp_path: Path) -> None:
    (tmp_path / "wrong.npy").write_text("not an array")
    worker = SupervisedWorker("--framework", "numpy", "--data", str(tmp_path / "wrong.npy"))

    assert worker.process.wait(300) == 1
    worker.stop()

    assert len([event for event in worker.events if event["event"] == "starting the worker"]) == 1
    assert "wrong.npy" in worker.wait_for("cannot load")["event"]


def test_the_token_of_a_worker_without_authentication_is_printed(numpy_hook: Any) -> None:
    with supervise("--framework", "numpy", "--id", "south") as worker:
        far = worker.connect(numpy_hook, worker.read_token())
        assert far.id == "south"
        with pytest.raises(AuthenticationError):
            worker.connect(numpy_hook, "wrong", client=VirtualWorker(numpy_hook, id="stranger", auto_add=False))
        far.close()
        assert worker.stop() == 0


def test_users_are_known_by_certificate_over_tls(numpy_hook: Any, tmp_path: Path) -> None:
    assert main(["certs", str(tmp_path), "--host", "localhost", "127.0.0.1", "--client", "ana"]) == 0
    files = {"--cert": "server.pem", "--key": "server.key", "--client-ca": "ca.pem"}
    given = [part for option, name in files.items() for part in (option, str(tmp_path / name))]
    with supervise("--framework", "numpy", "--id", "east", *given) as worker:
        client = {"cert": tmp_path / "client-ana.pem", "key": tmp_path / "client-ana.key"}
        far = worker.connect(numpy_hook, None, secure=True, ca=tmp_path / "ca.pem", **client)

        assert far.client_id.endswith("@ana")
        assert far.remote.numpy.zeros(2).get().tolist() == [0, 0]
        far.close()


def test_an_object_moves_between_workers_that_know_each_other(numpy_hook: Any, tmp_path: Path) -> None:
    with supervise("--framework", "numpy", "--id", "inland") as inland:
        inland.wait_for("worker is ready")
        (tmp_path / "coast.toml").write_text(
            f'id = "coast"\nframework = "numpy"\n[peers.inland]\nurl = "ws://127.0.0.1:{inland.port}"'
        )
        with supervise(str(tmp_path / "coast.toml")) as coast:
            near = coast.connect(numpy_hook, coast.read_token())
            far = inland.connect(numpy_hook, inland.read_token())
            x = numpy_hook.make_taggable(np.arange(3.0)).send(near)

            moved = x.move(far)

            assert moved.location.id == "inland"
            assert moved.get().tolist() == [0, 1, 2]
            near.close()
            far.close()


def test_connections_without_memory_are_refused_and_the_others_go_on(numpy_hook: Any) -> None:
    with supervise("--framework", "numpy", "--id", "small", "--limits", "memory=300MB") as worker, ExitStack() as stack:
        token = worker.read_token()
        far = worker.connect(numpy_hook, token)
        for number in range(60):
            headers = {CLIENT: f"c{number}", SESSION: "0" * 32, "Authorization": f"Bearer {token}"}
            sock = stack.enter_context(socket.create_connection(("127.0.0.1", worker.port), 60))
            with suppress(OSError, WebSocketException):  # It is refused.
                options = {"sock": sock, "additional_headers": headers, "subprotocols": [PROTOCOL]}
                stack.enter_context(connect(f"ws://127.0.0.1:{worker.port}", **options))

        worker.wait_for("refused a connection from 127.0.0.1: there is no memory for it")

        assert far.remote.numpy.zeros(2).get().tolist() == [0, 0]
        far.close()


def test_strangers_do_not_take_the_memory_of_users(numpy_hook: Any) -> None:
    options = ("--framework", "numpy", "--id", "shore", "--limits", "memory=400MB", "--page-port", "0")
    with supervise(*options) as worker, ExitStack() as stack:
        far = worker.connect(numpy_hook, worker.read_token())
        page = urlsplit(worker.wait_for("serving the page")["url"]).port
        for port in (worker.port, page):
            for _ in range(100):
                stack.enter_context(socket.create_connection(("127.0.0.1", port), 60))

        assert far.remote.numpy.zeros(10_000_000).sum().get() == 0
        assert not [event for event in worker.events if "no memory" in event["event"]]
        far.close()


@pytest.mark.parametrize("kind", ["command", "webhook"])
def test_somebody_learns_of_a_request_and_rules_of_the_configuration_apply(
    numpy_hook: Any, tmp_path: Path, kind: str
) -> None:
    np.save(tmp_path / "ages.npy", np.array([30.0, 45.0]))
    tokens = tmp_path / "tokens.json"
    assert main(["token", "add", str(tokens), "--user", "first"]) == 0
    secret = TokenFile(tokens).add("ana", 3600.0)[1]
    told = tmp_path / "told.json"
    with ExitStack() as stack:
        if kind == "command":
            program = tmp_path / "tell.py"
            program.write_text(f"import pathlib, sys; pathlib.Path({str(told)!r}).write_text(sys.stdin.read())")
            target = f"{sys.executable} {program}"
        else:
            hooks = stack.enter_context(_receive_hooks(told))
            target = f"http://127.0.0.1:{hooks}/requests"
        (tmp_path / "worker.toml").write_text(
            f'on_request = "{target}"\ntoken_file = "tokens.json"\nledger = "ledger"\nstore = "store"\n'
            'data = ["ages.npy#ages:private="]\nframework = "numpy"\n'
            '[rules.averages]\nuser = "ana"\nform = "ndarray[]"\ncomputed_from = "#ages"\ncount = 1\n'
            "any_program = true\n"
        )
        worker = stack.enter_context(supervise(str(tmp_path / "worker.toml")))
        client = VirtualWorker(numpy_hook, id="client", auto_add=False)
        far = stack.enter_context(closing(worker.connect(numpy_hook, secret, client=client)))
        ages = far.search("#ages")[0]

        assert ages.mean().get() == 37.5
        request = (ages * 2).request("it's `for` $(the) paper")
        worker.wait_for("told of a request")

    notice = json.loads(told.read_text())
    assert (notice["id"], notice["user"], notice["worker"]) == (request.id, "ana", "worker")
    assert (notice["reason"], notice["form"]) == ("it's `for` $(the) paper", "ndarray[2]")


@contextmanager
def _receive_hooks(told: Path) -> Iterator[int]:
    """Serve an address that writes what is posted to it into a file; yield its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told.write_bytes(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(204)
            self.end_headers()

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def test_certificates_users_and_rules_are_read_again_on_hangup(numpy_hook: Any, tmp_path: Path) -> None:
    np.save(tmp_path / "ages.npy", np.array([30.0, 45.0]))
    certs = tmp_path / "certs"
    assert main(["certs", str(certs), "--host", "127.0.0.1", "localhost"]) == 0
    assert main(["token", "add", str(tmp_path / "tokens.json"), "--user", "first"]) == 0
    secret = TokenFile(tmp_path / "tokens.json").add("ana", 3600.0)[1]
    file = tmp_path / "worker.toml"
    text = (
        'token_file = "tokens.json"\ncert = "certs/server.pem"\nkey = "certs/server.key"\nframework = "numpy"\n'
        'ledger = "log/ledger"\ndata = ["ages.npy#ages:private="]\n'
    )
    (tmp_path / "log").mkdir()
    file.write_text(text)
    with supervise(str(file)) as worker, ExitStack() as stack:
        client = VirtualWorker(numpy_hook, id="client", auto_add=False)
        worker.wait_for("worker is ready")
        far = stack.enter_context(closing(worker.connect(numpy_hook, secret, client=client, ca=certs / "ca.pem")))
        mean = far.search("#ages")[0].mean()
        with pytest.raises(PermissionError):
            mean.get()
        before = ssl.get_server_certificate(("127.0.0.1", worker.port))

        assert main(["certs", str(certs), "--renew", "--days", "30"]) == 0
        file.write_text(
            f'{text}[users.ana]\nobjects = 3\n[rules.a]\nuser = "ana"\ncomputed_from = "#ages"\nany_program = true\n'
        )
        worker.process.send_signal(signal.SIGHUP)
        worker.wait_for("the configuration was read again")

        assert mean.get() == 37.5
        assert ssl.get_server_certificate(("127.0.0.1", worker.port)) != before
        kept = [numpy_hook.ones(2).send(far) for _ in range(5)]
        with pytest.raises(QuotaExceededError):
            far.flush()
        del kept
        file.write_text("polcy = 3")
        worker.process.send_signal(signal.SIGHUP)
        worker.wait_for("is not read again.*did you mean")
        assert far.search("#ages")[0].shape == (2,)
