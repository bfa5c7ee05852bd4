"""The hooks with which a plugin extends syft-core.

A plugin is a module that implements some of these functions, marked with ``hookimpl``, and is listed in the entry-point
group ``syft_core``. Each hook receives the registry or function to register with. All are called when the plugin
is registered, except ``register_operations``, for every framework that is hooked, before or after that, and
``register_commands``, for the command line.

The module of a plugin should be cheap to import. Move expensive parts to a separate module with the same hooks, and
describe it in ``register_features``: it is registered on first use.
"""

from __future__ import annotations

import argparse
from typing import Protocol, TypeAlias

import pluggy

from syft_core.departures import ReleaseRule
from syft_core.features import Feature
from syft_core.hook.attributes import FrameworkAttributes
from syft_core.kinds import ObjectKind
from syft_core.messages import Handler, Message
from syft_core.plugins.backend import Backend
from syft_core.registry import Registry
from syft_core.serde.codec import Detail, Simplify
from syft_core.values import Json

PROJECT = "syft_core"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
Commands: TypeAlias = "argparse._SubParsersAction[Json]"


class RegisterFeature(Protocol):
    """The function that ``register_features`` receives."""

    def __call__(self, *features: Feature) -> None:
        """Describe something that is loaded when it is first used."""


class RegisterTensorTypes(Protocol):
    """The function that ``register_tensor_types`` receives."""

    def __call__(self, *tensorcls: type) -> None:
        """Register layers; see ``hook_args.default_register_tensor``."""


class RegisterCodec(Protocol):
    """The function that ``register_codecs`` receives."""

    def __call__(
        self,
        type: type,
        *,
        code: int,
        simplify: Simplify,
        detail: Detail,
        subclasses: bool = False,
        shared: bool = False,
    ) -> None:
        """Register the codec of a class; see ``serde.register_codec``."""


class RegisterError(Protocol):
    """The function that ``register_errors`` receives."""

    def __call__(self, kind: type[Exception]) -> None:
        """Preserve the class of an error when it is sent; see ``serde.register_failure``."""


class RegisterMessage(Protocol):
    """The function that ``register_messages`` receives."""

    def __call__(self, kind: type[Message], handler: Handler, abandon: Handler | None = None) -> None:
        """Register a message with its handler, and what to do if it is skipped; see ``messages.register_message``."""


class RegisterKind(Protocol):
    """The function that ``register_kinds`` receives."""

    def __call__(self, cls: type, kind: ObjectKind) -> None:
        """Let workers store objects of a class; see ``kinds.register_kind``."""


class RegisterRule(Protocol):
    """The function that ``register_rules`` receives."""

    def __call__(self, name: str, rule: ReleaseRule) -> None:
        """Consult a rule about objects that a policy withholds; see ``departures.register_rule``."""


@hookspec
def register_backends(backends: Registry[str, Backend]) -> None:
    """Register a ``Backend`` for each supported framework, without importing the framework."""


@hookspec
def register_features(register: RegisterFeature) -> None:
    """Call ``register(Feature(...))`` for parts to load on first use; see ``syft_core.features``."""


@hookspec
def register_tensor_types(register: RegisterTensorTypes) -> None:
    """Call ``register(YourTensor)`` for each tensor type; it takes the arguments of ``default_register_tensor``."""


@hookspec
def register_codecs(register: RegisterCodec) -> None:
    """Call ``register(YourType, code=..., simplify=..., detail=...)``; see ``syft_core.serde.register_codec``.

    A backend registers the codecs of its framework's types when its hook is loaded, because they need the framework.
    """


@hookspec
def register_errors(register: RegisterError) -> None:
    """Call ``register(YourError)`` to preserve its class when it is sent; see ``syft_core.serde.register_failure``."""


@hookspec
def register_messages(register: RegisterMessage) -> None:
    """Call ``register(YourMessage, handler)`` for each kind of message; see ``syft_core.messages.register_message``.

    A plugin of another distribution uses wire codes of 1000 or more.
    """


@hookspec
def register_kinds(register: RegisterKind) -> None:
    """Call ``register(YourClass, kind)`` to let workers store objects other than tensors; see ``kinds.py``."""


@hookspec
def register_rules(register: RegisterRule) -> None:
    """Call ``register(name, rule)`` to let objects leave that a policy withholds; see ``departures.py``."""


@hookspec
def register_operations(attributes: FrameworkAttributes) -> None:
    """Add operations to the op table of a framework that has just been hooked, with ``attributes.allow(function)``."""


@hookspec
def register_commands(commands: Commands) -> None:
    """Add commands to the command line ``syft-core``: ``commands.add_parser(name).set_defaults(run=function)``."""
