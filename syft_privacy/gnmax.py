"""GNMax and Confident-GNMax: Rényi differential privacy of noisy votes (Papernot et al. 2018, arXiv 1802.08908).

The letters are those of the paper, see docs/pate-analysis.md: q bounds the probability that the answer is not the class
with most votes, λ is the Rényi order, β(q) the bound of Theorem 6. Everything is computed in log space, for all queries
and orders at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from syft_privacy.arguments import (
    Floats,
    to_counts,
    to_delta,
    to_mask,
    to_order,
    to_orders,
    to_positive,
)
from syft_privacy.epsilon import Conversion, Curve, DataDependentEpsilon
from syft_privacy.gaussian_tails import LOG_2, inverse_log_erfc, log_erfc

_NOT_BOUNDED = (
    "cannot bound the smooth sensitivity: at this 'order' and 'sigma' the Rényi bound does not grow with q, as the "
    "proof requires, or changes only where q is too small; use a lower order, or a larger sigma"
)
_LARGEST_T = 1e4
"""How far out in a tail smooth sensitivity is computed: there, q is 1e-43000000."""
_GOLDEN = (math.sqrt(5.0) - 1) / 2
_MAX_VOTES = 1_000_000
"""Maximum number of votes of a query that are moved one by one for the smooth sensitivity."""
Result: TypeAlias = "Floats | np.float64"
"""A number for one row of votes, an array for several."""


def log_q_gaussian(votes: npt.ArrayLike, sigma: float, *, step: float = 0.0) -> Result:
    """Bound the log-probability that GNMax answers another class than the one with most votes (Proposition 7).

    ``step`` is the distance of the values that discrete noise has; 0 means a continuous Gaussian. It is subtracted from
    each lead, because a discrete tail exceeds the continuous one by less than a step.
    """
    return _log_q(to_counts(votes), to_positive(sigma, "sigma"), _to_step(step))[()]


def rdp_gnmax(votes: npt.ArrayLike, sigma: float, orders: npt.ArrayLike, *, step: float = 0.0) -> Result:
    """Bound the Rényi divergence of GNMax for given votes: one row for each query, one column for each order.

    Compose queries by adding their rows. Where Theorem 6 does not apply, this is the bound for all votes, λ/σ².
    """
    counts, sigma, orders = to_counts(votes), to_positive(sigma, "sigma"), to_orders(orders)
    return bound_rdp(_log_q(counts, sigma, _to_step(step)), sigma, orders)[()]


def rdp_threshold(
    votes: npt.ArrayLike, threshold: float, sigma: float, orders: npt.ArrayLike, *, step: float = 0.0
) -> Result:
    """Bound the Rényi divergence of the test whether the largest count, with noise, reaches the threshold.

    It is paid for every query, answered or not. The test has two outcomes and a sensitivity of 1, so Theorem 6 holds
    with the probability of the less likely outcome, and σ√2 in place of σ.
    """
    counts, sigma, orders = to_counts(votes), to_positive(sigma, "sigma"), to_orders(orders)
    log_q = _log_q_threshold(counts, to_positive(threshold, "threshold"), sigma, _to_step(step))
    return bound_rdp(log_q, sigma * math.sqrt(2), orders)[()]


def smooth_sensitivity_gnmax(
    votes: npt.ArrayLike, sigma: float, beta: float, order: float, *, step: float = 0.0
) -> Result:
    """Return the β-smooth sensitivity of the Rényi bound at an order: how far it moves if votes move (Appendix B.3).

    Raises if the bound is not of the form for which the paper proves it: choose a lower order, or a larger sigma.
    """
    counts, sigma = to_counts(votes), to_positive(sigma, "sigma")
    beta, order = to_positive(beta, "beta"), to_order(order)
    return _smooth_sensitivity(counts, sigma, beta, order, _to_step(step))[()]


def epsilon_gnmax(
    votes: npt.ArrayLike,
    sigma: float,
    delta: float,
    conversion: Conversion = "improved",
    *,
    threshold: float | None = None,
    threshold_sigma: float | None = None,
    answered: npt.ArrayLike | None = None,
    step: float = 0.0,
) -> DataDependentEpsilon:
    """Return the ε of all queries for given votes, at the best order; it depends on the votes, so do not release it.

    With ``threshold`` and ``threshold_sigma`` the method is Confident-GNMax: the test is paid for every row of votes,
    and the answer for those that are ``answered``.
    """
    counts, sigma, delta = np.atleast_2d(to_counts(votes)), to_positive(sigma, "sigma"), to_delta(delta)
    mask, step = to_mask(answered, "answered", len(counts)), _to_step(step)
    if (threshold is None) != (threshold_sigma is None):
        raise ValueError("cannot analyse Confident-GNMax: give both 'threshold' and 'threshold_sigma', or none")
    parts = [_Part(_log_q(counts[mask], sigma, step), sigma)]
    smooth = partial(_sum_smooth, counts[mask], sigma, step)
    if threshold is not None and threshold_sigma is not None:
        own = to_positive(threshold_sigma, "threshold_sigma")
        log_q = _log_q_threshold(counts, to_positive(threshold, "threshold"), own, step)
        parts.append(_Part(log_q, own * math.sqrt(2)))
        smooth = partial(_sum_smooth_confident, counts, mask, sigma, float(threshold), own, step)
    limit = sum(len(part.log_q) / part.sigma**2 for part in parts)
    curve = Curve(
        lambda orders: np.sum([part.sum_rdp(orders) for part in parts], axis=0), smooth, lambda orders: orders * limit
    )
    return DataDependentEpsilon.of(curve, delta, conversion)


# --- the bounds


def bound_rdp(log_q: Floats, sigma: float, orders: Floats) -> Floats:
    """Return β(q) for each q and order: Theorem 6 with the orders of Proposition 10, else λ/σ²."""
    log_q = log_q.reshape(log_q.shape + (1,) * orders.ndim)
    independent = np.broadcast_to(orders / sigma**2, np.broadcast_shapes(log_q.shape, orders.shape))
    mu_2 = sigma * np.sqrt(-log_q)
    mu_1 = mu_2 + 1
    epsilon_1, epsilon_2 = mu_1 / sigma**2, mu_2 / sigma**2
    with np.errstate(all="ignore"):  # Where a condition fails, the result is not used.
        limit = (mu_2 - 1) * epsilon_2 - mu_2 * (np.log1p(1 / (mu_1 - 1)) + np.log1p(1 / (mu_2 - 1)))
        applies = (mu_2 > 1) & (log_q <= limit) & (-log_q > epsilon_2) & (orders <= mu_1)
        log_p = np.log1p(-np.exp(log_q))
        log_a = (orders - 1) * (log_p - np.log1p(-np.exp((log_q + epsilon_2) * (1 - 1 / mu_2))))
        log_b = (orders - 1) * (epsilon_1 - log_q / (mu_1 - 1))
        first, second = log_p + log_a, log_q + log_b
        # log((1 - q) e^a + q e^b) = log(1 + (1 - q)(e^a - 1) + q(e^b - 1)): exact also if it is 1e-250, or λ is near 1.
        small = np.log1p(np.exp(log_p) * np.expm1(log_a) - np.exp(second) * np.expm1(-log_b))
        total = np.where(np.maximum(first, second) < 1, small, np.logaddexp(first, second))
        bound = np.where(np.isneginf(log_q), 0.0, total / (orders - 1))
    return np.where((applies | np.isneginf(log_q)) & (bound < independent), bound, independent)


class _Part:
    """The queries of one mechanism, with the number of those that have the same q."""

    def __init__(self, log_q: Floats, sigma: float) -> None:
        self.log_q, self.sigma = log_q, sigma
        self.unique, self.counts = np.unique(log_q, return_counts=True)

    def sum_rdp(self, orders: Floats) -> Floats:
        return self.counts @ bound_rdp(self.unique, self.sigma, orders)


def _log_q(counts: Floats, sigma: float, step: float) -> Floats:
    winner = np.argmax(counts, axis=-1)[..., None]
    leads = np.take_along_axis(counts, winner, -1) - counts - step
    terms = log_erfc(leads / (2 * sigma)) - LOG_2
    np.put_along_axis(terms, winner, -np.inf, -1)
    found: Floats = np.minimum(np.logaddexp.reduce(terms, axis=-1), math.log1p(-1 / counts.shape[-1]))
    return found


def _log_q_threshold(counts: Floats, threshold: float, sigma: float, step: float) -> Floats:
    return _log_q_distance(np.abs(counts.max(-1) - threshold), sigma, step)


def _log_q_distance(distance: Floats, sigma: float, step: float) -> Floats:
    return np.minimum(log_erfc((distance - step) / (sigma * math.sqrt(2))), 0.0) - LOG_2


def _to_step(step: float) -> float:
    return to_positive(step, "step") if step else 0.0


# --- smooth sensitivity


class _Shape:
    """β(q) at one order, and how far one vote moves q, as functions of t.

    q is a sum of tails; t is the point at which each would have the same size: q = pairs · erfc(t) / 2. ``pairs`` is
    one for each class but the first, or one for a threshold. A vote changes the lead of a class by at most 2, and the
    distance of the largest count from a threshold by 1. In units of 2σ, and of σ√2, which is ``sigma`` for a threshold,
    both are 1 / ``sigma``: so B_L(q) and B_U(q), the least and the greatest q after one vote, are at t ± 1 / ``sigma``.
    """

    def __init__(self, sigma: float, order: float, pairs: int) -> None:
        self.sigma, self.order, self.log_scale = sigma, order, math.log(2.0 / pairs)
        grid = self._make_grid()
        if bool(np.any(np.diff(self._rdp(grid)) > 1e-12 * order / sigma**2)):
            raise ValueError(_NOT_BOUNDED)
        self.first, self.last = float(grid[0]), float(grid[-1])
        self.peaks = self._find_peaks(grid)

    def find_t(self, log_q: Floats) -> Floats:
        return inverse_log_erfc(log_q + self.log_scale)

    def bound_change(self, t: Floats) -> Floats:
        """Bound the change of β if one vote moves: β(B_U) - β or β - β(B_L), because β grows with q (Algorithm 3)."""
        here = self._rdp(t)
        found: Floats = np.maximum(self._rdp(t - 1 / self.sigma) - here, here - self._rdp(t + 1 / self.sigma))
        return found

    def find_smooth(self, raised: Floats, lowered: Floats, beta: float) -> float:
        """Return the largest local sensitivity of votes at a distance d, times e^(-βd).

        ``raised`` and ``lowered`` are t for the greatest and the least q at each distance, from 0 on. Everything
        between them may be reached, and the local sensitivity is largest at an end or at one of the peaks. Where the
        paths end, other votes may still move, or teachers vote that did not: each move changes t by 1 / ``sigma``.
        """
        smooth = 0.0
        for sign, path, edge in ((-1, raised, self.last), (1, lowered, self.first)):
            peaks = self.peaks[sign * (self.peaks - path[0]) >= 0]
            known = np.minimum(np.searchsorted(sign * path, sign * peaks), len(path) - 1)
            more = np.ceil(np.maximum(sign * (peaks - path[-1]), 0.0) * self.sigma)
            # Moves after the end of the path: from where β is not constant any more, to the last peak.
            start = math.floor(max(sign * (edge - path[-1]), 0.0) * self.sigma)
            moves = np.arange(start + 1, np.max(more, initial=0.0))
            for t, distance in (
                (path, np.arange(len(path))),
                (path[-1] + sign * moves / self.sigma, len(path) - 1 + moves),
                (peaks, known + more),
            ):
                smooth = max(smooth, float(np.max(np.exp(-beta * distance) * self.bound_change(t), initial=0.0)))
        return smooth

    def _find_peaks(self, grid: Floats) -> Floats:
        """Return where the local sensitivity is largest: points of the grid, and between them, by golden sections."""
        local = self.bound_change(grid)
        places = 1 + np.flatnonzero((local[1:-1] >= local[:-2]) & (local[1:-1] >= local[2:]))
        places = places[local[places] > 1e-15 * np.max(local)]  # Less is rounding.
        low, high = grid[places - 1], grid[places + 1]
        for _ in range(45):
            width = _GOLDEN * (high - low)
            rises = self.bound_change(high - width) < self.bound_change(low + width)
            low, high = np.where(rises, high - width, low), np.where(rises, high, low + width)
        found: Floats = np.unique(np.concatenate([grid[places], low, high]))
        return found

    def _rdp(self, t: Floats) -> Floats:
        log_q = np.minimum(log_erfc(t) - self.log_scale, 0.0)
        return bound_rdp(log_q, self.sigma, np.asarray(self.order))

    def _make_grid(self) -> Floats:
        """Return points t, several for each vote, between which β, and what a vote changes, is monotone."""
        # q0 is the largest q for which Theorem 6 gives less than the bound for all votes. β changes from there to ...
        start = self._find_first(lambda t: float(self._rdp(np.asarray(t))) < self.order / self.sigma**2)
        # ... where it is less than the smallest float. What a vote changes also does one vote away from there.
        end = self._find_first(lambda t: float(self._rdp(np.asarray(t))) == 0.0)
        vote = 1 / self.sigma
        jumps = start + np.arange(-2, 3)[:, None] * vote + np.asarray([-1e-9, 0.0, 1e-9])  # β may jump at q0.
        near = start + np.arange(-8 * 16, 8 * 16 + 1) * vote / 16
        # With much noise, 1 / 2000 is many votes, but still little compared with the width of a tail.
        edge = min(2 * vote, 2.0)
        spacing = min(max(min(vote / 16, 1 / 200), 1 / 2000), (end - start + edge) / 5000)
        far = np.arange(start - edge, end + edge, spacing)
        far = np.concatenate([far - vote, far, far + vote]) if vote > 1 else far
        return np.unique(np.concatenate([jumps.ravel(), near, far]))

    def _find_first(self, holds: Callable[[float], bool]) -> float:
        """Return the smallest t from which on a condition holds."""
        low, high = -5.0, _LARGEST_T
        if not holds(high):
            raise ValueError(_NOT_BOUNDED)
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (low, middle) if holds(middle) else (middle, high)
        return high


_find_shape = lru_cache(maxsize=256)(_Shape)


def _smooth_sensitivity(counts: Floats, sigma: float, beta: float, order: float, step: float) -> Floats:
    if counts.sum(-1).max(initial=0) > _MAX_VOTES:
        raise ValueError(f"cannot bound the smooth sensitivity: 'votes' has a row of more than {_MAX_VOTES} votes")
    shape = _find_shape(sigma, order, counts.shape[-1] - 1)
    rows, places = np.unique(-np.sort(-np.atleast_2d(counts), axis=-1), axis=0, return_inverse=True)
    paths = [path for row in rows for path in (raise_q(row, int(row[0] - row[1]) // 2), _lower_q(row))]
    t = np.split(
        shape.find_t(_log_q(np.concatenate(paths), sigma, step)), np.cumsum([len(path) for path in paths])[:-1]
    )
    found = [shape.find_smooth(raised, lowered, beta) for raised, lowered in zip(t[::2], t[1::2], strict=True)]
    return np.asarray(found)[places.ravel()].reshape(counts.shape[:-1])


def raise_q(row: Floats, moves: int) -> Floats:
    """Return sorted votes, and after each of so many moves of one vote from the first class to the second.

    No other votes at that distance have a greater q, as long as the first class is not behind: tails are convex.
    """
    path = np.repeat(row[None], moves + 1, 0)
    path[:, 0] -= np.arange(moves + 1)
    path[:, 1] += np.arange(moves + 1)
    return path


def _lower_q(row: Floats) -> Floats:
    """Return sorted votes, and after each move of one vote from what is then the second class to the first."""
    others = row[1:].astype(np.int64)
    classes = np.repeat(np.arange(len(others)), others)
    heights = np.concatenate([np.arange(count) for count in others])
    taken = np.cumsum(classes[np.argsort(-heights, kind="stable")][:, None] == np.arange(len(others)), axis=0)
    taken = np.concatenate([np.zeros((1, len(others))), taken])
    return np.concatenate([row[0] + np.arange(len(taken))[:, None], others - taken], axis=1)


def _sum_smooth(counts: Floats, sigma: float, step: float, beta: float, order: float) -> float:
    return float(np.sum(_smooth_sensitivity(counts, sigma, beta, order, step))) if len(counts) else 0.0


def _sum_smooth_confident(
    counts: Floats,
    mask: npt.NDArray[np.bool_],
    sigma: float,
    threshold: float,
    threshold_sigma: float,
    step: float,
    beta: float,
    order: float,
) -> float:
    shape = _find_shape(threshold_sigma * math.sqrt(2), order, 1)
    total = _sum_smooth(counts[mask], sigma, step, beta, order)
    for distance, times in zip(*np.unique(np.abs(counts.max(-1) - threshold), return_counts=True), strict=True):
        t = shape.find_t(_log_q_distance(np.asarray([distance]), threshold_sigma, step))
        total += float(times) * shape.find_smooth(t, t, beta)
    return total
