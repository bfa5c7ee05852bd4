from __future__ import annotations

import ast
import inspect
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_torch.federated.private_steps import gradients, loop, noise  # noqa: E402  # torch may be missing
from syft_torch.federated.private_steps.noise import GRID, NoiseStream  # noqa: E402  # the same


def test_noise_has_the_moments_and_the_tails_of_a_gaussian() -> None:
    found = NoiseStream().draw_gaussian(400_001)

    assert len(found) == 400_001
    assert found.dtype == torch.float64
    assert abs(float(found.mean())) < 0.01
    assert float(found.var()) == pytest.approx(1, abs=0.02)
    assert float((found**4).mean()) == pytest.approx(3, abs=0.2)
    assert float((found.abs() > 3).double().mean()) == pytest.approx(0.0027, abs=0.0007)
    assert bool(found.isfinite().all())
    assert float(found.abs().max()) < 8.7


def test_both_halves_of_the_noise_are_independent() -> None:
    found = NoiseStream().draw_gaussian(200_000)
    first, second = found[:100_000], found[100_000:]

    assert abs(float((first * second).mean())) < 0.02
    assert abs(float((first**2 * second**2).mean()) - 1) < 0.06


def test_noisy_values_lie_on_a_grid() -> None:
    values = torch.rand(10_000)

    found = NoiseStream().add_noise(values, 0.7)

    steps = found / (0.7 * GRID)
    assert float((steps - steps.round()).abs().max()) < 1e-3
    assert float((found - values).std()) == pytest.approx(0.7, rel=0.05)


def test_streams_differ() -> None:
    assert not torch.equal(NoiseStream().draw_gaussian(10), NoiseStream().draw_gaussian(10))


@pytest.mark.parametrize("rate", [0.02, 0.5])
def test_each_place_is_drawn_with_the_rate_independently(rate: float) -> None:
    stream, draws = NoiseStream(), 4000
    counts, sizes = torch.zeros(50), []
    for _ in range(draws):
        places = stream.draw_batch(50, rate)
        counts[places] += 1
        sizes.append(float(len(places)))

    spread = (rate * (1 - rate) / draws) ** 0.5
    assert float((counts / draws - rate).abs().max()) < 6 * spread
    assert torch.tensor(sizes).var().item() == pytest.approx(50 * rate * (1 - rate), rel=0.2)


def test_a_rate_of_one_draws_all_places() -> None:
    assert NoiseStream().draw_batch(7, 1.0).tolist() == list(range(7))


def test_no_other_generator_is_used() -> None:
    names: set[Any] = set()
    for module in (noise, loop, gradients):
        tree = ast.parse(inspect.getsource(module))
        names |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        names |= {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}

    assert not names & {"randn", "rand", "normal", "normal_", "random", "manual_seed", "bernoulli", "randperm"}
