"""The demo for torch: train a standard module with a standard optimizer at two hospitals."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits as loss_function

from syft_core.demo.hospitals import create_hospital, show_departures, show_hospitals, show_refusals
from syft_core.demo.line import get_source
from syft_core.demo.screen import Screen
from syft_core.hook.hook import FrameworkHook
from syft_core.values import Tensor
from syft_core.workers.party.virtual import VirtualWorker
from syft_core.workers.seeing.trace import trace
from syft_mpc.group import count

ROUNDS, PATIENTS = 12, 400
BATCHES = [slice(start, start + 50) for start in range(0, PATIENTS, 50)]
PRECISION = {"base": 2, "precision_fractional": 16}


def run(screen: Screen, hook: FrameworkHook) -> None:
    """Train on the patients of two hospitals, compare with centralized training, and show what left."""
    rng = torch.Generator().manual_seed(1)
    young, old = _make_patients(PATIENTS, -1, rng), _make_patients(PATIENTS, 1, rng)
    test = [torch.cat(parts) for parts in zip(_make_patients(500, -1, rng), _make_patients(500, 1, rng), strict=True)]
    hospitals = [_make_hospital(hook, "north", *young, rng), _make_hospital(hook, "south", *old, rng)]
    show_hospitals(screen, hospitals)
    (patients,), (codes,) = hospitals[0].search("#patients"), hospitals[0].search("#postcodes")
    elsewhere = hospitals[1].search("#patients")[0]
    screen.page.add("What you hold", "A pointer: it has a name and a lease, but no data.", patients._repr_html_())
    show_refusals(
        screen,
        [
            ("patients.mean().item()", lambda: patients.mean().item()),
            ("patients.get()", patients.get),
            ("postcodes.float().mean().get()", lambda: codes.float().mean().get()),
            ("patients + patients_of_south", lambda: patients + elsewhere),
        ],
    )
    model = _show_training(screen, hospitals, test)
    _show_comparison(screen, model, [young, old], test)
    _show_encrypted(screen, hook, hospitals, model, old[0])
    show_departures(screen, hospitals, 6)


def train(model: Any, optimizer: Any, patients: Any, ill: Any) -> None:
    """Train on all patients of one hospital; the code is the same for local and remote data."""
    for rows in BATCHES:
        optimizer.zero_grad()
        loss = loss_function(model(patients[rows]), ill[rows])
        loss.backward()
        optimizer.step()


def train_everywhere(model: Any, optimizer: Any, data: Any) -> None:
    """Train at every hospital once."""
    for patients, ill in data:  # pointers
        model.send(patients.location)  # send the model to the data
        train(model, optimizer, patients, ill)
        model.get(reason="training")  # fetch the model; the data stays


def _show_training(screen: Screen, hospitals: Sequence[VirtualWorker], test: list[torch.Tensor]) -> nn.Module:
    screen.title("3. Train where the data is")
    screen.text("The model and the optimizer are torch's own, and the training loop is the usual one:")
    screen.source(get_source(train))
    screen.text("In each round, the model is sent to both hospitals:")
    screen.source(get_source(train_everywhere))
    screen.text("You evaluate it on a small test set of your own:")
    model, optimizer = _make_model()
    data = [(hospital.search("#patients")[0], hospital.search("#ill")[0]) for hospital in hospitals]
    screen.progress("untrained", _compute_accuracy(model, test), f"{_compute_accuracy(model, test):.1%} right")
    for number in range(ROUNDS):
        with trace() as seen:
            train_everywhere(model, optimizer, data)
        right = _compute_accuracy(model, test)
        screen.progress(f"round {number + 1:3}", right, f"{right:.1%}")
    screen.wait()
    caption = "The last round of training: eight batches at each hospital."
    screen.page.add("Who computed what", caption, seen.svg(rows=None))
    return model


def _show_comparison(
    screen: Screen, model: nn.Module, people: Sequence[tuple[torch.Tensor, torch.Tensor]], test: list[torch.Tensor]
) -> None:
    screen.title("4. Comparison: all data in one place")
    screen.text(
        "Only a demo can do this: train the same model on data that lies here, from one hospital and from both."
    )
    places = {"north alone": people[:1], "south alone": people[1:], "both, all data in one place": people}
    trained = {}
    for label, parts in places.items():
        trained[label], optimizer = _make_model()
        for _ in range(ROUNDS):
            for patients, ill in parts:
                train(trained[label], optimizer, patients, ill)
    rows = [(label, f"{_compute_accuracy(other, test):.1%}") for label, other in trained.items()]
    screen.table(("trained on", "right"), [*rows, ("both, data never moved", f"{_compute_accuracy(model, test):.1%}")])
    pairs = zip(model.parameters(), trained["both, all data in one place"].parameters(), strict=True)
    same = all(torch.equal(mine, other) for mine, other in pairs)
    screen.text(f"The same weights as with all data in one place, bit for bit: {'yes' if same else 'no'}.")


def diagnose(model: nn.Module, patients: Tensor) -> Tensor:
    """Return who is ill; model and patients are shared, and so is the result."""
    return model(patients) > 0


def _show_encrypted(
    screen: Screen, hook: FrameworkHook, hospitals: Sequence[VirtualWorker], model: nn.Module, people: torch.Tensor
) -> None:
    screen.title("5. Use the model without showing it")
    screen.text(
        "South may use the model on its patients, but you do not give it away, and south shows you no patient. Every "
        "weight and every patient is split into random numbers that add up to it, one for each hospital. They compute "
        "on these; a third worker supplies random masks."
    )
    provider = VirtualWorker(hook, id="provider", serialize=True)
    patients = _share_at(hospitals[1].search("#patients")[0], hospitals, provider)
    shared = copy.deepcopy(model).fix_precision(**PRECISION).share(*hospitals, crypto_provider=provider)
    for hospital in hospitals:
        share = hospital.get_obj(patients.child.child.child[hospital.id].id_at_location)
        screen.show(f"   the age of the first patient, at {hospital.id}: {share[0, 0]:>20}")
    screen.source(get_source(diagnose))
    with torch.no_grad(), count() as counted:
        ill = diagnose(shared, patients)
    found = ill.get(reason="diagnosis").float_precision()
    with torch.no_grad():
        same = (found == diagnose(model, people)).float().mean()
    screen.text(
        f"{len(found)} diagnoses in {counted.rounds} rounds, with {counted.bytes / 1e6:.1f} MB between the hospitals. "
        f"Both hospitals agreed to open the result. The same as in plain sight: {same:.1%}."
    )


def _share_at(pointer: Tensor, hospitals: Sequence[VirtualWorker], provider: VirtualWorker) -> Tensor:
    """Share the data of a hospital: it adds its own numbers to its share of zeros, so they do not leave it."""
    zeros: Tensor = torch.zeros(pointer.shape)
    shared = zeros.fix_precision(**PRECISION).share(*hospitals, crypto_provider=provider)
    own = shared.child.child.child[pointer.location.id]
    own.add_((pointer * PRECISION["base"] ** PRECISION["precision_fractional"]).round().long().child)
    return shared.refresh()


def _make_model() -> tuple[nn.Module, torch.optim.Optimizer]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
    return model, torch.optim.SGD(model.parameters(), lr=0.3)


def _compute_accuracy(model: nn.Module, test: list[torch.Tensor]) -> float:
    with torch.no_grad():
        return float(((model(test[0]) > 0) == (test[1] > 0)).float().mean())


def _make_patients(number: int, generation: int, rng: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Return made-up patients of one generation, and who is ill; a risk factor has opposite effects by generation."""
    people = torch.randn(number, 4, generator=rng)
    people[:, 0] = generation * (0.4 + 0.6 * people[:, 0].abs())
    risk = 1.5 * generation * people[:, 1] + 0.8 * people[:, 2] - 0.6 * people[:, 3]
    ill = risk + 0.3 * torch.randn(number, generator=rng) > 0
    return people, ill.float().unsqueeze(1)


def _make_hospital(
    hook: FrameworkHook, name: str, people: torch.Tensor, ill: torch.Tensor, rng: torch.Generator
) -> VirtualWorker:
    codes: torch.Tensor = torch.randint(10_000, (len(people),), generator=rng)
    data = [
        people.clone().tag("#patients").describe("age, pressure, sugar, weight"),
        ill.clone().tag("#ill").describe("1 for the ill"),
        codes.private_tensor([]).tag("#postcodes").describe("private: no user may fetch it"),
    ]
    return create_hospital(hook, name, data, serialize=True)
