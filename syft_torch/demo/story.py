"""Three hospitals train one model, which then diagnoses the patients of a clinic without seeing them."""

from __future__ import annotations

import copy
import tempfile
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import nn

from syft_core.demo.hospitals import show_refusals
from syft_core.demo.line import get_source
from syft_core.demo.options import DemoOptions
from syft_core.demo.screen import Screen
from syft_core.hook.hook import FrameworkHook
from syft_core.values import Table, Tensor
from syft_core.workers.party.virtual import VirtualWorker
from syft_core.workers.seeing.trace import Trace, trace
from syft_torch import federated as fl
from syft_torch.demo.hospitals import USER, Hospital, start_hospitals
from syft_torch.demo.page import show_departures, write_page
from syft_torch.demo.patients import (
    CLIP,
    MAX_EPSILON,
    NOISE,
    PATIENTS,
    ROUNDS,
    TESTED,
    Rows,
    compute_accuracy,
    find_data,
    find_program,
    make_model,
    make_patients,
    make_trainer,
    share,
    train_here,
)

CLINICS = {"north": "heart clinic", "east": "diabetes clinic", "south": "lung clinic"}
DIAGNOSED = 5
"""How many patients of another clinic the model diagnoses in the end."""


def run(screen: Screen, hook: FrameworkHook, options: DemoOptions) -> None:
    """Train on the patients of three hospitals, compare with training in one place, and show what left."""
    rng = torch.Generator().manual_seed(options.seed)
    people = {name: make_patients(PATIENTS, place, rng) for place, name in enumerate(CLINICS)}
    test = make_patients(TESTED, None, rng)
    hook.local_worker.user = USER
    clinics = {name: (clinic, people[name]) for name, clinic in CLINICS.items()}
    with tempfile.TemporaryDirectory(prefix="syft-core-demo-") as folder:
        _show_start(screen, options.in_process)
        privacy = NOISE if options.private_dp else None
        rule = make_rule(find_program(hook, Path(folder), options.seed, privacy), privacy)
        with start_hospitals(hook, Path(folder), clinics, rule, options.in_process) as hospitals:
            _show_hospitals(screen, hospitals)
            _show_rule(screen, hospitals[0])
            trainer, together, seen = _show_training(screen, hospitals, test, options.seed, privacy)
            model, spent = trainer.model, trainer.history[-1].privacy
            shown = f"{together[-1]:.1%}  {spent}".rstrip()
            curves = {"together": together, **_show_comparison(screen, hook, people, test, options.seed, shown)}
            _show_encrypted(screen, hospitals, model, make_patients(DIAGNOSED, None, rng))
            departures = show_departures(screen, hospitals, 6)
            text = _read_rule(hospitals[0])
    write_page(screen.page, curves, list(people), departures, text, seen, spent)


def make_rule(program: str, privacy: fl.SampleDP | None) -> Table:
    """Return the rule that each owner writes into the configuration of the worker."""
    rule: Table = {
        "user": USER,
        "computed_from": ["#patients"],
        "programs": [program],
        "free": ["arrangement"],
        "at_least": 3,
        "count": ROUNDS,
    }
    if privacy is not None:
        noise = {"multiplier": privacy.multiplier, "delta": privacy.delta, "epsilon": MAX_EPSILON}
        rule |= {"clip": CLIP, "noise": noise}
    return rule


def _show_start(screen: Screen, in_process: bool) -> None:
    screen.title("1. Three hospitals, each with patients of its own")
    where = (
        "Here all of them run in this process; without --in-process, each is a process of its own."
        if in_process
        else "Each is a process of its own, a worker that is served with TLS on this machine, and ends with the demo."
    )
    screen.text(f"{where} Starting them takes a few seconds …")


def _show_hospitals(screen: Screen, hospitals: Sequence[Hospital]) -> None:
    rows = []
    for hospital in hospitals:
        (found,) = hospital.location.search("#patients")
        where = getattr(hospital.location, "url", "in this process")
        rows.append((hospital.name, hospital.clinic, where, "#patients", str(tuple(found.shape))))
    screen.table(("worker", "what it is", "address", "tag", "shape"), rows)
    screen.text("You are a data scientist. You search for data and get pointers: names and shapes, but no values.")
    patients = hospitals[0].location.search("#patients")[0]
    elsewhere = hospitals[1].location.search("#patients")[0]
    show_refusals(
        screen,
        [
            ("patients[0].get()", patients[0].get),
            ("patients.mean().item()", lambda: patients.mean().item()),
            ("patients.mean().get()", lambda: patients.mean().get()),
            ("patients + patients_of_east", lambda: patients + elsewhere),
        ],
    )


