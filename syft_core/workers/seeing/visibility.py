"""Visibility: for a peer from which a policy hides an object, the object does not exist, whatever the message.

``require_visible`` is called for every message before its handler, so that an object that is hidden and one that does
not exist give the same answer.
"""

from __future__ import annotations

from collections.abc import Iterable

from syft_core.exceptions import IdNotUniqueError
from syft_core.hook.rules import leaves
from syft_core.messages import Message
from syft_core.peer import Id, Peer
from syft_core.pointers.object_pointer import id_here
from syft_core.workers.party.store import Stored
from syft_core.workers.seeing.permissions import ObjectOwner, is_hidden


def find_visible(worker: ObjectOwner, id: Id, sender: Peer) -> Stored:
    """Return an object; raise if it does not exist, or is hidden from the sender, who cannot tell which."""
    stored = worker.object_store.get(id)
    if stored is None or is_hidden(worker, stored, sender):
        raise worker.object_store.explain_missing(id, None if worker.custom_policy is None else sender.id)
    return stored


def require_visible(worker: ObjectOwner, message: Message, sender: Peer) -> None:
    """Raise if a message uses an object that does not exist for its sender, or chooses an id that may be taken."""
    for id in find_ids(worker, message):
        find_visible(worker, id, sender)
    require_choosable(worker, message.facts.creates(message, worker.id), sender)


def find_ids(worker: ObjectOwner, message: Message) -> list[Id]:
    """Return the ids of all objects of a worker that a message refers to."""
    pointed_to = [id_here(leaf, worker.id) for leaf in leaves(message.operands)]
    return [*message.facts.uses(message, worker.id), *[id for id in pointed_to if id is not None]]


def require_choosable(worker: ObjectOwner, ids: Iterable[Id], sender: Peer) -> None:
    """Raise if an id is a name, and the worker hides objects.

    An id that is taken is refused, so choosing the id of a hidden object would reveal that it exists. Names, which
    owners choose, can be guessed; numbers have 62 random bits.
    """
    if sender.id != worker.id and getattr(worker.custom_policy, "hides", False):
        for id in ids:
            if type(id) is str:
                raise IdNotUniqueError.reserved(id, str(worker.id))
