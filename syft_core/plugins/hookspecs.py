"""The hooks with which a plugin extends syft-core.

A plugin is a module that implements some of these functions, marked with ``hookimpl``, and is listed in the entry-point
group ``syft_core``. Each hook receives the registry or function to register with. All are called when the plugin
is registered, except ``register_operations``, for every framework that is hooked, before or after that, and
``register_commands``, for the command line.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TypeAlias

import pluggy

from syft_core.hook.attributes import FrameworkAttributes
from syft_core.plugins.backend import Backend
from syft_core.registry import Registry
from syft_core.values import Json

PROJECT = "syft_core"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
Commands: TypeAlias = "argparse._SubParsersAction[Json]"


@hookspec
def register_backends(backends: Registry[str, Backend]) -> None:
    """Register a ``Backend`` for each supported framework, without importing the framework."""


@hookspec
def register_tensor_types(register: Callable[..., None]) -> None:
    """Call ``register(YourTensor)`` for each tensor type; it takes the arguments of ``default_register_tensor``."""


@hookspec
def register_codecs(register: Callable[..., object]) -> None:
    """Call ``register(YourType, code=..., simplify=..., detail=...)``; see ``syft_core.serde.register_codec``.

    A backend registers the codecs of its framework's types when its hook is loaded, because they need the framework.
    """


@hookspec
def register_errors(register: Callable[..., None]) -> None:
    """Call ``register(YourError)`` to preserve its class when it is sent; see ``syft_core.serde.register_failure``."""


@hookspec
def register_messages(register: Callable[..., None]) -> None:
    """Call ``register(YourMessage, handler)`` for each kind of message; see ``syft_core.messages.register_message``.

    A plugin of another distribution uses wire codes of 1000 or more.
    """


@hookspec
def register_kinds(register: Callable[..., None]) -> None:
    """Call ``register(YourClass, kind)`` to let workers store objects other than tensors; see ``kinds.py``."""


@hookspec
def register_rules(register: Callable[..., None]) -> None:
    """Call ``register(name, rule)`` to let objects leave that a policy keeps; see ``departures.py``."""


@hookspec
def register_members(register: Callable[..., None]) -> None:
    """Call ``register(cls, YourClass)`` to add the public members of your class to a class of the kernel."""


@hookspec
def register_operations(attributes: FrameworkAttributes) -> None:
    """Add operations to the op table of a framework that has just been hooked, with ``attributes.allow(function)``."""


@hookspec
def register_commands(commands: Commands) -> None:
    """Add commands to the command line ``syft-core``: ``commands.add_parser(name).set_defaults(run=function)``."""
