"""Derivations on disk: the steps and leaves of one as plain values, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeAlias

from syft_core.hook.attributes import Op
from syft_core.hook.rules import map_leaves
from syft_core.values import Nested
from syft_core.workers.party.derivations import Action, Data, Derivation, Hole, Maker, Operand, Supplied
from syft_core.workers.party.store import Stored
from syft_core.workers.party.worker import Worker
from syft_core.workers.road.derivation import derivation_of

Packed: TypeAlias = "tuple[tuple[Nested, ...], ...]"
_PLACE = "\0place "


def pack(derivation: Derivation | None) -> Packed | None:
    """Return the parts of a derivation, each after its operands."""
    if derivation is None:
        return None
    places: dict[int, int] = {}
    packed = []
    for node in derivation.iter_nodes():
        places[id(node)] = len(places)
        packed.append((*_pack_node(node), _pack_operands(node, places)))
    return tuple(packed)


def unpack(worker: Worker, packed: Packed | None) -> Derivation | None:
    """Return a derivation, given its parts."""
    nodes: list[Derivation] = []
    for kind, digest, count, fields, places in packed or ():
        operands = None if places is None else tuple([nodes[place] for place in places])
        node = _UNPACK[kind](worker, digest, *fields)
        node.digest, node.count, node.operands = digest, count, operands
        nodes.append(node)
    return nodes[-1] if nodes else None


def _pack_operands(node: Derivation, places: dict[int, int]) -> tuple[int, ...] | None:
    return None if node.operands is None else tuple([places[id(operand)] for operand in node.operands])


def _pack_node(node: Derivation) -> tuple[Nested, ...]:
    if isinstance(node, Data):
        return "data", node.digest, 1, (node.id, tuple(sorted(node.tags)), node.form)
    if isinstance(node, Supplied):
        return "supplied", node.digest, 1, (node.label, node.form)
    action = node.action
    call = map_leaves(_write_place, (action.args, action.kwargs))
    op = "" if action.op is None else action.op.name
    fields = action.name, action.digest, op, *call, pack_maker(action.maker), action.roles, action.part
    return "step", node.digest, node.count, fields


def _unpack_data(worker: Worker, digest: bytes, id: Nested, tags: Iterable[str], form: Nested) -> Data:
    leaf = Data.__new__(Data)
    framework = None if worker.hook is None else worker.hook.attributes
    leaf.restore(id, frozenset(tags), form, partial(_find, worker, id, digest), framework)
    return leaf


def _unpack_supplied(worker: Worker, _digest: bytes, label: str, form: Nested) -> Supplied:
    leaf = Supplied.__new__(Supplied)
    leaf.restore(label, form, lambda: None, None if worker.hook is None else worker.hook.attributes)
    return leaf


def _unpack_step(
    worker: Worker,
    _digest: bytes,
    name: str,
    digest: bytes,
    op: str,
    args: Nested,
    kwargs: Nested,
    maker: tuple[Nested, ...] | None,
    roles: Iterable[str],
    part: int,
) -> Derivation:
    found: Op | None = worker.hook.attributes.ops.by_name.get(op) if worker.hook is not None else None
    args, kwargs = map_leaves(_read_place, (args, kwargs))
    step = Derivation.__new__(Derivation)
    step.action = Action(name, digest, found, args, kwargs, unpack_maker(maker), tuple(roles), part=part)
    return step


_UNPACK: dict[str, Callable[..., Derivation]] = {
    "data": _unpack_data,
    "supplied": _unpack_supplied,
    "step": _unpack_step,
}


def _find(worker: Worker, id: Nested, digest: bytes) -> Stored | None:
    entry = worker.object_store.get(id)
    return entry if entry is not None and entry.is_as_loaded and derivation_of(entry).digest == digest else None


def _write_place(leaf: Nested) -> Nested:
    return f"{_PLACE}{leaf.number}" if type(leaf) is Hole else leaf


def _read_place(leaf: Nested) -> Nested:
    is_place = type(leaf) is str and leaf.startswith(_PLACE)
    return Hole(int(leaf.removeprefix(_PLACE))) if is_place else leaf


def pack_maker(maker: Maker | None) -> tuple[Nested, ...] | None:
    """Return the parts of a maker."""
    return None if maker is None else (*maker[:-1], tuple(map(tuple, maker.operands)))


def unpack_maker(packed: tuple[Nested, ...] | None) -> Maker | None:
    """Return a maker, given its parts; files of earlier releases do not have its operands."""
    if packed is None:
        return None
    protocol, options, parties, *more = packed
    return Maker(protocol, options, parties, tuple([Operand(*operand) for found in more for operand in found]))
