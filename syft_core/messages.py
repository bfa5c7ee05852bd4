"""The closed set of things that workers say to each other; each has one handler in ``workers/handlers.py``.

Results are named by the caller: the tensors in the result of a command take the ids ``result``, ``result + 1``, … in
the order in which they stand. So a command needs no reply for its caller to go on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from syft_core.exceptions import SerdeError
from syft_core.serde import Codec, Context, codecs


@dataclass(slots=True)
class Message:
    """One thing said; subclasses add what it is about."""


@dataclass(slots=True)
class Store(Message):
    """Keep an object under an id, for as long as somebody holds a pointer to it or, when published, for good."""

    id: int | str
    value: Any
    publish: bool = False
    origin: Any = None
    """A pointer to what ``value`` is a copy of, if the gradient that it gets is to go back there."""
    holder: Any = None
    """Whose pointer it is, if not the sender's."""
    given: bool = False
    """Whether the sender keeps nothing of ``value``: what nobody else has need not be copied within one process."""


@dataclass(slots=True)
class Run(Message):
    """Run an operation of the op table on objects that are here; keep the tensors of its result."""

    framework: str
    op: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: int
    modes: tuple[Any, ...] | None = None
    """Grad mode, inference mode and default dtype of the caller; None within one process, where they are the same."""


@dataclass(slots=True)
class Fetch(Message):
    """Hand over an object, or an attribute of one; with ``keep`` a copy of it stays."""

    id: int | str
    attr: str | None = None
    keep: bool = False
    user: str | None = None
    reason: str = ""


@dataclass(slots=True)
class FetchAll(Message):
    """Hand over several objects: all of them, or none when one may not leave."""

    ids: tuple[int | str, ...]
    user: str | None = None
    reason: str = ""


@dataclass(slots=True)
class Forward(Message):
    """Send an object on to another worker, which keeps it under ``new_id``; with ``keep`` a copy of it stays."""

    id: int | str
    attr: str | None
    destination: Any
    new_id: int
    keep: bool = False
    requires_grad: bool = False


@dataclass(slots=True)
class Lease(Message):
    """Count one more pointer to each of these objects: the sender's own, or that of a worker to which it gives one."""

    ids: tuple[int | str, ...]
    holder: Any = None


@dataclass(slots=True)
class Release(Message):
    """Count one pointer of the sender less to each of these objects; what nobody points to is dropped."""

    ids: tuple[int | str, ...]


@dataclass(slots=True)
class Describe(Message):
    """Say what form an object, or an attribute of one, has: never what it holds."""

    id: int | str
    attr: str | None = None


@dataclass(slots=True)
class DescribeAll(Message):
    """Say what forms several objects have, or the same attribute of each."""

    ids: tuple[int | str, ...]
    attr: str | None = None


@dataclass(slots=True)
class Tag(Message):
    """Add tags to an object, or a description; with ``publish`` keep it for good."""

    id: int | str
    tags: tuple[str, ...] = ()
    description: str | None = None
    publish: bool = False


@dataclass(slots=True)
class Search(Message):
    """Find objects by tags, ids and words of their description; all must match."""

    query: tuple[Any, ...]


@dataclass(slots=True)
class Call(Message):
    """Call a callable that is stored here."""

    id: int | str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: int


@dataclass(slots=True)
class Placed(Message):
    """Stands in a reply for a tensor that stayed where it was made."""

    id: int


@dataclass(slots=True)
class Named(Message):
    """Stands in a reply for a named tuple of a framework, which both sides have in a table."""

    name: str
    items: tuple[Any, ...]


@dataclass(slots=True)
class SendOn(Message):
    """Send an object on to another worker, and keep in its place a pointer to where it is now."""

    id: int | str
    destination: Any


@dataclass(slots=True)
class GetBack(Message):
    """Fetch what a pointer that is stored here points to, and keep it in the pointer's place."""

    id: int | str


MESSAGES: tuple[type[Message], ...] = (
    Store,
    Run,
    Fetch,
    Forward,
    Lease,
    Release,
    Describe,
    Tag,
    Search,
    Call,
    Placed,
    Named,
    SendOn,
    GetBack,
    FetchAll,
    DescribeAll,
)
FIRST_CODE = 300


_KINDS: dict[str, type] = {"int": int, "str": str, "bool": bool, "dict[str, Any]": dict}


def _takes(annotation: str) -> Callable[[Any], bool]:
    """Return what checks a part of a message that came from outside, made from the annotation of the field.

    >>> [_takes("int | str")(part) for part in (1, "x", True, None)]
    [True, True, False, False]
    >>> [_takes("tuple[int | str, ...] | None")(part) for part in ((1, "x"), (1, [2]), 1, None)]
    [True, False, False, True]
    """
    if annotation == "Any":
        return lambda _part: True
    if annotation.endswith(" | None"):
        given = _takes(annotation.removesuffix(" | None"))
        return lambda part: part is None or given(part)
    if annotation.startswith("tuple["):
        item = _takes(annotation.removeprefix("tuple[").removesuffix(", ...]"))
        return lambda part: type(part) is tuple and all(map(item, part))
    kinds = [_KINDS[word] for word in annotation.split(" | ")]
    return lambda part: type(part) in kinds


def _codec(kind: type[Message], code: int) -> Codec:
    names = [field.name for field in fields(kind)]
    takes = [_takes(str(field.type)) for field in fields(kind)]

    def simplify(message: Any, _context: Context) -> tuple[Any, ...]:
        return tuple([getattr(message, name) for name in names])

    def detail(payload: list[Any], _context: Context) -> Message:
        if len(payload) != len(names):
            raise SerdeError(
                f"cannot read a {kind.__name__}: it has other parts; install the same release at both ends"
            )
        for name, part, check in zip(names, payload, takes, strict=True):
            if not check(part):
                raise SerdeError(f"cannot read a {kind.__name__}: its {name} has a wrong type; send it again")
        return kind(*payload)

    return Codec(kind, code, simplify, detail)


for _number, _kind in enumerate(MESSAGES):
    codecs.register(_codec(_kind, FIRST_CODE + _number))
