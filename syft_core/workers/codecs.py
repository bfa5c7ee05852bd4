"""Pointers and workers on the wire: by name, and understood by the receiver in its own terms."""

from __future__ import annotations

from typing import Any

from syft_core.exceptions import SerdeError
from syft_core.pointers.pointer_tensor import PointerTensor
from syft_core.serde import Codec, Context, codecs
from syft_core.workers.base import BaseWorker


def _simplify_pointer(pointer: PointerTensor, _context: Context) -> tuple[Any, ...]:
    pointer.require_alive()
    return (
        pointer._location.id,
        pointer._id_at_location,
        pointer.point_to_attr,
        pointer.framework.ALIAS,
        pointer.travels_with_lease,
    )


def _detail_pointer(payload: list[Any], context: Context) -> PointerTensor:
    location, id, attr, framework, leased = payload
    if type(leased) is not bool or not isinstance(attr, str | None) or not isinstance(id, int | str):
        raise SerdeError("cannot rebuild a pointer: one of its parts has a wrong type; send it again")
    worker = _receiver(context)
    return PointerTensor(
        worker.get_worker(location),
        id,
        worker.attributes_of(framework),
        owner=worker,
        point_to_attr=attr,
        garbage_collect_data=leased,
    )


def _simplify_worker(worker: BaseWorker, _context: Context) -> tuple[Any, ...]:
    return (worker.id,)


def _detail_worker(payload: list[Any], context: Context) -> BaseWorker:
    (id,) = payload
    found: BaseWorker = _receiver(context).get_worker(id)
    return found


def _receiver(context: Context) -> Any:
    if context.worker is None:
        raise SerdeError("cannot rebuild a pointer or a worker: nobody receives it; read it with `Context(worker=...)`")
    return context.worker


codecs.register(Codec(PointerTensor, 340, _simplify_pointer, _detail_pointer))
codecs.register(Codec(BaseWorker, 341, _simplify_worker, _detail_worker, subclasses=True))
