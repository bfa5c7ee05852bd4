"""Release: peers request objects they may not have, and the owner of the worker decides."""

from __future__ import annotations

import errno
import os
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from syft_core.exceptions import GetNotPermittedError, LedgerError, StorageError
from syft_core.messages import Fetch
from syft_core.peer import Peer
from syft_core.workers.party.virtual import VirtualWorker
from syft_core.workers.seeing.ledger import Ledger, read_ledger
from syft_worker.desk.errors import ReleaseError, ReleasePendingError
from syft_worker.desk.requests import MAX_OPEN
from syft_worker.storage import Storage
from tests.waiting import wait_for_end


@pytest.fixture
def mean(bob: Any, me: Any) -> Any:
    """A pointer of eve's to the mean of private data."""
    me.user = "eve"
    bob.load_data([torch.tensor([10.0, 20.0]).private_tensor(["alice"]).tag("#ages")])
    return bob.search("#ages")[0].mean()


def test_the_table_shows_form_sources_user_and_reason_and_no_value(bob: Any, mean: Any) -> None:
    mean.request("table 1\nalice  approved")

    (request,) = bob.requests
    assert request.values[0].item() == 15.0  # for the owner, who has everything anyway
    for text in (str(bob.requests), bob.requests._repr_html_(), repr(request)):
        assert "15" not in text.replace(request.id, "")
    assert rf"{request.id}  open   eve  Tensor[]  #ages          table 1\nalice \x20approved" in str(bob.requests)


def test_the_released_value_is_the_requested_one_despite_later_writes(bob: Any, me: Any, mean: Any) -> None:
    number = mean.request("table 1")
    mean.fill_(99.0)
    mean.view(1)[0] = 98.0
    bob.approve(number)

    assert mean.get().item() == 15.0


def test_a_model_is_asked_for_as_a_whole(bob: Any, me: Any) -> None:
    me.user = "eve"
    bob.load_data([torch.ones(4, 2).private_tensor(["alice"]).tag("#x")])
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1)).send(bob)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(bob.search("#x")[0]).sum().backward()
    optimizer.step()
    with pytest.raises(GetNotPermittedError):
        model.get()

    bob.approve(model.request("the paper"))
    model.get()

    assert [type(parameter.data) for parameter in model.parameters()] == [torch.Tensor] * 4
    assert bob.requests[0].state == "released"
    assert len(bob.ledger) == 4


def test_a_gradient_can_be_asked_for(bob: Any, me: Any) -> None:
    me.user = "eve"
    bob.load_data([torch.ones(2).private_tensor(["alice"]).tag("#x")])
    w = torch.ones(2, requires_grad=True).send(bob)
    (w * bob.search("#x")[0]).sum().backward()

    bob.approve(w.grad.request("a step"))

    assert w.grad.get().tolist() == [1.0, 1.0]
    with pytest.raises(GetNotPermittedError):
        w.get()


def test_an_owner_decides_once(bob: Any, mean: Any) -> None:
    number = mean.request("table 1")
    bob.deny(bob.requests[0], "no")

    with pytest.raises(ReleaseError, match="it was denied already"):
        bob.approve(number)
    with pytest.raises(ReleaseError, match="has no such request"):
        bob.approve("7")


def test_ids_of_requests_are_random_and_never_used_again(hook: Any, bob: Any, mean: Any) -> None:
    ids = {mean.request("please").id for _ in range(MAX_OPEN)}

    assert len(ids) == MAX_OPEN
    assert all(len(bytes.fromhex(id)) == 8 for id in ids)


def test_a_decision_names_what_was_reviewed(bob: Any, mean: Any) -> None:
    first, second = mean.request("table 1"), mean.request("table 2")
    reviewed = bob.requests[0].digest

    for decide in (bob.approve, partial(bob.deny, answer="no")):
        with pytest.raises(ReleaseError, match=f"cannot decide on request {second} .*: it is not what was"):
            decide(second, digest=reviewed)
    bob.approve(first, digest=reviewed)

    assert [request.state for request in bob.requests] == ["approved", "open"]


