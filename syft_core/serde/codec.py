"""The codec table: which types can be sent, under which wire code, and how they are encoded.

Wire codes never change; ``tests/serde/golden.json`` records them.

======== ==========================================================
0-2      the structure itself (buffer, back reference, long node)
3-99     builtin types, in ``builtin.py``
100-149  arrays of the numeric backend that ships with syft-core
150-249  tensors of the deep-learning backend that ships with syft-core
250-299  layers and chains
300-399  messages between workers
400-999  reserved
1000-    free for users
======== ==========================================================
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

from syft_core.exceptions import AlreadyRegisteredError, SerdeError
from syft_core.features import FEATURES
from syft_core.registry import Registry
from syft_core.serde.context import Context
from syft_core.values import Payload

BUFFER, REFERENCE, LONG = 0, 1, 2
FIRST_USER_CODE = 1000
LAST_CODE = 2**31 - 1

Simplify: TypeAlias = Callable[[Any, Context], Sequence[Any]]
Detail: TypeAlias = Callable[[Payload, Context], object]


def qualified_name(kind: type) -> str:
    """Return the name of a class with its module; builtins have none."""
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


@dataclass(frozen=True)
class Codec:
    """How one type is encoded: ``simplify`` returns a tuple of serializable values, ``detail`` rebuilds from it.

    With ``subclasses`` the codec is used for subclasses of ``type`` too. ``shared`` preserves identity: an object that
    occurs twice in one message is sent once, and is one object again at the receiver. With ``separate`` this holds only
    within the object: it shares nothing with its surroundings.
    """

    type: type
    code: int
    simplify: Simplify
    detail: Detail
    subclasses: bool = False
    shared: bool = False
    separate: bool = False


class CodecTable:
    """Codecs by type and by wire code; neither can be registered twice."""

    def __init__(self) -> None:
        self.by_type: Registry[type, Codec] = Registry("codecs", show=qualified_name)
        self._by_code: dict[int, Codec] = {}
        self.resolved: dict[type, Codec] = {}
        self.find = self._by_code.get
        """Return the codec with a wire code, or None."""

    def register(self, codec: Codec) -> None:
        """Register ``codec``; registering the same object again has no effect."""
        _check(codec)
        taken = self._by_code.get(codec.code)
        if taken is not None and taken is not codec:
            raise AlreadyRegisteredError.of("codecs", f"wire code {codec.code} ({qualified_name(taken.type)})")
        self.by_type.register(codec.type, codec)
        self._by_code[codec.code] = codec
        # The new codec may be a closer match for a class than the cached one.
        self.resolved.clear()

    @property
    def by_code(self) -> Mapping[int, Codec]:
        """Return a read-only view of the codecs by wire code."""
        return MappingProxyType(self._by_code)

    def for_type(self, kind: type) -> Codec:
        """Return the codec of ``kind``, or of its nearest base class whose codec covers subclasses."""
        found = self.resolved.get(kind)
        if found is None:
            FEATURES.load_codec(kind)  # This may register a codec of the class itself.
            found = self.by_type.get(kind) or self._find_inherited(kind)
            self.resolved[kind] = found
        return found

    def for_code(self, code: object) -> Codec:
        """Return the codec with the received wire code ``code``."""
        found = self._by_code.get(code) if type(code) is int else None
        if found is None and type(code) is int and FEATURES.load("code", code):
            found = self._by_code.get(code)
        if found is None:
            shown = code if type(code) is int else f"of type {type(code).__name__}"
            raise SerdeError(
                f"cannot read a node with wire code {shown}: no codec is registered for it; load the backend or plugin "
                f"that the sender uses, or register the same codec at both ends"
            )
        return found

    def _find_inherited(self, kind: type) -> Codec:
        for base in kind.__mro__[1:]:
            codec = self.by_type.get(base)
            if codec is not None and codec.subclasses:
                return codec
        raise SerdeError(self._explain_missing(kind))

    def _explain_missing(self, kind: type) -> str:
        if (reason := getattr(kind, "unsendable", None)) is not None:
            return f"cannot serialize a {kind.__name__}: {reason}"
        names = [qualified_name(known) for known in self.by_type]
        near = difflib.get_close_matches(qualified_name(kind), names, n=2)
        bases = [qualified_name(base) for base in kind.__mro__[1:] if base in self.by_type]
        hint = f" (it derives from {bases[0]}, whose codec would lose the class)" if bases else ""
        hint = hint or (f" (similar names: {', '.join(near)})" if near else "")
        return (
            f"cannot serialize a {qualified_name(kind)}: it has no codec{hint}; write one, e.g. "
            f"`register_codec({kind.__name__}, code={FIRST_USER_CODE}, "
            f"simplify=lambda obj, context: (obj.a, obj.b), "
            f"detail=lambda payload, context: {kind.__name__}(*payload))`, with the same code at both ends"
        )


codecs = CodecTable()


def register_codec(
    type: type, *, code: int, simplify: Simplify, detail: Detail, subclasses: bool = False, shared: bool = False
) -> Codec:
    """Make instances of your own class serializable, under a wire code of 1000 or more.

    >>> class Point:
    ...     def __init__(self, x, y):
    ...         self.x, self.y = x, y
    >>> codec = register_codec(
    ...     Point,
    ...     code=1_000_001,
    ...     simplify=lambda point, context: (point.x, point.y),
    ...     detail=lambda payload, context: Point(*payload),
    ... )
    >>> codecs.for_type(Point).code
    1000001
    """
    require_user_code(code)
    codec = Codec(type, code, simplify, detail, subclasses, shared)
    codecs.register(codec)
    return codec


def require_user_code(code: int) -> None:
    """Refuse a wire code that is reserved for syft-core."""
    if isinstance(code, int) and code < FIRST_USER_CODE:
        raise SerdeError(
            f"cannot register wire code {code}: codes below {FIRST_USER_CODE} are reserved; choose a higher one"
        )


def _check(codec: Codec) -> None:
    if not isinstance(codec.type, type):
        raise SerdeError("cannot register a codec: `type` must be a class; pass the class, not an instance")
    if type(codec.code) is not int or not LONG < codec.code <= LAST_CODE:
        raise SerdeError(
            f"cannot register a codec for {qualified_name(codec.type)}: its wire code must be an int above {LONG}; "
            f"choose one from {FIRST_USER_CODE} on"
        )
    if not (callable(codec.simplify) and callable(codec.detail)):
        raise SerdeError(
            f"cannot register a codec for {qualified_name(codec.type)}: simplify and detail must be functions; "
            f"pass `simplify(obj, context)` and `detail(payload, context)`"
        )
