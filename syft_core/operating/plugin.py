"""The plugin of operators: errors that clients receive."""

from __future__ import annotations

from collections.abc import Callable

from syft_core.operating.errors import QuotaExceededError
from syft_core.plugins.hookspecs import hookimpl


@hookimpl
def register_errors(register: Callable[..., None]) -> None:
    """Let the errors of operators be sent."""
    for error in (QuotaExceededError,):
        register(error)
