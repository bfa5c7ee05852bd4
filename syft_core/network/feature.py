"""Register the network: errors that clients receive."""

from __future__ import annotations

from syft_core.network.errors import AddressError
from syft_core.plugins.hookspecs import RegisterError, hookimpl


@hookimpl
def register_errors(register: RegisterError) -> None:
    """Allow network errors to be sent."""
    register(AddressError)
