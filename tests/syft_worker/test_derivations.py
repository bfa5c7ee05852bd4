"""What a worker knows about computations survives a restart, and so do the rules that name them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")

from syft_core.exceptions import GetNotPermittedError  # noqa: E402
from syft_core.workers.party.derivations import MAX_NODES  # noqa: E402
from syft_core.workers.road.derivation import derivation_of  # noqa: E402
from syft_worker.data import DataSource  # noqa: E402
from syft_worker.derivations import pack, unpack  # noqa: E402
from syft_worker.desk.approvals import suggest_conditions  # noqa: E402

from .test_storage import Party  # noqa: E402


@pytest.fixture
def party(any_hook: Any, tmp_path: Path) -> Any:
    np.save(tmp_path / "scans.npy", np.ones((50, 2)))
    party = Party(any_hook, tmp_path / "store", serialize=True)
    party.data = [DataSource.parse(f"{tmp_path / 'scans.npy'}#scans:private=")]
    party.restart()
    yield party
    party.storage.close()


def compute(party: Any) -> Any:
    return (party.worker.search("#scans")[0][:, 1] * 2.0).sum()


def find(party: Any, pointer: Any) -> Any:
    pointer.child._location.flush()
    return derivation_of(party.worker.object_store.entry(pointer.child.id_at_location))


def test_an_object_on_disk_keeps_its_derivation(party: Any) -> None:
    pointer = compute(party)
    before = find(party, pointer)
    pointer.tag("#total")
    party.worker.save()

    party.restart()

    after = derivation_of(party.worker.object_store.entry(party.worker.search("#total")[0].child.id_at_location))
    assert (str(after), after.digest, after.count) == (str(before), before.digest, before.count)
    assert after.find_program() == before.find_program() == find(party, compute(party)).find_program()


def test_what_is_computed_from_a_stored_object_is_not_the_approved_program(party: Any) -> None:
    approved = find(party, compute(party)).find_program()
    row = party.worker.search("#scans")[0][3, 1]
    row.tag("#row")
    party.worker.save()

    party.restart()

    again = (party.worker.search("#row")[0] * 2.0).sum()
    assert find(party, again).find_program() != approved
    assert "#scans[3, 1]" in str(find(party, again))


def test_a_rule_for_a_program_holds_after_a_restart_for_data_of_the_configuration(party: Any) -> None:
    party.hook.local_worker.user = "eve"
    compute(party).request("table 1")
    worker = party.worker
    worker.allow("study", **suggest_conditions(worker, worker.requests[-1]), count=9)
    compute(party).get()

    party.restart()

    assert float(compute(party).get()) == 100.0
    with pytest.raises(GetNotPermittedError, match="its program is not approved"):
        (party.worker.search("#scans")[0][:, 0] * 2.0).sum().get()


def test_an_open_request_keeps_what_the_owner_is_shown(party: Any) -> None:
    compute(party).request("table 1")
    (before,) = party.worker.requests

    party.restart()

    (after,) = party.worker.requests
    assert (after.how, after.digest) == (before.how, before.digest)
    assert suggest_conditions(party.worker, after) == suggest_conditions(party.worker, before)


def test_a_derivation_is_packed_and_unpacked_with_all_its_parts(party: Any) -> None:
    supplied = party.hook.make_taggable(party.hook.create_zeros(2)).send(party.worker)
    found = find(party, (party.worker.search("#scans")[0] + supplied).max())

    copy = unpack(party.worker, pack(found))

    assert copy is not None
    assert str(copy) == str(found)
    assert copy.find_program(["input 1"]) == found.find_program(["input 1"])
    assert [leaf.find() is not None for leaf in copy.data] == [True]


def test_of_a_long_computation_digest_and_length_are_kept(party: Any) -> None:
    found = party.worker.search("#scans")[0]
    for _ in range(MAX_NODES):
        found = found + 1.0

    copy = unpack(party.worker, pack(find(party, found)))

    assert copy is not None
    assert (copy.hex, copy.count, copy.operands) == (find(party, found).hex, MAX_NODES + 1, None)
