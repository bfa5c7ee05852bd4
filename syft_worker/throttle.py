"""Throttle: delay repeated wrong tokens of one address."""

from __future__ import annotations

import ipaddress
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

FREE = 5
"""Number of failures of one address without consequence."""
MAX_SECONDS = 60.0
FORGET_AFTER = 600.0
"""Seconds without a failure after which an address starts again."""
MAX_ADDRESSES = 10_000
_PREFIX = 64
"""Number of bits of an IPv6 address that name the network."""


class Throttle:
    """Makes an address wait after failures, each time twice as long, up to a minute.

    It never delays a valid token, or strangers could lock out an owner with whom they share an address. Tokens cannot
    be guessed at any speed; this limits what strangers write to the log. The addresses of one IPv6 network count as
    one: a single machine has as many of them as it likes.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failures: OrderedDict[str, tuple[int, float]] = OrderedDict()
        """The number of failures of each address, and when the last one was; the latest is last."""

    def wait_for(self, address: str) -> float:
        """Return how many seconds an address must wait before its next attempt."""
        with self._lock:
            count, last = self._failures.get(_to_network(address), (0, 0.0))
        pause = 0.0 if count < FREE else min(2.0 ** min(count - FREE, 10), MAX_SECONDS)
        return max(last + pause - self._clock(), 0.0)

    def note_failure(self, address: str) -> None:
        """Count a failure."""
        with self._lock:
            network = _to_network(address)
            count, last = self._failures.pop(network, (0, 0.0))
            now = self._clock()
            self._failures[network] = (1 if now - last > FORGET_AFTER else count + 1), now
            if len(self._failures) > MAX_ADDRESSES:
                self._failures.popitem(last=False)


def _to_network(address: str) -> str:
    """Return the network of an IPv6 address, and any other address unchanged."""
    try:
        parsed = ipaddress.IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    mapped = parsed.ipv4_mapped
    return str(ipaddress.IPv6Network((parsed, _PREFIX), strict=False) if mapped is None else mapped)
