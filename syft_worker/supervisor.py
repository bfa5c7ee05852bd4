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
from contextlib import suppress
from dataclasses import replace
from typing import IO

from syft_core.exceptions import ConfigurationError, SyftError
from syft_core.network.address import listen
from syft_core.pictures.tables import one_line
from syft_core.values import Table
from syft_worker.activity import MISCONFIGURED, SIZE, STOP_SECONDS, Activity, Executing
from syft_worker.allowances import find_allowance
from syft_worker.config import WorkerConfig
from syft_worker.incidents import Ban, Incident, Incidents
from syft_worker.logs import log_event
from syft_worker.machine import THREADS, choose_threads
from syft_worker.notices import Notifier

MAX_START_FAILURES = 3
"""Maximum number of times in a row that the process may end before it is ready."""
_POLL_SECONDS = 0.1
_STABLE_SECONDS = 60
"""After this time, a crash counts as the first one."""
_MAX_PAUSE = 10.0
_PROGRAM = "import sys; sys.path[:] = filter(None, sys.path); from syft_worker.serving import main; main()"
_FAULTS = frozenset({"SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT", "SIGTRAP", "SIGSYS"})
"""The signals that a process causes itself. Others may come from outside, as SIGKILL does if memory runs out."""
_log = logging.getLogger(__name__)


