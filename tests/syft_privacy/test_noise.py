"""Discrete Gaussian noise has the right distribution, and comes from the operating system.

A test fails if a statistic exceeds a bound that it exceeds by chance with a probability of less than e^-40.
"""

from __future__ import annotations

import math
import secrets

import pytest

np = pytest.importorskip("numpy")

from syft_privacy import noise  # noqa: E402
from syft_privacy.noise import LARGEST_SIGMA, discrete_gaussian  # noqa: E402

COUNT = 60_000


def bound(freedom: int) -> float:
    """Return what a chi-square statistic exceeds with a probability of less than e^-40 (Laurent and Massart 2000)."""
    return freedom + 2 * math.sqrt(40 * freedom) + 80


@pytest.mark.parametrize("sigma", [1, 2, 7, 40])
def test_noise_has_the_probabilities_of_a_discrete_gaussian(sigma: int) -> None:
    drawn = discrete_gaussian(sigma, (COUNT,))

    edge = 4 * sigma
    x = np.arange(-40 * sigma, 40 * sigma + 1)
    weights = np.exp(-(x**2) / (2 * sigma**2))
    places = np.clip(x, -edge, edge) + edge
    expected = np.bincount(places, weights=weights / weights.sum() * COUNT)
    found = np.bincount(np.clip(drawn, -edge, edge) + edge, minlength=len(expected))
    assert ((found - expected) ** 2 / expected).sum() < bound(len(expected) - 1)


@pytest.mark.parametrize("sigma", [1000, 1 << 20, LARGEST_SIGMA])
def test_large_noise_has_the_quantiles_of_a_gaussian(sigma: int) -> None:
    drawn = discrete_gaussian(sigma, (COUNT,))

    edges = np.linspace(-3, 3, 40)
    below = np.asarray([math.erfc(-edge / math.sqrt(2)) / 2 for edge in edges])
    expected = np.diff(np.concatenate([[0.0], below, [1.0]])) * COUNT
    found = np.bincount(np.searchsorted(edges * sigma, drawn), minlength=len(expected))
    assert ((found - expected) ** 2 / expected).sum() < bound(len(expected) - 1)
    low = np.bincount(drawn & 15, minlength=16)
    assert ((low - COUNT / 16) ** 2 / (COUNT / 16)).sum() < bound(15), "the low digits are not uniform"


def test_noise_does_not_repeat_and_has_no_memory() -> None:
    first, second = (discrete_gaussian(1 << 20, (5000,)) for _ in range(2))

    assert abs(np.corrcoef(first, second)[0, 1]) < 0.15
    assert abs(np.corrcoef(first[1:], first[:-1])[0, 1]) < 0.15


def test_the_seeds_of_numpy_do_not_determine_noise() -> None:
    drawn = []
    for _ in range(2):
        np.random.seed(0)
        drawn.append(discrete_gaussian(1 << 20, (10,)).tolist())

    assert drawn[0] != drawn[1]


def test_every_random_number_is_from_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """With known bytes of the operating system, noise is known."""
    stream = np.random.default_rng(0)
    drawn = []
    for _ in range(2):
        stream = np.random.default_rng(0)
        monkeypatch.setattr(secrets, "token_bytes", stream.bytes)
        drawn.append(discrete_gaussian(40, (100,)).tolist())

    assert drawn[0] == drawn[1]


def test_coins_decide_by_exact_digits() -> None:
    digits = sum(int(word) << 64 * (7 - place) for place, word in enumerate(noise._RECIPROCAL_OF_E))
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workprec(600):
        assert int(mpmath.floor(mpmath.exp(-1) * 2**512)) == digits


def test_shapes() -> None:
    assert discrete_gaussian(3, ()).shape == ()
    assert discrete_gaussian(3, (0,)).shape == (0,)
    assert discrete_gaussian(3, (2, 3)).shape == (2, 3)
    assert discrete_gaussian(3, (2, 3)).dtype == np.int64


@pytest.mark.parametrize("sigma", [0, -1, 1.5, LARGEST_SIGMA + 1, math.nan])
def test_bad_standard_deviations_are_refused(sigma: float) -> None:
    with pytest.raises(ValueError, match="cannot .*'sigma'"):
        discrete_gaussian(sigma, (1,))
