"""The hooks through which a plugin extends syft-core.

A plugin is a module with functions of these names, marked with ``hookimpl`` and named in the entry-point group
``syft_core``. Each hook hands over what the plugin may fill. A plugin that comes late is called all the same: the first
three hooks are historic in pluggy's sense, and ``register_operations`` is repeated for every framework that is hooked.
"""

from __future__ import annotations

from collections.abc import Callable

import pluggy

from syft_core.hook.attributes import FrameworkAttributes
from syft_core.plugins.backend import Backend
from syft_core.registry import Registry

PROJECT = "syft_core"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec(historic=True)
def register_backends(backends: Registry[str, Backend]) -> None:
    """Enter a ``Backend`` for each framework that the plugin serves; nothing of the framework is imported yet."""


@hookspec(historic=True)
def register_tensor_types(register: Callable[..., None]) -> None:
    """Call ``register(YourTensor)`` for each tensor type of the plugin, as ``default_register_tensor`` would."""


@hookspec(historic=True)
def register_codecs(register: Callable[..., object]) -> None:
    """Call ``register(YourType, code=..., simplify=..., detail=...)`` as ``syft_core.serde.register_codec`` would.

    The codecs of a framework's own types need the framework; a backend registers those when its hook is loaded.
    """


@hookspec
def register_operations(attributes: FrameworkAttributes) -> None:
    """Add operations to the op table of a framework that has just been hooked, with ``attributes.allow(function)``."""
