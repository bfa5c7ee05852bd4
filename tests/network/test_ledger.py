"""The ledger on disk: written before anything leaves, continued after a restart, and verifiable."""

from __future__ import annotations

import re
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from syft_core.exceptions import GetNotPermittedError, LedgerError, WriteNotPermittedError
from syft_core.messages import Batch, Call, Fetch, FetchAll, Forward, Search, SendOn
from syft_core.pointers.callable_pointer import ObjectWrapper
from syft_core.serde import Context, frames, from_frames
from syft_core.workers.party.virtual import VirtualWorker
from syft_core.workers.seeing.ledger import MAX_REFUSALS, Entry, Ledger, read_ledger


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "bob.ledger"


@pytest.fixture(params=[False, True], ids=["in_process", "by_wire"])
def bob(torch_hook: Any, path: Path, request: pytest.FixtureRequest) -> Iterator[Any]:
    bob = VirtualWorker(torch_hook, id="bob", ledger=Ledger("bob", path), serialize=request.param)
    bob.load_data([torch.tensor([10.0, 20.0]).private_tensor(["alice"]).tag("#ages")])
    yield bob
    bob.ledger.close()


@contextmanager
def full_disk(path: Path, room: int) -> Iterator[None]:
    """Let no file grow further than ``room`` bytes beyond the size of this one."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + room, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def events(path: Path) -> list[str]:
    return [entry.event for entry in read_ledger(path)]


def test_departures_refusals_and_releases_are_in_the_file(bob: Any, path: Path) -> None:
    ages = bob.search("#ages")[0]
    torch.ones(2).send(bob).get(reason="a look")
    with pytest.raises(GetNotPermittedError):
        ages.get()
    with pytest.raises(WriteNotPermittedError):
        ages.add_(1)
    mean, total = ages.mean(), ages.sum()
    bob.approve(mean.request("table 1"), by="dr. noor")
    bob.deny(total.request("table 2"), "too few", by="dr. noor")
    mean.get(reason="paper")

    entries = list(read_ledger(path))

    names = ["opened", "departed", "refused", "refused", "requested", "approved", "requested", "denied", "released"]
    assert [entry.event for entry in entries] == names
    departed, refused, released = entries[1], entries[2], entries[-1]
    assert (departed.user, departed.peer, departed.to, departed.reason) == ("eve", "me", "me", "a look")
    assert departed.form == "Tensor[2]"
    assert refused.names == ("#ages",)
    assert refused.reason.startswith("Fetch: cannot get object")
    assert entries[3].reason.startswith("Run: cannot change object")
    assert (released.request, released.approver, released.names) == (bob.requests[0].id, "dr. noor", ("#ages",))
    assert (entries[-2].reason, entries[-2].approver) == ("too few", "dr. noor")
    assert "15." not in re.sub('"time":"[^"]*"', "", path.read_text())
    assert [entry.event for entry in bob.ledger] == ["departed", "released"]


def deliver(worker: Any, *commands: Any, asks: bool = True) -> Any:
    """Deliver a batch that was written by hand."""
    me = worker.hook.local_worker
    sent = frames(Batch(1, commands, asks), Context(worker=me, receiver=worker.id))
    return from_frames(worker.deliver(sent, me.peer), Context(worker=me))


def test_a_batch_that_fails_after_a_fetch_lets_nothing_leave_and_records_nothing(bob: Any, path: Path) -> None:
    mean = bob.search("#ages")[0].mean()
    id, open_id = mean.child.id_at_location, bob.search("#ages")[0].id_at_location
    bob.approve(mean.request("table 1"), by="dr. noor")
    before = events(path)

    failed = [
        deliver(bob, Fetch(id), Fetch("missing")),
        deliver(bob, Fetch(id, None, True), Fetch(open_id)),
        deliver(bob, FetchAll((id, "missing"))),
        deliver(bob, Fetch("missing"), Fetch(id)),
    ]
    assert all(reply.failure is not None and reply.value is None for reply in failed)
    assert deliver(bob, Fetch(id), Search(())).value is not None
    assert deliver(bob, Fetch(id), asks=False).value is None

    assert {"released", "departed"}.isdisjoint(events(path)[len(before) :])
    assert len(bob.ledger) == 0
    assert mean.get().item() == 15.0
    assert events(path).count("released") == len(bob.ledger) == 1


def test_what_cannot_be_encoded_is_not_recorded(bob: Any, path: Path) -> None:
    bob.register_obj(ObjectWrapper(lambda: object(), id="f"), "f")

    assert deliver(bob, Fetch("f")).failure is not None
    assert deliver(bob, Call("f", (), {}, 1)).failure is not None

    assert "departed" not in events(path)
    assert len(bob.ledger) == 0


def test_an_object_that_did_not_arrive_is_recorded_as_undelivered(bob: Any, torch_hook: Any, path: Path) -> None:
    alice = VirtualWorker(torch_hook, id="alice", serialize=False)
    x = torch.ones(2).send(bob)
    other = torch.ones(2).send(alice)
    taken = other.id_at_location
    for message in (Forward, SendOn):
        command = message(x.id_at_location, *((None, "alice", taken) if message is Forward else ("alice", taken)))
        assert deliver(bob, command).failure is not None

    assert events(path)[-4:] == ["departed", "undelivered"] * 2
    assert list(read_ledger(path))[-1].reason == "sent on: IdNotUniqueError"
    assert len(bob.ledger) == bob.ledger.departures == 0
    assert x.move(alice).get().tolist() == [1.0, 1.0]
    assert "departed" in events(path)[-1:]


def test_refusals_are_counted_after_the_first_ones_of_a_user(bob: Any, path: Path) -> None:
    ages = bob.search("#ages")[0].id_at_location
    for _ in range(200):
        deliver(bob, Fetch(ages, None, True))
        deliver(bob, FetchAll((ages,) * 1000))
    torch.ones(2).send(bob).get()
    assert events(path).count("refused") == MAX_REFUSALS
    size = path.stat().st_size

    bob.ledger.count_refusals(0)

    last = list(read_ledger(path))[-1]
    assert last.event == "refused"
    assert last.user == "eve"
    assert last.reason.startswith("390 more refusals in ")
    assert last.reason.endswith("in all: Fetch 200, FetchAll 200")
    assert path.stat().st_size < size + 1000 < 20_000
    deliver(bob, Fetch(ages))
    assert events(path)[-1] == "refused"


def test_refusals_that_were_only_counted_are_recorded_when_the_ledger_is_closed(bob: Any, path: Path) -> None:
    ages = bob.search("#ages")[0].id_at_location
    for _ in range(MAX_REFUSALS + 1):
        deliver(bob, Fetch(ages))

    bob.ledger.close()

    assert [entry.reason for entry in read_ledger(path)][-1].startswith("1 more refusals in ")


def test_a_refused_move_is_recorded_once(bob: Any, torch_hook: Any, path: Path) -> None:
    carol = VirtualWorker(torch_hook, id="carol")
    with pytest.raises(GetNotPermittedError):
        bob.search("#ages")[0].move(carol)

    assert events(path) == ["opened", "refused"]


def test_with_a_full_disk_nothing_leaves_and_the_chain_stays_intact(bob: Any, path: Path) -> None:
    pointer = torch.ones(2).send(bob)
    before = path.read_bytes()
    for room in (0, 40):
        with full_disk(path, room), pytest.raises(LedgerError, match="cannot let anything leave worker 'bob'"):
            pointer.get()
        assert path.read_bytes() == before

    assert len(bob.ledger) == 0
    assert pointer.get().tolist() == [1.0, 1.0]
    assert events(path) == ["opened", "departed"]


def test_refusals_leave_room_on_the_disk_for_departures(
    bob: Any, path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("syft_core.files.RESERVE", 1 << 60)  # The disk is almost full.

    with pytest.raises(GetNotPermittedError):
        bob.search("#ages")[0].get()
    torch.ones(2).send(bob).get()

    assert events(path) == ["opened", "departed"]
    assert "does not record a refusal" in caplog.text


def test_what_leaves_with_one_message_is_written_at_once(bob: Any, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr("os.fsync", synced.append)
    pointers = [torch.ones(2).send(bob) for _ in range(100)]
    location = pointers[0].location

    location.ask(FetchAll(tuple([pointer.child.id_at_location for pointer in pointers])))

    assert len(synced) == 1
    assert events(path) == ["opened", *["departed"] * 100]


def test_with_a_closed_ledger_nothing_leaves(bob: Any, path: Path) -> None:
    pointer = torch.ones(2).send(bob)
    bob.ledger.close()

    with pytest.raises(LedgerError, match="its ledger cannot be written .Bad file descriptor."):
        pointer.get()
    with pytest.raises(GetNotPermittedError):  # A refusal that cannot be recorded is still a refusal.
        bob.search("#ages")[0].get()
    assert len(bob.ledger) == 0


def test_an_approval_that_cannot_be_recorded_is_not_given(bob: Any, path: Path) -> None:
    mean = bob.search("#ages")[0].mean()
    number = mean.request("table 1")
    with full_disk(path, 0), pytest.raises(LedgerError):
        bob.approve(number)

    assert bob.requests[0].state == "open"
    with pytest.raises(GetNotPermittedError, match="is waiting for its owner"):
        mean.get()


def test_memory_has_only_the_last_departures_and_a_file_has_all(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syft_core.workers.seeing.ledger.MAX_REMEMBERED", 3)
    ledger = Ledger("bob", path)

    for number in range(5):
        ledger.record(Entry(1.5e9, "ana", number, "Tensor[]", (), "me"))
    ledger.close()

    assert ([entry.id for entry in ledger], ledger.departures) == ([2, 3, 4], 5)
    assert [entry.id for entry in read_ledger(path)][1:] == ["0", "1", "2", "3", "4"]


def test_without_a_file_the_last_departures_are_in_memory_and_the_table_counts_the_others(
    bob: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("syft_core.workers.seeing.ledger.MAX_REMEMBERED", 3)
    bob.ledger.close()
    bob.ledger = Ledger("bob")

    for tags in ((), (), ("#tagged",), (), (), (), (), ()):  # The names of tagged sources are recorded at once.
        torch.ones(1).tag(*tags).send(bob).get(reason=f"{len(tags)}")

    assert bob.ledger.departures == 8
    assert len(bob.ledger) == 3
    assert str(bob.ledger).endswith("\nand 5 earlier departures, which are not in memory")
    assert "and 5 earlier departures" in bob.ledger._repr_html_()
    assert bob.ledger.kinds()[0][0] == "3"


def test_departures_that_nobody_reads_do_not_fill_the_memory(bob: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syft_core.workers.seeing.ledger.MAX_REMEMBERED", 3)
    bob.ledger.close()
    bob.ledger = Ledger("bob")

    for _ in range(9):
        torch.ones(1).send(bob).get()

    assert (len(bob.ledger), bob.ledger.departures) == (3, 9)


def test_long_tags_of_sources_do_not_take_room_with_every_departure(bob: Any, path: Path) -> None:
    tagged = [torch.ones(1).tag(*[f"#{n} {m}" + "x" * 4000 for m in range(60)]).send(bob) for n in range(20)]
    total = sum(tagged)
    bob.ledger.close()
    bob.ledger = Ledger("bob")

    for _ in range(2):
        total.copy().get()

    first, second = bob.ledger
    assert sum(map(len, first.names)) < 20 * 300
    assert all(one is other for one, other in zip(first.names, second.names, strict=True))
