"""The published and tagged objects of a worker survive it."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from syft_core.exceptions import (
    ConfigurationError,
    GetNotPermittedError,
    ObjectNotFoundError,
    StorageError,
    WriteNotPermittedError,
)
from syft_core.peer import Peer
from syft_core.workers.party.status import RESTRICTIONS, add_bit
from syft_core.workers.party.virtual import VirtualWorker
from syft_worker.data import DataSource, load
from syft_worker.storage import Storage
from tests.waiting import wait_for_result


class Party:
    """A worker with a store, which can be killed and started again."""

    def __init__(self, hook: Any, folder: Path, serialize: bool) -> None:
        self.hook, self.folder, self.serialize = hook, folder, serialize
        self.data: list[Any] = []
        self.start()

    def start(self) -> Any:
        self.worker = VirtualWorker(self.hook, id="bob", serialize=self.serialize)
        data = load(self.data, self.hook)
        self.storage = Storage(self.folder, self.worker, data)
        return self.worker

    def restart(self) -> Any:
        """Start again from what is on disk, as after a crash: nothing is written at the end."""
        self.storage._open.close()
        self.hook.local_worker.remove_worker_from_registry("bob")
        return self.start()

    def files(self) -> int:
        return len(list(self.folder.iterdir()))


@pytest.fixture(params=[False, True], ids=["in_process", "by_wire"])
def party(any_hook: Any, tmp_path: Path, request: pytest.FixtureRequest) -> Any:
    party = Party(any_hook, tmp_path / "store", request.param)
    yield party
    party.storage.close()


def ones(hook: Any, size: int = 2) -> Any:
    return hook.make_taggable(hook.create_zeros(size) + 1)


def test_a_published_object_is_back_with_id_tags_and_publisher(party: Any) -> None:
    pointer = ones(party.hook).tag("#w").describe("weights").send(party.worker)
    pointer.publish()
    id = pointer.child.id_at_location

    bob = party.restart()

    entry = bob.object_store.entry(id)
    assert (entry.tags, entry.description, entry.published) == ({"#w"}, "weights", True)
    assert entry.publisher == Peer("me", "eve")
    found = bob.search("#w")[0]
    assert found.child.id_at_location == id
    assert found.copy().get().tolist() == [1.0, 1.0]


def test_only_the_publisher_may_change_it_after_a_restart(party: Any) -> None:
    ones(party.hook).tag("#w").send(party.worker).publish()
    bob = party.restart()
    found = bob.search("#w")[0]
    found += 1

    party.hook.local_worker.user = "mallory"
    with pytest.raises(WriteNotPermittedError):
        found += 1
    bob = party.restart()
    assert bob.search("#w")[0].copy().get().tolist() == [2.0, 2.0]


def test_what_was_private_stays_private_and_so_does_what_was_computed_from_it(party: Any) -> None:
    party.worker.load_data([ones(party.hook).private_tensor(["ana"]).tag("#ages")])
    total = party.worker.search("#ages")[0].sum()
    total.tag("#total")

    bob = party.restart()

    for tag in ("#ages", "#total"):
        with pytest.raises(GetNotPermittedError):
            bob.search(tag)[0].get()
    party.hook.local_worker.user = "ana"
    bob.search("#total")[0].get()
    assert bob.ledger[-1].names == ("#ages",)


def test_a_restriction_of_a_feature_is_back_and_so_is_that_of_what_was_computed_from_it(party: Any) -> None:
    embargo = add_bit("tests: stored embargo", inherited=True)
    ones(party.hook).tag("#w").send(party.worker).publish()
    found = party.worker.search("#w")[0]
    party.worker.object_store.mark(found.child.id_at_location, embargo)
    (found + 1).tag("#sum")

    bob = party.restart()

    for tag in ("#w", "#sum"):
        assert bob.object_store.entry(bob.search(tag)[0].child.id_at_location).status & embargo


def test_the_reviewed_copy_of_a_request_keeps_its_restrictions(party: Any) -> None:
    embargo = add_bit("tests: stored embargo", inherited=True)
    party.worker.load_data([ones(party.hook).private_tensor(["ana"]).tag("#ages")])
    found = party.worker.search("#ages")[0]
    party.worker.object_store.mark(found.child.id_at_location, embargo)
    found.request("table 1")

    (request,) = party.restart().requests

    assert [bool(requested.copy.status & embargo) for requested in request.objects] == [True]


def test_what_has_a_restriction_that_no_plugin_offers_is_not_loaded_without_it(party: Any) -> None:
    embargo = add_bit("tests: stored embargo", inherited=True)
    ones(party.hook).tag("#w").send(party.worker).publish()
    party.worker.object_store.mark(party.worker.search("#w")[0].child.id_at_location, embargo)
    party.worker.save()
    bit = RESTRICTIONS._entries.pop("tests: stored embargo")

    with pytest.raises(ConfigurationError, match=r"cannot load .*\.object: .*embargo'.*install the plugin"):
        party.restart()

    RESTRICTIONS.register("tests: stored embargo", bit)
    party.restart()


def test_an_object_without_tags_is_not_kept(party: Any) -> None:
    pointer = ones(party.hook).send(party.worker)
    (pointer + 1).get()

    assert party.files() == 0


def test_a_tagged_object_is_removed_from_disk_when_it_is_fetched_or_dropped(party: Any) -> None:
    first, second = [ones(party.hook).tag(f"#{n}").send(party.worker) for n in range(2)]
    assert party.files() == 2

    first.get()
    assert party.files() == 1
    del second
    party.worker.search("#none")
    assert party.files() == 0


def test_a_tagged_object_belongs_to_its_holder_after_a_restart(party: Any) -> None:
    pointer = ones(party.hook).tag("#w").send(party.worker)
    id = pointer.child.id_at_location
    bob = party.restart()
    del pointer

    found = bob.search("#w")[0]
    found += 1
    assert found.get().tolist() == [2.0, 2.0]
    with pytest.raises(ObjectNotFoundError):
        bob.get_obj(id)
    assert party.files() == 0


def test_changes_in_place_are_kept_also_through_views(party: Any) -> None:
    x = ones(party.hook, 4).tag("#x").send(party.worker)
    x.publish()
    x += 1
    part = x[:2]
    part += 1

    bob = party.restart()

    assert bob.search("#x")[0].copy().get().tolist() == [3.0, 3.0, 2.0, 2.0]


def test_changes_by_the_owner_are_kept(party: Any) -> None:
    party.worker.load_data([ones(party.hook).private_tensor(["ana"]).tag("#x")])
    (x,) = party.worker.request_search("#x", "bob")
    assert x.child.owner is party.worker
    x += 1

    bob = party.restart()

    (id,) = bob.object_store.search(["#x"])
    assert bob.get_obj(id).child.child.tolist() == [2.0, 2.0]
    assert bob.object_store.entry(id).access == {"ana"}


def test_later_tags_are_kept(party: Any) -> None:
    pointer = ones(party.hook).tag("#a").send(party.worker)
    pointer.tag("#b").describe("text")

    bob = party.restart()

    assert bob.search(["#a", "#b"])[0].child.id_at_location == pointer.child.id_at_location
    assert bob.search("text")


def test_objects_of_the_owner_come_and_go(party: Any) -> None:
    x = ones(party.hook).tag("#x")
    party.worker.load_data([x])
    party.worker.register_obj(ones(party.hook), 7)
    assert party.files() == 2

    bob = party.restart()
    assert bob.get_obj(7).tolist() == [1.0, 1.0]
    bob.de_register_obj(bob.get_obj(7))
    assert party.files() == 1
    bob.clear_objects()
    assert party.files() == 0


def test_what_the_owner_changes_directly_is_kept_at_the_end(party: Any) -> None:
    party.worker.register_obj(ones(party.hook), 7)
    value = party.worker.get_obj(7)
    value[0] = 5.0
    party.storage.save_all()

    assert party.restart().get_obj(7).tolist() == [5.0, 1.0]


def test_an_object_that_moves_away_is_removed_from_disk(party: Any) -> None:
    carol = VirtualWorker(party.hook, id="carol", serialize=party.serialize)
    pointer = ones(party.hook).tag("#w").send(party.worker)
    pointer.move(carol)

    assert party.files() == 0


def test_a_gradient_is_kept(torch_hook: Any, tmp_path: Path) -> None:
    party = Party(torch_hook, tmp_path / "store", serialize=True)
    w = torch_hook.torch.ones(2, requires_grad=True).tag("#w").send(party.worker)
    w.publish()
    (w * 3).sum().backward()

    bob = party.restart()

    found = bob.search("#w")[0]
    assert found.requires_grad
    assert found.grad.get().tolist() == [3.0, 3.0]
    party.storage.close()


def test_data_is_loaded_from_its_file_unless_it_was_changed_here(party: Any, tmp_path: Path, caplog: Any) -> None:
    np = pytest.importorskip("numpy")
    np.save(tmp_path / "x.npy", np.ones(2))
    party.data = [DataSource.parse(f"{tmp_path / 'x.npy'}#x:private=me,eve")]
    bob = party.restart()
    assert party.files() == 0
    id = bob.search("#x")[0].child.id_at_location
    np.save(tmp_path / "x.npy", np.zeros(2))
    bob = party.restart()
    assert bob.get_obj(id).child.child.tolist() == [0.0, 0.0]

    own = bob.object_store.entry(id)
    own.value += 1
    bob.object_store.tag(id, ["#changed"])
    bob.save()
    bob = party.restart()

    assert bob.get_obj(id).child.child.tolist() == [1.0, 1.0]
    assert "#x was changed on this worker: that version is used" in caplog.text
    party.data = [DataSource.parse(f"{tmp_path / 'x.npy'}#x:private=me")]
    with pytest.raises(ConfigurationError, match="has a changed version of it, for more users"):
        party.restart()
    party.data = []
    party.restart()


def test_a_store_of_another_worker_is_refused(party: Any) -> None:
    party.worker.register_obj(ones(party.hook), 7)
    party.storage.close()

    with pytest.raises(ConfigurationError, match="it belongs to worker 'bob'; start that one"):
        Storage(party.folder, VirtualWorker(party.hook, id="carol"))


def test_two_workers_cannot_use_one_store(party: Any) -> None:
    with pytest.raises(ConfigurationError, match="another process uses it; stop that one"):
        Storage(party.folder, VirtualWorker(party.hook, id="carol"))


@pytest.mark.parametrize("place", [0, 100, -1])
def test_a_damaged_file_is_named_and_not_dropped(party: Any, place: int) -> None:
    party.worker.register_obj(ones(party.hook, 2000), 7)
    (path,) = party.folder.iterdir()
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)

    with pytest.raises(ConfigurationError, match=f"cannot load {path}: it is damaged"):
        party.restart()
    assert path.read_bytes() == data
    path.unlink()
    party.restart()


def test_with_a_full_disk_the_publisher_learns_it_and_the_worker_goes_on(party: Any) -> None:
    kept = ones(party.hook).tag("#kept").send(party.worker)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, before[1]))
    try:
        with pytest.raises(StorageError, match="it cannot be written to disk .File too large."):
            ones(party.hook, 5000).tag("#large").send(party.worker)
        kept += 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    assert party.files() == 1
    assert party.restart().search("#kept")[0].get().tolist() == [2.0, 2.0]


def test_the_store_leaves_room_on_the_disk_for_the_ledger(party: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = os.statvfs(party.folder)  # Others may write and delete files meanwhile.
    monkeypatch.setattr("syft_core.files.RESERVE", whole.f_blocks * whole.f_frsize)

    with pytest.raises(StorageError, match="it cannot be written to disk .No space left on device."):
        ones(party.hook).tag("#last").send(party.worker)

    assert party.files() == 0
    monkeypatch.undo()


def test_only_the_owner_can_read_the_files(party: Any) -> None:
    party.worker.register_obj(ones(party.hook), 7)

    assert party.folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in party.folder.iterdir()} == {0o600}


@pytest.mark.slow
def test_a_kill_at_any_moment_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    np = pytest.importorskip("numpy")
    from syft_numpy.hook import NumpyHook  # noqa: PLC0415  # numpy may be missing

    from ..network.publisher import SIZE  # noqa: PLC0415  # the same

    source = random.Random(5)
    published: list[int] = []
    held: set[int] = set()
    counted = first = 0
    for _ in range(6):
        command = [sys.executable, "-m", "tests.network.publisher", str(tmp_path / "store"), str(first)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            lines = [wait_for_result(child.stdout.readline) for _ in range(source.randrange(1, 60))]
            try:
                child.wait(source.random() / 200)  # Somewhere in the next few writes.
            except subprocess.TimeoutExpired:
                child.send_signal(signal.SIGKILL)
            lines += child.stdout.readlines()
        fetching = set()
        for line in lines:
            if not line.endswith("\n"):  # It was being written.
                continue
            verb, *number = line.split()
            counted += verb == "counted"
            if verb == "published":
                published.append(int(number[0]))
            elif verb == "tagged":
                held.add(int(number[0]))
                fetching.add(int(number[0]) - 2)  # It may have been fetched, and the acknowledgement lost.
            elif verb == "fetched":
                held.discard(int(number[0]))
        with NumpyHook(np) as hook:
            bob = VirtualWorker(hook, id="bob")
            storage = Storage(tmp_path / "store", bob)
            for number in published:
                assert bob.search(f"#object-{number}")[0].copy().get().tolist() == [number] * SIZE
            for number in held - fetching:
                assert bob.search(f"#held-{number}")[0].copy().get().tolist() == [number] * SIZE
            counters = bob.search("#counter")
            value = counters[0].copy().get() if counters else np.zeros(SIZE)
            assert counted <= value[0] <= counted + 1
            assert (value == value[0]).all()
            counted = int(value[0])
            storage.close()
        held -= fetching
        first += 10_000
    assert len(published) > 20
