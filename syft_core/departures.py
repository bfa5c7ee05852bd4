"""The door for rules: what lets objects leave that the policy of a worker keeps, and what follows when they arrive."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

from syft_core.features import FEATURES
from syft_core.registry import Registry


class LedgerHistory(Protocol):
    """What a rule takes from the ledger file when a worker starts."""

    def note(self, entry: Any) -> None:
        """Take note of the next entry that names a request or a rule."""


@dataclass(frozen=True)
class ReleaseRule:
    """Lets objects leave that the policy of a worker keeps, on conditions of its owner.

    Rules are asked in the order in which they were registered, each about what the ones before it do not cover.
    """

    cover: Callable[..., None]
    """A function of a ``Leaving``, see ``workers/moving/departure.py``: call its ``cover`` for what may leave."""
    finish: Callable[..., None]
    """A function of the worker and a message: use up what let objects leave with the answer, because they have left."""
    undo: Callable[..., None]
    """A function of the worker and messages: give back what would have let objects leave, because nothing has left."""
    make_history: Callable[[], LedgerHistory]
    """Return what takes note of the ledger of a worker."""


_arrivals: ContextVar[list[Callable[[], None]] | None] = ContextVar("arrivals", default=None)


@contextmanager
def collect_arrivals() -> Iterator[list[Callable[[], None]]]:
    """Collect what is to be done when the answers of a block have arrived, for a transport that will know."""
    collected: list[Callable[[], None]] = []
    token = _arrivals.set(collected)
    try:
        yield collected
    finally:
        _arrivals.reset(token)


def on_arrival(action: Callable[[], None]) -> None:
    """Call ``action`` under the lock of the worker when what leaves now has arrived: at once if nobody will know."""
    collected = _arrivals.get()
    if collected is None:
        action()
    else:
        collected.append(action)


RULES: Registry[str, ReleaseRule] = Registry("rules", advice="register it with `register_rule`")


def find_rules() -> list[ReleaseRule]:
    """Return all rules, after loading the features that have some."""
    FEATURES.load_all("rule")
    return list(RULES.values())


def register_rule(name: str, rule: ReleaseRule) -> None:
    """Ask a rule about whatever the policy of a worker keeps; registering the same again has no effect."""
    RULES.register(name, rule)
