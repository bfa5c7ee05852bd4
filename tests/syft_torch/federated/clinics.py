"""Private data on workers whose owners let results leave only in sums."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import syft_core as sy
from syft_core.workers.seeing.ledger import Ledger
from syft_torch import federated as fl
from tests.syft_torch.federated.trainers import make_samples

USER = "dana"


def make_clinics(hook: Any, folder: Path, counts: Any = (40, 41, 39), **rule: Any) -> list[Any]:
    """Return workers with private data, whose owners know each other's keys."""
    hook.local_worker.user = USER
    clinics = []
    for number, count in enumerate(counts):
        name = f"w{number}"
        clinic = sy.VirtualWorker(hook, id=name, serialize=True, ledger=Ledger(name, path=folder / name))
        parts = zip(make_samples(count, number), ("#x", "#y"), strict=True)
        clinic.load_data([part.private_tensor([]).tag(tag) for part, tag in parts])
        clinics.append(clinic)
    allow_sums(clinics, **rule)
    return clinics


def allow_sums(clinics: list[Any], **rule: Any) -> None:
    """Let the owners of workers list each other, and make one rule each."""
    members = {clinic.id: clinic.studies.fingerprint for clinic in clinics}
    given = {"computed_from": ["#x", "#y"], "any_program": True, **rule}
    for clinic in clinics:
        fl.release_only_aggregates(clinic, min(3, len(clinics)), user=USER, members=members, **given)


def find_data(clinics: list[Any]) -> fl.FederatedDataset:
    return fl.find("#x", "#y", workers=clinics)


def make_public(hook: Any, counts: Any = (40, 41, 39)) -> fl.FederatedDataset:
    """Return the same data on workers without restrictions."""
    workers = [sy.VirtualWorker(hook, id=f"p{number}") for number in range(len(counts))]
    samples = [make_samples(count, number) for number, count in enumerate(counts)]
    return fl.FederatedDataset([fl.BaseDataset(*s).send(w) for s, w in zip(samples, workers, strict=True)])


def read_forms(clinic: Any) -> list[str]:
    """Return the forms in the ledger of a worker."""
    return [line.form for line in clinic.ledger]
