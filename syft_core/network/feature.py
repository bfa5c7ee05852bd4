"""What the network registers: errors that clients receive."""

from __future__ import annotations

from syft_core.network.errors import AddressError
from syft_core.plugins.hookspecs import RegisterError, hookimpl


@hookimpl
def register_errors(register: RegisterError) -> None:
    """Let the errors of the network be sent."""
    register(AddressError)
