"""The data of a worker stays there: it does not occur in anything that crosses the wire while a client trains on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from syft_core.exceptions import GetNotPermittedError
from syft_core.network.client import WebsocketClientWorker

from .processes import start_worker
from .proxy import Proxy

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

BACKEND = "torch syft_torch.hook TorchHook"
WINDOW = 8
"""How many bytes of data in a row count as data."""


@pytest.fixture(scope="module")
def rows() -> Any:
    return np.random.default_rng(0).random((64, 4), np.float32)


@pytest.fixture(scope="module")
def watched(hook: Any, rows: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Proxy]]:
    """A worker process with data of its own, reached through a proxy that records everything."""
    folder = tmp_path_factory.mktemp("data")
    np.save(folder / "rows.npy", rows)
    (folder / "secret.npy").write_bytes((folder / "rows.npy").read_bytes())
    data = [f"{folder / 'rows.npy'}#rows", f"{folder / 'secret.npy'}#secret-rows:private=owner"]
    with start_worker(BACKEND, "hospital", data) as (_, port, _):
        proxy = Proxy(port)
        proxy.seen = bytearray(), bytearray()
        location = WebsocketClientWorker(hook, "127.0.0.1", proxy.port, token="secret of ana")
        yield location, proxy
        location.close()
        proxy.close()


def test_raw_data_does_not_cross_the_wire_while_a_client_trains_on_it(watched: Any, rows: Any) -> None:
    hospital, proxy = watched
    (data,) = hospital.search("#rows")
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).send(hospital)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    for _ in range(5):
        for start in range(0, 64, 16):
            optimizer.zero_grad()
            batch = data[start : start + 16]
            loss = ((model(batch) - batch.sum(1, keepdim=True)) ** 2).mean()
            loss.backward()
            optimizer.step()
    first, last = loss.get(), model.get()

    assert first.item() > 0
    assert all(parameter.isfinite().all() for parameter in last.parameters())
    assert all(len(direction) > 1000 for direction in proxy.seen)
    assert not any(_occurs(rows, direction) for direction in proxy.seen)


def test_private_data_does_not_cross_the_wire_when_it_is_asked_for(watched: Any, rows: Any) -> None:
    hospital, proxy = watched
    (data,) = hospital.search("#secret-rows")

    with pytest.raises(GetNotPermittedError):
        data.get()
    with pytest.raises(GetNotPermittedError):
        (data * 1).get()

    assert not any(_occurs(rows, direction) for direction in proxy.seen)


def test_the_search_for_raw_data_finds_what_does_cross(watched: Any, rows: Any) -> None:
    hospital, proxy = watched
    (data,) = hospital.search("#rows")

    data[3].get()

    assert _occurs(rows, proxy.seen[False])


def _occurs(rows: Any, traffic: bytearray) -> bool:
    """Return whether any 8 bytes of the rows, in their memory, occur in the traffic."""
    raw, sent = rows.tobytes(), bytes(traffic)
    windows = {raw[i : i + WINDOW] for i in range(len(raw) - WINDOW + 1)}
    return any(sent[i : i + WINDOW] in windows for i in range(len(sent) - WINDOW + 1))
