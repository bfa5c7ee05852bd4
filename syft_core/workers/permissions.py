"""Permissions: who may do what with an object of a worker.

Two questions are asked about each command. May the sender do that with an object that is theirs, or is not theirs?
The rules below answer it, and no policy overrides them. And does the owner of the worker agree? That is what the policy
of the worker is asked. A command that was sent on behalf of others needs both answers for every one of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from syft_core.exceptions import (
    GetNotPermittedError,
    PolicyError,
    TagNotPermittedError,
    TooManyHopsError,
    WriteNotPermittedError,
)
from syft_core.messages import Message, Release, Run
from syft_core.peer import Peer
from syft_core.tensors.private import get_allowed_users
from syft_core.workers.store import Stored

if TYPE_CHECKING:
    from syft_core.workers.worker import Worker

Verb: TypeAlias = Literal["read", "write", "move", "tag", "lease", "describe", "search", "call"]
Policy: TypeAlias = Callable[[Verb, Stored, Peer, Any], "str | None"]
"""Takes what is to be done, with which object, by whom, and the value that it is about: what would leave (the object,
its gradient, the result of a call) or would change. Returns None, or the reason for a refusal.

Restrictions of private tensors come first: a policy cannot lift them.
"""
MOST_HOPS = 16
"""How many workers may pass a request on."""


# --- policies


def unless_private(verb: Verb, stored: Stored, peer: Peer, value: Any) -> str | None:
    """Let everything leave but what is private, or was computed from something private; the default."""
    if stored.access is None or verb not in _LEAVING or peer.user in stored.access:
        return None
    return "it is private, or was computed from something private, and you are not among its allowed users"


def only_published(verb: Verb, stored: Stored, peer: Peer, value: Any) -> str | None:
    """Let nothing leave but what was published and not changed since; show nothing else that is somebody else's.

    The gradient of a published object, and what a function computes of one, were not published.
    """
    shown = verb not in _LEAVING and (verb not in _SHOWING or stored.published or is_own(stored, peer))
    if shown or (stored.published and not stored.touched and value is stored.value):
        return None
    return "this worker lets only published objects leave"


def nothing(verb: Verb, stored: Stored, peer: Peer, value: Any) -> str | None:
    """Let nothing leave; show neither names nor forms of what is somebody else's."""
    shown = verb not in _LEAVING and (verb not in _SHOWING or is_own(stored, peer))
    return None if shown else "this worker lets nothing leave"


_LEAVING = frozenset({"read", "move"})
_SHOWING = frozenset({"describe", "search"})
POLICIES: dict[str, Policy] = {policy.__name__: policy for policy in (unless_private, only_published, nothing)}


def find_policy(policy: Policy | str) -> Policy:
    """Return the policy that is meant: a function, or the name of one that is built in."""
    if isinstance(policy, str):
        if policy not in POLICIES:
            raise PolicyError.unknown(policy, POLICIES)
        return POLICIES[policy]
    try:
        inspect.signature(policy).bind("read", None, None, None)
    except (TypeError, ValueError):
        raise PolicyError.signature(policy) from None
    return policy


def refusal(worker: Worker, verb: Verb, stored: Stored, peer: Peer, value: Any) -> str | None:
    """Return why a peer, and everybody for whom it asks, may not do something; None if all may."""
    if stored.access is not None and stored.sources is stored.root:  # Its owner may have allowed others meanwhile.
        stored.access = get_allowed_users(stored.value)
    for party in peer.chain:
        why = unless_private(verb, stored, party, value)
        if why is None and worker.own_policy is not None:
            why = worker.own_policy(verb, stored, party, value)
        if why is not None:
            return why
    return None


def require_permission(worker: Worker, verb: Verb, stored: Stored, peer: Peer, value: Any) -> None:
    """Raise unless the policy of a worker lets a peer do something with an object."""
    why = refusal(worker, verb, stored, peer, value)
    if why is not None:
        if verb in _CHANGING:
            raise _CHANGING[verb].to(str(peer), stored.id, str(worker.id), why)
        raise GetNotPermittedError.to(str(peer), stored.id, str(worker.id), why, "get" if verb in _LEAVING else verb)


_CHANGING: dict[str, Any] = {"tag": TagNotPermittedError, "write": WriteNotPermittedError}


def may_leave(worker: Worker, objects: Iterable[Stored], sender: Peer) -> bool:
    """Return whether the policy would let each of ``objects`` leave to ``sender``."""
    return all(refusal(worker, "read", stored, sender, stored.value) is None for stored in objects)


