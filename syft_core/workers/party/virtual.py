"""VirtualWorker: a worker in this process, for development, tests and simulation."""

from __future__ import annotations

import inspect
import os
from collections.abc import Sequence
from typing import Any, TypeVar

from syft_core.exceptions import WorkerIdTakenError
from syft_core.features import Later
from syft_core.hook.hook import FrameworkHook
from syft_core.location import Location, Party
from syft_core.messages import Message
from syft_core.peer import Id
from syft_core.serde import PEER_LIMITS, Limits
from syft_core.values import Outcome
from syft_core.workers.addresses.local import LocalLocation
from syft_core.workers.moving import codecs as _codecs  # noqa: F401  # registers codecs
from syft_core.workers.party.base import BaseWorker
from syft_core.workers.seeing.ledger import Ledger
from syft_core.workers.seeing.permissions import Policy, find_policy, unless_private

BY_WIRE = os.environ.get("SYFT_SERIALIZE", "0") not in ("", "0")
"""The default of ``serialize``, from the environment variable ``SYFT_SERIALIZE``."""


_LOOPBACK = Later("syft_core.workers.addresses.loopback:LoopbackLocation")
V = TypeVar("V", bound="VirtualWorker")


class VirtualWorker(BaseWorker):
    """A worker in this process, which also acts as its own location for the local worker.

    It executes immediately, in the caller's thread, and errors are raised directly. With ``serialize=True`` every
    message goes through the wire format, as it would between machines. By default nothing is encoded, but workers
    never share memory: objects are copied when they are sent or fetched. ``SYFT_SERIALIZE=1`` in the environment makes
    the wire format the default.

    Creating a worker whose id is in use returns the existing worker, so that a notebook cell can run twice; the given
    options must match.
    """

    is_virtual = True
    """It keeps nothing secret from this process."""

    def __new__(cls: type[V], hook: Any = None, id: Id = 0, *args: Any, **options: Any) -> V:
        """Return the existing worker with this id, if its options match, or a new one."""
        if isinstance(hook, str):
            raise TypeError(
                f"cannot create a worker: its first argument is the hook, not {hook!r}; "
                f"write `{cls.__name__}(hook, id={hook!r})`"
            )
        local = getattr(hook, "local_worker", None)
        known = local._known_workers.get(id) if local is not None else None
        if type(known) is not cls:
            return super().__new__(cls)
        for name, value in {**dict(zip(_OPTIONS, args, strict=False)), **options}.items():
            if not known._has_option(name, value):
                raise WorkerIdTakenError.differs(id, name)
        return known

    def __init__(
        self,
        hook: FrameworkHook | None = None,
        id: Id = 0,
        data: Sequence[object] | None = None,
        is_client_worker: bool = False,
        log_msgs: bool = False,
        verbose: bool = False,
        auto_add: bool = True,
        message_pending_time: float = 0,
        policy: Policy | str = unless_private,
        *,
        serialize: bool | None = None,
        limits: Limits = PEER_LIMITS,
        ledger: Ledger | None = None,
    ) -> None:
        if "object_store" in self.__dict__:
            return
        self._serialize = BY_WIRE if serialize is None else serialize
        options = (data, is_client_worker, log_msgs, verbose, auto_add, message_pending_time, policy)
        super().__init__(hook, id, *options, limits=limits, ledger=ledger)

    @property
    def serialize(self) -> bool:
        """Whether messages to this worker go through the wire format."""
        return self._serialize

    @serialize.setter
    def serialize(self, by_wire: bool) -> None:
        if by_wire != self._serialize:
            self._serialize = by_wire
            self.forget_locations()

    def _has_option(self, option: str, value: Any) -> bool:
        if option == "data":
            held = self.object_store.values().values()
            return all(any(obj is kept for kept in held) for obj in value or ())
        if option == "policy":
            return bool(self.policy == find_policy(value))
        return bool(value) if option == "auto_add" else bool(getattr(self, option, None) == value)

    def make_location(self, client: Party) -> Location:
        """Return the location of this worker for ``client``: direct, or through the wire format."""
        return _LOOPBACK(client, self) if self._serialize else LocalLocation(client, self)

    # --- the location of this worker for the local worker

    def ask(self, message: Message) -> Outcome:
        """Send a message from the local worker, and return the answer."""
        return self._for_local_worker().ask(message)

    def tell(self, message: Message) -> None:
        """Send a message from the local worker without waiting for an answer."""
        self._for_local_worker().tell(message)

    def flush(self) -> None:
        """Wait until all messages of the local worker have been executed."""
        self._for_local_worker().flush()

    def _for_local_worker(self) -> Location:
        return (self.hook.local_worker if self.hook is not None else self).location_of(self)


_OPTIONS = list(inspect.signature(BaseWorker).parameters)[2:]
