"""The messages between workers, the facts about each, and the function with which features register more.

The caller chooses the ids of results: the tensors in the result of a command get the ids ``result``, ``result + 1``, …
in order. The caller can therefore continue without waiting for a reply.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import Field, dataclass, fields, is_dataclass, replace
from functools import cache
from operator import attrgetter
from typing import Any, ClassVar, Protocol, cast

import msgpack

from syft_core.exceptions import AlreadyRegisteredError, RegistryError, SerdeError
from syft_core.features import FEATURES
from syft_core.hook.forms import Form, form, is_constant
from syft_core.hook.operators import operation_name
from syft_core.peer import Id, Peer
from syft_core.registry import takes
from syft_core.serde import Codec, Context, codecs
from syft_core.values import Args, Given, Payload

Find = Callable[[Any, Id], tuple[Id, ...]]
"""A function of a message and the id of the receiving worker."""


def _no_ids(_message: object, _receiver: Id) -> tuple[Id, ...]:
    return ()


@dataclass(frozen=True)
class MessageFacts:
    """What a kind of message does with stored objects, for code that treats all kinds alike."""

    text: Callable[[Given], str] = lambda message: type(message).__name__
    """Describes the message in a few words for traces and logs; never a value."""
    uses: Find = _no_ids
    """The ids of the stored objects that it names; its ``operands`` may point to others."""
    creates: Find = _no_ids
    """The ids that the sender chooses for new objects; further results get consecutive ids."""
    replaces: Find = _no_ids
    """The ids under which it replaces the stored object."""
    copies: Find = _no_ids
    """The ids of objects that the receiver copies and keeps."""
    sends: Find = _no_ids
    """The ids of objects whose values the receiver sends to another party."""
    takes: Find = _no_ids
    """The ids of objects that are removed once the answer is sent."""
    leases: Callable[[Given], int] = lambda _message: 0
    """The minimum number of leases it adds, apart from those on new objects."""
    mandate: Find | None = None
    """The objects that a ticket must name for a worker to send the message for a client; None if no ticket suffices."""
    gives: str = ""
    """The field with the object that the receiver stores, if any."""
    stores_results: bool = False
    """Whether the tensors in its result stay on the receiver; the reply names them."""
    returns_objects: bool = False
    """Whether the reply contains objects, which then belong to the sender of the message."""
    returns_masked: bool = False
    """Whether what it returns lets results leave, although no object: they are masked."""
    is_personal: bool = False
    """Whether it changes per-client state of the receiver: tickets, channels. Nobody can send it on behalf of others,
    because the sender itself claims for whom it acts.
    """
    waits: bool = False
    """Whether its handler may wait for other parties or yield to other commands; its operands are held meanwhile."""
    is_urgent: bool = False
    """Whether others wait for its execution, so that it is not buffered."""
    is_note: bool = False
    """Whether it has no reply unless it is refused, and writes its own frames; see ``Note``."""


@dataclass(slots=True)
class Message:
    """Base class of messages."""

    code: ClassVar[int]
    """The wire code, which must never change."""
    facts: ClassVar[MessageFacts] = MessageFacts()

    @property
    def expected(self) -> range:
        """The ids of the results that the sender expects; a failure poisons them."""
        return range(0)

    @property
    def operands(self) -> Args:
        """All fields that may contain pointers to stored objects, whatever their names.

        Pointers within an object that is given to the receiver point elsewhere.
        """
        return tuple([getattr(self, name) for name in _name_open_fields(type(self))])  # type: ignore[arg-type]  # classes are hashable


@cache
def _name_open_fields(kind: type[Message]) -> list[str]:
    annotations = {field.name: str(field.type) for field in fields(kind) if field.name != kind.facts.gives}
    return [name for name, annotation in annotations.items() if _ANY in _ALIASES.get(annotation, annotation)]


class Note(Protocol):
    """A message that a transport sends in its own frames, the first of which begins with the wire code."""

    def to_frames(self) -> list[Any]:
        """Return the message as frames."""

    @classmethod
    def from_frames(cls, fields: list[Any], rest: Sequence[Any]) -> Message:
        """Create the message from these fields, which follow the wire code, and further frames."""


def _one(message: Any, _receiver: Id) -> tuple[Id, ...]:
    return (message.id,)


def _all(message: Any, _receiver: Id) -> tuple[Id, ...]:
    return message.ids  # type: ignore[no-any-return]  # a tuple of ids


def _result(message: Any, _receiver: Id) -> tuple[Id, ...]:
    return (message.result,)


@dataclass(slots=True)
class Store(Message):
    """Store an object under an id: for as long as it has pointers or, if published, permanently."""

    code: ClassVar[int] = 300
    facts: ClassVar[MessageFacts] = MessageFacts(
        text=lambda m: "publish" if m.publish else "send", creates=_one, mandate=_one, gives="value"
    )
    id: int | str
    value: Any
    publish: bool = False
    origin: tuple[int | str, ...] | None = None
    """The worker id and the object id of the original, if it receives the gradient of this copy."""
    holder: int | str | None = None
    """The holder of the pointer, if not the sender: a peer on whose behalf the sender acts."""
    given: bool = False
    """Whether the sender gives up ownership, so that a receiver in the same process may skip the copy."""
    tags: tuple[str, ...] = ()
    description: str | None = None

    @property
    def expected(self) -> range:
        """The id of the object, if it is an integer."""
        return range(self.id, self.id + 1) if type(self.id) is int else range(0)


@dataclass(slots=True)
class Run(Message):
    """Run an operation of the op table on stored objects, and store the tensors of its result."""

    code: ClassVar[int] = 301
    facts: ClassVar[MessageFacts] = MessageFacts(
        text=lambda m: operation_name(m.op), creates=_result, mandate=_no_ids, stores_results=True, waits=True
    )
    framework: str
    op: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any] | None
    result: int
    modes: str | None = None
    """The caller's modes that affect the operation, such as grad mode; None within one process, which shares them."""
    count: int = -1
    """The predicted number of tensors in the result; -1 if the caller needs the result."""

    @property
    def expected(self) -> range:
        """The ids of the results."""
        return range(self.result, self.result + self.count) if 0 < self.count <= MAX_RESULTS else range(0)


