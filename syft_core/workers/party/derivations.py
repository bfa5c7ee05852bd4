"""Derivations: how a worker computed what depends on restricted objects, as text and as a digest.

A derivation is a graph of operations whose leaves are data that the worker has loaded, and what users have supplied. It
holds no tensors. Its digest depends on every operation, its plain arguments and its operands in order; data counts with
its id and tags, and what was supplied with its bytes.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple, Protocol, TypeAlias

from syft_core.hook.attributes import Op
from syft_core.hook.chain import iter_links, plain_end
from syft_core.hook.dispatch import framework_of
from syft_core.hook.forms import Form, is_constant
from syft_core.hook.rules import build_rule, is_flat, leaves, map_leaves
from syft_core.peer import Id
from syft_core.pictures.boxes import form_of
from syft_core.printing import printable
from syft_core.serde import serialize
from syft_core.values import Args, Kwargs, Nested, Tensor

MAX_NODES = 256
"""The maximum number of operations and leaves that a derivation keeps; of a larger one, digest and count are known."""
MAX_COUNT = 10**9
"""The largest count: what is used twice counts twice, so counts can grow fast."""
MAX_TEXT = 400
"""The maximum length of a derivation's text."""
SHORT = 12
"""The number of digits of a digest in a text."""
ARRANGE = "arrange"
"""The protocol of objects that the worker itself arranged: columns, scaling and fill by public constants, a split."""
ARRANGEMENT = "arrangement"
"""What a rule calls the columns, constants and halves of such data, if they may be anything but a few rows."""
WEIGHTS = "weights"
"""The supplied input of a training that is not part of its program."""
CORRECTION = "correction"
"""The supplied input of a training that is added to each gradient."""
_MAX_ARGUMENT = 60
_PURPOSE = b"syft derivation 1\0"
Find: TypeAlias = "Callable[[], Nested]"
"""Returns the stored object that a leaf stands for, or None if it is gone or was changed."""


class Operand(NamedTuple):
    """An operand that a worker provided to a protocol."""

    tags: tuple[str, ...]
    """The tags of an object that the worker itself loaded, or of those from which it has arranged one; empty for one
    that was computed or changed since."""
    shape: tuple[int, ...]
    is_whole: bool = False
    """Whether it is an object that the worker's owner has published, unchanged, or was arranged from such objects."""
    arrangement: str = ""
    """The digest of how it was arranged; empty if it was not."""

    def is_loaded_as(self, tag: str) -> bool:
        """Return whether it is an object that the worker itself loaded under a tag, as it is."""
        return tag in self.tags and not self.arrangement


class Maker(NamedTuple):
    """A protocol that computed an object, its options in order, and the workers that took part."""

    protocol: str
    options: tuple[tuple[str, Nested], ...]
    parties: tuple[Id, ...]
    operands: tuple[Operand, ...] = ()
    """The operands that this worker provided."""

    def __str__(self) -> str:
        if len(self.parties) == 1:  # The worker's own code: digests are shortened, and the rest is in its digest.
            found = dict(self.options)
            return f"{self.protocol}(program={str(found.get('program'))[:6]}…, samples={found.get('samples')})"
        options = ", ".join([f"{name}={value!r}" for name, value in self.options])
        return f"{self.protocol}({options}) among {len(self.parties)} parties"


@dataclass(frozen=True, slots=True)
class Hole:
    """Stands for an operand, by its position, in the arguments of an operation."""

    number: int

    def __repr__(self) -> str:
        return f"x{self.number}"


class Rerun(Protocol):
    """Repeats a recorded program on examples."""

    def find_length(self, rows: int) -> int:
        """Return how many rows the program takes at once."""

    def run_again(self, roles: Sequence[str], operands: Sequence[Tensor]) -> Tensor:
        """Return what the program computes of so many rows."""


@dataclass(frozen=True, slots=True, eq=False)
class Action:
    """What one step of a derivation does; all steps of one call signature share it."""

    name: str
    digest: bytes
    op: Op | None = None
    """The operation; None for anything else that cannot be repeated from its arguments."""
    args: Args = ()
    kwargs: Kwargs | None = None
    """The arguments of the operation, with a ``Hole`` for each operand."""
    maker: Maker | None = None
    """The protocol or the program of which this is the result."""
    roles: tuple[str, ...] = ()
    """What each operand is to a program; empty if operands have no names."""
    arity: int = 0
    """The number of operands of an operation."""
    part: int = 0
    """The position among several results of the operand; 0 for anything else."""
    find_rerun: Callable[[], Rerun | None] = lambda: None
    """Returns what can repeat a program, if it is still known."""


