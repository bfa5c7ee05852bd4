"""Notices: announce waiting release requests, by a command or a webhook of the owner.

The supervisor does this: the serving process may neither start programs nor open connections.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import shlex
import subprocess
import threading
import urllib.request
from contextlib import suppress
from http.client import HTTPException
from urllib.error import HTTPError

from syft_core.exceptions import ConfigurationError
from syft_core.printing import printable
from syft_core.values import Table
from syft_worker.desk.requests import ReleaseRequest
from syft_worker.logs import log_event

MAX_WAITING = 100
"""Maximum number of notices that wait while a command or an address is slow; further ones are only logged."""
SECONDS = 30
MAX_TEXT = 300
"""Maximum characters of each text in a notice, so that it fits into one write to a pipe."""
_log = logging.getLogger(__name__)


def is_address(target: str) -> bool:
    """Return whether a target is a webhook, and not a command."""
    return target.startswith(("https://", "http://"))


def require_target(target: str) -> None:
    """Raise unless a target is an address, or a command that can be read."""
    try:
        words = [target] if is_address(target) else shlex.split(target)
    except ValueError as error:
        raise ConfigurationError(f"cannot use on_request: {error}; quote it as in a shell") from None
    if not words:
        raise ConfigurationError("cannot use on_request: it is empty; give a command or an address, or leave it out")


def make_notice(worker: str, request: ReleaseRequest) -> bytes:
    """Return a notice from the serving process to the supervisor: one line of JSON, without values."""
    names = ("id", "user", "form", "computed_from", "reason", "asked", "digest", "asked_by_owner")
    table = {name: value for name, value in request.to_table().items() if name in names}
    short = {name: printable(value)[:MAX_TEXT] if isinstance(value, str) else value for name, value in table.items()}
    return json.dumps({"request": {"worker": worker, **short}}).encode() + b"\n"


def send_notice(handle: int, line: bytes) -> None:
    """Write a line to the pipe of the supervisor; a request does not fail because its notice does."""
    with suppress(OSError):
        os.write(handle, line)


class Notifier:
    """Sends notices to the owner's command or webhook, one at a time, in a thread of its own."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._waiting: queue.Queue[Table] = queue.Queue(MAX_WAITING)
        threading.Thread(target=self._run, name="notices", daemon=True).start()

    def tell(self, notice: Table) -> None:
        """Queue a notice."""
        try:
            self._waiting.put_nowait(notice)
        except queue.Full:
            log_event(_log, logging.ERROR, "nobody is told of a request: too many notices wait", id=notice.get("id"))

    def _run(self) -> None:
        while True:
            notice = self._waiting.get()
            try:
                (self._post if is_address(self._target) else self._start)(json.dumps(notice).encode())
                log_event(_log, logging.INFO, "told of a request", id=notice.get("id"))
            except (OSError, HTTPException, subprocess.SubprocessError, ValueError) as error:
                log_event(_log, logging.ERROR, "nobody was told of a request", id=notice.get("id"), why=_explain(error))

    def _start(self, data: bytes) -> None:
        """Run the command with the notice on its standard input; no part of it is on the command line."""
        subprocess.run(  # noqa: S603  # the command of the owner
            shlex.split(self._target), input=data + b"\n", timeout=SECONDS, check=True, capture_output=True
        )

    def _post(self, data: bytes) -> None:
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self._target, data, headers)  # noqa: S310  # an address of the owner
        with urllib.request.urlopen(request, timeout=SECONDS) as response:  # noqa: S310  # the same
            response.read(1)


def _explain(error: Exception) -> str:
    """Return why a notice failed, without the command or the address, which may contain a password."""
    if isinstance(error, subprocess.CalledProcessError):
        return f"the command ended with exit code {error.returncode}"
    if isinstance(error, subprocess.TimeoutExpired):
        return f"the command took longer than {SECONDS} seconds"
    if isinstance(error, HTTPError):
        return f"HTTP status {error.code}"
    reason = getattr(error, "reason", error)
    return getattr(reason, "strerror", None) or type(reason).__name__
