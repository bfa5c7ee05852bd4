"""Status: special properties of a command's operands, its sender and its worker, as bits.

``workers/road/procedure.py`` chooses the stages of a task from these bits: an empty status means that it only has to
run. The object store maintains the status of each object, and a worker its own.
"""

from __future__ import annotations

import itertools
from functools import partial

from syft_core.exceptions import AlreadyRegisteredError, RegistryError
from syft_core.features import FEATURES
from syft_core.registry import Registry

# --- of an object

PRIVATE = 1 << 0
"""Only some users may have it."""
LAYERED = 1 << 1
"""It is a chain, not a plain tensor."""
REMOTE = 1 << 2
"""It ends in a pointer to another worker."""
PUBLISHED = 1 << 3
GUARDED = 1 << 4
"""It shares memory with an object of another peer."""
FAILED = 1 << 5
"""An operation failed while computing it, so its value is a substitute."""
LINKED = 1 << 6
"""It is a copy that sends its gradient back, or has such copies."""
FORM_ONLY = 1 << 7
"""It has a form and no data."""
ADDED = ((1 << 8) - 1) << 24
"""The bits that features may add; see ``add_bit``."""
ADDED_INHERITED = ADDED << 8
ADDITIONS = ADDED | ADDED_INHERITED
"""All restrictions of features."""
INHERITED = PRIVATE | FAILED | ADDED_INHERITED
"""The bits that an object passes on to everything computed from it."""

# --- of a command

FOREIGN = 1 << 8
"""An operand was stored or computed for another peer."""
DELEGATED = 1 << 9
"""The sender acts on behalf of others."""
MODES = 1 << 10
"""The sender's modes differ from those of the worker."""
OUT = 1 << 11
"""It has an argument ``out``."""
WRITES = 1 << 12
"""It passes an argument by position that the operation changes and that could have been left out."""

# --- of a worker

POLICY = 1 << 16
"""It has a policy of its own."""
QUOTA = 1 << 17
"""It limits what users may use."""
JOURNAL = 1 << 18
STORAGE = 1 << 19
"""It writes changed objects to disk."""
LOGGED = 1 << 20
"""It stores all messages."""
VERBOSE = 1 << 21
"""It logs all messages."""
DELAYED = 1 << 22
"""It delays its answers."""
STOPPING = 1 << 23
"""Its server is stopping, so it executes nothing more."""

OBSERVED = POLICY | QUOTA | JOURNAL | STORAGE | LOGGED | VERBOSE | DELAYED | STOPPING
"""Something in addition to handling a message depends on it."""
OTHERS = FOREIGN | PUBLISHED | GUARDED | DELEGATED
"""An object may belong to someone other than the sender, or the sender acts for someone."""

RESTRICTED = PRIVATE | POLICY | ADDITIONS
"""Something limits the sender's knowledge of an object. Nothing does if its status, joined with that of its worker, has
none of these bits; test that in no other way.
"""

DECISIVE = ADDITIONS | FAILED | FORM_ONLY | LAYERED | MODES | OTHERS | OUT | POLICY | PRIVATE | QUOTA | REMOTE | WRITES
"""The bits that determine the stages of an operation."""

RESTRICTIONS: Registry[str, int] = Registry(
    "restrictions", advice="install the plugin that provides it", load=partial(FEATURES.load, "restriction")
)
"""The bits of the restrictions of features, by name."""
_places = {False: itertools.count(24), True: itertools.count(32)}


def add_bit(name: str, inherited: bool = False) -> int:
    """Return the bit for a restriction of a feature; results of operations inherit it if ``inherited``.

    Set it with ``ObjectStore.mark``; ``procedure.add_stage`` adds the stage that enforces it. Workers store
    its name with their objects, so a plugin lists it in ``Feature.restrictions``.
    """
    allowed = ADDED_INHERITED if inherited else ADDED
    if name not in RESTRICTIONS:
        bit = 1 << next(_places[inherited])
        if not bit & allowed:
            raise RegistryError(f"cannot add the restriction {name!r}: there are already eight; remove a plugin")
        RESTRICTIONS.register(name, bit)
    elif not RESTRICTIONS[name] & allowed:
        raise AlreadyRegisteredError.of("restrictions", repr(name))
    return RESTRICTIONS[name]


def name_restrictions(status: int) -> list[str]:
    """Return the names of the restrictions of features in a status."""
    return [name for name, bit in RESTRICTIONS.items() if status & bit] if status & ADDITIONS else []