class Derivation:
    """A step: what it does, and the derivations of its operands, unless there are too many."""

    __slots__ = ("action", "count", "digest", "operands")
    is_leaf = False
    """Whether it is data, or was supplied."""
    action: Action
    digest: bytes
    count: int
    operands: tuple[Derivation, ...] | None

    def __init__(self, action: Action, operands: tuple[Derivation, ...]) -> None:
        self.action = action
        data, self.count = action.digest, 1
        for operand in operands:
            data += operand.digest
            self.count += operand.count
        self.digest = hashlib.sha256(data).digest()
        self.count = min(self.count, MAX_COUNT)
        self.operands = operands if self.count <= MAX_NODES else None

    @property
    def maker(self) -> Maker | None:
        """The protocol or the program that computed the object; None for an operation."""
        return self.action.maker

    @property
    def hex(self) -> str:
        """The digest, as it is written."""
        return self.digest.hex()

    @property
    def is_complete(self) -> bool:
        """Whether all operations and leaves are known."""
        return self.operands is not None

    def part(self, number: int) -> Derivation:
        """Return the derivation of one of several results; the first has that of the operation itself."""
        if not number:
            return self
        action = Action("part", _hash("part", str(number)), args=(number,), maker=self.maker, part=number)
        return Derivation(action, (self,))

    @property
    def whole(self) -> Derivation:
        """The recorded program of which this is one of several results; itself for anything else."""
        is_part = self.action.part and find_option(self.maker, "program") is not None
        return self.operands[0] if is_part and self.operands else self

    @property
    def gradient(self) -> Derivation:
        """The derivation of the gradient of an object."""
        return Derivation(GRADIENT, (self,))

    def written_by(self, writer: Derivation) -> Derivation:
        """Return the derivation of an object after something was written into its memory."""
        return Derivation(WRITTEN, (self, writer))

    # --- what it depends on

    def iter_nodes(self) -> Iterator[Derivation]:
        """Yield every known step and leaf once, operands first."""
        yield from _iter_nodes(self, set())

    @property
    def data(self) -> list[Data]:
        """The data of the worker on which it depends, as far as it is known."""
        return [node for node in self.iter_nodes() if isinstance(node, Data)]

    def list_inputs(self) -> dict[str, Supplied]:
        """Return the supplied inputs by name: their role in a program, or their number."""
        found: dict[str, Supplied] = {}
        numbered: dict[bytes, Supplied] = {}
        for node in self.iter_nodes():
            for place, operand in enumerate(node.operands or ()):
                if isinstance(operand, Supplied):
                    role = node.action.roles[place] if node.action.roles else ""
                    (found if role else numbered).setdefault(role or operand.digest, operand)  # type: ignore[arg-type]
        if isinstance(self, Supplied):
            numbered[self.digest] = self
        return found | {f"input {number}": leaf for number, leaf in enumerate(numbered.values(), start=1)}

    def describe_inputs(self) -> list[str]:
        """Return the supplied inputs as text, each with its name, its form and its digest."""
        return [f"{name}: {leaf.label} {leaf.hex}" for name, leaf in self.list_inputs().items()]

    def find_program(self, free: Collection[str] = ()) -> str | None:
        """Return the digest of the program in which some supplied inputs may be anything of their form.

        ``free`` are names of inputs, or "arrangement": how the worker has prepared its data. The weights of a training
        are always free. None if there is no such input.
        """
        if self.whole is not self:  # An owner approves all results of a recorded program.
            return self.whole.find_program(free)
        if self.operands is None:
            return None if free else self.hex
        inputs = self.list_inputs()
        if not set(free) - {ARRANGEMENT} <= set(inputs):
            return None
        numbered = {inputs[name].digest for name in free if name.startswith("input ")}
        return self._find_program(frozenset(free) | {WEIGHTS}, numbered, {}).hex()

    def _find_program(self, roles: frozenset[str], numbered: set[bytes], known: dict[int, bytes]) -> bytes:
        """Return the digest with inputs free that have one of ``roles`` or, without a role, one of the digests."""
        if isinstance(self, Supplied):
            return self.free(self.digest in numbered)
        found = known.get(id(self))
        if found is None:
            own = self.action.roles or ("",) * len(self.operands or ())
            parts = [
                operand.free(role in roles if role else operand.digest in numbered)
                if isinstance(operand, Supplied)
                else operand._find_program(roles, numbered, known)
                for operand, role in zip(self.operands or (), own, strict=True)
            ]
            found = known[id(self)] = self._join(parts, ARRANGEMENT in roles)
        return found

    @property
    def is_arranged(self) -> bool:
        """Whether it is loaded data, or data that the worker has prepared."""
        if self.operands is None or (self.maker is None and not isinstance(self, Data)):
            return False
        is_data = isinstance(self, Data) or find_protocol(self.maker) == ARRANGE
        return is_data and all(operand.is_arranged for operand in self.operands)

    @property
    def keeps_rows(self) -> bool:
        """Whether no half of few rows was chosen in preparing it."""
        operands = () if self.maker is None else self.maker.operands
        return all(operand.is_whole for operand in operands) and all(each.keeps_rows for each in self.operands or ())

    def _join(self, parts: Sequence[bytes], frees_arrangement: bool) -> bytes:
        """Return the digest of this step on programs; that of a recorded program stands for itself on plain data."""
        if isinstance(self, Data):
            return self.digest
        program = find_option(self.maker, "program")
        if program is None:
            return hashlib.sha256(b"".join([self.action.digest, *parts])).digest()
        operands = zip(self.operands or (), self.action.roles or ("",) * len(parts), parts, strict=True)
        pinned = [
            role.encode() + part
            for operand, role, part in operands
            if not (isinstance(operand, Supplied) and part != operand.digest)
            and not (isinstance(operand, Data) and not role)  # Data in place of weights or a correction is pinned.
            and not (frees_arrangement and not role and operand.is_arranged and operand.keeps_rows)
        ]
        return bytes.fromhex(program) if not pinned else _hash("program", program, *pinned)

    # --- text

    def __str__(self) -> str:
        return self.describe()

    def __repr__(self) -> str:
        return f"<Derivation {self.hex[:SHORT]}: {self}>"

    def describe(self, limit: int = MAX_TEXT) -> str:
        """Return how the object was computed, in at most ``limit`` characters."""
        inputs = self.list_inputs()
        text = self._show({leaf.digest: name for name, leaf in inputs.items() if name.startswith("input ")})
        last = limit // 2
        return text if len(text) <= limit else f"{text[: limit - last - 3]} … {text[-last:]}"

    def _show(self, names: dict[bytes, str]) -> str:
        if self.operands is None:
            return f"{self.action.name} after up to {self.count - 1:,} operations"
        roles = self.action.roles or ("",) * len(self.operands)
        shown = [
            operand._show({operand.digest: role}) if role and isinstance(operand, Supplied) else operand._show(names)
            for operand, role in zip(self.operands, roles, strict=True)
        ]
        return _write(self.action, self.operands, shown)


