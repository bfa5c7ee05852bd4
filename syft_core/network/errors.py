"""The errors of connecting to a worker."""

from __future__ import annotations

from syft_core.exceptions import ConnectionLostError, Text


class AddressError(ConnectionLostError):
    """There is no worker at an address, or it is reached in another way: connecting again does not help."""

    wrong = Text("cannot connect to {url}: {why}; {advice}")
