"""Release over the network: what a user asks for leaves the worker once, after its owner has approved it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import connect

from syft_core.exceptions import GetNotPermittedError
from syft_core.messages import Batch, Fetch
from syft_core.network.session import CLIENT, PROTOCOL, SESSION
from syft_core.serde import frames
from syft_core.workers.seeing.ledger import Ledger, read_ledger

from .envelopes import pack, unpack
from .served import Served, serve

torch = pytest.importorskip("torch")


@pytest.fixture
def served(torch_hook: Any, tmp_path: Path) -> Iterator[Served]:
    ages = torch.tensor([[30.0], [40.0]]).private_tensor([])
    with serve(torch_hook, ledger=Ledger("hospital", path=tmp_path / "ledger")) as served:
        served.worker.load_data([ages.tag("#ages")])
        yield served


@pytest.fixture
def ages(served: Served) -> Any:
    return served.connect().search("#ages")[0]


@pytest.fixture
def model(ages: Any) -> Any:
    """A model of ana's, trained on private data."""
    model = torch.nn.Linear(1, 1).send(ages.location)
    model(ages).sum().backward()
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    return model


def test_an_approved_result_leaves_once_and_the_ledger_names_the_approver(served: Served, ages: Any) -> None:
    mean = ages.mean()
    number = mean.request("table 1")
    with pytest.raises(GetNotPermittedError, match=f"request {number} is waiting for its owner"):
        mean.get()
    served.worker.approve(number, by="Dr. Noor")

    assert mean.get(deregister_ptr=False, reason="table 1").item() == 35.0

    with pytest.raises(GetNotPermittedError, match="it is private"):
        mean.get()
    (entry,) = served.worker.ledger
    assert (entry.user, entry.names, entry.approver) == ("ana", ("#ages",), "Dr. Noor")
    assert entry.reason == f"table 1, request {number}, approved by Dr. Noor"
    released = [line for line in read_ledger(served.worker.ledger.file.path) if line.event == "released"]
    assert [(line.user, line.request, line.approver) for line in released] == [("ana", number.id, "Dr. Noor")]


def test_an_approved_model_leaves_once(served: Served, model: Any) -> None:
    kept = model.copy()
    with pytest.raises(GetNotPermittedError):
        model.get()

    request = model.request("the paper")
    served.worker.approve(request, by="Dr. Noor")
    model.get()

    assert model.location is None
    assert {entry.reason for entry in served.worker.ledger} == {f"request {request}, approved by Dr. Noor"}
    with pytest.raises(GetNotPermittedError, match="it is private"):
        kept.get()


def test_a_denied_model_stays_and_the_error_says_why(served: Served, model: Any) -> None:
    served.worker.deny(model.request("the paper"), "too few patients", by="Dr. Noor")

    with pytest.raises(
        GetNotPermittedError,
        match=r"its owner denied request [0-9a-f]{16} \(too few patients\); ask again with another reason, or for less",
    ):
        model.get()

    assert model.location is not None
    assert len(served.worker.ledger) == 0


def test_two_connections_of_one_client_get_one_copy_for_one_approval(served: Served, ages: Any) -> None:
    large, name = ages.repeat(500_000, 1), ages.location.client_id.partition("@")[0]
    for attempt in range(20):
        served.worker.approve(large.request("the paper"), by="Dr. Noor")
        with ExitStack() as stack:
            both = [stack.enter_context(_open(served, name, f"{attempt}{end}" * 16)) for end in "ab"]
            for connection in both:
                message = Batch(1, (Fetch(large.child.id_at_location, keep=True),), True)
                connection.send(pack(1, *frames(message)))
            replies = [unpack(connection.recv(60)) for connection in both]

        (refused,) = [reply.failure.error for reply in replies if reply.failure is not None]
        assert type(refused) is GetNotPermittedError
        assert len(served.worker.ledger) == attempt + 1


@contextmanager
def _open(served: Served, name: str, session: str) -> Iterator[Any]:
    """Open one more connection of a client."""
    headers = {"Authorization": "Bearer ana-secret", CLIENT: name, SESSION: session}
    address = f"ws://127.0.0.1:{served.server.port}"
    with connect(
        address, additional_headers=headers, subprotocols=[PROTOCOL], compression=None, max_size=None
    ) as connection:
        yield connection
