"""Attacks of a scientist on a study whose owners let only sums leave, with the real trainer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_core.exceptions import GetNotPermittedError  # noqa: E402
from syft_sums.errors import SumRefusedError  # noqa: E402
from syft_sums.messages import JoinSum  # noqa: E402
from syft_torch import federated as fl  # noqa: E402

from .clinics import find_data, make_clinics  # noqa: E402
from .trainers import cross_entropy, gather_options, make_model, make_samples, sgd  # noqa: E402

SUM = fl.SecureAggregation
ROW, COUNTS = 13, (40, 41, 39)


class Isolating(torch.nn.Module):  # type: ignore[misc]  # torch is not typed
    """A model whose gradient is one row of the data of one worker, and nothing at all others."""

    def __init__(self, mean: float) -> None:
        super().__init__()
        self.w = torch.nn.Parameter(torch.zeros(4))
        self._mean = mean

    def forward(self, x: Any) -> Any:
        near = ((x.mean() - self._mean).abs() < 1e-4).to(x.dtype)
        pick = (torch.ones_like(x[:, 0]).cumsum(0) == ROW + 1.0).to(x.dtype).unsqueeze(1)
        return ((x * pick).sum(0) * self.w).sum() * near


def make_attack(clinics: list[Any]) -> Any:
    mean = float(make_samples(COUNTS[1], 1)[0].mean())
    options = {
        "model": Isolating(mean),
        "loss": lambda output, _target: output,
        "optimizer": lambda parameters: torch.optim.SGD(parameters, lr=1.0),
        "data": find_data(clinics),
        "batch_size": None,
        "shuffle": False,
        "aggregation": SUM("icu"),
    }
    return fl.FederatedTrainer(**gather_options(options))


def make_honest(clinics: list[Any], **changes: Any) -> Any:
    options = {
        "model": make_model(),
        "loss": cross_entropy,
        "optimizer": sgd,
        "data": find_data(clinics),
        "batch_size": 16,
        "aggregation": SUM("icu"),
        **changes,
    }
    return fl.FederatedTrainer(**gather_options(options))


def programs_of(clinics: list[Any], free: Sequence[str]) -> set[str]:
    """Return the digests of the programs whose results the workers have."""
    entries = [entry for clinic in clinics for entry in clinic.object_store.entries()]
    made = [entry.derivation for entry in entries if entry.made_by is not None]
    return {derivation.find_program(free) for derivation in made}


def learn_program(clinics: list[Any], trainer: Any, free: Sequence[str] = ()) -> str:
    """Return the digest of the training of a trainer, as an owner sees it."""
    found: list[str] = []
    study = trainer.aggregation.open([client.location for client in trainer.clients.values()])
    ask = study._ask_all
    study._ask_all = lambda messages: (found.extend(programs_of(clinics, free)), ask(messages))[1]
    trainer.fit(1)
    study._ask_all = ask
    (program,) = set(found)
    return program


def test_any_program_lets_a_sum_show_one_record(hook: Any, tmp_path: Path) -> None:
    """It is not refused: the rule says what `any_program` means."""
    trainer = make_attack(make_clinics(hook, tmp_path))

    trainer.fit(1)

    row = -trainer.weights * sum(COUNTS) / COUNTS[1]
    torch.testing.assert_close(row, make_samples(COUNTS[1], 1)[0][ROW], rtol=0, atol=1e-5)


def test_a_program_that_isolates_one_record_is_not_approved(hook: Any, tmp_path: Path) -> None:
    (tmp_path / "before").mkdir()
    before = make_clinics(hook, tmp_path / "before")
    program = learn_program(before, make_honest(before))
    hook.local_worker._known_workers.clear()
    (tmp_path / "after").mkdir()
    clinics = make_clinics(hook, tmp_path / "after", any_program=None, programs=[program])

    make_honest(clinics).fit(1)
    with pytest.raises(fl.FederatedError, match="its program is not approved, and the rule asks for no noise"):
        make_attack(clinics).fit(1)
    for clinic in clinics:
        assert len(list(clinic.ledger)) == 1


@pytest.mark.parametrize("change", [{"epochs": 2}, {"batch_size": 20}, {"shuffle": False}, {"loss": None}])
def test_an_approved_program_with_other_settings_is_another_one(hook: Any, tmp_path: Path, change: Any) -> None:
    (tmp_path / "before").mkdir()
    before = make_clinics(hook, tmp_path / "before")
    program = learn_program(before, make_honest(before))
    hook.local_worker._known_workers.clear()
    (tmp_path / "after").mkdir()
    clinics = make_clinics(hook, tmp_path / "after", any_program=None, programs=[program])
    if "loss" in change:
        change = {"loss": lambda output, target: cross_entropy(output, target) * 2}

    with pytest.raises(fl.FederatedError, match="its program is not approved"):
        make_honest(clinics, **change).fit(1)


def test_a_second_study_without_one_worker_uses_up_the_changes(hook: Any, tmp_path: Path) -> None:
    clinics = make_clinics(hook, tmp_path, (40, 41, 39, 38), changes=0)
    make_honest(clinics).fit(1)

    with pytest.raises(fl.FederatedError, match="the rule permits changes = 0"):
        make_honest(clinics[:3], model=make_model(3), aggregation=SUM("another")).fit(1)


def test_the_same_question_is_not_asked_of_two_lists(hook: Any, tmp_path: Path) -> None:
    clinics = make_clinics(hook, tmp_path, (40, 41, 39, 38), changes=9)
    for names in (clinics, clinics[:3]):
        trainer = make_honest(names, shuffle=False, aggregation=SUM(f"study of {len(names)}"))
        if len(names) == 4:
            trainer.fit(1)
            continue
        with pytest.raises(fl.FederatedError, match="this task was summed over another list in another round"):
            trainer.fit(1)


def test_each_evaluation_is_a_use_of_the_rule(hook: Any, tmp_path: Path) -> None:
    clinics = make_clinics(hook, tmp_path, count=2)
    trainer = make_honest(clinics)
    for _ in range(2):
        trainer.evaluate()
        trainer.aggregation.restore(())

    with pytest.raises(fl.FederatedError, match="all of its 2 uses are used up"):
        trainer.evaluate()


def test_rows_that_the_client_has_picked_are_refused(hook: Any, tmp_path: Path) -> None:
    clinics = make_clinics(hook, tmp_path)
    parts = [[clinic.search(tag)[0][:30] for tag in ("#x", "#y")] for clinic in clinics]
    data = fl.FederatedDataset([fl.BaseDataset(*each) for each in parts])

    with pytest.raises(fl.FederatedError, match="not computed from whole objects that this owner has published"):
        make_honest(clinics, data=data).fit(1)


@pytest.mark.parametrize("launder", ["view", "copy", "in place", "away and back", "out"])
def test_a_result_that_was_laundered_is_refused(hook: Any, tmp_path: Path, launder: str) -> None:
    """The data itself, passed off as a result: what is not a result of the worker's own loop is not summed."""
    clinics = make_clinics(hook, tmp_path)
    clinic, other = clinics[0], clinics[1]
    x = clinic.search("#x")[0]
    made = {
        "view": lambda: x.view(-1),
        "copy": lambda: x.clone(),
        "in place": lambda: torch.zeros(40, 4).send(clinic).add_(x),
        "away and back": lambda: torch.ones(3).send(clinic).move(other).move(clinic),
        "out": lambda: torch.add(x, x, out=torch.zeros(40, 4).send(clinic)),
    }[launder]()
    location = made.child._location
    study = SUM("icu").open([hook.local_worker.location_of(each) for each in clinics])
    message = JoinSum("icu", study.roster.keys, 1, 1, (made.child._id_at_location,), "samples")

    with pytest.raises(SumRefusedError, match="not computed by its own code"):
        location.ask(message)
    if launder != "away and back":
        with pytest.raises(GetNotPermittedError):
            made.get()


