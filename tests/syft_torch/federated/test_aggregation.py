from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_core.exceptions import GetNotPermittedError, WorkerError  # noqa: E402
from syft_sums.evidence import read_evidence  # noqa: E402
from syft_sums.messages import JoinSum, MaskSum, RevealSum  # noqa: E402
from syft_torch import federated as fl  # noqa: E402
from syft_torch.federated.training import Train  # noqa: E402
from syft_worker.quotas import QuotaGuard  # noqa: E402

from .clinics import find_data, make_clinics, make_public, read_forms  # noqa: E402
from .owners import fill, find  # noqa: E402
from .trainers import cross_entropy, gather_options, make_model, make_trainer, sgd  # noqa: E402

SUM = fl.SecureAggregation


@pytest.fixture
def clinics(hook: Any, tmp_path: Path) -> list[Any]:
    return make_clinics(hook, tmp_path)


def make_summed(clinics: list[Any], **options: Any) -> Any:
    given = {
        "model": make_model(),
        "loss": cross_entropy,
        "optimizer": sgd,
        "data": find_data(clinics),
        "batch_size": 16,
    }
    return fl.FederatedTrainer(**gather_options({**given, "aggregation": SUM("icu"), **options}))


def read(trainer: Any) -> torch.Tensor:
    found: torch.Tensor = trainer.weights
    return found


# --- results


def test_a_round_has_the_mean_of_the_updates_and_of_the_losses(hook: Any, clinics: list[Any]) -> None:
    plain = make_trainer(hook, make_public(hook), shuffle=False)
    summed = make_summed(clinics, shuffle=False)

    for trainer in (plain, summed):
        trainer.fit(3)

    torch.testing.assert_close(read(summed), read(plain), rtol=1e-6, atol=1e-7)
    assert summed.history.losses == pytest.approx(plain.history.losses, rel=1e-6)
    row = summed.history[0]
    assert (row.workers, row.samples, row.left_out) == (["w0", "w1", "w2"], 120, {})


def test_the_mean_is_exact_to_a_billionth(hook: Any, clinics: list[Any]) -> None:
    model = make_model().double()
    data = [make_public(hook), find_data(clinics)]
    loss = lambda output, target: cross_entropy(output.double(), target)  # noqa: E731  # short
    cast = torch.nn.Sequential(_ToDouble(), model)
    start = {name: value.clone() for name, value in cast.state_dict().items()}
    found = []
    for each, aggregation in zip(data, (None, SUM("icu")), strict=True):
        cast.load_state_dict(start)
        options = fl.Options(shuffle=False)
        trainer = fl.FederatedTrainer(cast, loss, sgd, each, batch_size=16, options=options, aggregation=aggregation)
        trainer.fit(1)
        found.append(read(trainer))

    torch.testing.assert_close(found[1], found[0], rtol=0, atol=1e-9)


class _ToDouble(torch.nn.Module):  # type: ignore[misc]  # torch is not typed
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.double()


def test_equal_runs_are_equal_bit_by_bit(hook: Any, tmp_path: Path) -> None:
    found = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        trainer = make_summed(make_clinics(hook, tmp_path / name))
        trainer.fit(2)
        found.append(read(trainer))
        hook.local_worker._known_workers.clear()

    assert torch.equal(*found)


@pytest.mark.parametrize("strategy", [fl.FedProx(0.1), fl.FedAdam(), fl.FedYogi(), fl.FedAdagrad()], ids=repr)
def test_strategies_that_need_the_mean_work_as_without_sums(hook: Any, clinics: list[Any], strategy: Any) -> None:
    plain = make_trainer(hook, make_public(hook), shuffle=False, strategy=type(strategy)())
    summed = make_summed(clinics, shuffle=False, strategy=type(strategy)())

    for trainer in (plain, summed):
        trainer.fit(2)

    torch.testing.assert_close(read(summed), read(plain), rtol=1e-4, atol=1e-5)


