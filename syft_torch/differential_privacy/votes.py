"""GNMax: let workers answer queries by secret votes, and account for the answers; see docs/pate.md."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from syft_core.hook.chain import end_of
from syft_core.location import WorkerLike
from syft_core.pointers.pointer_tensor import PointerTensor
from syft_mpc.additive_shared import AdditiveSharingTensor
from syft_mpc.group import find_group
from syft_mpc.kernels import dtype_name
from syft_privacy.arguments import to_counts, to_labels, to_positive, to_whole
from syft_privacy.epsilon import Conversion, DataDependentEpsilon, Guarantee, find_epsilon
from syft_privacy.gnmax import epsilon_gnmax
from syft_torch.differential_privacy.noisy_max import MAX_CLASSES, MAX_SCALE, REFUSED, STEPS, noisy_max

if TYPE_CHECKING:
    import torch

    from syft_worker.desk.requests import ReleaseRequest

__all__ = ["REFUSED", "GNMax"]


@dataclass(frozen=True)
class GNMax:
    """The answers of noisy votes, and their privacy cost: GNMax, or with a threshold Confident-GNMax.

    ``sigma`` is the standard deviation of the noise in each count that remains if ``colluding`` workers reveal theirs.
    So each of k workers draws noise of sigma / √(k - colluding). A worker knows its own noise: with the default of 1,
    the guarantee also holds towards each of them.

    With ``threshold``, a query is answered only if the largest count, with noise of ``threshold_sigma``, reaches it.
    """

    classes: int
    sigma: float
    threshold: float | None = None
    threshold_sigma: float | None = None
    colluding: int = 1

    def __post_init__(self) -> None:
        if to_whole(self.classes, "classes", 2) > MAX_CLASSES:
            raise ValueError(f"cannot vote: 'classes' is above {MAX_CLASSES}")
        to_positive(self.sigma, "sigma")
        to_whole(self.colluding, "colluding")
        if (self.threshold is None) != (self.threshold_sigma is None):
            raise ValueError("cannot use Confident-GNMax: give both 'threshold' and 'threshold_sigma', or none")
        for name in ("threshold", "threshold_sigma") if self.threshold is not None else ():
            to_positive(getattr(self, name), name)

    def vote(self, predictions: Sequence[torch.Tensor], crypto_provider: WorkerLike) -> torch.Tensor:
        """Let workers answer queries by a vote; return shares of the answers.

        ``predictions`` are pointers, one for each worker, to the labels that its teachers predict: a row for each
        teacher, a column for each query. Fetch the answers with ``get``, or ask for them with ``request`` if the
        predictions are private. A query without an answer has ``REFUSED``.
        """
        pointers = [_require_pointer(prediction) for prediction in predictions]
        teachers = _require_shapes(pointers)
        options = self._choose_options(len(pointers))
        padded = {pointer.location_id: _pad(pointer, teachers) for pointer in pointers}
        if len(padded) < len(pointers):
            raise ValueError("cannot vote: 'predictions' has two pointers to one worker; stack its teachers' labels")
        first = pointers[0]
        group = find_group(first.owner, [pointer.location for pointer in pointers], crypto_provider, first.framework)
        (shares,) = group.run(noisy_max, padded, **options)
        answers: torch.Tensor = AdditiveSharingTensor(shares, group).wrap()
        return answers

    def covers(
        self, request: ReleaseRequest, workers: int, labels: str | None = None, samples: int | None = None
    ) -> bool:
        """Return whether a request is for answers of exactly such votes, among ``workers``, and nothing else.

        The owner of a worker calls it before approving a request. With ``labels``, the tag of labels that the worker
        itself has loaded, the votes of this worker must be these, as they are: noise does not protect a record from
        which a client has made many votes, or many queries. With ``samples``, there must be so many queries. A worker
        with fewer teachers than another one loads its labels with rows of ``REFUSED``: rows that are added for a vote
        make them other labels.
        """
        agreed = noisy_max.__name__, tuple(sorted(self._choose_options(workers).items())), workers
        makers = [made_by and (*made_by[:2], len(made_by.parties)) for made_by in request.made_by]
        if not makers or any(maker != agreed for maker in makers):
            return False
        operands = [operand for made_by in request.made_by if made_by is not None for operand in made_by.operands]
        are_known = len(operands) == len(makers) or (labels is None and samples is None)
        return are_known and all(
            (labels is None or operand.is_loaded_as(labels)) and (samples is None or operand.shape[1:] == (samples,))
            for operand in operands
        )

    def guarantee(self, answers: npt.ArrayLike, delta: float, conversion: Conversion = "improved") -> Guarantee:
        """Return what answers have cost, whatever the votes were: refused ones pay for the test."""
        answered = self._find_answered(answers)
        tests = 0.0 if self.threshold_sigma is None else answered.size / (2 * self.threshold_sigma**2)
        rate = int(np.count_nonzero(answered)) / self.sigma**2 + tests
        return find_epsilon(lambda orders: orders * rate, delta, conversion)

    def analyse(
        self,
        votes: npt.ArrayLike,
        answers: npt.ArrayLike,
        delta: float,
        workers: int,
        conversion: Conversion = "improved",
    ) -> DataDependentEpsilon:
        """Return what answers have cost for given counts of votes, for an auditor who may see them.

        It holds towards everyone but the workers, with the noise of all ``workers``: how likely an answer was depends
        on all of it.
        """
        counts, answered = to_counts(votes), self._find_answered(answers)
        if counts.shape != (len(answered), self.classes):
            raise ValueError(
                f"cannot analyse 'votes': expected a row of {self.classes} counts for each of the 'answers'"
            )
        options = self._choose_options(to_whole(workers, "workers", 2))
        scales = [options[name] for name in ("scale", "threshold_scale") if name in options]
        sigma, *test = (STEPS * math.sqrt(workers) / scale for scale in scales)
        return epsilon_gnmax(
            counts,
            sigma,
            delta,
            conversion,
            threshold=self.threshold,
            threshold_sigma=test[0] if test else None,
            answered=answered,
            step=1 / min(scales),
        )

    def _find_answered(self, answers: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Return which queries were answered; raise unless answers are labels, or with a threshold ``REFUSED``."""
        least = 0 if self.threshold is None else REFUSED
        answered: npt.NDArray[np.bool_] = to_labels(answers, "answers", self.classes, least).ravel() != REFUSED
        return answered

    def _choose_options(self, workers: int) -> dict[str, int]:
        """Return the options of the protocol for ``workers`` workers; raise unless enough of them draw noise."""
        free = workers - self.colluding
        if free < 1:
            raise ValueError(
                f"cannot vote among {workers} workers: more than 'colluding' ({self.colluding}) of them must draw "
                "noise; give 'predictions' of more workers"
            )
        options = {"classes": self.classes, "scale": _find_scale(self.sigma, "sigma", free)}
        if self.threshold is not None and self.threshold_sigma is not None:
            scale = _find_scale(self.threshold_sigma, "threshold_sigma", free)
            options.update(threshold_scale=scale, threshold=math.ceil(self.threshold * scale))
        return options


