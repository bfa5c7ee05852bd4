"""A study of several rounds on private data of three served workers, with one rule each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from syft_core.exceptions import GetNotPermittedError
from syft_core.workers.party.virtual import VirtualWorker
from syft_core.workers.seeing.ledger import Ledger, read_ledger
from syft_worker.desk.client import Desk

from .served import Served, serve

torch = pytest.importorskip("torch")
ROUNDS = 5
NAMES = ("north", "south", "west")


@pytest.fixture
def hospitals(torch_hook: Any, tmp_path: Path) -> Iterator[dict[str, Served]]:
    with ExitStack() as stack:
        served = {}
        for place, name in enumerate(NAMES):
            served[name] = stack.enter_context(serve(torch_hook, name, ledger=Ledger(name, path=tmp_path / name)))
            scans = torch.linspace(place, place + 1, 8).reshape(8, 1)
            doses = 2 * scans + 1
            served[name].worker.load_data(
                [scans.private_tensor([]).tag("#scans"), doses.private_tensor([]).tag("#doses")]
            )
        yield served


def train(model: Any, hospital: Any) -> Any:
    """Train a copy of a model for some steps at a hospital, and return the remote copy."""
    scans, doses = hospital.search("#scans")[0], hospital.search("#doses")[0]
    remote = model.copy().send(hospital)
    optimizer = torch.optim.SGD(remote.parameters(), lr=0.05)
    for _ in range(3):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(remote(scans), doses).backward()
        optimizer.step()
    return remote


def test_five_rounds_need_one_standing_approval_of_each_owner_and_no_further_click(
    torch_hook: Any, hospitals: dict[str, Served], tmp_path: Path
) -> None:
    model = torch.nn.Linear(1, 1)
    places = {name: served.connect() for name, served in hospitals.items()}
    for name, served in hospitals.items():  # Each owner makes a rule from the first request, over the network.
        train(model, places[name]).request("the dosage study")
        owner = VirtualWorker(torch_hook, id=f"owner of {name}", auto_add=False)
        desk = Desk(served.connect("owner-secret", client=owner))
        (request,) = desk.requests("open")
        desk.allow("dosage", request["id"], count=ROUNDS + 1, per_day=ROUNDS + 1, any_program=True)

    losses = []
    for _ in range(ROUNDS):
        models = [train(model, place).get(reason="a round") for place in places.values()]
        with torch.no_grad():
            for parameter, *others in zip(model.parameters(), *[m.parameters() for m in models], strict=True):
                parameter.copy_(torch.stack(others).mean(0))
        losses.append(model.weight.sub(2).abs().item() + model.bias.sub(1).abs().item())

    assert losses[-1] < losses[0]
    with pytest.raises(GetNotPermittedError, match="all of its 6 uses are used up"):
        train(model, places["north"]).get()
    for name, served in hospitals.items():
        assert [request.state for request in served.worker.requests] == ["approved"]
        released = [entry for entry in read_ledger(tmp_path / name) if entry.event == "released"]
        assert {(entry.rule, entry.approver, entry.user) for entry in released} == {("dosage", "Dr. Noor", "ana")}
        assert len({entry.request for entry in released}) == ROUNDS
        assert len(released) == ROUNDS * 2  # a weight and a bias