def _show_rule(screen: Screen, hospital: Hospital) -> None:
    screen.title("3. One rule of each owner")
    screen.text(
        "Nothing that is computed from private patients leaves a hospital, unless its owner agrees. Each owner has "
        "looked at your program, exchanged the fingerprint of a key with the other two, and written one rule into the "
        "configuration of the worker. There are no clicks after that:"
    )
    screen.source(_read_rule(hospital))
    screen.text(
        "A result leaves only inside a sum over at least three workers whose keys the owner has listed. Each worker "
        "checks that by itself, and adds random numbers that cancel only in the sum. With three members, all three "
        "must take part in every round, to its end."
    )


def _read_rule(hospital: Hospital) -> str:
    """Return the part of the configuration that decides what leaves."""
    text = hospital.config.read_text(encoding="utf-8")
    return text[text.index("[members]") :]


# --- training


def _read_call(function: Callable[..., object]) -> str:
    """Return the source of the call that a function returns."""
    _, _, source = get_source(function).partition("    return ")
    return textwrap.dedent(f"    {source}")


def train_round(trainer: fl.FederatedTrainer) -> None:
    """Train for one round: each hospital trains the model on its patients."""
    trainer.fit(1, progress=False)


def _show_training(
    screen: Screen, hospitals: Sequence[Hospital], test: Rows, seed: int, privacy: fl.SampleDP | None
) -> tuple[fl.FederatedTrainer, list[float], Trace]:
    screen.title("4. Train where the patients are")
    screen.text("The model and the loss are torch's own; the loop runs at the hospitals:")
    screen.source('aggregation = fl.SecureAggregation(study="demo", colluding=1)')
    if privacy is not None:
        screen.source(f"privacy = fl.{privacy}  # noise in each step, for each patient")
    screen.source(f"trainer = {_read_call(make_trainer)}")
    screen.text(f"After each round, you try the model on {TESTED:,} patients that none of the hospitals has:")
    data = find_data(*[hospital.location for hospital in hospitals])
    trainer = make_trainer(make_model(seed), data, fl.SecureAggregation(study="demo", colluding=1), privacy)
    found = [compute_accuracy(trainer.model, test)]
    screen.progress("untrained", found[0], f"{found[0]:.1%} right")
    for number in range(1, ROUNDS + 1):
        with trace() as seen:
            train_round(trainer)
        found.append(compute_accuracy(trainer.model, test))
        screen.progress(f"round {number:3}", found[-1], f"{found[-1]:.1%}  {trainer.history[-1].privacy}".rstrip())
    screen.wait()
    return trainer, found, seen


def _show_comparison(
    screen: Screen, hook: FrameworkHook, people: dict[str, Rows], test: Rows, seed: int, together: str
) -> dict[str, list[float]]:
    screen.text("Only a demo can compare: the same training, on the patients of one hospital, and on all in one place.")
    parts = {f"{name} alone": [rows] for name, rows in people.items()} | {"pooled": list(people.values())}
    worker = VirtualWorker(hook, id="one place")
    curves = {label: train_here(worker, given, test, seed) for label, given in parts.items()}
    rows = [(label, f"{curve[-1]:.1%}") for label, curve in curves.items()]
    screen.table(("trained on", "right"), [*rows, ("together, no patient moved", together)])
    return curves


# --- an encrypted prediction


def diagnose(model: nn.Module, patients: Tensor) -> Tensor:
    """Return who is ill; model and patients are shared, and so is the result."""
    scores = model(patients)
    return scores[:, 1] > scores[:, 0]


def _show_encrypted(screen: Screen, hospitals: Sequence[Hospital], model: nn.Module, people: Rows) -> None:
    *parties, provider = [hospital.location for hospital in hospitals]
    screen.title("5. Use the model without showing patients")
    screen.text(
        f"A clinic without a worker has {DIAGNOSED} patients. Each number of them, and each weight of the model, is "
        f"split into random numbers that add up to it: one for {parties[0].id}, one for {parties[1].id}. They compute "
        f"on these, and {provider.id} supplies random masks. None of the three sees a patient, a weight or a diagnosis."
    )
    screen.source(get_source(diagnose))
    with torch.no_grad():
        ill = diagnose(share(copy.deepcopy(model), parties, provider), share(people[0], parties, provider))
        found = ill.get(reason="diagnosis").float_precision()
        same = int((found == diagnose(model, people[0])).sum())
    screen.text(f"Both have opened their shares of {len(found)} diagnoses. The same as in plain sight: {same}.")
