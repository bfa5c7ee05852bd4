"""The demo for any framework: fit a line to the patients of two hospitals, which only share sums."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

from syft_core.demo.hospitals import create_hospital, show_departures, show_hospitals, show_refusals
from syft_core.demo.screen import Screen
from syft_core.hook.hook import FrameworkHook
from syft_core.serde import codecs
from syft_core.tensors.private import PrivateTensor
from syft_core.values import Tensor
from syft_core.workers.trace import trace
from syft_core.workers.virtual import VirtualWorker

ROUNDS, RATE = 40, 1.2
PATIENTS = 200


class Line(NamedTuple):
    """A model with two numbers: ``y = slope * x + start``."""

    slope: float
    start: float


def run(screen: Screen, hook: FrameworkHook) -> None:
    """Fit a line to the patients of two hospitals by gradient descent, and show what left them."""
    people = [_make_patients(seed, low) for seed, low in ((1, 0.0), (2, 0.5))]
    hospitals = [_make_hospital(hook, name, *data) for name, data in zip(("north", "south"), people, strict=True)]
    show_hospitals(screen, hospitals)
    (ages,), (codes,) = hospitals[0].search("#ages"), hospitals[0].search("#postcodes")
    show_refusals(
        screen,
        [
            ("float(ages.sum())", lambda: float(ages.sum())),
            ("ages.get()", ages.get),
            ("postcodes.sum().get()", lambda: codes.sum().get()),
            ("ages + ages_of_south", lambda: ages + hospitals[1].search("#ages")[0]),
        ],
    )
    _train(screen, hospitals, people)
    show_departures(screen, hospitals)


def _make_patients(seed: int, low: float) -> tuple[list[float], list[float]]:
    """Return ages, in centuries, and blood pressures; the hospitals have different age groups."""
    rng = random.Random(seed)  # noqa: S311  # made-up patients, the same in each run
    ages = [low + 0.5 * rng.random() for _ in range(PATIENTS)]
    return ages, [0.9 + 0.7 * age + 0.05 * rng.gauss(0.0, 1.0) for age in ages]


def _make_hospital(hook: FrameworkHook, name: str, ages: list[float], pressures: list[float]) -> VirtualWorker:
    def column(tag: str, description: str, values: list[float], private: bool = False) -> Tensor:
        value = hook.create_tensor(values)
        held = PrivateTensor().on(value) if private else hook.attributes.wrapper(value)
        return held.tag(tag).describe(description)

    data = [
        column("#ages", "age in centuries", ages),
        column("#pressures", "blood pressure", pressures),
        column("#postcodes", "private: no user may fetch it", [round(1000 * age) * 1.0 for age in ages], private=True),
    ]
    return create_hospital(hook, name, data, serialize=type(hook.create_tensor([0.0])) in codecs)


def _train(
    screen: Screen, hospitals: Sequence[VirtualWorker], people: Sequence[tuple[list[float], list[float]]]
) -> None:
    screen.title("3. Train where the data is")
    screen.text(
        "The model is a line, pressure = slope * age + start. In each round, each hospital computes two sums. Nothing "
        "else leaves it."
    )
    screen.source(
        "error = ages * slope + start - pressures      # at the hospital\n"
        "(error * ages).sum().get(), error.sum().get() # two numbers leave it"
    )
    data = [(hospital.search("#ages")[0], hospital.search("#pressures")[0]) for hospital in hospitals]
    model = Line(0.0, 0.0)
    with trace() as seen:
        for number in range(ROUNDS):
            slopes, starts = zip(*[_compute_sums(model, *columns) for columns in data], strict=True)
            model = _step(model, sum(slopes), sum(starts), len(hospitals))
            if (number + 1) % 8 == 0:
                screen.progress(
                    f"round {number + 1:2}", (number + 1) / ROUNDS, f"slope {model.slope:.3f}  start {model.start:.3f}"
                )
    centralized = _train_in_one_place(people)
    screen.title("4. Comparison: all data in one place")
    rows = [
        (label, f"{line.slope:.4f}", f"{line.start:.4f}")
        for label, line in (
            ("two hospitals, data never moved", model),
            ("the same training, all data in one place", centralized),
        )
    ]
    screen.table(("trained on", "slope", "start"), [*rows, ("true values of the made-up data", "0.7000", "0.9000")])
    screen.page.add("Who computed what", "All rounds of training; repetitions are drawn once.", seen.svg())


def _compute_sums(model: Line, ages: Tensor, pressures: Tensor) -> tuple[float, float]:
    """Compute the gradient at a hospital: two sums over all of its patients."""
    error = ages * model.slope + model.start - pressures
    return float((error * ages).sum().get(reason="gradient")), float(error.sum().get(reason="gradient"))


def _step(model: Line, slope: float, start: float, parts: int) -> Line:
    rate = RATE / (PATIENTS * parts)
    return Line(model.slope - rate * slope, model.start - rate * start)


def _train_in_one_place(people: Sequence[tuple[list[float], list[float]]]) -> Line:
    """Train on all patients in one list, for comparison."""
    model = Line(0.0, 0.0)
    for _ in range(ROUNDS):
        errors = [
            [(model.slope * age + model.start - pressure, age) for age, pressure in zip(*part, strict=True)]
            for part in people
        ]
        slope = sum(error * age for part in errors for error, age in part)
        start = sum(error for part in errors for error, _ in part)
        model = _step(model, slope, start, len(people))
    return model
