"""How layers cross the wire: their class attributes, their identity and their child."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from syft_core.exceptions import SerdeError
from syft_core.hook.rules import build_rule
from syft_core.serde import Codec, Context, codecs
from syft_core.serde.codec import require_user_code
from syft_core.values import LayerType, Payload, Tensor

_IDENTITY = {"id": "_syft_id", "tags": "_syft_tags", "description": "_syft_description"}
_CHECKS: dict[str, Callable[[Any], bool]] = {
    "id": lambda name: type(name) in (int, str),
    "tags": lambda tags: type(tags) is set and all(type(tag) is str for tag in tags),
    "description": lambda text: type(text) is str,
}


def get_identity(obj: object) -> dict[str, object]:
    """Return what is known of id, tags and description of anything in a chain."""
    known = {name: getattr(obj, attribute) for name, attribute in _IDENTITY.items()}
    return {name: value for name, value in known.items() if value is not None}


def set_identity(obj: object, identity: object) -> Tensor:
    """Put back what ``get_identity`` found, after looking at it."""
    if type(identity) is not dict or not _IDENTITY.keys() >= identity.keys():
        raise SerdeError("cannot rebuild a chain: its identity has unknown parts; send it again")
    for name, value in identity.items():
        if not _CHECKS[name](value):
            raise SerdeError(f"cannot rebuild a chain: its {name} has a wrong type; send it again")
        setattr(obj, _IDENTITY[name], value)
    return obj


def require_child(payload: object) -> Tensor:
    """Return a received child, if it is a tensor or a layer."""
    if build_rule(payload) != 1:
        raise SerdeError(f"cannot rebuild a chain: its child is a {type(payload).__name__}; send it again")
    return payload


def build_layer_codec(cls: LayerType, code: int, accepts: Callable[[dict[str, Any]], bool] | None = None) -> Codec:
    """Return the codec of a layer type whose class attributes can travel themselves.

    ``accepts`` looks at received attributes before the layer is made: they come from a peer, and may have any type.
    """
    expected = cls().get_class_attributes().keys()

    def simplify(layer: Tensor, _context: Context) -> tuple[object, ...]:
        return layer.get_class_attributes(), get_identity(layer), layer.child

    def detail(payload: Payload, _context: Context) -> Tensor:
        attributes, identity, child = payload
        if type(attributes) is not dict or attributes.keys() != expected:
            raise SerdeError(f"cannot rebuild a {cls.__name__}: its attributes are others; install the same release")
        if accepts is not None and not accepts(attributes):
            raise SerdeError(f"cannot rebuild a {cls.__name__}: an attribute has a wrong type (malformed message)")
        layer = set_identity(cls(**attributes), identity)
        if child is not None:
            layer.child = require_child(child)
        return layer

    return Codec(cls, code, simplify, detail, shared=True)


def register_layer_codec(cls: LayerType, code: int, accepts: Callable[[dict[str, Any]], bool] | None = None) -> None:
    """Let a layer type of your own travel, under a wire code of 1000 or more that both ends know."""
    require_user_code(code)
    codecs.register(build_layer_codec(cls, code, accepts))