class Data(Derivation):
    """Data that the worker has loaded."""

    __slots__ = ("find", "form", "framework", "id", "tags")
    is_leaf = True

    def __init__(self, id: Id, tags: frozenset[str], value: Tensor, find: Find) -> None:
        self.restore(id, tags, _form(value), find, _framework(value))
        self.digest = _hash("data", str(id), *sorted(tags), form_of(value), _dtype(self.form))

    def restore(self, id: Id, tags: frozenset[str], form: Form | None, find: Find, framework: Nested) -> None:
        """Set everything but the digest."""
        self.id, self.tags, self.form, self.find, self.framework = id, tags, form, find, framework
        self.action, self.operands, self.count = LOADED, (), 1

    @property
    def rows(self) -> int:
        """The number of rows."""
        shape = tuple(self.form.shape) if self.form is not None else ()
        return int(shape[0]) if shape else 1

    def _show(self, _names: dict[bytes, str]) -> str:
        return printable(" ".join(sorted(self.tags))) or f"object {printable(str(self.id))}"


class Supplied(Derivation):
    """What a user has supplied: weights, masks and constants. It counts with its bytes."""

    __slots__ = ("find", "form", "framework", "label", "version")
    is_leaf = True

    def __init__(self, value: Tensor, find: Find = lambda: None, version: int | None = None) -> None:
        self.restore(form_of(value), _form(value), find, _framework(value), version)
        self.digest = _hash("supplied", *_layers(value), read_bytes(value))

    def restore(self, label: str, form: Form | None, find: Find, framework: Nested, version: int | None = None) -> None:
        """Set everything but the digest; ``version`` is how often the object had been changed."""
        self.label, self.form, self.find, self.version = label, form, find, version
        self.framework = framework
        self.action, self.operands, self.count = SUPPLIED, (), 1

    def free(self, is_free: bool = True) -> bytes:
        """Return the digest or, if it may be anything of its form, one that depends on the form alone."""
        return _hash("free", self.label, _dtype(self.form)) if is_free else self.digest

    def _show(self, names: dict[bytes, str]) -> str:
        return f"their {names[self.digest]} ({self.label} {self.hex[:SHORT]})"