# --- what is whose


def is_own(stored: Stored, party: Peer) -> bool:
    """Return whether an object was given by ``party``, made for it, or lent to it by somebody whose own it is."""
    if stored.holder in (None, party.id) or (stored.giver is not None and stored.giver.original == party):
        return True
    return party.id in stored.writers and stored.is_leased_to(party.id)


def may_change(worker: Worker, stored: Stored, sender: Peer) -> bool:
    """Return whether everybody who takes part in a request may change an object and what shares its memory.

    The worker itself may; of a published object, who published it; of any other, those whose own it is.
    """
    if stored.holder == sender.id and not (stored.published or stored.guard or sender.behalf):
        return True
    if stored.guard is not None and not may_change(worker, stored.guard, sender):
        return False
    return all(_has_authority(worker, stored, party) for party in sender.chain)


def _has_authority(worker: Worker, stored: Stored, party: Peer) -> bool:
    if party.id == worker.id:
        return True
    return stored.publisher == party if stored.published else is_own(stored, party)


def require_right_to_change(worker: Worker, stored: Stored, sender: Peer, value: Any) -> None:
    """Raise unless the sender may change an object."""
    if not may_change(worker, stored, sender):
        why = "it is published" if stored.published else "it, or memory that it shares, is somebody else's"
        raise WriteNotPermittedError.to(str(sender), stored.id, str(worker.id), why)
    require_permission(worker, "write", stored, sender, value)


def require_right_to_tag(worker: Worker, stored: Stored, sender: Peer, tags: Iterable[str] = ()) -> None:
    """Raise unless the sender may name an object: tags are how others find it, and what they take it for."""
    if not all(_has_authority(worker, stored, party) for party in sender.chain):
        raise TagNotPermittedError.to(str(sender), stored.id, str(worker.id), "it is somebody else's")
    require_free_tags(worker, tags, sender, stored)
    require_permission(worker, "tag", stored, sender, stored.value)


def require_free_tags(worker: Worker, tags: Iterable[str], sender: Peer, stored: Stored) -> None:
    """Raise if the worker itself has published something under one of ``tags``: others would take it for that."""
    if sender.id != worker.id and (reserved := worker.object_store.reserved(tags)):
        raise TagNotPermittedError.reserved(str(sender), stored.id, str(worker.id), reserved[0])


def require_right_to_publish(worker: Worker, stored: Stored, sender: Peer) -> None:
    """Raise unless ``sender`` gave the object itself, or may have it: publishing would let it leave."""
    if sender.behalf:
        raise TagNotPermittedError.to(str(sender), stored.id, str(worker.id), "only its own publisher can be named")
    if stored.giver != sender or stored.touched:
        require_permission(worker, "read", stored, sender, stored.value)


def is_findable(worker: Worker, stored: Stored, party: Peer) -> bool:
    """Return whether a search by ``party`` may find an object: what has a tag, is published, or is its own."""
    return bool(stored.tags or stored.published) or party.id == worker.id or is_own(stored, party)


def require_right_to_lease(worker: Worker, stored: Stored, sender: Peer) -> None:
    """Raise unless everybody who takes part in a request can find an object, or points to it already."""
    for party in sender.chain:
        if not (is_findable(worker, stored, party) or stored.is_leased_to(party.id)):
            why = "it is somebody else's, who has not given you a pointer to it"
            raise GetNotPermittedError.to(str(sender), stored.id, str(worker.id), why, "lease")
    require_permission(worker, "lease", stored, sender, stored.value)


# --- who asks


def require_identity(claimed: str | None, sender: Peer, id: Any, worker: str) -> None:
    """Raise when somebody claims to be another user than the transport says."""
    if claimed is not None and claimed != sender.user:
        why = f"the sender is known here as {str(sender)!r}, and a claimed user name is not authentication"
        raise GetNotPermittedError.to(claimed, id, worker, why)


def require_short_way(worker: Worker, message: Message, sender: Peer) -> None:
    """Raise if a request that others passed on has been here before, or was passed on too often.

    A backward pass may come back: the copies that it crosses can be on one worker by turns.
    """
    if type(message) is Release:
        return
    returns = type(message) is Run and worker.attributes_of(message.framework).command(message.op).accumulates
    been_here = not returns and worker.id in [party.id for party in sender.behalf[1:]]
    if been_here or len(sender.behalf) > MOST_HOPS:
        raise TooManyHopsError.at(str(worker.id))
