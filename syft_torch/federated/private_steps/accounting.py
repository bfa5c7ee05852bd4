"""The ε of private steps, computed by ``dp-accounting``."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from syft_core.exceptions import how_to_install
from syft_torch.federated.errors import FederatedError


class Step(NamedTuple):
    """One kind of step: a batch drawn with this probability for each record, and noise of this multiplier."""

    rate: float
    multiplier: float


def find_epsilon(steps: Mapping[Step, int], delta: float) -> float:
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
        import dp_accounting.rdp  # noqa: F401, PLC0415  # optional, and slow to load
    except ImportError:
        why = "the package dp-accounting, which computes ε, is not installed"
        raise FederatedError.privacy(why, f"run `{how_to_install('dp-accounting')}`") from None


@lru_cache(maxsize=1024)
def _find_epsilon(steps: tuple[tuple[Step, int], ...], delta: float) -> float:
    require_accounting()
    import dp_accounting  # noqa: PLC0415  # optional, and slow to load
    from dp_accounting import rdp  # noqa: PLC0415

    left_out = dp_accounting.NeighboringRelation.REPLACE_SPECIAL
    accountant = rdp.RdpAccountant(neighboring_relation=left_out)
    log = logging.getLogger("absl")
    level = log.level
    log.setLevel(logging.ERROR)  # It warns about each order that it leaves out, which makes ε larger, never smaller.
    try:
        for step, count in steps:
            event = dp_accounting.PoissonSampledDpEvent(step.rate, dp_accounting.GaussianDpEvent(step.multiplier))
            accountant.compose(dp_accounting.SelfComposedDpEvent(event, count))
        return float(accountant.get_epsilon(delta))
    finally:
        log.setLevel(level)
