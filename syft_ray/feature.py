"""Registers workers on Ray: errors that clients receive."""

from __future__ import annotations

from syft_core.plugins.hookspecs import RegisterError, hookimpl
from syft_ray.errors import ActorLostError, RayStartError


@hookimpl
def register_errors(register: RegisterError) -> None:
    """Let the errors of Ray be sent."""
    for error in (ActorLostError, RayStartError):
        register(error)
