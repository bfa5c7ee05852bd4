"""Random numbers that do not come from the framework are refused in a plan, wherever the function has them from."""

from __future__ import annotations

import os
import random
from functools import partial
from typing import Any

import pytest

import syft_core as sy
from syft_core.plans.errors import PlanError
from syft_core.plans.randomness import Generators

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")

own, generator, draws = random.Random(3), numpy.random.default_rng(0), torch.Generator()


class Source:
    random = random.Random(4)

    def __init__(self) -> None:
        self.own, self.other = random.Random(5), {"later": random.Random(6)}

    def draw(self) -> float:
        return self.own.random()


def begin() -> Any:
    """Yield numbers for ever."""
    hidden = random.Random(7)
    while True:
        yield hidden.random()


def draw_and_restore() -> Any:
    with torch.random.fork_rng():
        return torch.rand(3)


source, endless, raw = Source(), begin(), numpy.random.PCG64(0)
method = own.random
next(endless)


DRAWS = {
    "Python": lambda x: x * 2 if random.random() < 1e-12 else x,
    "an instance": lambda x: x * 2 if own.random() < 1e-12 else x,
    "an instance in a class": lambda x: x * 2 if Source.random.random() < 1e-12 else x,
    "numpy": lambda x: x * 2 if numpy.random.rand() < 1e-12 else x,
    "a generator of numpy": lambda x: x * 2 if generator.random() < 1e-12 else x,
    "a new generator": lambda x: x * 2 if numpy.random.default_rng().random() < 1e-12 else x,
    "one of several of a kind": lambda x: x * 2 if source.draw() < 1e-12 else x,
    "a method of an instance": lambda x: x * 2 if method() < 1e-12 else x,
    "a method that is a default": lambda x, draw=own.random: x * 2 if draw() < 1e-12 else x,
    "a partial function": partial(lambda draw, x: x * 2 if draw() < 1e-12 else x, own.random),
    "a generator function": lambda x: x * 2 if next(endless) < 1e-12 else x,
    "raw numbers of numpy": lambda x: x * 2 if raw.random_raw() == 1 else x,
    "a new generator without a seed": lambda x: x * 2 if numpy.random.default_rng(None).random() < 1e-12 else x,
    "a new generator, by name without a seed": lambda x: (
        x * 2 if numpy.random.default_rng(seed=None).random() < 1e-12 else x
    ),
    "new bits of numpy": lambda x: x * 2 if numpy.random.Generator(numpy.random.PCG64()).random() < 1e-12 else x,
    "an earlier state of torch": lambda x: x + draw_and_restore(),
    "the kernel": lambda x: x * 2 if os.getrandom(9) == b"0" * 9 else x,
    "a seed of torch": lambda x: (torch.manual_seed(0), x + torch.rand(3))[1],
    "the system": lambda x: x * 2 if random.SystemRandom().random() < 1e-12 else x,
    "a generator of torch": lambda x: x * 2 if torch.rand(1, generator=draws).item() < 1e-12 else x,
    "here": lambda x: x * 2 if torch.normal(0.0, 1.0, (1,)).item() > 40 else x,
}


@pytest.mark.parametrize("source", DRAWS)
def test_random_numbers_that_a_plan_would_keep_are_refused(hook: Any, source: str) -> None:
    with pytest.raises(PlanError, match=r"draws random numbers (from|here).*; a plan would keep them for all calls"):
        sy.Plan(None, DRAWS[source]).build(torch.ones(3))


def test_a_generator_with_a_seed_gives_the_same_in_each_call(hook: Any, bob: Any) -> None:
    function = lambda x: x * random.Random(4).random()  # noqa: E731  # short; no secret

    assert torch.equal(
        sy.Plan(None, function).build(torch.ones(3)).send(bob)(torch.ones(3).send(bob)).get(), function(torch.ones(3))
    )


@pytest.mark.parametrize(
    ("generator", "draw"),
    [
        (random.Random(1), lambda found: found.random()),
        (numpy.random.default_rng(1), lambda found: found.random()),
        (numpy.random.RandomState(1), lambda found: found.rand()),
        (torch.Generator(), lambda found: torch.rand(1, generator=found)),
    ],
    ids=["Python", "numpy", "an old one of numpy", "torch"],
)
def test_a_generator_is_used_once_its_state_has_changed(generator: Any, draw: Any) -> None:
    generators = Generators([generator])

    assert generators.find_used() is None
    draw(generator)
    assert generators.find_used() == f"a {type(generator).__name__}"
