from __future__ import annotations

import http.server
import json
import os
import shlex
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from syft_core.exceptions import ConfigurationError
from syft_worker import notices
from syft_worker.notices import Notifier, is_address, require_target, send_notice


class Told(threading.Thread):
    """An address that takes notices."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.notices: list[Any] = []
        self.arrived = threading.Semaphore(0)
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.notices.append((self.headers["Content-Type"], json.loads(body)))
                if b"garbage" in body:
                    self.wfile.write(b"garbage\r\n\r\n")
                else:
                    self.send_response(500 if b"refuse" in body else 204)
                    self.end_headers()
                outer.arrived.release()

            def log_message(self, *_args: object) -> None: ...

        self.server = http.server.HTTPServer(("127.0.0.1", 0), Handler)

    def run(self) -> None:
        self.server.serve_forever(0.01)


@pytest.fixture
def told() -> Iterator[Told]:
    made = Told()
    made.start()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.mark.parametrize("target", ["https://example.com/hook", "http://127.0.0.1:9", "mail -s 'a request' me", "cat"])
def test_a_target_is_an_address_or_a_command(target: str) -> None:
    require_target(target)
    assert is_address(target) == target.startswith("http")


@pytest.mark.parametrize(
    ("target", "why"), [("mail 'me", "quote it as in a shell"), ("", "it is empty"), ("  ", "it is empty")]
)
def test_a_target_that_cannot_be_used_is_refused(target: str, why: str) -> None:
    with pytest.raises(ConfigurationError, match=f"cannot use on_request.*{why}"):
        require_target(target)


def test_an_address_is_told_as_json_one_notice_after_the_other(told: Told) -> None:
    notifier = Notifier(f"http://127.0.0.1:{told.server.server_port}/hook")

    for id in ("r1", "refuse", "r3"):
        notifier.tell({"id": id})
    for _ in range(3):
        assert told.arrived.acquire(timeout=30)

    assert told.notices == [("application/json", {"id": id}) for id in ("r1", "refuse", "r3")]


def test_a_command_gets_the_notice_on_its_standard_input_and_not_in_its_arguments(tmp_path: Path) -> None:
    fifo = tmp_path / "told"
    os.mkfifo(fifo)
    program = "import sys; open(sys.argv[1], 'w').write(repr(sys.argv[2:]) + sys.stdin.read())"

    Notifier(shlex.join([sys.executable, "-c", program, str(fifo)])).tell({"id": "$(rm -rf /)"})

    assert fifo.read_text() == '[]{"id": "$(rm -rf /)"}\n'


def test_a_command_that_fails_is_logged_and_does_not_keep_later_notices(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fifo = tmp_path / "told"
    os.mkfifo(fifo)
    program = "import sys; data = sys.stdin.read(); 'r1' in data and sys.exit(1); open(sys.argv[1], 'w').write(data)"
    notifier = Notifier(shlex.join([sys.executable, "-c", program, str(fifo)]))

    for id in ("r1", "r2"):
        notifier.tell({"id": id})

    assert json.loads(fifo.read_text()) == {"id": "r2"}
    assert "nobody was told of a request" in caplog.text


def test_an_address_that_answers_garbage_does_not_keep_later_notices(
    told: Told, caplog: pytest.LogCaptureFixture
) -> None:
    notifier = Notifier(f"http://127.0.0.1:{told.server.server_port}/")

    for id in ("garbage", "r2"):
        notifier.tell({"id": id})
        assert told.arrived.acquire(timeout=60)

    assert [body["id"] for _, body in told.notices] == ["garbage", "r2"]
    assert "nobody was told of a request" in caplog.text


def test_a_pipe_that_nobody_reads_does_not_fail_a_request() -> None:
    reading, writing = os.pipe()
    os.close(reading)

    send_notice(writing, b"{}\n")

    os.close(writing)


def test_too_many_notices_are_logged_instead(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(notices, "MAX_WAITING", 1)
    monkeypatch.setattr(Notifier, "_run", lambda self: None)
    notifier = Notifier("cat")

    notifier.tell({"id": "r1"})
    notifier.tell({"id": "r2"})

    assert "too many notices wait" in caplog.text