# --- steps


def make_action(op: Op, args: Args, kwargs: Kwargs) -> Action:
    """Return what an operation does with its plain arguments."""
    digest, call = _describe_call("operation", op.name, args, kwargs)
    arity = sum(type(leaf) is Hole for leaf in leaves(call))
    return Action(op.operation, digest, op, call[0], call[1], arity=arity)


def make_call_action(function: Id, args: Args, kwargs: Kwargs) -> Action:
    """Return what a call of a function of the owner does with its plain arguments."""
    digest, _ = _describe_call("call", str(function), args, kwargs)
    return Action(f"call {function}", digest)


def _describe_call(kind: str, name: str, args: Args, kwargs: Kwargs) -> tuple[bytes, Nested]:
    numbers = iter(range(1 << 30))
    call = map_leaves(lambda leaf: Hole(next(numbers)) if build_rule(leaf) else leaf, (args, kwargs))
    layers = [name for leaf in leaves((args, kwargs)) if build_rule(leaf) for name in (*_layers(leaf), "")]
    parts = _encode(call)
    return _hash(kind, name, *layers, secrets.token_bytes(32) if parts is None else parts), call


def make_program_action(
    maker: Maker,
    roles: Sequence[str] = (),
    is_named: bool = True,
    find_rerun: Callable[[], Rerun | None] = lambda: None,
) -> Action:
    """Return what a protocol or a recorded program does; ``find_rerun`` returns what can repeat it."""
    facts = {name: value for name, value in maker.options if name not in _FACTS}
    parts = _encode((maker.protocol, tuple(facts.items()), len(maker.parties)))
    digest = _hash("protocol", secrets.token_bytes(32) if parts is None else parts)
    return Action(maker.protocol, digest, maker=maker if is_named else None, roles=tuple(roles), find_rerun=find_rerun)


_FACTS = frozenset({"samples", "supplied"})
"""Options of a maker that are not part of its program."""


def make_unknown(operands: Iterable[Derivation]) -> Derivation:
    """Return a derivation that equals no other one, of something that was computed in an unknown way."""
    return Derivation(Action("unknown", secrets.token_bytes(32)), tuple(operands))


def find_protocol(maker: Maker | None) -> str:
    """Return the name of the protocol of a maker; "" without one."""
    return "" if maker is None else maker.protocol


def find_option(maker: Maker | None, name: str) -> Nested:
    """Return an option of a maker, or None."""
    return None if maker is None else dict(maker.options).get(name)


def read_bytes(value: Tensor) -> bytes:
    """Return the bytes of a tensor and its form, or a random text if it has none here."""
    end = plain_end(value)
    if end is None:
        return secrets.token_bytes(32)
    framework = framework_of(end)
    return serialize(framework.detach(framework.copy(end)))  # Without its id, its tags and its gradient.


def _hash(*parts: str | bytes) -> bytes:
    """Return the digest of texts, each with its length, so that no two lists have the same bytes."""
    found = hashlib.sha256(_PURPOSE)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        found.update(len(data).to_bytes(8, "big") + data)
    return found.digest()


def _make_action(name: str) -> Action:
    return Action(name, _hash("step", name))


GRADIENT, WRITTEN, LOADED = _make_action("gradient"), _make_action("overwritten"), _make_action("data")
SUPPLIED, BACKWARD = _make_action("input"), _make_action("differentiated")


def _encode(value: Nested) -> bytes | None:
    """Return bytes that are equal only for equal arguments; None if an argument has no lasting form."""
    cls = type(value)
    if cls is Hole:
        return b"x"
    if cls is float or cls is complex:
        return f"{cls.__name__} {value!r};".encode()
    if cls is str or cls is bytes:
        data = value.encode() if cls is str else value
        return b"%s %d:%s" % (cls.__name__.encode(), len(data), data)
    if not is_flat(cls):
        items = (value.start, value.stop, value.step) if cls is slice else value
        parts = [_encode(item) for item in (chain(*items.items()) if isinstance(items, dict) else items)]
        known = [part for part in parts if part is not None]
        return b"%s[%s]" % (cls.__name__.encode(), b"".join(known)) if len(known) == len(parts) else None
    return f"{cls.__name__} {value!s};".encode() if value is None or is_constant(value) else None


