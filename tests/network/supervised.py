"""Start `syft-core worker` in a process of its own, and read its log."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from syft_core.network.client import WebsocketClientWorker
from tests.waiting import wait_for_result

_PROGRAM = "import sys; from syft_core.cli import main; sys.exit(main())"
ROOT = Path(__file__).parents[2]


class SupervisedWorker:
    """The command `syft-core worker`, with its token and its log."""

    def __init__(self, *options: str, cwd: Path = ROOT) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, "worker", "--port", "0", "--log-format", "json", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=cwd,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        self.events: list[dict[str, Any]] = []
        self.lines: list[str] = []
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._changed:
                self.lines.append(line)
                if line.startswith("{"):
                    self.events.append(json.loads(line))
                self._changed.notify_all()
        with self._changed:
            self.lines.append("end")
            self._changed.notify_all()

    def wait_for(self, text: str, count: int = 1) -> dict[str, Any]:
        """Return the event with this text, when it has happened ``count`` times."""

        def find() -> list[dict[str, Any]]:
            return [event for event in self.events if re.search(text, event["event"])]

        with self._changed:
            self._changed.wait_for(lambda: len(find()) >= count or self.lines[-1:] == ["end"], timeout=300)
            assert len(find()) >= count, "".join(self.lines)
            return find()[count - 1]

    @property
    def port(self) -> int:
        return int(self.wait_for("starting the worker$")["port"])

    def read_token(self) -> str:
        assert self.process.stdout is not None
        return wait_for_result(self.process.stdout.readline).split()[-1]

    def connect(self, hook: Any, token: str, **options: Any) -> WebsocketClientWorker:
        self.wait_for("worker is ready")
        return WebsocketClientWorker(hook, "127.0.0.1", self.port, token=token, timeout=120, **options)

    def stop(self) -> int:
        """Ask it to stop, and return the exit code."""
        self.process.terminate()
        try:
            code = self.process.wait(120)
        finally:
            self.process.kill()
        self._reader.join(5)
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()
        return code


@contextmanager
def supervise(*options: str, cwd: Path = ROOT) -> Iterator[SupervisedWorker]:
    worker = SupervisedWorker(*options, cwd=cwd)
    try:
        yield worker
    finally:
        worker.stop()
