"""The complementary error function in log space: probabilities of Gaussian tails far below the smallest float."""

from __future__ import annotations

import math

import numpy as np

from syft_privacy.arguments import Floats

LOG_2 = math.log(2.0)
_LOG_SQRT_PI = 0.5 * math.log(math.pi)
_FAR = 20.0
"""From here on the asymptotic series is exact to the last digit; ``erfc`` underflows at 26."""


def log_erfc(x: Floats) -> Floats:
    """Return log erfc(x) for each element."""
    x = np.asarray(x, dtype=np.float64)
    flat = np.minimum(x, _FAR).ravel().tolist()
    near = np.log(np.fromiter(map(math.erfc, flat), np.float64, len(flat)).reshape(x.shape))
    if not np.any(x > _FAR):
        return near
    far = np.maximum(x, _FAR)
    term = total = np.ones_like(far)
    for k in range(1, 9):
        term = term * (1 - 2 * k) / (2 * far**2)
        total = total + term
    return np.where(x > _FAR, -(far**2) - np.log(far) - _LOG_SQRT_PI + np.log(total), near)


def inverse_log_erfc(log_p: Floats) -> Floats:
    """Return x such that log erfc(x) = log_p; p is below 2."""
    log_p = np.asarray(log_p, dtype=np.float64)
    x = np.sqrt(np.maximum(-log_p, 0.0))
    # log erfc is concave, so Newton's steps overshoot at most once and then converge from one side.
    for _ in range(60):
        value = log_erfc(x)
        slope = -np.exp(LOG_2 - _LOG_SQRT_PI - x**2 - value)
        step = np.clip((value - log_p) / slope, -2.0, 2.0)
        x = x - step
        if np.all(np.abs(step) <= 1e-15 * np.maximum(1.0, np.abs(x))):
            break
    return x
