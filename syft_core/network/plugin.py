"""The plugin of the network: errors that clients receive."""

from __future__ import annotations

from collections.abc import Callable

from syft_core.network.errors import AddressError
from syft_core.plugins.hookspecs import hookimpl


@hookimpl
def register_errors(register: Callable[..., None]) -> None:
    """Let the errors of the network be sent."""
    register(AddressError)
