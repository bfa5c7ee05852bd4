"""VirtualWorker: a worker in this process, for development, tests and simulation."""

from __future__ import annotations

import os
from typing import Any

from syft_core.messages import Call, Fetch, Message, Run, Store
from syft_core.serde import Context, frames, from_frames
from syft_core.workers import codecs as _codecs  # noqa: F401  # registers what may travel
from syft_core.workers.base import BaseWorker
from syft_core.workers.results import from_named
from syft_core.workers.transfer import with_leases

BY_WIRE = os.environ.get("SYFT_SERIALIZE", "0") not in ("", "0")
"""Whether workers that are not told so themselves use the wire format: the environment variable ``SYFT_SERIALIZE``."""


class VirtualWorker(BaseWorker):
    """Answers at once, in the caller's thread; errors are raised as they are.

    With ``serialize=True`` every message goes through the wire format, as it would between machines; by default nothing
    that need not be encoded is encoded, and yet workers never share memory: what is sent and fetched is copied.
    ``SYFT_SERIALIZE=1`` in the environment makes the wire format the default, to try a whole program with it.

    Creating a worker with an id that is taken returns the worker that has it.
    """

    def __new__(cls, hook: Any = None, id: int | str = 0, *_args: Any, **_options: Any) -> VirtualWorker:
        """Return the worker that has this id, or a new one."""
        local = getattr(hook, "local_worker", None)
        known = local._known_workers.get(id) if local is not None else None
        return known if type(known) is cls else super().__new__(cls)

    def __init__(
        self, hook: Any = None, id: int | str = 0, *args: Any, serialize: bool | None = None, **options: Any
    ) -> None:
        if "object_store" in self.__dict__:
            return
        self.serialize = BY_WIRE if serialize is None else serialize
        super().__init__(hook, id, *args, **options)

    def carry(self, message: Message, sender: Any) -> Any:
        """Answer a message within this process."""
        if self.serialize:
            return self._carry_by_wire(message, sender)
        if isinstance(message, Store):
            message.value = self.hand_over(message.value, self)
        reply = self.handle(message, sender)
        return self.hand_over(reply, sender) if isinstance(message, Fetch | Call) else reply

    def _carry_by_wire(self, message: Message, sender: Any) -> Any:
        context = Context(worker=sender)
        if isinstance(message, Store):
            message.value = with_leases(message.value)
        if not isinstance(message, Run):
            return from_frames(self.deliver(frames(message, context), sender), context)
        framework = sender.attributes_of(message.framework)
        message.modes = framework.modes()
        return from_named(from_frames(self.deliver(frames(message, context), sender), context), framework)