class Masked(torch.nn.Module):  # type: ignore[misc]  # torch is not typed
    """A model with a tensor that training does not change, which the scientist supplies: a mask of columns."""

    def __init__(self, mask: Any) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = torch.nn.Linear(4, 3)
        self.mask = torch.nn.Parameter(mask, requires_grad=False)

    def forward(self, x: Any) -> Any:
        return self.linear(x * self.mask)


@pytest.mark.parametrize("free", [False, True])
def test_an_approved_program_with_another_mask_is_refused_unless_that_is_free(
    hook: Any, tmp_path: Path, free: bool
) -> None:
    folders = [tmp_path / name for name in ("before", "after")]
    for folder in folders:
        folder.mkdir()
    before = make_clinics(hook, folders[0])
    program = learn_program(before, make_honest(before, model=Masked(torch.ones(4))), ["fixed 1"] if free else [])
    hook.local_worker._known_workers.clear()
    rule = {"any_program": None, "programs": [program], **({"free": ["fixed 1"]} if free else {})}
    clinics = make_clinics(hook, folders[1], **rule)

    make_honest(clinics, model=Masked(torch.ones(4))).fit(1)
    other = make_honest(clinics, model=Masked(torch.tensor([0.0, 0, 1, 0])))
    if free:
        other.fit(1)
        return
    with pytest.raises(fl.FederatedError, match="its program is not approved"):
        other.fit(1)