def _layers(value: object) -> list[str]:
    """Return the types of the layers of a chain, which change what operations compute."""
    end = plain_end(value)
    return [] if end is value else [type(link).__name__ for link in iter_links(value)]


def _form(value: object) -> Form | None:
    end = plain_end(value)
    return None if end is None else framework_of(end).form_of(end)


def _framework(value: object) -> Nested:
    end = plain_end(value)
    return None if end is None else framework_of(end)


def _dtype(known: Form | None) -> str:
    return "" if known is None else str(known.dtype)


def _iter_nodes(node: Derivation, seen: set[int]) -> Iterator[Derivation]:
    if id(node) not in seen:
        seen.add(id(node))
        for operand in node.operands or ():
            yield from _iter_nodes(operand, seen)
        yield node


# --- text

SIGNS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "div": "/", "matmul": "@", "pow": "**", "floordiv": "//",
    "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=", "remainder": "%", "and": "&", "or": "|",
}  # fmt: skip
"""The signs of operations that compute number by number, except the product of matrices."""


def _write(action: Action, operands: Sequence[Derivation], shown: list[str]) -> str:
    """Return a step as text, given its operands as text."""
    op = action.op
    if op is None:
        return _write_step(action, operands, shown)
    is_binary = len(action.args) == 2 and not action.kwargs
    if is_binary and op.operation in SIGNS:
        one, other = [_write_argument(arg, operands, shown) for arg in action.args]
        one, other = (other, one) if op.reflected else (one, other)
        return f"{one} {SIGNS[op.operation]}{'=' * op.inplace} {other}"
    if is_binary and op.operation in ("getitem", "__getitem__") and type(action.args[0]) is Hole:
        index = action.args[1] if type(action.args[1]) is tuple else (action.args[1],)
        first = _write_argument(action.args[0], operands, shown)
        return f"{first}[{', '.join([_write_index(each, operands, shown) for each in index])}]"
    named = [f"{name}={_write_value(arg)}" for name, arg in (action.kwargs or {}).items() if not _has_place(arg)]
    plain = [_write_value(arg) for arg in action.args if not _has_place(arg)]
    called = f"({', '.join([*plain, *named])})" if plain or named else ""
    return _write_list(f"{action.name}{'_' * op.inplace}{called}", operands, shown)


def _write_step(action: Action, operands: Sequence[Derivation], shown: list[str]) -> str:
    """Return a step that is not an operation as text."""
    name = " ".join([action.name, *map(str, action.args)])
    program = find_option(action.maker, "program")
    if action.maker is None or action.args or not shown:
        return _write_list(name, operands, shown) if shown else str(action.maker or name)
    if program is None:
        return _write_list(str(action.maker), operands, shown)
    roles = action.roles or ("",) * len(shown)
    data = [text for text, role in zip(shown, roles, strict=True) if not role]
    given = [text for text, role in zip(shown, roles, strict=True) if role]
    samples = find_option(action.maker, "samples")
    counted = f" ({samples:,} samples)" if isinstance(samples, int) else ""
    return f"{name} {program[:SHORT]} on {', '.join(data)}{counted}" + (f" with {', '.join(given)}" if given else "")


def _write_list(name: str, operands: Sequence[Derivation], shown: list[str]) -> str:
    if not shown:
        return name
    if len(shown) > 1:
        return f"{name} of ({', '.join(shown)})"
    op = operands[0].action.op
    return f"{name} of ({shown[0]})" if op is not None and op.operation in SIGNS else f"{name} of {shown[0]}"


def _write_argument(arg: Nested, operands: Sequence[Derivation], shown: list[str]) -> str:
    if type(arg) is not Hole:
        return _write_value(arg)
    operand, text = operands[arg.number], shown[arg.number]
    return text if operand.is_leaf or text.endswith("]") else f"({text})"


def _write_index(index: Nested, operands: Sequence[Derivation], shown: list[str]) -> str:
    if type(index) is slice:
        parts = ["" if part is None else _write_argument(part, operands, shown) for part in (index.start, index.stop)]
        return ":".join(parts) + ("" if index.step is None else f":{_write_argument(index.step, operands, shown)}")
    return _write_argument(index, operands, shown)


def _write_value(arg: Nested) -> str:
    text = "..." if arg is Ellipsis else str(arg) if is_flat(type(arg)) and type(arg) is not str else repr(arg)
    text = printable(text)
    return text if len(text) <= _MAX_ARGUMENT else f"{text[: _MAX_ARGUMENT - 1]}…"


def _has_place(arg: Nested) -> bool:
    return any(type(leaf) is Hole for leaf in leaves(arg))
