"""Allowances: what each user may do on a worker, as its owner configures it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from syft_core.peer import Peer
from syft_core.workers.party.store import Stored
from syft_core.workers.seeing.permissions import POLICIES, Policy, hides_objects

DEFAULT = "default"
"""The name of the entry for users who have none of their own."""


@dataclass(frozen=True)
class Allowance:
    """What one user may do; None means no limit.

    The defaults are far above what a program needs. Rates have no default limit: a lone user may use the whole
    processor, and several users take turns.
    """

    policy: Literal["unless_private", "only_published", "nothing"] | None = None
    """The policy for this user, instead of that of the worker."""
    tier: Literal["public", "reviewed"] = "public"
    """Which operations the user may run: all, or only those that were reviewed for private data."""
    objects: int | None = 100_000
    bytes: int | None = None
    """The memory of the user's objects, including that of a result before it is computed; ``syft-core worker`` limits
    it to half of the process's memory."""
    leases: int | None = 1_000_000
    """Maximum number of pointers of the user."""
    cpu_seconds: float | None = None
    """Per minute; threads that the framework starts for one operation count once."""
    messages: float | None = None
    """Per second."""
    connections: int | None = 100
    crashes: int | None = 5
    """Crashes of the worker's process by the user in ``limits.ban_seconds`` after which the user may not connect."""


def find_allowance(users: Mapping[str, Allowance], user: str) -> Allowance:
    """Return the allowance of a user: their own entry, or the default one."""
    return users.get(user) or users.get(DEFAULT) or Allowance()


def limit_bytes(users: Mapping[str, Allowance], limit: int) -> dict[str, Allowance]:
    """Return what users may do, with a limit for the memory of all who have none of their own."""
    known = {DEFAULT: Allowance(), **users}
    return {name: replace(user, bytes=limit) if user.bytes is None else user for name, user in known.items()}


def make_policy(users: Mapping[str, Allowance], otherwise: Policy) -> Policy:
    """Return a policy that asks the policy of each user; ``otherwise`` decides for users without one."""
    if not any(allowance.policy for allowance in users.values()):
        return otherwise
    chosen = {name: POLICIES[allowance.policy] for name, allowance in users.items() if allowance.policy}

    def by_user(verb: Any, stored: Stored, peer: Peer, value: Any) -> str | None:
        policy = chosen.get(peer.user or "") if peer.user in users else chosen.get(DEFAULT)
        return (policy or otherwise)(verb, stored, peer, value)

    hides = any(getattr(policy, "hides", False) for policy in (otherwise, *chosen.values()))
    return hides_objects(by_user) if hides else by_user