class Recognizing(torch.nn.Module):  # type: ignore[misc]  # torch is not typed
    """A model whose gradient is the one row that begins with a number that the scientist knows."""

    def __init__(self, known: float) -> None:
        super().__init__()
        self.w = torch.nn.Parameter(torch.zeros(1, 4))
        self._known = known

    def forward(self, x: Any) -> Any:
        is_row = ((x[:, :1] - self._known).abs() < 1e-4).to(x.dtype)
        return torch.nn.functional.linear(x * is_row, self.w)


NOISE = {"multiplier": 2.0, "delta": 1e-5, "epsilon": 50.0}


@pytest.mark.parametrize("has_noise", [False, True])
def test_noise_hides_a_record_that_a_program_isolates(hook: Any, tmp_path: Path, has_noise: bool) -> None:
    if has_noise:
        pytest.importorskip("dp_accounting")
    rule = {"any_program": None, "clip": 1.0, "noise": NOISE} if has_noise else {}
    row = make_samples(COUNTS[1], 1)[0][ROW]
    options = {
        "model": Recognizing(float(row[0])),
        "loss": lambda output, _target: output.sum() if not has_noise else output.mean(),
        "optimizer": lambda parameters: torch.optim.SGD(parameters, lr=1.0),
        "data": find_data(make_clinics(hook, tmp_path, **rule)),
        "batch_size": None,
        "shuffle": False,
        "aggregation": SUM("icu"),
    }
    privacy = fl.SampleDP(clip=1.0, multiplier=2.0, delta=1e-5) if has_noise else None
    trainer = fl.FederatedTrainer(**gather_options(options), privacy=privacy)

    trainer.fit(1)

    found = -trainer.weights * sum(COUNTS) / (1 if has_noise else COUNTS[1])
    expected = row / row.norm() if has_noise else row
    is_shown = torch.allclose(found, expected, rtol=0, atol=0.05)
    assert is_shown is not has_noise


def test_a_study_without_the_noise_that_a_rule_demands_is_refused(hook: Any, tmp_path: Path) -> None:
    clinics = make_clinics(hook, tmp_path, any_program=None, clip=1.0, noise=NOISE)

    with pytest.raises(fl.FederatedError, match="it has no noise, and under this rule nothing exact leaves"):
        make_honest(clinics, clip=1.0).fit(1)
    with pytest.raises(fl.FederatedError, match="nothing exact leaves"):
        make_honest(clinics).evaluate()
