"""How vectors, and the chains on them, cross the wire."""

from __future__ import annotations

from typing import Any

import toy

from syft_core.serde import Codec, Context, SerdeError
from syft_core.tensors.codecs import build_wrapper_codec
from syft_toy.wrapper import Wrapper

_KINDS = {kind.__name__: kind for kind in (float, int, bool)}


def _simplify_vector(vector: toy.Vector, _context: Context) -> tuple[Any, ...]:
    return vector.dtype.__name__, vector.tolist()


def _detail_vector(payload: Any, _context: Context) -> toy.Vector:
    kind, values = payload
    if type(values) is not list or any(type(value) is not _KINDS[kind] for value in values):
        raise SerdeError("cannot rebuild a vector: expected a list of numbers of one type (malformed message)")
    return toy.Vector(values)


CODECS = (
    Codec(toy.Vector, 1500, _simplify_vector, _detail_vector, shared=True),
    build_wrapper_codec(Wrapper, 1501, Wrapper),
)
