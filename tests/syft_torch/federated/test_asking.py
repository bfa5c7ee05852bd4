from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import syft_core as sy  # noqa: E402  # torch may be missing
from syft_core.exceptions import GetNotPermittedError  # noqa: E402  # the same
from syft_core.ledgers.entry import DEPARTURES  # noqa: E402  # the same
from syft_core.workers.seeing.ledger import Ledger, read_ledger  # noqa: E402  # the same
from syft_torch import federated as fl  # noqa: E402  # the same
from syft_worker.desk.errors import ReleaseDeniedError, ReleaseError  # noqa: E402  # the same

from .trainers import cross_entropy, make_model, make_samples, sgd  # noqa: E402  # the same

USER = "dana"
NAMES = ("north", "east", "south")


def start(hook: Any, folder: Path, name: str, rows: int = 60) -> Any:
    worker = sy.VirtualWorker(hook, id=name, serialize=True, ledger=Ledger(name, path=folder / name))
    parts = zip(make_samples(rows, len(name)), ("#x", "#y"), strict=True)
    worker.load_data([part.private_tensor([]).tag(tag) for part, tag in parts])
    return worker


@pytest.fixture
def clinics(hook: Any, tmp_path: Path) -> list[Any]:
    hook.local_worker.user = USER
    clinics = [start(hook, tmp_path, name, rows) for name, rows in zip(NAMES, (60, 61, 80), strict=True)]
    members = {clinic.id: clinic.studies.fingerprint for clinic in clinics}
    for clinic in clinics:
        clinic.studies.set_members(members)
    return clinics


def make_trainer(clinics: list[Any], data: Any = None, **options: Any) -> Any:
    given = fl.find("#x", "#y", workers=clinics) if data is None else data
    return fl.FederatedTrainer(make_model(), cross_entropy, sgd, given, batch_size=20, **options)


def approve_all(clinics: list[Any]) -> None:
    for clinic in clinics:
        clinic.approve(clinic.requests[-1], by=f"the owner of {clinic.id}")


@pytest.fixture(params=[False, True], ids=["one by one", "in sums"])
def aggregation(request: Any) -> Any:
    return fl.SecureAggregation("icu") if request.param else None


def test_one_click_of_each_owner_permits_a_whole_study(clinics: list[Any], aggregation: Any) -> None:
    asked = make_trainer(clinics, aggregation=aggregation).request("the study", rounds=4)
    assert [request.state for request in asked.values()] == ["open"] * 3
    approve_all(clinics)
    assert [request.wait(1).state for request in asked.values()] == ["granted"] * 3

    data = fl.find("#x", "#y", workers=clinics)
    mean = fl.mean(data, aggregation)
    trainer = make_trainer(clinics, fl.Scaling.fit(data, aggregation).apply(data), aggregation=aggregation)
    trainer.fit(4)

    assert mean.shape == (4,)
    assert trainer.evaluate().samples == 201
    with pytest.raises(fl.FederatedError, match="all of its 7 uses are used up"):
        trainer.fit(1)


def test_nothing_leaves_with_the_request(clinics: list[Any], aggregation: Any, tmp_path: Path) -> None:
    requests = make_trainer(clinics, aggregation=aggregation).request("the study", rounds=4)
    approve_all(clinics)

    with pytest.raises(ReleaseDeniedError, match="its owner has made a rule of it"):
        requests["north"].get()
    assert [entry for entry in read_ledger(tmp_path / "north") if entry.event in DEPARTURES] == []
    assert clinics[0].requests[-1].values == [None] * 4


def test_the_rule_permits_no_other_program_and_no_rows(clinics: list[Any], aggregation: Any) -> None:
    make_trainer(clinics, aggregation=aggregation).request("the study", rounds=4)
    approve_all(clinics)

    with pytest.raises(GetNotPermittedError):
        clinics[0].search("#x")[0][:1].get()
    with pytest.raises(fl.FederatedError, match="its program is not approved"):
        make_trainer(clinics, aggregation=aggregation, epochs=2).fit(1)
    for mask in (slice(0, 50), slice(1, None)):
        parts = [[part[mask] for part in (clinic.search("#x")[0], clinic.search("#y")[0])] for clinic in clinics]
        rows = fl.FederatedDataset([fl.BaseDataset(*part) for part in parts])
        with pytest.raises(fl.FederatedError, match="not approved|was not computed from whole objects"):
            make_trainer(clinics, rows, aggregation=aggregation).fit(1)


