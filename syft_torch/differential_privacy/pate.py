"""The analysis of PATE: how much privacy the noisy votes of teachers cost.

LNMax, with Laplace noise (Papernot et al. 2017, arXiv 1610.05755), has the names and arguments of PySyft 0.2, for numpy
and for torch. GNMax and Confident-GNMax, with Gaussian noise, need less privacy for the same accuracy: use
``epsilon_gnmax`` for new work. docs/pate-analysis.md has the formulas.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, NoReturn, ParamSpec

import numpy as np
import numpy.typing as npt

from syft_privacy.arguments import (
    Floats,
    IntegerArray,
    to_counts,
    to_delta,
    to_labels,
    to_positions,
    to_positive,
    to_probability,
    to_whole,
)
from syft_privacy.epsilon import Curve, DataDependentEpsilon, Guarantee, NotForRelease, convert
from syft_privacy.gnmax import (
    epsilon_gnmax,
    log_q_gaussian,
    raise_q,
    rdp_gnmax,
    rdp_threshold,
    smooth_sensitivity_gnmax,
)

if TYPE_CHECKING:
    import torch

__all__ = [
    "DataDependentEpsilon",
    "Guarantee",
    "NotForRelease",
    "compute_q_noisy_max",
    "compute_q_noisy_max_approx",
    "compute_q_noisy_max_approx_torch",
    "compute_q_noisy_max_torch",
    "epsilon_gnmax",
    "log_q_gaussian",
    "logmgf_exact",
    "logmgf_exact_torch",
    "logmgf_from_counts",
    "logmgf_from_counts_torch",
    "perform_analysis",
    "perform_analysis_torch",
    "rdp_gnmax",
    "rdp_threshold",
    "sens_at_k",
    "sens_at_k_torch",
    "smooth_sens_torch",
    "smooth_sensitivity_gnmax",
    "smoothed_sens",
    "smoothed_sens_torch",
    "tensors_to_literals",
]
P = ParamSpec("P")
_log = logging.getLogger(__name__)
_MAX_CLASSES, _MAX_MOMENTS = 4096, 10_000


# --- LNMax


def perform_analysis(
    teacher_preds: npt.ArrayLike,
    indices: npt.ArrayLike | None,
    noise_eps: float,
    delta: float = 1e-5,
    moments: int = 8,
    beta: float = 0.09,
    *,
    labels: npt.ArrayLike | None = None,
    num_classes: int | None = None,
) -> tuple[DataDependentEpsilon, float]:
    """Return the ε of LNMax for given votes, which is not for release, and the ε for all votes.

    ``teacher_preds`` has a row of labels for each teacher, and a column for each query. ``indices`` are the positions
    of the queries that were answered; None means all of them. The answers do not matter: ``labels`` are
    only checked, and so is ``beta``. There is no proven smooth sensitivity for LNMax, so the first ε cannot be
    released at all; that of ``epsilon_gnmax`` can.
    """
    predictions = to_labels(teacher_preds, "teacher_preds", num_classes)
    if predictions.ndim != 2 or 0 in predictions.shape:
        raise ValueError("cannot analyse 'teacher_preds': expected a row for each teacher and a column for each query")
    gamma, delta = to_positive(noise_eps, "noise_eps"), to_delta(delta)
    to_positive(beta, "beta")
    classes = max(2, int(predictions.max()) + 1) if num_classes is None else to_whole(num_classes, "num_classes", 2)
    if classes > _MAX_CLASSES:
        raise ValueError(f"cannot analyse 'teacher_preds': there are more than {_MAX_CLASSES} classes")
    counts = np.stack([(predictions == label).sum(0) for label in range(classes)], axis=-1).astype(np.float64)
    everything = np.arange(len(counts))
    positions = everything if indices is None else to_positions(indices, "indices", len(counts))
    if labels is not None and to_labels(labels, "labels", classes).shape != positions.shape:
        raise ValueError("cannot use 'labels': expected one for each answered query")
    readings = [positions]
    if len(np.unique(positions)) < len(positions):
        readings.append(everything)
        _log.warning(
            "'indices' has repeated positions, or labels instead of positions: the larger ε of both readings is "
            "computed; give labels as `labels=`"
        )
    if to_whole(moments, "moments", 1) > _MAX_MOMENTS:
        raise ValueError(f"cannot use 'moments': expected at most {_MAX_MOMENTS}")
    moments_list = np.arange(1, moments + 1.0)
    curve = _make_curve(counts, readings, gamma, moments_list)
    orders = moments_list + 1
    epsilons, independent = (convert(rdp(orders), orders, delta, "classic") for rdp in (curve.rdp, curve.independent))
    best = int(np.argmin(epsilons))
    if int(np.argmin(independent)) == len(orders) - 1:  # Not the best one of these votes: that is private.
        _log.warning("the best moment for all votes is the last one: more `moments` may give a smaller ε")
    found = Guarantee(float(epsilons[best]), delta, float(orders[best]), "classic")
    return DataDependentEpsilon.of(curve, delta, "classic", found), float(independent.min())


def compute_q_noisy_max(counts: npt.ArrayLike, noise_eps: float) -> float:
    """Bound the probability that LNMax answers another class than the one with most votes (Lemma 4)."""
    return float(_q_noisy_max(_to_row(counts), to_positive(noise_eps, "noise_eps")))


def compute_q_noisy_max_approx(counts: npt.ArrayLike, noise_eps: float) -> float:
    """Bound the same probability by the class with the second most votes alone: a larger bound."""
    row, gamma = _to_row(counts), to_positive(noise_eps, "noise_eps")
    first, second = -np.sort(-row)[:2]
    lead = gamma * (first - second)
    return float(min((len(row) - 1) * (2 + lead) * math.exp(-lead) / 4, 1 - 1 / len(row)))


def logmgf_exact(q: float, priv_eps: float, l: float) -> float:  # noqa: E741  # the name of PySyft 0.2
    """Bound the log-moment l of an ``priv_eps``-private answer that differs from the likely one with probability q."""
    probability = to_probability(q, "q")
    return float(_logmgf(np.asarray(probability), to_positive(priv_eps, "priv_eps"), np.asarray(to_positive(l, "l"))))


def logmgf_from_counts(counts: npt.ArrayLike, noise_eps: float, l: float) -> float:  # noqa: E741  # as above
    """Bound the log-moment l of LNMax for given votes."""
    row, gamma = _to_row(counts), to_positive(noise_eps, "noise_eps")
    return float(_logmgf_of(row, gamma, to_positive(l, "l")))


def sens_at_k(counts: npt.ArrayLike, noise_eps: float, l: float, k: int) -> float:  # noqa: E741  # as above
    """Return what one more vote changes in the log-moment, after k votes moved from the first to the second class."""
    row, gamma, moved = -np.sort(-_to_row(counts)), to_positive(noise_eps, "noise_eps"), to_whole(k, "k")
    return float(_sens_at(row, gamma, _to_moment(l, gamma), moved)[-1])


def smoothed_sens(counts: npt.ArrayLike, noise_eps: float, l: float, beta: float) -> float:  # noqa: E741  # as above
    """Return the largest ``sens_at_k``, times e^(-βk), of all k.

    Votes that move elsewhere than from the first class to the second may change the log-moment more: this is the number
    that PySyft 0.2 computed, not a bound that permits a release.
    """
    row, gamma = -np.sort(-_to_row(counts)), to_positive(noise_eps, "noise_eps")
    found = _sens_at(row, gamma, _to_moment(l, gamma), int(row[0]))
    return float(np.max(found * np.exp(-to_positive(beta, "beta") * np.arange(len(found)))))


def tensors_to_literals(tensor_list: Sequence[torch.Tensor | float]) -> list[float]:
    """Return tensors of one element as Python's numbers."""
    return [part.item() if hasattr(part, "item") else part for part in tensor_list]