@dataclass(slots=True)
class Fetch(Message):
    """Fetch an object, or an attribute of one; with ``keep`` the object stays.

    With ``known``, fetch only an object that was computed exclusively from what the sender sent.
    """

    code: ClassVar[int] = 302
    facts: ClassVar[MessageFacts] = MessageFacts(
        text=lambda m: "get a copy" if m.keep else "get",
        uses=_one,
        sends=_one,
        mandate=_one,
        takes=lambda m, _receiver: (m.id,) if m.attr is None and not m.keep else (),
        returns_objects=True,
        waits=True,
    )
    id: int | str
    attr: str | None = None
    keep: bool = False
    user: str | None = None
    reason: str = ""
    known: bool = False


@dataclass(slots=True)
class FetchAll(Message):
    """Fetch several objects, or none if one of them may not leave."""

    code: ClassVar[int] = 314
    facts: ClassVar[MessageFacts] = MessageFacts(
        text=lambda _m: "get", uses=_all, sends=_all, takes=_all, returns_objects=True, waits=True
    )
    ids: tuple[int | str, ...]
    user: str | None = None
    reason: str = ""


@dataclass(slots=True)
class Forward(Message):
    """Send an object to another worker, which stores it under ``new_id``; with ``keep`` the object stays."""

    code: ClassVar[int] = 303
    facts: ClassVar[MessageFacts] = MessageFacts(
        text=lambda m: f"{'copy' if m.keep else 'move'} to {m.destination}",
        uses=_one,
        mandate=_one,
        creates=lambda m, receiver: (m.new_id,) if receiver == m.destination else (),
        copies=lambda m, receiver: (m.id,) if receiver == m.destination else (),
        sends=lambda m, receiver: () if receiver == m.destination else (m.id,),
        waits=True,
    )
    id: int | str
    attr: str | None
    destination: int | str
    new_id: int
    keep: bool = False
    requires_grad: bool = False

    @property
    def expected(self) -> range:
        """The id of the copy."""
        return range(self.new_id, self.new_id + 1)


