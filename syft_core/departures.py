"""Release rules: let objects leave that the policy of a worker withholds, and follow up when they have arrived."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

from syft_core.exceptions import RegistryError
from syft_core.features import FEATURES
from syft_core.messages import Message
from syft_core.registry import Registry
from syft_core.values import Given


class LedgerHistory(Protocol):
    """The part of the ledger file that a rule needs when a worker starts."""

    def note(self, entry: Any) -> None:
        """Process the next entry that names a request or a rule."""


@dataclass(frozen=True)
class ReleaseRule:
    """Lets objects leave that the policy of a worker withholds, on conditions of its owner.

    Rules are asked in order of registration, each about the objects that earlier rules do not cover.
    """

    cover: Callable[[Given], None]
    """A function of a ``Leaving`` (``workers/moving/departure.py``), which calls its ``cover`` for what may leave."""
    finish: Callable[[Given, Message], None]
    """A function of the worker and a message: use up the permissions of objects that have left with the answer."""
    undo: Callable[[Given, Iterable[Message]], None]
    """A function of the worker and messages: give back the permissions of objects that have not left."""
    make_history: Callable[[], LedgerHistory]
    """Create the reader of a worker's ledger."""


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
    """Ask ``rule`` about everything the policy of a worker withholds; registering it again has no effect."""
    if not isinstance(rule, ReleaseRule):
        raise RegistryError(
            f"cannot register the rule {name!r}: it has the type {type(rule).__name__}; make a `ReleaseRule`"
        )
    RULES.register(name, rule)
