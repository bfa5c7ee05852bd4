"""Callables on a worker: stored by its owner, called by others, their tensors staying where they are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from syft_core.hook.rules import is_flat, map_leaves
from syft_core.location import WorkerLike
from syft_core.messages import Call, Placed
from syft_core.peer import Id
from syft_core.pointers.meeting import own_copy
from syft_core.pointers.object_pointer import ObjectPointer, new_id
from syft_core.pointers.pointer_tensor import pointer_at
from syft_core.tensors.identity import Identified
from syft_core.values import Function, Nested, Tensor


class ObjectWrapper(Identified):
    """Makes a callable storable on a worker, by whoever runs that worker: ``bob.load_data([ObjectWrapper(f)])``.

    It never travels: code does not cross a wire.
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
        """Call what is wrapped."""
        return self.obj(*args, **kwargs)

    def __repr__(self) -> str:
        return f"{type(self).__name__}>{getattr(self.obj, '__name__', type(self.obj).__name__)}"


class CallablePointer(ObjectPointer):
    """Stands for a callable on another worker: calling it runs it there."""

    def __call__(self, *args: Any, **kwargs: Any) -> Nested:
        """Run the callable where it is; its tensors stay there, its other results come if the worker lets them."""
        self.require_alive()
        args, kwargs = map_leaves(_as_sent, (args, kwargs))
        reply = self._location.ask(Call(self._id_at_location, args, kwargs, new_id()))
        return self._results(reply)

    def _results(self, reply: object) -> Nested:
        if not is_flat(type(reply)):
            return map_leaves(self._results, reply)
        if type(reply) is not Placed:
            return reply
        framework = self.owner.attributes_of(reply.framework)
        return framework.wrapper(pointer_at(self._location, reply.id, framework, self._syft_owner))


def create_callable_pointer(
    location: WorkerLike,
    id_at_location: Id,
    id: Id | None = None,
    owner: Any = None,
    tags: Iterable[str] | None = None,
    description: str | None = None,
    garbage_collect_data: bool = True,
    register_pointer: bool = True,
) -> CallablePointer:
    """Return a pointer to a callable on ``location``; ``register_pointer`` keeps it on ``owner`` for good."""
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


def _as_sent(leaf: Tensor) -> Nested:
    """Return the pointer under a wrapper, and of a plain tensor a copy, which the callable may keep."""
    child = getattr(leaf, "child", None)
    return child if isinstance(child, ObjectPointer) else own_copy(leaf)
