"""Computation on encrypted values: additive secret shares and the protocols on them.

Each name is loaded when it is first used: plugins are imported by every program.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from syft_core.values import Nested

if TYPE_CHECKING:
    from syft_mpc.group import count, find_group, prepare

__all__ = ["count", "find_group", "prepare"]


def __getattr__(name: str) -> Nested:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, getattr(import_module("syft_mpc.group"), name))