def test_running_statistics_and_counts_are_summed(hook: Any, clinics: list[Any]) -> None:
    def make() -> Any:
        torch.manual_seed(0)
        return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 3))

    plain, summed = make(), make()
    make_trainer(hook, make_public(hook), model=plain, shuffle=False).fit(2)
    make_summed(clinics, model=summed, shuffle=False).fit(2)

    torch.testing.assert_close(summed[1].running_var, plain[1].running_var, rtol=1e-5, atol=1e-6)
    assert summed[1].num_batches_tracked == plain[1].num_batches_tracked


def test_workers_with_batches_of_other_lengths_have_the_same_task(hook: Any, tmp_path: Path) -> None:
    """A sum is over equal tasks, and a model may need a recording for each length."""

    class Centered(torch.nn.Module):  # type: ignore[misc]  # torch is not typed
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(4, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(x) * (1.0 if len(x) > 8 else 0.5)

    clinics = make_clinics(hook, tmp_path, counts=(40, 41, 39, 32))

    trainer = make_summed(clinics, model=Centered())

    assert trainer.fit(1)[0].workers == ["w0", "w1", "w2", "w3"]


# --- what leaves


def test_ledgers_show_sums_only(clinics: list[Any]) -> None:
    trainer = make_summed(clinics)

    trainer.fit(2)
    trainer.evaluate()

    for clinic in clinics:
        assert len(read_forms(clinic)) >= 3
        assert all(" of sum(study='icu'" in form or 'sum(study="icu"' in form for form in read_forms(clinic))
        assert not clinic.requests
    departures = trainer._departures
    assert departures.sums == {"w0": 3, "w1": 3, "w2": 3}
    assert not departures.updates
    assert not departures.evaluations


def test_nothing_of_a_round_stays_at_the_workers(clinics: list[Any]) -> None:
    def count() -> list[int]:
        for clinic in clinics:
            clinic.collect_garbage()
        return [len(clinic.object_store.entries()) for clinic in clinics]

    trainer = make_summed(clinics)
    trainer.fit(1)
    before = count()

    trainer.fit(2)

    assert count() == before


def test_without_sums_the_same_training_is_refused(hook: Any, clinics: list[Any]) -> None:
    with pytest.raises(fl.FederatedError, match="0 of 2 needed workers returned an update"):
        make_trainer(hook, find_data(clinics)).fit(1)
    with pytest.raises(GetNotPermittedError):
        fl.mean(find_data(clinics))


# --- evaluation


def test_an_evaluation_is_the_sum_of_those_of_the_workers(hook: Any, clinics: list[Any]) -> None:
    metrics = {"confusion": fl.ConfusionMatrix(3), "accuracy": lambda o, t: (o.argmax(1) == t).double().mean()}

    plain = make_trainer(hook, make_public(hook)).evaluate(metrics=metrics)
    summed = make_summed(clinics).evaluate(metrics=metrics)

    assert summed["loss"] == pytest.approx(plain["loss"], rel=1e-9)
    assert summed["accuracy"] == pytest.approx(plain["accuracy"], rel=1e-9)
    assert torch.equal(summed["confusion"], plain["confusion"])
    assert (summed.workers, summed.members, summed.samples) == ({}, ["w0", "w1", "w2"], 120)
    assert "the sum of 3" in str(summed)


def test_counts_of_an_auc_are_exact(hook: Any, clinics: list[Any]) -> None:
    binary = lambda output, target: cross_entropy(output[:, :2], (target > 0).long())  # noqa: E731  # short

    class TwoScores(fl.AUC):
        def count(self, output: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
            return super().count(output[:, :2], (targets > 0).long())

    auc = {"auc": TwoScores(100)}
    plain = make_trainer(hook, make_public(hook), loss=binary).evaluate(metrics=auc)
    summed = make_summed(clinics, loss=binary).evaluate(metrics=auc)

    assert summed["auc"] == plain["auc"]


def test_a_run_is_evaluated_while_it_trains(clinics: list[Any]) -> None:
    train, test = fl.train_test_split(find_data(clinics), test_size=0.25)
    trainer = make_summed(clinics, data=train)

    history = trainer.fit(2, evaluate_every=1, held_out=test)

    assert [list(row.evaluation) for row in history] == [["loss", "accuracy"]] * 2
    assert [row.samples for row in history] == [90, 90]


# --- refused at construction


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (
            {"strategy": fl.Median()},
            "needs the update of each worker, and only their sum leaves; use one that",
        ),
        ({"strategy": fl.TrimmedMean(0.4)}, "needs the update of each worker"),
        ({"strategy": fl.Krum(0)}, "needs the update of each worker"),
        ({"strategy": fl.Scaffold()}, "needs the update of each worker"),
        ({"max_norm": 1.0}, "`max_norm` rejects single updates; use `clip`"),
        ({"buffer": 2}, "asynchronous rounds have several ages; leave out `buffer`"),
        ({"clients_per_round": 2}, "each sample of workers is another list"),
        ({"engine": "stacked"}, "each worker trains by itself; leave out `engine`"),
    ],
)
def test_what_needs_single_updates_is_refused(clinics: list[Any], options: Any, error: str) -> None:
    with pytest.raises(fl.FederatedError, match=f"cannot train with secure aggregation: .*{error}"):
        make_summed(clinics, **options)


