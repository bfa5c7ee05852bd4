"""The door for rules: what lets objects leave that the policy of a worker keeps. Features register them."""

from __future__ import annotations

from collections.abc import Callable
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


RULES: Registry[str, ReleaseRule] = Registry("rules", advice="register it with `register_rule`")


def find_rules() -> list[ReleaseRule]:
    """Return all rules, after loading the features that have some."""
    FEATURES.load_all("rule")
    return list(RULES.values())


def register_rule(name: str, rule: ReleaseRule) -> None:
    """Ask a rule about whatever the policy of a worker keeps; registering the same again has no effect."""
    RULES.register(name, rule)
