"""The errors of connecting to a worker."""

from __future__ import annotations

from syft_core.exceptions import ConnectionLostError, Text


class AddressError(ConnectionLostError):
    """No worker can be reached at an address in this way: connecting again does not help."""

    wrong = Text("cannot connect to {url}: {why}; {advice}")


class ProxyError(ConnectionLostError):
    """A proxy at an address cannot reach the worker at the moment."""

    answered = Text(
        "cannot reach the worker: a proxy answers with HTTP status {status}; wait until the worker is running"
    )
