"""Made-up patients of three clinics, each of which sees only a part of what makes people ill."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import nn, optim
from torch.nn.functional import cross_entropy

from syft_core.hook.hook import FrameworkHook
from syft_core.values import Tensor
from syft_core.workers.party.virtual import VirtualWorker
from syft_torch import federated as fl
from syft_worker.data import DataSource, load

COLUMNS = ("pressure", "cholesterol", "glucose", "bmi", "smoking", "oxygen")
OUTCOMES = ("well", "ill")
EFFECTS = (1.2, -1.0, 1.1, -1.2, 1.0, 1.1)
"""How much each column matters."""
SPREAD, PATIENTS, TESTED = 0.05, 400, 1_500
"""How much patients of a clinic differ in what it does not study; how many there are, and how many are for testing."""
ROUNDS, CLIP = 10, 5.0
"""How many rounds there are, and the largest norm of what a hospital contributes to one."""
NOISE = fl.SampleDP(clip=1.0, multiplier=1.0, delta=1e-4)
"""The noise with ``--private-dp``."""
MAX_EPSILON = 8.0
Rows = tuple[torch.Tensor, torch.Tensor]
"""Columns in standard deviations, and 1 for the ill."""


def make_patients(number: int, clinic: int | None, rng: torch.Generator) -> Rows:
    """Return patients of a clinic, which differ in two columns only, or of the whole population."""
    spread = torch.full((len(COLUMNS),), SPREAD if clinic is not None else 1.0)
    if clinic is not None:
        spread[2 * clinic : 2 * clinic + 2] = 1.0
    rows = torch.randn(number, len(COLUMNS), generator=rng) * spread
    risk = rows @ torch.tensor(EFFECTS) + 0.7 * rows[:, 0] * rows[:, 1]
    return rows, (risk + 0.3 * torch.randn(number, generator=rng) > 0).long()


def write_patients(path: Path, patients: Rows) -> None:
    """Write patients to a CSV file, as a hospital has them."""
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow([*COLUMNS, "outcome"])
        for row, ill in zip(patients[0].tolist(), patients[1].tolist(), strict=True):
            table.writerow([*[f"{value:.6f}" for value in row], OUTCOMES[ill]])


def make_model(seed: int) -> nn.Module:
    """Return the untrained model, which is the same for the same seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(len(COLUMNS), 16), nn.ReLU(), nn.Linear(16, len(OUTCOMES)))


def make_trainer(
    model: nn.Module,
    data: fl.FederatedDataset,
    aggregation: fl.SecureAggregation | None = None,
    privacy: fl.SampleDP | None = None,
) -> fl.FederatedTrainer:
    """Return a trainer: each worker goes through its patients once a round, in batches of 32."""
    return fl.FederatedTrainer(
        model,
        cross_entropy,
        lambda p: optim.SGD(p, lr=0.2),
        data,
        epochs=1,
        batch_size=32,
        options=fl.Options(clip=CLIP),
        aggregation=aggregation,
        privacy=privacy,
    )


def find_data(*workers: Tensor) -> fl.FederatedDataset:
    """Return the patients of workers."""
    return fl.find("#patients", label="outcome", workers=list(workers))


def find_program(hook: FrameworkHook, folder: Path, seed: int, privacy: fl.SampleDP | None) -> str:
    """Return the digest of the program, which is developed on patients that are made up."""
    write_patients(folder / "patients.csv", make_patients(PATIENTS, None, torch.Generator().manual_seed(0)))
    worker = VirtualWorker(hook, id="rehearsal")
    table = {"file": "patients.csv", "tags": ["#patients"], "schema": {"outcome": {"categories": list(OUTCOMES)}}}
    worker.load_data(load([DataSource.from_table(table, folder)], hook))
    digest = make_trainer(make_model(seed), find_data(worker), privacy=privacy).program
    hook.local_worker.remove_worker_from_registry("rehearsal")
    return digest


def compute_accuracy(model: nn.Module, patients: Rows) -> float:
    """Return the share of right diagnoses."""
    with torch.no_grad():
        return float((model(patients[0]).argmax(1) == patients[1]).float().mean())


def train_here(worker: VirtualWorker, parts: Sequence[Rows], test: Rows, seed: int) -> list[float]:
    """Return the accuracy before training and after each round, for the training of the demo on data in one place."""
    rows, ill = (torch.cat(column) for column in zip(*parts, strict=True))
    data = fl.BaseDataset(rows, ill).federate([worker])
    trainer = make_trainer(make_model(seed), data)
    found = [compute_accuracy(trainer.model, test)]
    for _ in range(ROUNDS):
        trainer.fit(1, progress=False)
        found.append(compute_accuracy(trainer.model, test))
    return found


def share(values: Tensor, parties: Sequence[Tensor], provider: Tensor) -> Tensor:
    """Split the numbers of a tensor or a model into shares."""
    return values.fix_precision(base=2, precision_fractional=16).share(*parties, crypto_provider=provider)