def test_a_population_is_refused(clinics: list[Any]) -> None:
    with pytest.raises(fl.FederatedError, match="the clients of a population have no lasting keys"):
        make_summed(clinics, data=fl.Population(10, lambda _number: (torch.ones(3, 4), torch.zeros(3).long())))


@pytest.mark.parametrize("wrong", [{"study": ""}, {"study": 3}, {"study": "icu", "colluding": -1}])
def test_a_wrong_study_is_refused(wrong: Any) -> None:
    with pytest.raises(fl.FederatedError, match="cannot train"):
        SUM(**wrong)


# --- rounds without a sum


def test_a_worker_that_fails_in_training_is_not_in_the_sum(hook: Any, tmp_path: Path) -> None:
    clinics = make_clinics(hook, tmp_path, counts=(40, 41, 39, 32))
    trainer = make_summed(clinics)
    trainer.fit(1)
    clinics[3].object_store.remove(clinics[3].search("#y")[0].id_at_location, "lost")

    row = trainer.fit(1)[-1]

    assert row.workers == ["w0", "w1", "w2"]
    assert list(row.left_out) == ["w3"]
    assert row.samples == 120


def test_a_round_without_a_sum_leaves_everything_as_it_was(clinics: list[Any], tmp_path: Path) -> None:
    trainer, path = make_summed(clinics), tmp_path / "run"
    trainer.fit(1, checkpoint=path)
    before, saved = read(trainer), path.read_bytes()
    clinics[1].studies.revoke()

    with pytest.raises(fl.FederatedError, match="cannot finish round 2: .*'w1'.*the model and the history have all"):
        trainer.fit(1, checkpoint=path)

    assert torch.equal(read(trainer), before)
    assert len(trainer.history) == 1
    assert path.read_bytes() == saved


def test_more_results_than_the_quorum_can_be_needed(hook: Any, tmp_path: Path) -> None:
    clinics = make_clinics(hook, tmp_path, counts=(40, 41, 39, 32))
    trainer = make_summed(clinics, min_results=4)
    clinics[3].object_store.remove(clinics[3].search("#y")[0].id_at_location, "lost")

    with pytest.raises(fl.FederatedError, match="3 of 4 needed workers computed a result"):
        trainer.fit(1)
    assert read_forms(clinics[0]) == []


