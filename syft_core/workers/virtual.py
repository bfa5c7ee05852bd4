"""VirtualWorker: a worker in this process, for development, tests and simulation."""

from __future__ import annotations

import inspect
import os
from typing import Any

from syft_core.exceptions import WorkerIdTakenError
from syft_core.messages import Call, Fetch, FetchAll, Message, Run, Store
from syft_core.serde import Context, frames, from_frames
from syft_core.workers import codecs as _codecs  # noqa: F401  # registers what may travel
from syft_core.workers.base import BaseWorker
from syft_core.workers.results import from_named
from syft_core.workers.transfer import give_away, with_leases

BY_WIRE = os.environ.get("SYFT_SERIALIZE", "0") not in ("", "0")
"""Whether workers that are not told so themselves use the wire format: the environment variable ``SYFT_SERIALIZE``."""


class VirtualWorker(BaseWorker):
    """Answers at once, in the caller's thread; errors are raised as they are.

    With ``serialize=True`` every message goes through the wire format, as it would between machines; by default nothing
    that need not be encoded is encoded, and yet workers never share memory: what is sent and fetched is copied.
    ``SYFT_SERIALIZE=1`` in the environment makes the wire format the default, to try a whole program with it.

    Creating a worker with an id that is taken returns the worker that has it, so that a cell of a notebook may run
    twice; options that are given must be those which that worker has.
    """

    def __new__(cls, hook: Any = None, id: int | str = 0, *args: Any, **options: Any) -> VirtualWorker:
        """Return the worker that has this id, if it has the options that are given, or a new one."""
        local = getattr(hook, "local_worker", None)
        known = local._known_workers.get(id) if local is not None else None
        if type(known) is not cls:
            return super().__new__(cls)
        for name, value in {**dict(zip(_OPTIONS, args, strict=False)), **options}.items():
            if not known._has(name, value):
                raise WorkerIdTakenError.differs(id, name)
        return known

    def __init__(
        self, hook: Any = None, id: int | str = 0, *args: Any, serialize: bool | None = None, **options: Any
    ) -> None:
        if "object_store" in self.__dict__:
            return
        self.serialize = BY_WIRE if serialize is None else serialize
        super().__init__(hook, id, *args, **options)

    def _has(self, option: str, value: Any) -> bool:
        """Say whether this worker is as if it had been made with an option."""
        if option == "data":
            held = self.object_store.values().values()
            return all(any(obj is kept for kept in held) for obj in value or ())
        return bool(value) if option == "auto_add" else bool(getattr(self, option, None) == value)

    def carry(self, message: Message, sender: Any) -> Any:
        """Answer a message within this process."""
        if self.serialize:
            return self._carry_by_wire(message, sender)
        kind = type(message)
        if kind is Store:
            self._receive(message)
        reply = self.handle(message, sender)
        if kind is FetchAll:
            return give_away(reply, sender)
        return self.hand_over(reply, sender) if kind is Fetch or kind is Call else reply

    def _receive(self, message: Any) -> None:
        """Make what is to be stored this worker's own."""
        if message.given:
            values, message.value = [message.value], None
            (message.value,) = give_away(values, self)
        else:
            message.value = self.hand_over(message.value, self)

    def _carry_by_wire(self, message: Message, sender: Any) -> Any:
        context = Context(worker=sender)
        if isinstance(message, Store):
            message.value = with_leases(message.value, self)
        if not isinstance(message, Run):
            return from_frames(self.deliver(frames(message, context), sender), context)
        framework = sender.attributes_of(message.framework)
        message.modes = framework.modes()
        return from_named(from_frames(self.deliver(frames(message, context), sender), context), framework)


_OPTIONS = list(inspect.signature(BaseWorker).parameters)[2:]
"""The names of a worker's options, in the order in which they may be given after the hook and the id."""