@dataclass(slots=True)
class Lease(Message):
    """Add a lease on each object for the sender, or for ``holder``, to whom the sender gives a pointer."""

    code: ClassVar[int] = 304
    facts: ClassVar[MessageFacts] = MessageFacts(
        text=lambda _m: "lease", uses=_all, mandate=_all, leases=lambda m: len(m.ids)
    )
    ids: tuple[int | str, ...]
    holder: int | str | None = None


@dataclass(slots=True)
class Release(Message):
    """Remove a lease of the sender on each object; objects without leases are removed."""

    code: ClassVar[int] = 305
    facts: ClassVar[MessageFacts] = MessageFacts(text=lambda _m: "release")
    ids: tuple[int | str, ...]
    lender: int | str | None = None
    """The worker that gave the sender these pointers, unless it is the receiver."""


@dataclass(slots=True)
class Describe(Message):
    """Return the forms of objects, or of one attribute of each."""

    code: ClassVar[int] = 306
    facts: ClassVar[MessageFacts] = MessageFacts(text=lambda _m: "ask the form", uses=_all, mandate=_all, waits=True)
    ids: tuple[int | str, ...]
    attr: str | None = None


@dataclass(slots=True)
class AskSchema(Message):
    """Return the schema of a table: its owner's description of the columns, and the id of its mock."""

    code: ClassVar[int] = 324
    facts: ClassVar[MessageFacts] = MessageFacts(text=lambda _m: "ask the columns", uses=_one, mandate=_one)
    id: int | str


@dataclass(slots=True)
class Tag(Message):
    """Add tags or a description to an object; with ``publish``, keep it permanently."""

    code: ClassVar[int] = 307
    facts: ClassVar[MessageFacts] = MessageFacts(text=lambda _m: "tag", uses=_one)
    id: int | str
    tags: tuple[str, ...] = ()
    description: str | None = None
    publish: bool = False


@dataclass(slots=True)
class Search(Message):
    """Find objects that match all of the given tags, ids and parts of descriptions."""

    code: ClassVar[int] = 308
    facts: ClassVar[MessageFacts] = MessageFacts(
        text=lambda m: f"search {' '.join(map(str, m.query))}".strip(), leases=lambda _m: 1
    )
    query: tuple[int | str, ...]


@dataclass(slots=True)
class Call(Message):
    """Call a stored callable."""

    code: ClassVar[int] = 309
    facts: ClassVar[MessageFacts] = MessageFacts(
        text=lambda _m: "call",
        uses=_one,
        creates=_result,
        mandate=_one,
        stores_results=True,
        returns_objects=True,
    )
    id: int | str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: int


@dataclass(slots=True)
class SendOn(Message):
    """Send an object to another worker, and store a pointer in its place."""

    code: ClassVar[int] = 312
    facts: ClassVar[MessageFacts] = MessageFacts(
        text=lambda m: f"send on to {m.destination}", uses=_one, sends=_one, waits=True
    )
    id: int | str
    destination: int | str
    new_id: int


@dataclass(slots=True)
class GetBack(Message):
    """Fetch the object that a stored pointer points to, and store it in place of the pointer."""

    code: ClassVar[int] = 313
    facts: ClassVar[MessageFacts] = MessageFacts(text=lambda _m: "get back", uses=_one, replaces=_one, waits=True)
    id: int | str