def test_a_run_continues_from_its_checkpoint(hook: Any, clinics: list[Any], tmp_path: Path) -> None:
    path = tmp_path / "run"
    make_summed(clinics).fit(2, checkpoint=path)

    trainer = make_summed(clinics)
    trainer.fit(3, checkpoint=path)

    assert [row.round for row in trainer.history] == [1, 2, 3]
    assert trainer._departures.sums["w0"] == 3
    trainer.evidence(tmp_path / "study.syft")
    assert [each.round for each in read_evidence(tmp_path / "study.syft")] == [1, 2, 3]


# --- statistics


def test_statistics_are_those_of_all_rows(hook: Any, clinics: list[Any]) -> None:
    icu, data, public = SUM("icu"), find_data(clinics), make_public(hook)

    for function in (fl.sum, fl.mean, fl.var):
        assert torch.equal(function(data, aggregation=icu), function(public))
    edges = [-1.0, 0.0, 1.0]
    assert torch.equal(fl.histogram(data, edges, aggregation=icu), fl.histogram(public, edges))


def test_a_scaling_of_private_data_needs_no_request(hook: Any, clinics: list[Any]) -> None:
    train, test = fl.train_test_split(find_data(clinics))
    icu = SUM("icu")

    scaling = fl.Scaling.fit(train, aggregation=icu)
    trainer = make_summed(clinics, data=scaling.apply(train), aggregation=icu)
    trainer.fit(1)
    found = trainer.evaluate(scaling.apply(test))

    assert found.samples == 30
    assert not any(clinic.requests for clinic in clinics)


# --- evidence


def test_the_evidence_of_a_run_can_be_verified(clinics: list[Any], tmp_path: Path) -> None:
    trainer = make_summed(clinics)
    trainer.fit(2)

    trainer.evidence(tmp_path / "study.syft")

    rounds = read_evidence(tmp_path / "study.syft")
    assert [each.round for each in rounds] == [1, 2]
    assert all(len(each.signers) == 3 for each in rounds)


def test_a_trainer_without_sums_has_no_evidence(hook: Any, tmp_path: Path) -> None:
    with pytest.raises(fl.FederatedError, match="its results were not summed; pass `aggregation=fl.SecureAggregation"):
        make_trainer(hook).evidence(tmp_path / "study.syft")


# --- lost workers


class Failing(QuotaGuard):
    """The guard of a worker that fails when it gets a message of one kind for the first time."""

    def __init__(self, worker: Any, kind: type, times: int = 1) -> None:
        super().__init__(worker, {})
        self._kind, self._left = kind, times

    def handle(self, handler: Any, worker: Any, message: Any, sender: Any) -> Any:
        if isinstance(message, self._kind) and self._left:
            self._left -= 1
            raise WorkerError("cannot answer: the machine is busy")
        return super().handle(handler, worker, message, sender)


@pytest.mark.parametrize(("kind", "is_member"), [(Train, False), (JoinSum, False), (MaskSum, False), (RevealSum, True)])
def test_a_worker_that_fails_in_any_phase_costs_no_other_one(
    hook: Any, tmp_path: Path, kind: type, is_member: bool
) -> None:
    clinics = make_clinics(hook, tmp_path, counts=(40, 41, 39, 32))
    trainer = make_summed(clinics)
    clinics[3].guard = Failing(clinics[3], kind, times=2)

    row = trainer.fit(1)[0]

    assert row.workers == ["w0", "w1", "w2"] + ["w3"] * is_member
    assert [("w3" in worker, "the machine is busy" in why) for worker, why in row.left_out.items()] == (
        [] if is_member else [(True, True)]
    )


def test_workers_that_are_needed_are_not_left_out_while_they_mask(hook: Any, tmp_path: Path) -> None:
    clinics = make_clinics(hook, tmp_path, counts=(40, 41, 39, 32))
    trainer = make_summed(clinics, min_results=4)
    clinics[3].guard = Failing(clinics[3], MaskSum)

    with pytest.raises(fl.FederatedError, match="3 of 4 workers are left, and 4 must take part to the end"):
        trainer.fit(1)
    assert trainer.fit(1)[0].workers == ["w0", "w1", "w2", "w3"]


