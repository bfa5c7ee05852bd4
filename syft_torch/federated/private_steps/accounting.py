"""The ε of private steps, computed by ``dp-accounting``."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from syft_core.exceptions import how_to_install
from syft_core.features import Later
from syft_core.values import Nested
from syft_torch.federated.errors import FederatedError

# It is optional, and takes 0.7 s to load.
_ACCOUNTANT, _NEIGHBORS = Later("dp_accounting.rdp:RdpAccountant"), Later("dp_accounting:NeighboringRelation")
_COMPUTE_EPSILON = Later("dp_accounting.rdp:compute_epsilon")
_ORDERS = Later("dp_accounting.rdp.rdp_privacy_accountant:DEFAULT_RDP_ORDERS")
_SAMPLED, _GAUSSIAN = Later("dp_accounting:PoissonSampledDpEvent"), Later("dp_accounting:GaussianDpEvent")


class PrivateStep(NamedTuple):
    """One kind of step: a batch drawn with this probability for each record, and noise of this multiplier."""

    rate: float
    multiplier: float


def find_epsilon(steps: Mapping[PrivateStep, int], delta: float) -> float:
    """Return the ε of a number of steps of each kind, for a record that is left out, its place staying empty."""
    return _find_epsilon(tuple(sorted(Counter(steps).items())), delta)


def write_epsilon(epsilon: float, delta: float) -> str:
    """Return a promise as text; ε is rounded up.

    >>> write_epsilon(4.2601, 1e-5)
    'ε 4.27 at δ 1e-05'
    """
    return f"ε {math.ceil(epsilon * 100) / 100:g} at δ {delta:g}"


def require_accounting() -> None:
    """Raise unless ``dp-accounting`` is installed."""
    try:
        _ = _ACCOUNTANT.found
    except ImportError:
        why = "the package dp-accounting, which computes ε, is not installed"
        raise FederatedError.privacy(why, f"run `{how_to_install('dp-accounting')}`") from None


@lru_cache(maxsize=1024)
def _find_epsilon(steps: tuple[tuple[PrivateStep, int], ...], delta: float) -> float:
    require_accounting()
    total = sum([count * _find_divergences(step) for step, count in steps if count])
    return float(_COMPUTE_EPSILON(_ORDERS.found, total, delta)[0]) if steps else 0.0


@lru_cache(maxsize=1024)
def _find_divergences(step: PrivateStep) -> Nested:
    """Return the Rényi divergence of one step at each order; it takes longer than everything else."""
    accountant = _ACCOUNTANT(_ORDERS.found, _NEIGHBORS.found.REPLACE_SPECIAL)
    log = logging.getLogger("absl")
    level = log.level
    log.setLevel(logging.ERROR)  # It warns about each order that it leaves out, which makes ε larger, never smaller.
    try:
        accountant.compose(_SAMPLED(step.rate, _GAUSSIAN(step.multiplier)))
    finally:
        log.setLevel(level)
    return accountant._rdp