def _find_scale(sigma: float, name: str, workers: int) -> int:
    """Return how many steps a vote counts for the noise of all ``workers`` to have at least ``sigma`` votes."""
    scale = math.floor(STEPS * math.sqrt(workers) / sigma)
    if not 1 <= scale <= MAX_SCALE:
        raise ValueError(f"cannot vote: {name!r} is too {'small' if scale else 'large'} for exact noise; change it")
    return scale


def _require_shapes(pointers: Sequence[PointerTensor]) -> int:
    """Return the largest number of teachers of a worker; raise unless all have the same queries."""
    shapes = [tuple(pointer.shape) for pointer in pointers]
    if not shapes or any(len(shape) != 2 or shape[1] != shapes[0][1] for shape in shapes):
        raise ValueError("cannot vote: 'predictions' must have a row for each teacher and a column for each query")
    if any(dtype_name(pointer) != "int64" for pointer in pointers):
        raise TypeError("cannot vote: 'predictions' must be labels of the type int64; write `scores.argmax(...)`")
    return int(max(shape[0] for shape in shapes))


def _require_pointer(prediction: torch.Tensor) -> PointerTensor:
    end = end_of(prediction)
    if not isinstance(end, PointerTensor):
        raise TypeError("cannot vote: 'predictions' must be pointers to labels, one for each worker")
    return end


def _pad(pointer: PointerTensor, teachers: int) -> PointerTensor:
    """Return labels with as many rows as another worker has teachers; the added ones have no vote."""
    import torch  # noqa: PLC0415  # the analysis needs only numpy

    missing = teachers - pointer.shape[0]
    if not missing:
        return pointer
    padded: PointerTensor = end_of(torch.nn.functional.pad(pointer.wrap(), (0, 0, 0, missing), value=REFUSED))
    return padded