class _Process:
    def __init__(
        self, given: Table, files: list[int], threads: int | None, hear: Callable[[Table], object] = bool
    ) -> None:
        self._ready, theirs = os.pipe()
        self._unread, self._hear = b"", hear
        self._process = subprocess.Popen(  # noqa: S603  # our own program
            [sys.executable, "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            pass_fds=(*files, theirs),
            env={**os.environ, **({} if threads is None else dict.fromkeys(THREADS, str(threads)))},
            start_new_session=True,  # An interrupt from the keyboard is for the supervisor.
        )
        os.close(theirs)
        self._stdin: IO[bytes] = self._process.stdin  # type: ignore[assignment]  # it is a pipe
        self.started = time.monotonic()
        self.is_ready = False
        self.id = self._process.pid
        self.send({**given, "ready": theirs})

    def send(self, table: Table) -> None:
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
                if "isolation" in line:
                    self.is_ready = True
                    log_event(_log, logging.INFO, "worker is ready", process=self.id, **line)
                else:
                    self._hear(line)
        try:
            return self._process.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def stop(self, hurry: threading.Event) -> int:
        """Let it end by itself, unless that takes too long or ``hurry`` is set."""
        self._process.terminate()
        deadline = time.monotonic() + STOP_SECONDS
        while time.monotonic() < deadline and not hurry.is_set():
            with suppress(subprocess.TimeoutExpired):
                return self._process.wait(_POLL_SECONDS)
        return self.kill()

    def kill(self) -> int:
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
        self._incidents = Incidents.open(config.limits.ban_seconds, config.store)
        self._ended: dict[str, str] = {}
        """Why sessions were lost, by the id of the client; "" for all others."""
        self._stopping, self._hurrying = threading.Event(), threading.Event()
        self.ready = threading.Event()
        """Set as soon as a process serves clients."""
        self._asked: float | None = None
        """When it was asked to stop."""
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
        """Ask ``run`` to stop the process and return; a call repeated after a second ends it at once.

        Some process managers send a signal twice: to the process, and to its group.
        """
        now = time.monotonic()
        if self._asked is not None and now - self._asked >= 1:
            self._hurrying.set()
        self._asked = self._asked or now
        self._stopping.set()

    def reload(self) -> None:
        """Ask ``run`` to read the configuration again: certificates, users and rules."""
        self._reloading.set()

    def _reload(self, process: _Process) -> None:
        self._reloading.clear()
        try:
            config = self.config if self._read is None else self._read().require_valid()
        except SyftError as error:
            log_event(_log, logging.ERROR, f"the configuration is not read again: {error}")
            return
        self.config = replace(self.config, users=config.users, rules=config.rules)
        process.send({"config": config.to_table()})

    @property
    def _listeners(self) -> list[socket.socket]:
        return [self._listener] if self._page is None else [self._listener, self._page]

    def _run_process(self) -> tuple[int, float, bool]:
        """Run one process until it ends; return its exit code, how long it ran, and whether it was ready."""
        self._activity.clear()
        self._restarts += 1
        given = {
            "config": self.config.to_table(),
            "listener": self._listener.fileno(),
            "page": None if self._page is None else self._page.fileno(),
            "restarts": self._restarts,
            "activity": self._activity_file,
            "secret": self.secret,
            "incidents": self._incidents.to_list(),
            "ended": self._ended,
        }
        files = [*[listener.fileno() for listener in self._listeners], self._activity_file]
        threads = self.config.threads or choose_threads(os.environ)
        process = _Process(given, files, threads, self._hear)
        log_event(_log, logging.INFO, "starting the worker", process=process.id, port=self.port)
        seen, since = 0, 0.0
        try:
            while (code := process.poll()) is None:
                if self._stopping.is_set():
                    code = process.stop(self._hurrying)
                    log_event(_log, logging.INFO, "worker stopped", process=process.id, code=code)
                    return code, 0.0, process.is_ready
                if process.is_ready:
                    self.ready.set()
                if self._reloading.is_set() and process.is_ready:
                    self._reload(process)
                executing = self._activity.read()
                now, count = time.monotonic(), executing.count if executing is not None else 0
                if count != seen:
                    seen, since = count, now
                elif count and now - since > self.config.limits.operation_seconds:
                    code = process.kill()
                    what = f"ran longer than {self.config.limits.operation_seconds:g} seconds"
                    self._note_end(process, code, what, is_fault=True)
                    return code, now - process.started, True
            if code != MISCONFIGURED or process.is_ready:  # Otherwise the process has logged why.
                end = _describe_end(code)
                is_fault = code > 0 or end in _FAULTS
                what = f"ended the process ({end})" if is_fault else f"was running when the process was killed ({end})"
                self._note_end(process, code, what, is_fault)
            return code, time.monotonic() - process.started, process.is_ready
        finally:
            process.close()

    def _note_end(self, process: _Process, code: int, what: str, is_fault: bool) -> None:
        """Record what ended the process: for the log, for its clients, and to refuse it from now on.

        Without a fault of its own, it was killed from outside.
        """
        self._ended = {"": "the worker's process ended, and was started again"}
        executing, apart = self._activity.read(), self._activity.read_apart()
        suspects = apart if executing is None else [executing]
        if code == 0 or not suspects:  # Somebody asked the process to end, or it did nothing for clients.
            text = f"the process ended while no operation was running ({_describe_end(code)})"
            text = "somebody stopped the process, and not the supervisor" if code == 0 else text
            log_event(_log, logging.ERROR, text, process=process.id)
            return
        is_certain = is_fault and len({*suspects, *apart}) == 1
        what, now = what if is_certain or not is_fault else f"may have {what}", time.time()
        incidents = [Incident(found.user, found.operation, what, is_certain, now) for found in suspects]
        try:
            self._incidents.add(*incidents)
        except ConfigurationError as error:  # They are known until the supervisor ends.
            log_event(_log, logging.ERROR, str(error))
        for found in suspects:
            self._report(process, found, what)

    def _report(self, process: _Process, found: Executing, what: str) -> None:
        ban = self._incidents.find_ban(found.user, found.operation)
        refused = "" if ban is None else f", and is refused to user {one_line(found.user)!r} until {ban.end}"
        log_event(
            _log,
            logging.ERROR,
            f"an operation {what}",
            process=process.id,
            user=found.user,
            client=found.peer,
            batch=found.batch,
            operation=found.operation,
            refused_until=None if ban is None else ban.end,
        )
        self._ended[found.peer] = f"{_name(found.operation)} {what} in batch {found.batch}{refused}"

    def _hear(self, line: Table) -> None:
        """Handle a line of the serving process: a notice, or a ban that an owner has lifted."""
        if "request" in line:
            self._tell(line["request"])
            return
        wanted = str(line.get("lift"))
        ban = next((ban for ban in self._list_bans() if ban.id == wanted), None)
        if ban is None:
            return
        try:
            self._incidents.lift(ban)
        except ConfigurationError as error:
            log_event(_log, logging.ERROR, str(error))

    def _list_bans(self) -> list[Ban]:
        return self._incidents.list_bans(lambda user: find_allowance(self.config.users, user).crashes)


def _listen(host: str, port: int) -> socket.socket:
    try:
        return listen(host, port)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or str(error).rstrip(".")
        raise ConfigurationError(f"cannot listen on {host}:{port}: {why}; choose another port or address") from None


def _name(operation: str) -> str:
    if "(" in operation:
        return f"the operation {operation}"
    return operation if " " in operation else f"the command {operation}"


def _describe_end(code: int) -> str:
    try:
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"
    except ValueError:
        return f"signal {-code}"
