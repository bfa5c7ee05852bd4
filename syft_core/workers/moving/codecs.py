"""Codecs for pointers: ids on the wire, resolved to locations by the receiver."""

from __future__ import annotations

from typing import cast

from syft_core.exceptions import SerdeError
from syft_core.location import Party
from syft_core.pointers.multi_pointer import MultiPointerTensor
from syft_core.pointers.object_pointer import Here
from syft_core.pointers.pointer_tensor import PointerTensor, pointer_at
from syft_core.serde import Codec, Context, codecs
from syft_core.serde.received import require
from syft_core.values import Payload
from syft_core.workers.moving.transfer import adopt


def _simplify_pointer(pointer: PointerTensor, context: Context) -> tuple[object, ...]:
    if pointer.gone is not None or pointer.whole is not None:
        pointer.require_alive()
    if pointer._location.id == context.receiver and not pointer.travels_with_lease:
        return pointer._id_at_location, pointer.point_to_attr
    return (
        pointer._location.id,
        pointer._id_at_location,
        pointer.point_to_attr,
        pointer.framework.ALIAS,
        pointer.travels_with_lease,
    )


def _detail_pointer(payload: Payload, context: Context) -> PointerTensor | Here:
    if len(payload) == 2:
        id, attr = payload
        if type(id) not in _IDS or type(attr) not in _ATTRS:
            raise SerdeError(_WRONG_PART)
        return Here(_id_at_location=id, point_to_attr=attr)
    location, id, attr, framework, leased = payload
    are_ids = type(id) in _IDS and type(location) in _IDS
    are_typed = type(leased) is bool and type(attr) in _ATTRS and type(framework) is str
    if not (are_ids and are_typed):
        raise SerdeError(_WRONG_PART)
    if context.worker is None:
        raise SerdeError("cannot rebuild a pointer: no worker receives it; read it with `Context(worker=...)`")
    party = cast("Party", context.worker)
    pointer = pointer_at(party.location_of(location), id, party.attributes_of(framework), party)
    pointer.point_to_attr, pointer.garbage_collect_data, pointer.travels_with_lease = attr, False, leased
    if leased:
        pointer._location.note_alias(id)
        if context.receiver is not None:  # It is part of a reply.
            adopt(pointer, context.receiver)
    return pointer


_IDS, _ATTRS = (int, str), (str, type(None))
_WRONG_PART = "cannot rebuild a pointer: one of its parts has a wrong type (malformed message)"


def _detail_several(payload: Payload, _context: Context) -> MultiPointerTensor:
    (pointers,) = payload
    are_pointers = type(pointers) is list and all(type(pointer) is PointerTensor for pointer in pointers)
    require(are_pointers, "a multi-pointer: its parts are not pointers")
    return MultiPointerTensor(pointers)


codecs.register(Codec(PointerTensor, 340, _simplify_pointer, _detail_pointer))
codecs.register(Codec(MultiPointerTensor, 342, lambda several, _: (list(several.child.values()),), _detail_several))
