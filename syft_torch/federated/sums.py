"""Fetch results that may leave, and ask owners for those that may not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from syft_core.exceptions import GetNotPermittedError
from syft_core.peer import Id
from syft_core.tensors.private import remove_restriction
from syft_core.values import Nested, Tensor
from syft_worker.desk.errors import ReleasePendingError
from syft_worker.desk.handle import RequestHandle


class Aggregation(Protocol):
    """What sums results over workers, so that only the sum can be read: ``fl.SecureAggregation``."""

    def sum_up(self, results: Mapping[Id, Tensor]) -> Tensor:
        """Return the sum of flat tensors, one on each worker."""


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
