"""Votes for tests, and the exact divergence of the answers to them."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from hypothesis import strategies as st

counts = st.lists(st.integers(0, 60), min_size=2, max_size=5).filter(lambda votes: sum(votes) > 0)
"""Votes of a few dozen teachers."""
sigmas = st.floats(2.0, 60.0)
orders = st.floats(1.1, 60.0)


def neighbours(votes: list[int]) -> Iterator[list[int]]:
    """Yield the votes that differ by the vote of one teacher."""
    for giver, count in enumerate(votes):
        for taker in range(len(votes)) if count else ():
            if taker != giver:
                moved = list(votes)
                moved[giver] -= 1
                moved[taker] += 1
                yield moved


def log_probabilities(votes: list[int], sigma: float) -> np.ndarray:
    """Compute the log-probability of each answer of GNMax by quadrature: log ∫ φ(x - n_i) Π Φ(x - n_j) dx."""
    x = np.linspace(min(votes) - 12 * sigma, max(votes) + 12 * sigma, 3001)
    z = (x[None] - np.asarray(votes, dtype=float)[:, None]) / sigma
    below = np.asarray([[math.erfc(-value / math.sqrt(2)) / 2 for value in row] for row in z])
    density = np.exp(-(z**2) / 2) / (sigma * math.sqrt(2 * math.pi))
    chances = [
        np.sum(density[place] * np.prod(np.delete(below, place, 0), axis=0)) * (x[1] - x[0])
        for place in range(len(votes))
    ]
    return complete(np.asarray(chances))


def complete(chances: np.ndarray) -> np.ndarray:
    """Return log-probabilities; that of the likeliest is computed from the others, because it may be close to 1."""
    likeliest = int(np.argmax(chances))
    found = np.log(np.maximum(chances, 1e-300))
    found[likeliest] = np.log1p(-np.sum(np.delete(chances, likeliest)))
    return found


def divergence(log_p: np.ndarray, log_q: np.ndarray, order: float) -> float:
    """Return the Rényi divergence of two distributions, exact also if it is tiny."""
    power = (order - 1) * (log_p - log_q)
    terms = np.where(power > 1, np.exp(log_p + power) - np.exp(log_p), np.exp(log_p) * np.expm1(np.minimum(power, 1)))
    return float(np.log1p(np.sum(terms)) / (order - 1))
