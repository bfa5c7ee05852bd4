"""Permissions: who may do what with an object of a worker.

Each command is checked twice: against the rules below, which depend on whether the object belongs to the sender and
which no policy overrides, and against the worker's policy. A command sent on behalf of others must pass both checks for
each of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from syft_core.exceptions import (
    GetNotPermittedError,
    PolicyError,
    TagNotPermittedError,
    TicketError,
    TooManyHopsError,
    WriteNotPermittedError,
)
from syft_core.hook.attributes import FrameworkAttributes
from syft_core.messages import Message, Release, Run
from syft_core.peer import Id, Peer
from syft_core.tensors.private import get_allowed_users
from syft_core.workers.party.status import ADDITIONS, RESTRICTED
from syft_core.workers.party.store import ObjectStore, Stored

Verb: TypeAlias = Literal["read", "write", "move", "tag", "lease", "describe", "search", "call", "sum"]
Policy: TypeAlias = Callable[[Verb, Stored, Peer, Any], "str | None"]
"""Takes the verb, the object, the peer, and the value that would leave (the object, its gradient, the result of a call)
or change. Returns None, or the reason for refusing. It is not asked about "sum", which always needs a rule.

Restrictions of private tensors are checked first: a policy cannot lift them.
"""
P = TypeVar("P", bound=Policy)
MAX_HOPS = 16
"""The maximum number of workers that may forward a request."""

MAX_TAGS = 64
"""The maximum number of tags of an object."""


class ObjectOwner(Protocol):
    """A worker, as far as permissions depend on it."""

    id: Id
    status: int
    object_store: ObjectStore

    @property
    def custom_policy(self) -> Policy | None:
        """The policy, or None for the default."""

    def attributes_of(self, framework: str) -> FrameworkAttributes:
        """Return the op table of a framework that is hooked here."""


# --- policies


def unless_private(verb: Verb, stored: Stored, peer: Peer, value: object) -> str | None:
    """Let everything leave except private objects and values computed from them; the default."""
    if stored.access is None or verb not in _LEAVING or peer.user in stored.access:
        return None
    return "it is private, or was computed from something private, and you are not among its allowed users"


def hides_objects(policy: P) -> P:
    """Mark a policy that hides objects by refusing "describe" and "search", so that peers cannot guess their ids."""
    policy.hides = True  # type: ignore[attr-defined]  # functions have attributes
    return policy


@hides_objects
def only_published(verb: Verb, stored: Stored, peer: Peer, value: object) -> str | None:
    """Let only published objects leave, unchanged since, and hide the unpublished objects of others.

    The gradient of a published object, and what a function computes from it, do not count as published.
    """
    shown = verb not in _LEAVING and (verb not in _SHOWING or stored.published or belongs_to(stored, peer))
    if shown or (stored.published and not stored.touched and value is stored.value):
        return None
    return "this worker lets only published objects leave"


@hides_objects
def nothing(verb: Verb, stored: Stored, peer: Peer, value: object) -> str | None:
    """Let nothing leave, and hide names and forms of objects that belong to others."""
    shown = verb not in _LEAVING and (verb not in _SHOWING or belongs_to(stored, peer))
    return None if shown else "this worker lets nothing leave"


_LEAVING = frozenset({"read", "move"})
_SHOWING = frozenset({"describe", "search"})
POLICIES: dict[str, Policy] = {policy.__name__: policy for policy in (unless_private, only_published, nothing)}


def find_policy(policy: Policy | str) -> Policy:
    """Return a policy, given as a function or as the name of a built-in one."""
    if isinstance(policy, str):
        if policy not in POLICIES:
            raise PolicyError.unknown(policy, POLICIES)
        return POLICIES[policy]
    try:
        inspect.signature(policy).bind("read", None, None, None)
    except (TypeError, ValueError):
        raise PolicyError.signature(policy) from None
    return policy


def refusal(worker: ObjectOwner, verb: Verb, stored: Stored, peer: Peer, value: object) -> str | None:
    """Return why a peer, or one on whose behalf it acts, may not do something; None if all of them may."""
    if not (stored.status | worker.status) & RESTRICTED:
        return None
    renew_access(stored)
    for party in peer.chain:
        why = unless_private(verb, stored, party, value)
        if why is None and worker.custom_policy is not None:
            why = worker.custom_policy(verb, stored, party, value)
        if why is not None:
            return why
    return None


def renew_access(stored: Stored) -> None:
    """Update who may have a sent or loaded private object: its owner may have changed the allowed users."""
    if stored.access is not None and stored.sources is stored.root:
        users = get_allowed_users(stored.value)
        stored.restrict(stored.access if users is None else users)  # A result in its place has no such layer.


def require_permission(worker: ObjectOwner, verb: Verb, stored: Stored, peer: Peer, value: object) -> None:
    """Raise unless the policy of a worker permits ``verb`` on an object to a peer."""
    why = refusal(worker, verb, stored, peer, value)
    if why is not None:
        if verb in _CHANGING:
            raise _CHANGING[verb].to(str(peer), stored.id, str(worker.id), why)
        raise GetNotPermittedError.to(str(peer), stored.id, str(worker.id), why, "get" if verb in _LEAVING else verb)


_CHANGING: dict[str, Any] = {"tag": TagNotPermittedError, "write": WriteNotPermittedError}


def may_leave(worker: ObjectOwner, objects: Iterable[Stored], sender: Peer) -> bool:
    """Return whether the policy would let each of ``objects`` leave to ``sender``, and no feature restricts them.

    Only the stage of such a feature knows what may leave, so results and failures must not disclose values.
    """
    for stored in objects:
        if stored.status & ADDITIONS or refusal(worker, "read", stored, sender, stored.value) is not None:
            return False
    return True


def require_right_to_use(worker: ObjectOwner, operands: Iterable[Stored], sender: Peer) -> None:
    """Raise unless the sender may know the forms of objects: results and errors reveal them."""
    if worker.custom_policy is not None:
        for stored in operands:
            require_permission(worker, "describe", stored, sender, stored.value)


# --- ownership


def belongs_to(stored: Stored, party: Peer) -> bool:
    """Return whether ``party`` sent an object, had it computed, or was lent it by a peer it belongs to."""
    if stored.holder in (None, party.id) or (stored.giver is not None and stored.giver.original == party):
        return True
    return party.id in (stored.writers or ()) and stored.is_leased_to(party.id)


def may_change(worker: ObjectOwner, stored: Stored, sender: Peer) -> bool:
    """Return whether everyone involved in a request may change an object and what shares its memory.

    The worker itself may change everything, a publisher what it published, and others what belongs to them.
    """
    if stored.holder == sender.id and not (stored.published or stored.guard or sender.behalf):
        return True
    if stored.guard is not None and not may_change(worker, stored.guard, sender):
        return False
    return all(_has_authority(worker, stored, party) for party in sender.chain)


def _has_authority(worker: ObjectOwner, stored: Stored, party: Peer) -> bool:
    if party.id == worker.id:
        return True
    return stored.publisher == party if stored.published else belongs_to(stored, party)


def require_right_to_change(worker: ObjectOwner, stored: Stored, sender: Peer, value: object) -> None:
    """Raise unless the sender may change an object."""
    if not may_change(worker, stored, sender):
        why = "it is published" if stored.published else "it, or memory that it shares, belongs to someone else"
        raise WriteNotPermittedError.to(str(sender), stored.id, str(worker.id), why)
    require_permission(worker, "write", stored, sender, value)


def require_right_to_tag(worker: ObjectOwner, stored: Stored, sender: Peer, tags: Iterable[str] = ()) -> None:
    """Raise unless the sender may tag an object: others find and identify it by its tags."""
    if not all(_has_authority(worker, stored, party) for party in sender.chain):
        raise TagNotPermittedError.to(str(sender), stored.id, str(worker.id), "it belongs to someone else")
    require_free_tags(worker, tags, sender, stored)
    require_permission(worker, "tag", stored, sender, stored.value)


def require_free_tags(worker: ObjectOwner, tags: Iterable[str], sender: Peer, stored: Stored) -> None:
    """Raise if there are too many tags, or the worker itself has published an object under one, to avoid confusion."""
    if len(stored.tags.union(tags)) > MAX_TAGS:
        raise TagNotPermittedError.to(str(sender), stored.id, str(worker.id), f"the limit is {MAX_TAGS} tags")
    for tag, published in () if sender.id == worker.id else worker.object_store.find_reserved(tags):
        if not is_hidden(worker, published, sender):
            raise TagNotPermittedError.reserved(str(sender), stored.id, str(worker.id), tag)


def require_right_to_publish(worker: ObjectOwner, stored: Stored, sender: Peer) -> None:
    """Raise unless ``sender`` sent the object or may read it: publishing would let it leave."""
    if sender.behalf:
        why = "objects cannot be published on behalf of others"
        raise TagNotPermittedError.to(str(sender), stored.id, str(worker.id), why)
    if stored.giver != sender or stored.touched:
        require_permission(worker, "read", stored, sender, stored.value)


def is_findable(worker: ObjectOwner, stored: Stored, party: Peer) -> bool:
    """Return whether ``party`` may find an object: it is tagged, published, or belongs to ``party``."""
    return bool(stored.tags or stored.published) or party.id == worker.id or belongs_to(stored, party)


def is_hidden(worker: ObjectOwner, stored: Stored, sender: Peer) -> bool:
    """Return whether the policy hides an object that the sender cannot find otherwise."""
    if worker.custom_policy is None or refusal(worker, "describe", stored, sender, stored.value) is None:
        return False
    parties = sender.chain
    if all(stored.is_leased_to(party.id) for party in parties):
        return False
    is_found = all(is_findable(worker, stored, party) for party in parties)
    return not is_found or refusal(worker, "search", stored, sender, stored.value) is not None


def require_right_to_lease(worker: ObjectOwner, stored: Stored, sender: Peer) -> None:
    """Raise unless everyone involved in a request can find an object, or already has a pointer to it."""
    for party in sender.chain:
        if not (is_findable(worker, stored, party) or stored.is_leased_to(party.id)):
            why = "it belongs to someone else, who has not given you a pointer to it"
            raise GetNotPermittedError.to(str(sender), stored.id, str(worker.id), why, "lease")
    require_permission(worker, "lease", stored, sender, stored.value)


# --- senders


def require_identity(claimed: str | None, sender: Peer, id: object, worker: str) -> None:
    """Raise if the claimed user is not the user that the transport authenticated."""
    if claimed is not None and claimed != sender.user:
        why = f"the sender is known here as {str(sender)!r}, and a claimed user name is not authentication"
        raise GetNotPermittedError.to(claimed, id, worker, why)


def require_delegable(message: Message, sender: Peer) -> None:
    """Raise if a message sent on behalf of others concerns only its sender."""
    if message.facts.is_personal:
        raise TicketError.personal(type(message).__name__, str(sender))


def require_few_hops(worker: ObjectOwner, message: Message, sender: Peer) -> None:
    """Raise if a forwarded request has been here before, or was forwarded too often.

    A backward pass may return, because it can cross copies on alternating workers.
    """
    if type(message) is Release:
        return
    returns = type(message) is Run and worker.attributes_of(message.framework).command(message.op).accumulates
    been_here = not returns and worker.id in [party.id for party in sender.behalf[1:]]
    if been_here or len(sender.behalf) > MAX_HOPS:
        raise TooManyHopsError.at(str(worker.id))
