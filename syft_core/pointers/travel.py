"""Travelling: what a tensor and the head of a chain can be told about where to be."""

from __future__ import annotations

from typing import Any

from syft_core.hook.dispatch import framework_of
from syft_core.messages import Store
from syft_core.pointers.object_pointer import ObjectPointer, new_id
from syft_core.pointers.pointer_tensor import PointerTensor


class Travelling:
    """The names under which users send, fetch and move tensors; mixed into heads and, where possible, plain tensors."""

    def send(self, *workers: Any, publish: bool = False) -> Any:
        """Send a copy to a worker and return a pointer to it; the tensor here stays as it is."""
        if len(workers) != 1:
            raise TypeError(f"cannot send to {len(workers)} workers: give one, e.g. `x.send(bob)`")
        owner = self.owner  # type: ignore[attr-defined]  # mixed into what is Identified
        location = owner.get_worker(workers[0])
        framework = framework_of(self)
        pointer = send_to(self, location, owner, framework, publish)
        return framework.wrapper(pointer)

    def publish(self, worker: Any) -> Any:
        """Send a copy to a worker, which keeps it for good."""
        return self.send(worker, publish=True)

    def get(self, user: str | None = None, reason: str = "") -> Any:
        """Fetch what the chain points to; it leaves its worker."""
        child = self.child  # type: ignore[attr-defined]  # a head has one
        value = child.get(user=user, reason=reason)
        return framework_of(value).wrapper(value) if isinstance(value, ObjectPointer) else value

    def move(self, worker: Any, requires_grad: bool = False) -> Any:
        """Send what the chain points to on to another worker."""
        child = self.child  # type: ignore[attr-defined]  # a head has one
        moved = child.move(worker, requires_grad)
        return framework_of(self).wrapper(moved) if isinstance(moved, ObjectPointer) else moved


def send_to(value: Any, location: Any, owner: Any, framework: Any, publish: bool = False) -> PointerTensor:
    """Store ``value`` on ``location`` and return a pointer to it."""
    id = new_id()
    location.ask(Store(id, value, publish), owner)
    return PointerTensor(location, id, framework, owner=owner, tags=getattr(value, "_syft_tags", None))
