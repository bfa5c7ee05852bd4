"""Serialization: exact round trips, safe to read from untrusted senders, about as fast as a memory copy.

>>> from syft_core.serde import deserialize, serialize
>>> deserialize(serialize({"weights": (1, 2.5), 3: {True}}))
{'weights': (1, 2.5), 3: {True}}
"""

from syft_core.exceptions import SerdeError
from syft_core.serde.builtin import register_codecs as _register_builtin_codecs
from syft_core.serde.builtin import register_scalar_type
from syft_core.serde.codec import Codec, CodecTable, codecs, register_codec
from syft_core.serde.context import PEER_LIMITS, Context, Limits
from syft_core.serde.failures import register_failure
from syft_core.serde.message import deserialize, frames, from_frames, serialize

__all__ = [
    "PEER_LIMITS",
    "Codec",
    "CodecTable",
    "Context",
    "Limits",
    "SerdeError",
    "codecs",
    "deserialize",
    "frames",
    "from_frames",
    "register_codec",
    "register_failure",
    "register_scalar_type",
    "serialize",
]

_register_builtin_codecs(codecs)