def test_a_digest_covers_user_object_form_reason_and_lineage(bob: Any, me: Any, mean: Any) -> None:
    mean.request("table 1")
    (request,) = bob.requests

    changed = [
        replace(request, **{name: value})
        for name, value in {
            "id": "0" * 16,
            "peer": Peer("me", "mallory"),
            "names": "7",
            "forms": "Tensor[9]",
            "sources": "#public",
            "reason": "table 2",
        }.items()
    ]

    assert len({request.digest, *[other.digest for other in changed]}) == 7


def test_an_object_that_takes_the_place_of_a_requested_one_does_not_leave(bob: Any, me: Any, mean: Any) -> None:
    id = mean.child.id_at_location
    request = mean.request("table 1")
    bob.register_obj(torch.tensor([86753.0]).private_tensor(["alice"]), id)

    bob.approve(request)

    with pytest.raises(GetNotPermittedError):
        bob.handle(Fetch(id, None, True), me.peer)


def test_lineage_that_is_renamed_after_the_request_does_not_change_what_is_reviewed(bob: Any, mean: Any) -> None:
    mean.request("table 1")
    (request,) = bob.requests
    before = request.digest, request.cells()

    bob.object_store.tag(bob.search("#ages")[0].id_at_location, ("#harmless",))

    assert (request.digest, request.cells()) == before


def test_two_owners_who_decide_at_once_make_one_decision(bob: Any, mean: Any) -> None:
    request = mean.request("table 1")
    outcomes: list[str] = []
    refused: list[str] = []
    ready = threading.Barrier(8)

    def decide(place: int) -> None:
        ready.wait(timeout=60)
        try:
            bob.approve(request, by=f"owner {place}") if place % 2 else bob.deny(request, "no", by=f"owner {place}")
            outcomes.append(f"owner {place}")
        except ReleaseError as error:
            refused.append(str(error))

    threads = [threading.Thread(target=decide, args=(place,)) for place in range(8)]
    for thread in threads:
        thread.start()
    wait_for_end(*threads)

    assert outcomes == [bob.requests[0].decided_by]
    assert len([text for text in refused if "already" in text]) == 7


def test_a_full_disk_while_a_decision_is_written_changes_nothing(
    hook: Any, me: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    me.user = "eve"
    keeper = VirtualWorker(hook, id="keeper", ledger=Ledger("keeper", tmp_path / "ledger"))
    storage = Storage(tmp_path / "store", keeper, [torch.tensor([10.0, 20.0]).private_tensor([]).tag("#ages")])
    mean = keeper.search("#ages")[0].mean()
    request = mean.request("table 1")

    def fail(*_args: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    for name in ("fsync", "replace"):
        with monkeypatch.context() as patched:
            patched.setattr(os, name, fail)
            if name == "replace":
                patched.setattr(Path, name, fail)
            with pytest.raises((StorageError, LedgerError), match="No space left on device"):
                keeper.approve(request)
            with pytest.raises((StorageError, LedgerError), match="No space left on device"):
                mean.request("another")
        assert [known.state for known in keeper.requests] == ["open"]
    keeper.approve(request, by="noor")
    assert request.get().item() == 15.0

    events = [entry.event for entry in read_ledger(tmp_path / "ledger") if entry.request]
    assert events == ["requested", "approved", "released"]
    assert list((tmp_path / "store").glob("*.request")) == []
    storage.close()
    keeper.ledger.close()
    me.remove_worker_from_registry("keeper")


def test_an_approval_is_taken_back_until_it_is_fetched(bob: Any, mean: Any) -> None:
    request = mean.request("table 1")
    bob.approve(request, by="noor")
    bob.withdraw(request, by="noor")
    with pytest.raises(ReleasePendingError):
        mean.get()
    bob.approve(request, by="noor")
    mean.get()

    with pytest.raises(ReleaseError, match="it was released already"):
        bob.withdraw(request)
