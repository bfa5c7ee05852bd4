"""Callables on a worker: stored by its owner and called by others; their tensors stay on the worker."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from syft_core.hook.rules import is_flat, map_leaves
from syft_core.location import Sending, WorkerLike
from syft_core.messages import Call, Placed
from syft_core.peer import Id
from syft_core.pointers.meeting import copy_if_plain
from syft_core.pointers.object_pointer import ObjectPointer, new_id
from syft_core.pointers.pointer_tensor import pointer_at
from syft_core.printing import printable
from syft_core.tensors.identity import Identified
from syft_core.values import Function, Nested, Tensor


class ObjectWrapper(Identified):
    """Makes a callable storable on a worker by its owner: ``bob.load_data([ObjectWrapper(f)])``.

    It cannot be sent, because it contains code.
    """

    def __init__(
        self,
        obj: Function,
        id: Id | None = None,
        tags: Iterable[str] | None = None,
        description: str | None = None,
    ) -> None:
        self.obj = obj
        self._syft_id = id
        self._syft_tags = set(tags) if tags else None
        self._syft_description = description

    def __call__(self, *args: Any, **kwargs: Any) -> Nested:
        """Call the wrapped object."""
        return self.obj(*args, **kwargs)

    def __repr__(self) -> str:
        return printable(f"{type(self).__name__}>{getattr(self.obj, '__name__', type(self.obj).__name__)}")


class CallablePointer(ObjectPointer):
    """A pointer to a callable on another worker; calling it runs it there."""

    def __call__(self, *args: Any, **kwargs: Any) -> Nested:
        """Run the callable on its worker. Tensors in the result stay there; other values are returned if permitted."""
        self.require_alive()
        args, kwargs = map_leaves(_prepare, (args, kwargs))
        reply = self._location.ask(Call(self._id_at_location, args, kwargs, new_id()))
        return self._make_pointers(reply)

    def _make_pointers(self, reply: object) -> Nested:
        if not is_flat(type(reply)):
            return map_leaves(self._make_pointers, reply)
        if type(reply) is not Placed:
            return reply
        framework = self.owner.attributes_of(reply.framework)
        return framework.wrapper(pointer_at(self._location, reply.id, framework, self._syft_owner))


def create_callable_pointer(
    location: WorkerLike,
    id_at_location: Id,
    id: Id | None = None,
    owner: Sending | None = None,
    tags: Iterable[str] | None = None,
    description: str | None = None,
    garbage_collect_data: bool = True,
    register_pointer: bool = True,
) -> CallablePointer:
    """Return a pointer to a callable on ``location``; with ``register_pointer``, ``owner`` stores it permanently."""
    pointer = CallablePointer(
        location,
        id_at_location,
        owner=owner,
        id=id,
        garbage_collect_data=garbage_collect_data,
        tags=tags,
        description=description,
    )
    if register_pointer and owner is not None and not owner.is_client_worker:
        owner.register_obj(pointer)
    return pointer


def _prepare(leaf: Tensor) -> Nested:
    """Return the pointer under a wrapper, or copy a plain tensor: the callable may keep it."""
    child = getattr(leaf, "child", None)
    return child if isinstance(child, ObjectPointer) else copy_if_plain(leaf)
