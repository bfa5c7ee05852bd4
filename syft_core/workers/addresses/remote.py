"""Remote: create tensors directly on a worker, ``worker.remote.<framework>.zeros(2, 3)``."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from typing import TypeVar

from syft_core.hook.attributes import FrameworkAttributes, Op
from syft_core.hook.forms import Form
from syft_core.hook.hook import attached_hook, attached_hooks
from syft_core.location import Party, WorkerLike
from syft_core.messages import Run
from syft_core.pointers.object_pointer import new_id
from syft_core.pointers.pointer_tensor import pointer_at
from syft_core.values import Args, Function, Kwargs, Tensor

P = TypeVar("P", bound="TensorPlace")


class Remote:
    """The hooked frameworks of a worker, as attributes."""

    def __init__(self, worker: Party, owner: Party) -> None:
        self._worker = worker
        self._owner = owner

    def __getattr__(self, framework: str) -> RemoteFramework:
        hook = None if framework.startswith("_") else attached_hook(framework)
        if hook is None:
            hooked = [f"`{self._worker.id}.remote.{name}.zeros(3)`" for name in dir(self)]
            raise AttributeError(
                f"cannot create tensors of {framework!r} on worker {self._worker.id!r}: it is not hooked there; "
                f"{'write ' + ' or '.join(hooked) if hooked else 'no framework is hooked'}"
            )
        return RemoteFramework(self._worker, self._owner, hook.attributes)

    def __dir__(self) -> list[str]:
        return sorted(hook.name for hook in attached_hooks())


class RemoteFramework:
    """The functions of one framework that create tensors on a worker."""

    def __init__(self, worker: WorkerLike, owner: Party, attributes: FrameworkAttributes) -> None:
        self._worker = worker
        self._owner = owner
        self._attributes = attributes

    def __getattr__(self, name: str) -> Function:
        creators = self._attributes.creators
        if name not in creators:
            where = self._owner.location_of(self._worker).id
            raise AttributeError(
                f"cannot create a tensor on worker {where!r} with {name!r}: use one of {', '.join(sorted(creators))}, "
                f"or create it here and send it"
            )
        return lambda *args, **kwargs: self.create(creators[name], args, kwargs)

    def __dir__(self) -> list[str]:
        return sorted(self._attributes.creators)

    def create(self, op: Op, args: Args, kwargs: Kwargs, known: Form | None = None) -> Tensor:
        """Create a tensor on the worker, without waiting if its form is known."""
        attributes = self._attributes
        location = self._owner.location_of(self._worker)
        message = Run(attributes.ALIAS, op.name, args, kwargs, new_id())
        if known is not None and location.predicts:
            message.count = 1
            location.tell(message)
        else:
            known = location.ask(message).form
        pointer = pointer_at(location, message.result, attributes, self._owner)
        if location.predicts:
            pointer.remember_form(known)
        return attributes.wrapper(pointer)


_placings = threading.local()


class TensorPlace:
    """Base of workers and locations: ``with bob:`` creates new tensors there."""

    def __enter__(self: P) -> P:
        with ExitStack() as stack:
            for hook in attached_hooks():
                place = hook.local_worker.location_of(self)
                stack.enter_context(hook.attributes.place_new_tensors(place))
            _placings.__dict__.setdefault("open", []).append(stack.pop_all())
        return self

    def __exit__(self, *raised: object) -> None:
        _placings.open.pop().__exit__(*raised)
