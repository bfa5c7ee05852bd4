"""The plugin of workers on Ray: errors that clients receive."""

from __future__ import annotations

from collections.abc import Callable

from syft_core.plugins.hookspecs import hookimpl
from syft_ray.errors import ActorLostError, RayStartError


@hookimpl
def register_errors(register: Callable[..., None]) -> None:
    """Let the errors of Ray be sent."""
    for error in (ActorLostError, RayStartError):
        register(error)
