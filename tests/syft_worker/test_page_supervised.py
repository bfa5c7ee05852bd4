"""The page of a worker that runs under a supervisor, in an isolated process."""

from __future__ import annotations

import re
import threading
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from syft_core.exceptions import GetNotPermittedError
from syft_core.network.client import WebsocketClientWorker
from syft_worker.config import parse_config
from syft_worker.supervisor import Supervisor

numpy = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")


@pytest.mark.slow
def test_the_owner_of_a_supervised_worker_releases_an_object_on_its_page(hook: Any, tmp_path: Path) -> None:
    numpy.save(tmp_path / "ages.npy", numpy.array([30.0, 40.0], dtype="float32"))
    table = {"id": "ward", "port": 0, "page_port": 0, "framework": "torch"}
    data = [{"file": str(tmp_path / "ages.npy"), "tags": ["#ages"], "private": []}]
    supervisor = Supervisor(parse_config({**table, "data": data}))
    thread = threading.Thread(target=supervisor.run)
    thread.start()
    try:
        bob = WebsocketClientWorker(hook, "127.0.0.1", supervisor.port, token=supervisor.secret, wait=60)
        pointer = bob.search("#ages")[0] * 2
        pointer.request("for the paper")
        with pytest.raises(GetNotPermittedError):
            pointer.get()
        status, shown = ask(supervisor, "GET", "/")
        path = re.findall(r'href="(/requests/[0-9a-f]{16})"', shown)[0]
        digest = re.findall(r'name="digest" value="([0-9a-f]+)"', ask(supervisor, "GET", path)[1])[0]
        approved, _ = ask(supervisor, "POST", f"{path}/approve", f"digest={digest}")
        fetched = pointer.get()
        bob.close()
    finally:
        supervisor.stop()
        thread.join(60)

    assert (status, approved) == (200, 303)
    assert "#ages" in shown
    assert torch.equal(fetched, torch.tensor([60.0, 80.0]))


def ask(supervisor: Supervisor, method: str, path: str, body: str = "") -> tuple[int, str]:
    assert supervisor.page_port is not None
    connection = HTTPConnection("127.0.0.1", supervisor.page_port, timeout=30)
    connection.request(method, path, body, {"Authorization": f"Bearer {supervisor.secret}"})
    response = connection.getresponse()
    answer = response.status, response.read().decode()
    connection.close()
    return answer


@pytest.mark.parametrize("threads", [1, 2])
def test_equal_numbers_of_threads_give_equal_bits_and_the_page_says_the_number(hook: Any, threads: int) -> None:
    before, x = torch.get_num_threads(), torch.rand(1_000_003, generator=torch.Generator().manual_seed(0))
    supervisor = Supervisor(
        parse_config({"id": f"ward{threads}", "port": 0, "page_port": 0, "framework": "torch", "threads": threads})
    )
    thread = threading.Thread(target=supervisor.run)
    thread.start()
    try:
        torch.set_num_threads(threads)
        here = [x.sum(), x.mean(), (x * x).sum()]
        bob = WebsocketClientWorker(hook, "127.0.0.1", supervisor.port, token=supervisor.secret)
        p = x.send(bob)
        there = [p.sum().get(), p.mean().get(), (p * p).sum().get()]
        _, shown = ask(supervisor, "GET", "/")
        bob.close()
    finally:
        torch.set_num_threads(before)
        supervisor.stop()
        thread.join(60)

    assert f"torch: {threads} threads" in shown
    assert [value.item() for value in there] == [value.item() for value in here]
