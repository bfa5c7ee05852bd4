"""Codecs for layers: class attributes, identity and child."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from syft_core.exceptions import SerdeError
from syft_core.hook.rules import build_rule
from syft_core.serde import Codec, Context, codecs
from syft_core.serde.codec import require_user_code
from syft_core.serde.received import require
from syft_core.values import LayerType, Payload, Tensor

IDENTITY: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "id": ("_syft_id", lambda name: type(name) in (int, str)),
    "tags": ("_syft_tags", lambda tags: type(tags) is set and all(type(tag) is str for tag in tags)),
    "description": ("_syft_description", lambda text: type(text) is str),
}
"""The attribute that stores each part of an identity, and its validator."""


def get_identity(obj: object) -> dict[str, object]:
    """Return the id, tags and description of a tensor or layer, if they are set."""
    known = {name: getattr(obj, attribute) for name, (attribute, _) in IDENTITY.items()}
    return {name: value for name, value in known.items() if value is not None}


def set_identity(obj: object, identity: object) -> Tensor:
    """Validate the received result of ``get_identity`` and set it on ``obj``."""
    if type(identity) is not dict or not IDENTITY.keys() >= identity.keys():
        raise SerdeError("cannot rebuild a chain: its identity has unknown fields (malformed message)")
    for name, value in identity.items():
        attribute, is_valid = IDENTITY[name]
        if not is_valid(value):
            raise SerdeError(f"cannot rebuild a chain: its {name} has a wrong type (malformed message)")
        setattr(obj, attribute, value)
    return obj


def require_child(payload: object) -> Tensor:
    """Return a received child; raise unless it is a tensor or a layer."""
    require(build_rule(payload) == 1, f"a chain: expected a tensor or a layer as child, got {type(payload).__name__}")
    return payload


def build_wrapper_codec(cls: LayerType, code: int, wrap: Callable[[Tensor], Tensor]) -> Codec:
    """Return a codec for the wrapper of a framework; ``wrap`` creates one on a layer or a tensor."""

    def detail(payload: Payload, _context: Context) -> Tensor:
        identity, child = payload
        return set_identity(wrap(require_child(child)), identity)

    return Codec(cls, code, lambda wrapper, _: (get_identity(wrapper), wrapper.child), detail, shared=True)


def build_layer_codec(cls: LayerType, code: int, accepts: Callable[[dict[str, Any]], bool] | None = None) -> Codec:
    """Return a codec for a layer type with serializable class attributes.

    ``accepts`` validates received attributes, which may have any type, before the layer is created.
    """
    expected = cls().get_class_attributes().keys()

    def simplify(layer: Tensor, _context: Context) -> tuple[object, ...]:
        return layer.get_class_attributes(), get_identity(layer), layer.child

    def detail(payload: Payload, _context: Context) -> Tensor:
        attributes, identity, child = payload
        if type(attributes) is not dict or attributes.keys() != expected:
            raise SerdeError(f"cannot rebuild a {cls.__name__}: its attributes differ; install the same release")
        if accepts is not None and not accepts(attributes):
            raise SerdeError(f"cannot rebuild a {cls.__name__}: an attribute has a wrong type (malformed message)")
        layer = set_identity(cls(**attributes), identity)
        if child is not None:
            layer.child = require_child(child)
        return layer

    return Codec(cls, code, simplify, detail, shared=True)


def register_layer_codec(cls: LayerType, code: int, accepts: Callable[[dict[str, Any]], bool] | None = None) -> None:
    """Register a codec for your own layer type, under the same wire code (1000 or more) at both ends."""
    require_user_code(code)
    codecs.register(build_layer_codec(cls, code, accepts))