# --- the same for torch


def perform_analysis_torch(
    preds: torch.Tensor,
    indices: torch.Tensor | None,
    noise_eps: float = 0.1,
    delta: float = 1e-5,
    moments: int = 8,
    beta: float = 0.09,
    *,
    labels: torch.Tensor | None = None,
    num_classes: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the results of ``perform_analysis`` as tensors; the first does not print."""
    found, independent = perform_analysis(
        preds, indices, noise_eps, delta, moments, beta, labels=labels, num_classes=num_classes
    )
    return _to_tensor(float(found)).as_subclass(_private_tensor()), _to_tensor(independent)


def _return_tensor(function: Callable[P, float]) -> Callable[P, torch.Tensor]:
    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> torch.Tensor:
        return _to_tensor(function(*args, **kwargs))

    return call


compute_q_noisy_max_torch = _return_tensor(compute_q_noisy_max)
compute_q_noisy_max_approx_torch = _return_tensor(compute_q_noisy_max_approx)
logmgf_exact_torch = _return_tensor(logmgf_exact)
logmgf_from_counts_torch = _return_tensor(logmgf_from_counts)
sens_at_k_torch = _return_tensor(sens_at_k)
smooth_sens_torch = smoothed_sens_torch = _return_tensor(smoothed_sens)


def _to_tensor(value: float) -> torch.Tensor:
    import torch  # noqa: PLC0415  # the rest of this module needs only numpy

    return torch.tensor(value)


@lru_cache(maxsize=1)
def _private_tensor() -> type[torch.Tensor]:
    import torch  # noqa: PLC0415  # as above

    class NotForReleaseTensor(torch.Tensor):  # type: ignore[misc]  # torch has no types here
        """A tensor that depends on private data, and does not print; ``float(x)`` is the way to look at it."""

        def __repr__(self, **_options: object) -> str:
            return f"<{type(self).__name__}: depends on private data, not for release>"

        def __format__(self, spec: str) -> str:
            return repr(self)

        def item(self) -> NotForRelease:
            return NotForRelease(float(self))

        def tolist(self) -> object:
            return [part.tolist() for part in self] if self.ndim else self.item()

        def refuse(self, *_args: object, **_options: object) -> NoReturn:
            raise TypeError(
                f"cannot convert, store or send a {type(self).__name__}: it depends on private data, not for release; "
                "write `float(...)` if you may look at it"
            )

        numpy = __array__ = __reduce_ex__ = __deepcopy__ = refuse

    return NotForReleaseTensor


# --- formulas


def _q_noisy_max(counts: Floats, gamma: float) -> Floats:
    """Return Σ (2 + γΔ) / 4e^(γΔ) over all classes but the first, where Δ is what they lack, and at most 1 - 1/m."""
    leads = gamma * (counts.max(-1, keepdims=True) - counts)
    terms = (2 + leads) * np.exp(-leads) / 4
    np.put_along_axis(terms, np.argmax(counts, axis=-1)[..., None], 0.0, -1)
    found: Floats = np.minimum(terms.sum(-1), 1 - 1 / counts.shape[-1])
    return found


def _logmgf(q: Floats, epsilon: float, moment: Floats) -> Floats:
    """Return the least of the bounds for all votes and, for small q, that of Theorem 3."""
    limit = np.minimum(epsilon**2 * moment * (moment + 1) / 2, epsilon * moment)
    with np.errstate(divide="ignore", over="ignore"):
        likely = np.where(q < 1 / (1 + np.exp(epsilon)), q, 0.0)
        log_q, log_p = np.log(likely), np.log1p(-likely)
        first = log_p + moment * (log_p - np.log1p(-np.exp(epsilon + log_q)))
        bound = np.log1p(np.expm1(first) + np.exp(log_q + epsilon * moment))
    return np.where((likely == q) & (bound < limit), np.maximum(bound, 0.0), limit)


def _logmgf_of(counts: Floats, gamma: float, moment: float | Floats) -> Floats:
    return _logmgf(_q_noisy_max(counts, gamma), 2 * gamma, np.asarray(moment))


def _sens_at(row: Floats, gamma: float, moment: float, moves: int) -> Floats:
    """Return the difference that one more vote makes, after 0 to ``moves`` votes; 0 where the first class is behind."""
    losses = _logmgf_of(raise_q(row, moves + 1), gamma, moment)
    return np.where(row[0] >= row[1] + np.arange(moves + 1), np.diff(losses), 0.0)


def _make_curve(counts: Floats, readings: Sequence[IntegerArray], gamma: float, moments: Floats) -> Curve:
    """Return the bounds on the moments of queries, as Rényi bounds: a moment l is l times that of order l + 1."""
    losses = _logmgf_of(counts[:, None], gamma, moments)
    known = np.max([losses[positions].sum(0) for positions in readings], axis=0)
    most = max(map(len, readings))

    def look_up(orders: Floats) -> Floats:
        places = np.searchsorted(moments + 1, orders).clip(max=len(moments) - 1)
        if not np.array_equal(moments[places] + 1, orders):
            raise ValueError(f"cannot use 'order': expected a whole number from 2 to {len(moments) + 1}")
        return known[places] / (orders - 1)  # type: ignore[no-any-return]  # an array

    def bound(orders: Floats) -> Floats:
        return most * _logmgf(np.asarray(1.0), 2 * gamma, orders - 1) / (orders - 1)

    return Curve(look_up, None, bound)


def _to_row(counts: npt.ArrayLike) -> Floats:
    row = to_counts(counts, "counts")
    if row.ndim != 1:
        raise ValueError("cannot analyse 'counts': expected one count for each class")
    return row


def _to_moment(moment: float, gamma: float) -> float:
    found = to_positive(moment, "l")
    if gamma * found > 2:
        raise ValueError("cannot bound the sensitivity: 'l' is larger than 2 / noise_eps; use a smaller one")
    return found