def test_a_round_that_was_given_up_is_repeated_with_those_who_are_left(hook: Any, tmp_path: Path) -> None:
    """The same task is not summed over another list, so the round is tried with another order of the samples."""
    clinics = make_clinics(hook, tmp_path, counts=(40, 41, 39, 32))
    trainer = make_summed(clinics)
    for clinic in clinics[2:]:
        clinic.guard = Failing(clinic, MaskSum)
    with pytest.raises(fl.FederatedError, match="cannot finish round 1: .*2 of 4 workers are left, and 3 must"):
        trainer.fit(1)
    clinics[3].guard = Failing(clinics[3], Train, times=9)

    assert trainer.fit(1)[0].workers == ["w0", "w1", "w2"]


def test_missing_values_of_private_tables_are_replaced_by_the_mean_of_all(hook: Any, tmp_path: Path) -> None:
    clinics = make_clinics(hook, tmp_path, computed_from=["#patients"])
    rows = fill(clinics, users=[])

    data = find(clinics, columns=["bmi"], missing="mean", aggregation=SUM("icu"))

    expected = rows[:, 1].double().nanmean().float()
    for clinic, dataset in zip(clinics, data, strict=True):
        found = clinic.object_store.entry(dataset.data.id_at_location).value
        assert bool((found == expected).any())
        assert not bool(found.isnan().any())
        assert len(read_forms(clinic)) == 1


def test_a_statistic_without_one_of_its_workers_says_so(
    hook: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clinics = make_clinics(hook, tmp_path, counts=(40, 41, 39, 32))
    clinics[3].guard = Failing(clinics[3], MaskSum, times=9)

    found = fl.histogram(find_data(clinics), [-9.0, 9.0], aggregation=SUM("icu"))

    assert found[0].tolist() == [120]
    assert "a sum is without worker 'w3': cannot answer: the machine is busy" in caplog.text


def test_a_statistic_without_a_sum_is_refused(hook: Any, clinics: list[Any]) -> None:
    clinics[1].guard = Failing(clinics[1], JoinSum)

    with pytest.raises(fl.FederatedError, match="cannot compute a statistic: cannot sum round 1: 2 of 3 workers are"):
        fl.mean(find_data(clinics), aggregation=SUM("icu"))


# --- noise

NOISE = {"multiplier": 1.0, "delta": 1e-5, "epsilon": 100.0}


@pytest.mark.slow
def test_updates_with_noise_are_summed_without_losses(hook: Any, tmp_path: Path) -> None:
    clinics = make_clinics(hook, tmp_path, clip=5.0, noise=NOISE, any_program=None)
    private = fl.SampleDP(clip=1.0, multiplier=1.0, delta=1e-5)
    trainer = make_summed(clinics, privacy=private, clip=5.0)

    history = trainer.fit(2, checkpoint=tmp_path / "run")

    assert [row.workers for row in history] == [["w0", "w1", "w2"]] * 2
    assert all(math.isnan(loss) for loss in history.losses)
    assert 0 < history[0].epsilon < history[1].epsilon
    forms = read_forms(clinics[0])
    assert any("noise=SampleDP(clip=1, multiplier=1" in form for form in forms)
    with pytest.raises(fl.FederatedError, match="could not be evaluated: .*noise"):
        trainer.evaluate()


@pytest.mark.slow
def test_a_rule_that_wants_noise_refuses_updates_without_it(hook: Any, tmp_path: Path) -> None:
    clinics = make_clinics(hook, tmp_path, clip=5.0, noise=NOISE, any_program=None)

    with pytest.raises(fl.FederatedError, match="cannot finish round 1: .*noise"):
        make_summed(clinics, clip=5.0).fit(1)
    assert all(read_forms(clinic) == [] for clinic in clinics)
