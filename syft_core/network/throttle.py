"""Throttle: slows down whoever guesses secrets."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

FREE = 5
"""How many failures of one address have no consequence."""
MAX_SECONDS = 60.0
FORGET_AFTER = 600.0
"""Seconds without a failure after which an address starts again."""
MAX_ADDRESSES = 10_000


class Throttle:
    """Makes an address wait after failures, each time twice as long, up to a minute.

    Attempts during that time are refused unseen: otherwise parallel guesses would not be slowed down.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failures: OrderedDict[str, tuple[int, float]] = OrderedDict()
        """The number of failures of each address, and when the last one was; the latest is last."""

    def wait_for(self, address: str) -> float:
        """Return how many seconds an address must wait before its next attempt."""
        with self._lock:
            count, last = self._failures.get(address, (0, 0.0))
        pause = 0.0 if count < FREE else min(2.0 ** min(count - FREE, 10), MAX_SECONDS)
        return max(last + pause - self._clock(), 0.0)

    def note_failure(self, address: str) -> None:
        """Count a failure."""
        with self._lock:
            count, last = self._failures.pop(address, (0, 0.0))
            now = self._clock()
            self._failures[address] = (1 if now - last > FORGET_AFTER else count + 1), now
            if len(self._failures) > MAX_ADDRESSES:
                self._failures.popitem(last=False)
