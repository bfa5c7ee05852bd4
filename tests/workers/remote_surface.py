"""The samples of the surface tests, called on pointers: what leaves a worker, and what stays there afterwards."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

from syft_core.exceptions import SyftError
from syft_core.hook.attributes import Op
from syft_core.hook.hook import current_worker
from syft_core.pointers.object_pointer import ObjectPointer
from syft_core.workers.virtual import VirtualWorker

from ..surface.checks import Case, Raised, attempt, map_tensors, parts_of, same_value, tensors
from ..surface.survey import Surface

OWNER, STRANGER = "owner", "stranger"
CAME_HERE = "a tensor that came here"


class RemoteSurface:
    """Calls cases of a surface, whose framework must be hooked, on pointers to a worker."""

    def __init__(self, surface: Surface, head: Callable[[Any], Any], *, private: bool, serialize: bool) -> None:
        self.surface = surface
        self.head = head
        """Makes of a plain tensor what can be sent."""
        self.private = private
        self.me = current_worker()
        self.worker = VirtualWorker(self.me.hook, id=f"bob {private} {serialize}", serialize=serialize)
        self.worker.clear_objects()

    def cases(self, op: Op) -> list[Case]:
        """Return the samples of ``op`` that have a tensor to send."""
        return [case for case in self.surface.cases(op) if any(True for _ in tensors(self.surface, _given(case)))]

    def call(self, case: Case, change: Callable[[Any], Any] | None = None) -> Any:
        """Call ``case`` on pointers to copies of its tensors, each changed by ``change``; return what comes back."""
        self.me.user = OWNER
        sent = attempt(lambda *args, **kwargs: self._all_sent((args, kwargs), change), *_given(case))
        self.me.user = STRANGER
        if isinstance(sent, Raised):  # nested tensors have no shape, and cannot be sent
            return sent
        return self.surface.run(lambda: attempt(case.call, *sent))[0]

    def _all_sent(self, given: Any, change: Callable[[Any], Any] | None) -> Any:
        return map_tensors(self.surface, lambda tensor: self._sent(tensor, change), given)

    def _sent(self, tensor: Any, change: Callable[[Any], Any] | None) -> Any:
        copy = self.surface.copy(tensor)
        head = self.head(change(copy) if change is not None else copy)
        return (head.private_tensor([OWNER]) if self.private else head).send(self.worker)

    def told(self, result: Any) -> list[Any]:
        """Return everything in a result that can be read here without fetching; of private tensors, shapes too."""
        found = list(self._told(result))
        if self.private:
            heads = [tensor for tensor in tensors(self.surface, result) if is_remote(tensor)]
            found += [(tuple(head.shape), str(head.dtype)) for head in heads]
        return found

    def _told(self, result: Any) -> Iterator[Any]:
        if isinstance(result, Raised):
            yield result.kind
            yield result.text if self.private and not issubclass(result.kind, SyftError) else ""
        elif self.surface.is_tensor(result):
            yield "pointer" if is_remote(result) else CAME_HERE
        elif (parts := parts_of(result)) is not None:
            yield len(parts)
            for part in parts:
                yield from self._told(part)
        else:
            yield result

    def count(self) -> int:
        """Return how many objects the worker has, after collecting what nobody points to."""
        gc.collect(0)
        return int(self.worker.objects_count)


def _given(case: Case) -> Any:
    return case.args, case.kwargs


def is_remote(tensor: Any) -> bool:
    """Say whether a tensor is the head of a pointer."""
    return isinstance(getattr(tensor, "child", None), ObjectPointer)


def same(one: list[Any], other: list[Any]) -> bool:
    """Say whether two lists of facts are equal."""
    return len(one) == len(other) and all(map(same_value, one, other))
