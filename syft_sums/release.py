"""The release rule of sums: results leave inside sums that the owner's rules for sums permit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from syft_core.departures import ReleaseRule
from syft_core.features import Later
from syft_core.messages import Message
from syft_sums.history import SumHistory

if TYPE_CHECKING:
    from syft_core.workers.moving.departure import Leaving
    from syft_core.workers.party.worker import Worker

RULE = "aggregates"
_cover = Later("syft_sums.handlers:cover_sum")


def cover(leaving: Leaving) -> None:
    """Cover the masked result of a round, and nothing else."""
    if leaving.verb == "sum":
        _cover(leaving)


def finish(worker: Worker, message: Message) -> None:
    """Do nothing: the ledger counts the uses."""


def undo(worker: Worker, messages: Iterable[Message]) -> None:
    """Do nothing: without a line in the ledger, nothing was counted."""


ONLY_SUMS = ReleaseRule(cover, finish, undo, SumHistory)