@dataclass(slots=True)
class GetTicket(Message):
    """Return a ticket with which the worker ``bearer`` may act for the sender on objects, existing or not."""

    code: ClassVar[int] = 321
    facts: ClassVar[MessageFacts] = MessageFacts(text=lambda m: f"get a ticket for {m.bearer}", is_personal=True)
    bearer: int | str
    ids: tuple[int | str, ...]


@dataclass(slots=True)
class Introduce(Message):
    """Give the receiver a ticket of another worker, which it may then reach on behalf of the sender."""

    code: ClassVar[int] = 322
    facts: ClassVar[MessageFacts] = MessageFacts(text=lambda m: f"introduce {m.worker}", is_personal=True)
    worker: int | str
    ticket: str


@dataclass(slots=True)
class Redeem(Message):
    """Use an additional ticket on a connection that was opened with one."""

    code: ClassVar[int] = 323
    ticket: str


@dataclass(slots=True)
class Batch(Message):
    """Commands to execute in order, with one reply: the value of the last one, if the sender waits for it."""

    code: ClassVar[int] = 315
    number: int
    """The number of the batch, per client and worker; the reply repeats it."""
    commands: tuple[Any, ...]
    asks: bool = False
    """Whether the sender waits for a value, or for the first error since its last wait."""
    behalf: tuple[Any, ...] = ()
    """The peers on whose behalf the sender acts, see ``Peer.behalf``."""


# --- replies


@dataclass(slots=True)
class Placed(Message):
    """The placeholder in a reply for a tensor that stays on the worker."""

    code: ClassVar[int] = 310
    id: int
    form: Any = None
    framework: str = ""
    """Its framework, if the client does not know it."""


@dataclass(slots=True)
class Named(Message):
    """A named tuple of a framework; both sides look up its type by name in a table."""

    code: ClassVar[int] = 311
    framework: str
    name: str
    items: tuple[Any, ...]


@dataclass(slots=True)
class Failure(Message):
    """An error that the client may see: the exception, and where it was raised."""

    code: ClassVar[int] = 316
    error: Any
    trace: str
    number: int
    """The number of the batch, and the position of the failed command in it."""
    place: int


@dataclass(slots=True)
class Reply(Message):
    """The answer to a batch: a value or a failure, and the current epochs."""

    code: ClassVar[int] = 317
    number: int
    value: Any
    failure: Any
    form_epoch: int
    gradient_epoch: int


MAX_RESULTS = 1 << 16
"""The maximum number of results that one command may predict."""

Handler = Callable[[Any, Any, Peer], Any]
"""A function of the worker, the message and its sender that returns the answer."""


class _Handlers(dict[type[Message], Handler]):
    """Handlers by kind of message; a missing kind loads its feature."""

    def __missing__(self, kind: type[Message]) -> Handler:
        FEATURES.load("code", getattr(kind, "code", None))
        if kind not in self:
            raise KeyError(kind)
        return self[kind]


HANDLERS: dict[type[Message], Handler] = _Handlers()
"""The handler of each command."""
ABANDON: dict[type[Message], Handler] = {}
"""What to do when a command is skipped because an earlier one failed; nothing for most commands."""
_notes: dict[int, type[Note]] = {}


def register_message(kind: type[Message], handler: Handler, abandon: Handler | None = None) -> None:
    """Let workers handle a kind of message; registering it again has no effect."""
    _require_valid(kind, handler, abandon)
    if HANDLERS.get(kind, handler) is not handler:
        raise AlreadyRegisteredError.of("messages", kind.__name__)
    if kind not in codecs.by_type:
        codecs.register(replace(make_codec(kind), separate=True))
    HANDLERS[kind] = handler
    if abandon is not None:
        ABANDON[kind] = abandon
    if kind.facts.is_note:
        _notes[kind.code] = cast("type[Note]", kind)


