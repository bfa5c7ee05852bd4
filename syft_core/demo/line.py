"""The demo for any framework: fit a line to the patients of two hospitals, which only share sums."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from syft_core.demo.chains import show_chains
from syft_core.demo.hospitals import create_hospital, show_departures, show_hospitals, show_refusals
from syft_core.demo.options import DemoOptions
from syft_core.demo.screen import Screen
from syft_core.exceptions import ConfigurationError
from syft_core.hook.hook import FrameworkHook
from syft_core.serde import codecs
from syft_core.tensors.private import PrivateTensor
from syft_core.values import Tensor
from syft_core.workers.party.virtual import VirtualWorker
from syft_core.workers.seeing.trace import trace

ROUNDS, PATIENTS = 40, 200
RATE = 1.2 / (2 * PATIENTS)
Pair = tuple[Tensor, Tensor]


class Line(NamedTuple):
    """A model with two numbers: ``y = slope * x + start``."""

    slope: float
    start: float


def run(screen: Screen, hook: FrameworkHook, options: DemoOptions) -> None:
    """Fit a line to the patients of two hospitals by gradient descent, and show which objects left them."""
    if options.private_dp:
        raise ConfigurationError(
            f"cannot train with noise in the demo of {hook.name}: only that of torch can; leave it out"
        )
    people = [_make_patients(hook, options.seed + place, low) for place, low in enumerate((0.0, 0.5))]
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
    _show_training(screen, hospitals, people)
    show_departures(screen, hospitals)
    show_chains(screen, hook)


def compute_sums(model: Line, ages: Tensor, pressures: Tensor) -> Pair:
    """Compute the gradient for one hospital; the code is the same for local and remote data."""
    error = ages * model.slope + model.start - pressures
    return (error * ages).sum(), error.sum()


def train(data: Sequence[Pair], read: Callable[[Tensor], float]) -> Iterator[Line]:
    """Yield the model after each round, in which ``read`` gets two numbers from each hospital."""
    model = Line(0.0, 0.0)
    for _ in range(ROUNDS):
        sums = [map(read, compute_sums(model, *columns)) for columns in data]
        slope, start = map(sum, zip(*sums, strict=True))
        model = Line(model.slope - RATE * slope, model.start - RATE * start)
        yield model


def _show_training(screen: Screen, hospitals: Sequence[VirtualWorker], people: Sequence[Pair]) -> None:
    screen.title("3. Train where the data is")
    screen.text(
        "The model is a line, pressure = slope * age + start. In each round, each hospital computes two sums. Nothing "
        "else leaves it."
    )
    screen.source(get_source(compute_sums))
    data = [(hospital.search("#ages")[0], hospital.search("#pressures")[0]) for hospital in hospitals]
    with trace() as seen:
        for number, model in enumerate(train(data, lambda value: float(value.get(reason="gradient"))), 1):
            if number % 8 == 0:
                screen.progress(
                    f"round {number:2}", number / ROUNDS, f"slope {model.slope:.3f}  start {model.start:.3f}"
                )
    *_, centralized = train(people, float)
    screen.title("4. Comparison: all data in one place")
    lines = {"two hospitals, data never moved": model, "the same training, all data in one place": centralized}
    rows = [(label, f"{line.slope:.4f}", f"{line.start:.4f}") for label, line in lines.items()]
    screen.table(("trained on", "slope", "start"), [*rows, ("true values of the made-up data", "0.7000", "0.9000")])
    screen.page.add("Who computed what", "All rounds of training; repetitions are drawn once.", seen.svg())


def get_source(function: Callable[..., object]) -> str:
    """Return the source of a function without its docstring."""
    return inspect.getsource(function).replace(f'    """{function.__doc__}"""\n', "")


def _make_patients(hook: FrameworkHook, seed: int, low: float) -> Pair:
    rng = random.Random(seed)  # noqa: S311  # made-up patients, the same in each run
    ages = [low + 0.5 * rng.random() for _ in range(PATIENTS)]
    pressures = [0.9 + 0.7 * age + 0.05 * rng.gauss(0.0, 1.0) for age in ages]
    return hook.create_tensor(ages), hook.create_tensor(pressures)


def _make_hospital(hook: FrameworkHook, name: str, ages: Tensor, pressures: Tensor) -> VirtualWorker:
    data = [
        hook.attributes.wrapper(ages).tag("#ages").describe("age in centuries"),
        hook.attributes.wrapper(pressures).tag("#pressures").describe("blood pressure"),
        PrivateTensor().on(ages * 1000).tag("#postcodes").describe("private: no user may fetch it"),
    ]
    return create_hospital(hook, name, data, serialize=type(ages) in codecs.by_type)
