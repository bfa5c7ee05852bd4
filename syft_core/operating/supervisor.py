"""Supervisor: runs a worker in a process of its own, and starts it again when an operation has ended it.

The supervisor executes nothing for clients. It owns the port, so clients can wait while the worker is started again; it
knows from ``Activity`` what the process was executing, and refuses that operation from then on.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

from syft_core.exceptions import ConfigurationError, SyftError
from syft_core.files import write_file
from syft_core.network.address import listen
from syft_core.operating.activity import MISCONFIGURED, SIZE, STOP_SECONDS, Activity, Executing
from syft_core.operating.config import WorkerConfig
from syft_core.operating.logs import log_event
from syft_core.operating.notices import Notifier
from syft_core.values import Table

MAX_START_FAILURES = 3
"""How often in a row the process may end before it is ready."""
MAX_REFUSED = 10_000
_POLL_SECONDS = 0.1
_STABLE_SECONDS = 60
"""After this time, a crash counts as the first one."""
_MAX_PAUSE = 10.0
_PROGRAM = (
    "import sys; sys.path[:] = filter(None, sys.path); from syft_core.operating.serving import main; sys.exit(main())"
)
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
_OPERATION = "("
"""Is in the name of everything that can be refused by its signature."""
_log = logging.getLogger(__name__)


@dataclass
class Incidents:
    """What ended the process, kept in the store if there is one."""

    file: Path | None
    refused: dict[str, str] = field(default_factory=dict)
    """The signatures that are refused, and why."""
    crashes: dict[str, int] = field(default_factory=dict)
    """How often operations of each user ended the process."""

    @classmethod
    def load(cls, folder: Path | None) -> Incidents:
        """Read what earlier processes were ended by."""
        file = None if folder is None else folder / "incidents.json"
        if file is None or not file.exists():
            return cls(file)
        try:
            data = json.loads(file.read_bytes())
            if data.get("format", 1) != 1:
                raise ValueError("unknown format")
            return cls(file, dict(data["refused"]), dict(data["crashes"]))
        except (OSError, ValueError, KeyError, TypeError):
            raise ConfigurationError(
                f"cannot read {file}: it is damaged, or of a later release; remove it to allow all operations again"
            ) from None

    def add(self, executing: Executing, why: str) -> None:
        """Refuse an operation from now on."""
        if _OPERATION in executing.operation and len(self.refused) < MAX_REFUSED:
            self.refused[executing.operation] = why
        self.crashes[executing.user] = self.crashes.get(executing.user, 0) + 1
        if self.file is None:
            return
        try:
            self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            data = {"format": 1, "refused": self.refused, "crashes": self.crashes}
            write_file(self.file, json.dumps(data, indent=1).encode())
        except OSError as error:  # It is refused until the supervisor ends.
            log_event(_log, logging.ERROR, f"cannot write {self.file}: {error.strerror}")


class _Process:
    """One serving process."""

    def __init__(
        self, given: Table, files: list[int], threads: int | None, tell: Callable[[Table], object] = bool
    ) -> None:
        self._ready, theirs = os.pipe()
        self._unread, self._tell = b"", tell
        self._process = subprocess.Popen(  # noqa: S603  # our own program
            [sys.executable, "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            pass_fds=(*files, theirs),
            # Frameworks read these when they are imported.
            env={**os.environ, **({} if threads is None else dict.fromkeys(_THREADS, str(threads)))},
            start_new_session=True,  # An interrupt from the keyboard is for the supervisor.
        )
        os.close(theirs)
        self._stdin: IO[bytes] = self._process.stdin  # type: ignore[assignment]  # it is a pipe
        self.started = time.monotonic()
        self.is_ready = False
        self.id = self._process.pid
        self.send({**given, "ready": theirs})

    def send(self, table: Table) -> None:
        """Write a line to the standard input of the process."""
        try:
            self._stdin.write(json.dumps(table).encode() + b"\n")
            self._stdin.flush()
        except BrokenPipeError:
            pass  # It has ended, which `poll` notices.

    def poll(self) -> int | None:
        """Return the exit code, or None after waiting a moment."""
        if select.select([self._ready], [], [], _POLL_SECONDS)[0]:
            message = os.read(self._ready, 1 << 16)
            if not message:
                return self._process.wait()
            *lines, self._unread = (self._unread + message).split(b"\n")
            for line in map(json.loads, lines):
                if "request" in line:
                    self._tell(line["request"])
                else:
                    self.is_ready = True
                    log_event(_log, logging.INFO, "worker is ready", process=self.id, **line)
        try:
            return self._process.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def stop(self) -> int:
        """Let it finish what it is executing, and end it."""
        self._process.terminate()
        try:
            return self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            return self.kill()

    def kill(self) -> int:
        """End it at once."""
        self._process.kill()
        return self._process.wait()

    def close(self) -> None:
        os.close(self._ready)
        self._stdin.close()


class Supervisor:
    """Runs the worker of a configuration until it is told to stop."""

    def __init__(self, config: WorkerConfig, read: Callable[[], WorkerConfig] | None = None) -> None:
        self.config = config.require_valid()
        self._read = read
        self._reloading = threading.Event()
        self._listener = _listen(config.host, config.port)
        self._page = None if config.page_port is None else _listen(config.host, config.page_port)
        self.port: int = self._listener.getsockname()[1]
        self.page_port: int | None = None if self._page is None else self._page.getsockname()[1]
        self._restarts = -1
        self.secret = None if config.has_authentication else secrets.token_urlsafe(32)
        """The token that gives access if the configuration has no authentication."""
        with tempfile.TemporaryFile() as file:
            file.truncate(SIZE)
            self._activity_file = os.dup(file.fileno())
        self._activity = Activity(self._activity_file)
        self._incidents = Incidents.load(config.store)
        self._ended: dict[str, str] = {}
        """Why sessions were lost, by the id of the client; "" for all others."""
        self._stopping = threading.Event()
        self._tell: Callable[[Table], object] = bool
        if config.on_request is not None:
            self._tell = Notifier(config.on_request).tell

    def run(self) -> int:
        """Serve until ``stop`` is called; return the exit code."""
        failures, pause = 0, 0.0
        try:
            while not self._stopping.is_set():
                code, seconds, was_ready = self._run_process()
                if self._stopping.is_set():
                    break
                failures = 0 if was_ready else failures + 1
                if code == MISCONFIGURED and not was_ready:
                    return 1
                if failures >= MAX_START_FAILURES:
                    raise ConfigurationError(
                        f"cannot start worker {self.config.id!r}: its process ended {failures} times before it was "
                        f"ready ({_describe_end(code)}); see the lines above, and check the data and the limits"
                    )
                pause = 0.0 if seconds > _STABLE_SECONDS else min(max(pause * 2, 0.1), _MAX_PAUSE)
                log_event(_log, logging.INFO, "starting the worker again", pause=pause)
                self._stopping.wait(pause)
        finally:
            for listener in self._listeners:
                listener.close()
            os.close(self._activity_file)
        return 0

    def stop(self) -> None:
        """Ask ``run`` to stop the process and return."""
        self._stopping.set()

    def reload(self) -> None:
        """Ask ``run`` to read the configuration again: certificates, users and standing approvals."""
        self._reloading.set()

    def _reload(self, process: _Process) -> None:
        self._reloading.clear()
        try:
            config = self.config if self._read is None else self._read().require_valid()
        except SyftError as error:
            log_event(_log, logging.ERROR, f"the configuration is not read again: {error}")
            return
        self.config = replace(self.config, users=config.users, approvals=config.approvals)
        process.send({"config": config.to_table()})

    @property
    def _listeners(self) -> list[socket.socket]:
        return [self._listener] if self._page is None else [self._listener, self._page]

    def _run_process(self) -> tuple[int, float, bool]:
        """Run one process until it ends; return its exit code, how long it ran, and whether it was ready."""
        self._activity.end()
        self._restarts += 1
        given = {
            "config": self.config.to_table(),
            "listener": self._listener.fileno(),
            "page": None if self._page is None else self._page.fileno(),
            "restarts": self._restarts,
            "activity": self._activity_file,
            "secret": self.secret,
            "refused": self._incidents.refused,
            "crashes": self._incidents.crashes,
            "ended": self._ended,
        }
        files = [*[listener.fileno() for listener in self._listeners], self._activity_file]
        process = _Process(given, files, self.config.threads, self._tell)
        log_event(_log, logging.INFO, "starting the worker", process=process.id, port=self.port)
        seen, since = 0, 0.0
        try:
            while (code := process.poll()) is None:
                if self._stopping.is_set():
                    code = process.stop()
                    log_event(_log, logging.INFO, "worker stopped", process=process.id, code=code)
                    return code, 0.0, process.is_ready
                if self._reloading.is_set() and process.is_ready:
                    self._reload(process)
                executing = self._activity.read()
                now, count = time.monotonic(), executing.count if executing is not None else 0
                if count != seen:
                    seen, since = count, now
                elif count and now - since > self.config.limits.operation_seconds:
                    code = process.kill()
                    self._note_end(process, code, f"ran longer than {self.config.limits.operation_seconds:g} seconds")
                    return code, now - process.started, True
            if code != MISCONFIGURED or process.is_ready:  # Otherwise the process has logged why.
                self._note_end(process, code, f"ended the process ({_describe_end(code)})")
            return code, time.monotonic() - process.started, process.is_ready
        finally:
            process.close()

    def _note_end(self, process: _Process, code: int, what: str) -> None:
        """Record what ended the process, for the log, for its client, and to refuse it from now on."""
        executing = self._activity.read()
        self._ended = {"": "the worker's process ended, and was started again"}
        if executing is None:
            text = f"the process ended while no operation was running ({_describe_end(code)})"
            log_event(_log, logging.ERROR, text, process=process.id)
            return
        log_event(
            _log,
            logging.ERROR,
            f"an operation {what}",
            process=process.id,
            user=executing.user,
            client=executing.peer,
            batch=executing.batch,
            operation=executing.operation,
        )
        is_refused = ", and is refused from now on" if _OPERATION in executing.operation else ""
        self._ended[executing.peer] = f"{_name(executing.operation)} {what} in batch {executing.batch}{is_refused}"
        self._incidents.add(executing, f"it {what} before")


def _listen(host: str, port: int) -> socket.socket:
    try:
        return listen(host, port)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or str(error).rstrip(".")
        raise ConfigurationError(f"cannot listen on {host}:{port}: {why}; choose another port or address") from None


def _name(operation: str) -> str:
    """Return the operation, the command, or what was done with a message, as the subject of a sentence."""
    if _OPERATION in operation:
        return f"the operation {operation}"
    return operation if " " in operation else f"the command {operation}"


def _describe_end(code: int) -> str:
    try:
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"
    except ValueError:
        return f"signal {-code}"