def _require_valid(kind: type[Message], *handlers: Handler | None) -> None:
    name = getattr(kind, "__name__", repr(kind))
    if not (isinstance(kind, type) and issubclass(kind, Message) and is_dataclass(kind)):
        raise RegistryError(f"cannot register {name}: it is not a message; derive a dataclass from `Message`")
    if "__init__" in vars(kind) and "__dataclass_fields__" not in vars(kind):
        raise RegistryError(f"cannot register {name}: it is not a dataclass itself; decorate it with `@dataclass`")
    if type(getattr(kind, "code", None)) is not int:
        raise RegistryError(f"cannot register {name}: it has no wire code; add `code: ClassVar[int] = 1000` or higher")
    if not all(handler is None or takes(handler, 3) for handler in handlers):
        raise RegistryError(
            f"cannot register {name}: its handler cannot be called; write `def handle(worker, message, sender)`"
        )


def find_handler(kind: type) -> Handler | None:
    """Return the handler of a kind of message, or None if it is not a command."""
    try:
        return HANDLERS[kind]
    except KeyError:
        return None


def read_note(frames: Sequence[Any]) -> Message:
    """Decode a note from received frames."""
    try:
        code, *given = msgpack.unpackb(frames[0], use_list=False, max_array_len=16, max_ext_len=0)
        if code not in _notes:
            FEATURES.load("code", code)
        kind = _notes.get(code) if type(code) is int else None
        if kind is None:
            raise ValueError("it is not a note")
        return kind.from_frames(given, frames[1:])
    except (ValueError, TypeError, IndexError, msgpack.UnpackException) as error:
        raise SerdeError(f"cannot read a note: {error} (malformed message)") from None


FieldCheck = Callable[[Any], bool]
ANYTHING: frozenset[type] = frozenset([object])
_KINDS: dict[str, type] = {
    "int": int,
    "str": str,
    "bool": bool,
    "bytes": bytes,
    "dict[str, Any]": dict,
    "None": type(None),
}
_ANY = "Any"
_ALIASES = {"Tensor": _ANY, "Args": f"tuple[{_ANY}, ...]", "Kwargs": f"dict[str, {_ANY}]"}
MAX_BITS = 64
"""The maximum number of bits of an integer in a message: Python refuses to print very large ones."""
MAX_TEXT = 4096
"""The maximum length of an id, a name or another text in a message: errors quote and compare them."""


def _takes(annotation: str) -> tuple[frozenset[type], FieldCheck | None]:
    """Return the types allowed for a field, and an additional check, based on its annotation.

    >>> sorted(kind.__name__ for kind in _takes("int | str | None")[0])
    ['NoneType', 'int', 'str']
    >>> [_takes("tuple[int | str, ...]")[1](part) for part in ((1, "x"), (1, [2]))]
    [True, False]
    """
    annotation = _ALIASES.get(annotation, annotation)
    if annotation == _ANY:
        return ANYTHING, None
    if not annotation.startswith("tuple["):
        kinds = frozenset([_KINDS[word] for word in annotation.split(" | ")])
        return kinds, _has_names if dict in kinds else None
    inner, _, rest = annotation.removeprefix("tuple[").partition(", ...]")
    inner_kinds, _ = _takes(inner)
    kinds = frozenset([tuple, type(None)] if rest else [tuple])
    if inner_kinds is ANYTHING:
        return kinds, None

    def holds_only(part: Any) -> bool:
        return inner_kinds.issuperset(map(type, part)) and not any(map(_is_long, part))

    return kinds, holds_only


def _is_long(part: object) -> bool:
    return (type(part) is int and part.bit_length() > MAX_BITS) or (type(part) is str and len(part) > MAX_TEXT)


def _has_names(part: Any) -> bool:
    return {str}.issuperset(map(type, part))