def test_a_later_request_that_a_rule_covers_is_granted_at_once(clinics: list[Any], aggregation: Any) -> None:
    make_trainer(clinics, aggregation=aggregation).request("the study", rounds=4)
    approve_all(clinics)

    again = make_trainer(clinics, aggregation=aggregation).request("once more", rounds=2)
    other = make_trainer(clinics, aggregation=aggregation, epochs=3).request("another one", rounds=2)

    assert {request.state for request in again.values()} == {"granted"}
    assert {request.state for request in other.values()} == {"open"}
    assert "covers it" in again["north"].answer


def test_a_rule_settles_requests_of_the_same_study_that_are_open(clinics: list[Any], aggregation: Any) -> None:
    first = make_trainer(clinics, aggregation=aggregation).request("from the notebook", rounds=4)
    second = make_trainer(clinics, aggregation=aggregation).request("from the script", rounds=4)

    approve_all(clinics)

    assert {request.state for request in (*first.values(), *second.values())} == {"granted"}


def test_workers_without_restricted_data_are_not_asked(hook: Any) -> None:
    worker = sy.VirtualWorker(hook, id="open")
    data = fl.FederatedDataset([fl.BaseDataset(*make_samples(40, 1)).send(worker)])

    assert make_trainer([worker], data).request("the study", rounds=2) == {}
    assert len(worker.requests) == 0


def test_a_rule_for_sums_is_there_after_a_restart_until_it_is_revoked(
    hook: Any, clinics: list[Any], tmp_path: Path
) -> None:
    make_trainer(clinics, aggregation=fl.SecureAggregation("icu")).request("the study", rounds=4)
    approve_all(clinics)
    (name,) = clinics[0].studies.rules

    for is_revoked in (False, True):
        clinics[0].ledger.close()
        hook.local_worker._known_workers.pop("north")
        clinics[0] = start(hook, tmp_path, "north")
        assert list(clinics[0].studies.rules) == ([] if is_revoked else [name])
        if not is_revoked:
            assert clinics[0].studies.rules[name].made_by == "the owner of north"
            assert [request.state for request in clinics[0].requests] == ["granted"]
            clinics[0].studies.revoke(name)


def test_the_owner_sees_what_is_asked(clinics: list[Any]) -> None:
    make_trainer(clinics, aggregation=fl.SecureAggregation("icu")).request("the study", rounds=4, statistics=0)

    request = clinics[0].requests[-1]

    assert request.labels == (
        "in each of 4 rounds: the change of the weights by SGD(lr=0.1), epochs: 1, batches of 20",
        "in each of 4 rounds: the loss",
        "in one evaluation: the sums of loss, accuracy",
    )
    assert request.terms.describe() == (
        "up to 5 times, only in sums over the 3 workers of 'icu', of which 1 may work together with the user"
    )
    assert "test_asking.py" in request.line


@pytest.mark.parametrize(
    ("options", "why"),
    [({"rounds": 0}, "a study has a number of rounds"), ({"rounds": 2, "evaluations": -1}, "a study has a number")],
)
def test_a_study_without_rounds_is_refused(clinics: list[Any], options: dict[str, Any], why: str) -> None:
    with pytest.raises(fl.FederatedError, match=why):
        make_trainer(clinics).request("the study", **options)


def test_a_study_that_hides_nothing_is_refused(clinics: list[Any]) -> None:
    aggregation = fl.SecureAggregation("icu", colluding=1)
    data = fl.find("#x", "#y", workers=clinics[:2])

    with pytest.raises((ReleaseError, ValueError), match="hides nothing|colluding"):
        make_trainer(clinics[:2], data, aggregation=aggregation).request("the study", rounds=2)
