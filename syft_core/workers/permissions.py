"""Policies: what may leave a worker, and to whom. One function decides, on every road out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from syft_core.exceptions import GetNotPermittedError, TagNotPermittedError
from syft_core.peer import Id, Peer
from syft_core.tensors.private import get_allowed_users
from syft_core.workers.store import Stored

if TYPE_CHECKING:
    from syft_core.workers.worker import Worker

Policy: TypeAlias = Callable[[Stored, "str | None"], "str | None"]
"""Takes an object and a user, and returns None, or the reason why the object may not leave.

It is asked only about what is not private, or is private and allows the user.
"""


def unless_private(stored: Stored, user: str | None) -> str | None:
    """Let everything leave but what is private, or was computed from something private; the default."""
    access = stored.access
    if access is None or user in access:
        return None
    return "it is private, or was computed from something private, and you are not among its allowed users"


def only_published(stored: Stored, user: str | None) -> str | None:
    """Let nothing leave but what was published and not changed since."""
    if not stored.published or stored.touched:
        return "this worker lets only published objects leave"
    return None


def nothing(stored: Stored, user: str | None) -> str | None:
    """Let nothing leave."""
    return "this worker lets nothing leave"


def require_permission(policy: Policy, stored: Stored, peer: Peer, id: Id, worker: str) -> None:
    """Raise unless ``policy`` lets ``stored`` leave to ``peer``."""
    if stored.sources == {id}:  # Its owner may have allowed others since it was stored.
        stored.access = get_allowed_users(stored.value)
    why = _refusal(policy, stored, peer.user)
    if why is not None:
        raise GetNotPermittedError.to(str(peer), id, worker, why)


def _refusal(policy: Policy, stored: Stored, user: str | None) -> str | None:
    """Return why an object may not leave: what is private stays, whatever a policy says of it."""
    why = unless_private(stored, user)
    return policy(stored, user) if why is None and policy is not unless_private else why


def require_right_to_publish(worker: Worker, stored: Stored, id: Id, sender: Peer) -> None:
    """Raise unless ``sender`` gave the object itself, or may have it: publishing would let it leave."""
    if stored.giver != sender or stored.touched:
        require_permission(worker.policy, stored, sender, id, str(worker.id))


def require_right_to_tag(worker: Worker, stored: Stored, id: Id, sender: Peer) -> None:
    """Raise unless the object was made for ``sender``, or nobody published it and the sender points to it.

    Tags and descriptions are how others find an object and what they take it for, and anybody may point to what is
    published.
    """
    if sender.id in (worker.id, stored.holder) or stored.giver == sender:
        return
    if stored.published or not stored.is_leased_to(sender.id):
        raise TagNotPermittedError.to(str(sender), id, str(worker.id))


def require_identity(claimed: str | None, sender: Peer, id: Any, worker: str) -> None:
    """Raise when somebody claims to be another user than the transport says."""
    if claimed is not None and claimed != sender.user:
        why = f"the sender is known here as {str(sender)!r}, and a claimed user name is not authentication"
        raise GetNotPermittedError.to(claimed, id, worker, why)


def may_leave(worker: Worker, objects: Iterable[Stored], sender: Peer) -> bool:
    """Return whether the policy would let each of ``objects`` leave to ``sender``."""
    return all(_refusal(worker.policy, stored, sender.user) is None for stored in objects)
