"""The errors of the limits that an operator sets."""

from __future__ import annotations

from syft_core.exceptions import Text, WorkerError


class QuotaExceededError(WorkerError):
    """A user would use more of a worker than its owner allows."""

    amount = Text(
        "cannot {command}: user {user!r} would then have {needed:,} {what} on the worker, and the limit is {limit:,}; "
        "delete pointers that you no longer need and call `flush()`, or ask the owner for more",
        order="command user what needed limit",
    )
    copies = Text(
        "cannot {command}: the objects would have {size:,} bytes when they leave, and the limit for user {user!r} is "
        "{limit:,}; fetch fewer objects at a time; for a view that repeats elements, fetch its base",
        order="command user size limit",
    )
    rate = Text(
        "cannot {command}: user {user!r} has used up the {limit:g} {what}; wait {seconds:.0f} seconds, or ask the "
        "owner for more",
        order="command user what limit seconds",
    )
