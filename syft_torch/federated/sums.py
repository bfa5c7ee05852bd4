"""Sums over workers: each worker computes its own, and only that leaves it, under the rules of its owner."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from syft_core.exceptions import GetNotPermittedError
from syft_core.tensors.private import remove_restriction
from syft_core.values import Nested, Tensor
from syft_torch.federated.errors import FederatedError
from syft_worker.desk.errors import ReleasePendingError
from syft_worker.desk.handle import RequestHandle


def sum_columns(inputs: Sequence[Tensor], reason: str, patience: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return how many values each input column has on all workers, their mean, and their squared deviations."""
    sums = list(map(_sum_up, inputs))
    (count, mean, squares), *rest = fetch_released(sums, reason, patience)
    for more, other, others in rest:
        total = (count + more).clamp(min=1)
        shift = other - mean
        mean = mean + shift * more / total
        squares = squares + others + shift**2 * count * more / total
        count = count + more
    if not (mean.isfinite() & squares.isfinite()).all():
        raise FederatedError.infinite()
    return count, mean, squares


def _sum_up(inputs: Tensor) -> Tensor:
    values = inputs.to(torch.float64)
    count = values.isnan().logical_not().sum(0).to(torch.float64)
    mean = values.nansum(0) / count.clamp(min=1)
    return torch.stack([count, mean, ((values - mean) ** 2).nansum(0)])


def fetch_released(pointers: Sequence[Tensor], reason: str, patience: float) -> list[Tensor]:
    """Fetch results; if some may not leave, ask their owners, if there is a reason, and wait for the decisions."""
    found = [_fetch_or_ask(pointer, reason) for pointer in pointers]
    values = [take_released(each, patience) if isinstance(each, RequestHandle) else each for each in found]
    return list(map(remove_restriction, values))


def take_released(
    request: RequestHandle, patience: float | None, reason: str = "", more: str = "patience=3600"
) -> Nested:
    """Wait up to ``patience`` seconds for a release, then fetch the results; ``more`` says how to wait longer."""
    try:
        request.wait(patience)
    except ReleasePendingError:
        raise ReleasePendingError.in_time(request.id, request.location.id, patience, more) from None
    return request.get(reason)


def _fetch_or_ask(pointer: Tensor, reason: str) -> Tensor | RequestHandle:
    try:
        return pointer.get(reason=reason)
    except GetNotPermittedError:
        if not reason:
            raise
    return pointer.request(reason)
