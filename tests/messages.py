"""All messages, of the features too."""

from __future__ import annotations

import importlib.util

from syft_core.messages import HANDLERS, Message
from syft_core.plugins.manager import plugin_manager


def list_commands() -> list[type[Message]]:
    """Return the kinds of messages that workers of this library handle, in the order of their codes."""
    if importlib.util.find_spec("torch") is not None:
        import syft_torch.hook  # noqa: F401, PLC0415  # its features need it
    plugin_manager().load_all()
    return sorted([kind for kind in HANDLERS if kind.__module__.startswith("syft_")], key=lambda kind: kind.code)
