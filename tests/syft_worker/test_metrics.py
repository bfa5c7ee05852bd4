from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from syft_core.cli import main
from syft_core.exceptions import AuthenticationError, GetNotPermittedError
from syft_core.workers.seeing.ledger import Ledger
from syft_worker.metrics import Files
from syft_worker.tokens import TokenFile

from ..network.served import Served, serve
from .browsing import Browser, ask_for_release

torch = pytest.importorskip("torch")


@pytest.fixture
def served(hook: Any) -> Iterator[Served]:
    with serve(hook) as served:
        yield served


def test_metrics_count_and_name_nobody(served: Served) -> None:
    pointer = ask_for_release(served)
    with pytest.raises(GetNotPermittedError):
        pointer.get()
    with pytest.raises(AuthenticationError):
        served.connect("guess")
    assert Browser(served.page).get("/metrics").status == 401
    signed_in = Browser(served.page)
    signed_in.sign_in()
    assert signed_in.get("/metrics").status == 401

    answer = Browser(served.page).get("/metrics", "ana-secret")

    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    samples = dict(line.rsplit(" ", 1) for line in answer.body.splitlines() if not line.startswith("#"))
    stats = served.worker.stats
    assert int(samples["syft_messages_total"]) == stats.messages > 0
    assert int(samples["syft_operations_total"]) == stats.operations > 0
    assert int(samples["syft_received_bytes_total"]) == stats.bytes_in > 0
    assert int(samples["syft_sent_bytes_total"]) == stats.bytes_out > 0
    assert samples["syft_sessions_total"] == samples["syft_connections"] == "1"
    assert samples['syft_refusals_total{what="connection"}'] == "1"
    assert samples['syft_refusals_total{what="command"}'] == "1"
    assert samples['syft_requests{state="open"}'] == "1"
    assert samples["syft_restarts_total"] == samples["syft_departures_total"] == "0"
    for line in answer.body.splitlines():
        assert re.fullmatch(r'# (HELP|TYPE) syft_\w+ .+|syft_\w+(\{\w+="[\w.+]+"\})? [\d.]+', line)
    for secret in ("ana", "#ages", "86753"):
        assert secret not in answer.body


def test_metrics_have_memory_disk_ledger_size_latency_expiry_and_release(hook: Any, tmp_path: Path) -> None:
    assert main(["certs", str(tmp_path / "certs"), "--host", "localhost", "--days", "2"]) == 0
    for days in ("9d", "3d", "never"):
        assert main(["token", "add", str(tmp_path / "tokens.json"), "--user", "ana", "--expires", days]) == 0
    files = Files(tmp_path / "certs" / "server.pem", TokenFile(tmp_path / "tokens.json"), tmp_path)
    with serve(hook, ledger=Ledger("hospital", path=tmp_path / "ledger")) as served:
        served.page._files = files
        torch.ones(2).send(served.connect()).get()
        metrics = Browser(served.page).get("/metrics", "ana-secret").body
        samples = dict(line.rsplit(" ", 1) for line in metrics.splitlines() if not line.startswith("#"))

        days = [
            (int(samples[f"syft_{name}_expiry_seconds"]) - time.time()) / 86_400 for name in ("certificate", "token")
        ]
        assert days == [pytest.approx(2, abs=0.1), pytest.approx(3, abs=0.1)]
        assert int(samples['syft_batch_seconds_bucket{le="+Inf"}']) == int(samples["syft_batch_seconds_count"]) > 0
        assert float(samples["syft_batch_seconds_sum"]) > 0
        assert 'syft_disk_free_bytes{of="store"}' in samples

        assert f"\nsyft_ledger_bytes {(tmp_path / 'ledger').stat().st_size}\n" in metrics
        assert re.search(r"\nsyft_memory_peak_bytes [1-9]\d{6,}\n", metrics)
        assert re.search(r'\nsyft_disk_free_bytes\{of="ledger"\} \d+\n', metrics)
        assert re.search(r'\nsyft_info\{version="[0-9.]+"\} 1\n', metrics)