def _find_check(kind: type, field: Field[Given]) -> tuple[frozenset[type], FieldCheck | None]:
    """Return what ``_takes`` returns for a field, whose annotation may be a type or the text of one."""
    annotation = field.type.__name__ if type(field.type) is type else str(field.type)
    try:
        return _takes(annotation.replace("typing.", ""))
    except KeyError:
        raise RegistryError(
            f"cannot register {kind.__name__}: its field {field.name!r} is annotated with {annotation!r}, which cannot "
            f"be checked; use {', '.join(_KINDS)}, a union or `tuple[…, ...]` of them, or Any"
        ) from None


def make_codec(kind: type[Any]) -> Codec:
    """Return the codec of a dataclass with a wire code; it checks the types of all fields."""
    names = [field.name for field in fields(kind)]
    checks = [(place, *_find_check(kind, field)) for place, field in enumerate(fields(kind))]
    checked = [check for check in checks if check[1] is not ANYTHING]
    values: Callable[[object], tuple[object, ...]] = (
        attrgetter(*names) if len(names) > 1 else lambda message: tuple([getattr(message, name) for name in names])
    )

    def simplify(message: object, _context: Context) -> tuple[object, ...]:
        return values(message)

    def detail(payload: Payload, _context: Context) -> Any:
        if len(payload) != len(names):
            raise SerdeError(
                f"cannot read a {kind.__name__}: its number of fields differs; install the same release at both ends"
            )
        for place, kinds, check in checked:
            part = payload[place]
            cls = type(part)
            fits = cls in kinds and (check is None or part is None or check(part))
            # `_is_long` in line; a call for every field of every message would take as long as everything else.
            if not fits or (cls is int and part.bit_length() > MAX_BITS) or (cls is str and len(part) > MAX_TEXT):
                raise SerdeError(
                    f"cannot read a {kind.__name__}: its field {names[place]!r} has a wrong type or is too large"
                )
        return kind(*payload)

    return Codec(kind, kind.code, simplify, detail)


def _simplify_batch(batch: Batch, _context: Context) -> tuple[object, ...]:
    behalf = tuple([(peer.id, peer.user) for peer in batch.behalf]) if batch.behalf else ()
    return batch.number, batch.asks, behalf, *batch.commands


def _detail_batch(payload: Payload, _context: Context) -> Batch:
    number, asks, behalf, *commands = payload
    if type(number) is not int or type(asks) is not bool or type(behalf) is not tuple:
        raise SerdeError("cannot read a Batch: its number, flag or senders have a wrong type (malformed message)")
    return Batch(number, tuple(commands), asks, tuple(map(_peer, behalf)) if behalf else ())


def _peer(part: Any) -> Peer:
    fits = type(part) is tuple and len(part) == 2 and type(part[0]) in _ID and type(part[1]) in _USER
    if not fits or any(map(_is_long, part)):
        raise SerdeError("cannot read a Batch: a peer has a wrong type (malformed message)")
    return Peer(*part)


_ID, _USER = (int, str), (str, type(None))


for _kind in (Redeem, Placed, Named, Failure, Reply):
    codecs.register(make_codec(_kind))
codecs.register(Codec(Batch, Batch.code, _simplify_batch, _detail_batch))


def _simplify_form(known: Form, _context: Context) -> tuple[object, ...]:
    return known.shape, known.strides, known.dtype, known.device, known.requires_grad, known.is_leaf


def _detail_form(payload: Payload, _context: Context) -> Form:
    shape, strides, dtype, device, requires_grad, is_leaf = payload
    lengths = _are_lengths(shape) and _are_lengths(strides)
    if not (lengths and is_constant(dtype) and is_constant(device) and type(requires_grad) is type(is_leaf) is bool):
        raise SerdeError("cannot read a form: a field has a wrong type (malformed message)")
    return form(shape, strides, dtype, device, requires_grad, is_leaf)


def _are_lengths(part: object) -> bool:
    """Return whether a shape or strides are valid. ``True`` is not: it equals 1 in the cache of forms."""
    return part is None or (isinstance(part, tuple) and len(part) <= 64 and all(type(n) is int for n in part))


codecs.register(Codec(Form, 318, _simplify_form, _detail_form))
