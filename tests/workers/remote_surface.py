"""The samples of the surface tests, called on pointers: what leaves a worker, and what stays there afterwards."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from syft_core.exceptions import SyftError
from syft_core.hook.attributes import Op
from syft_core.hook.hook import current_worker
from syft_core.pointers.object_pointer import ObjectPointer
from syft_core.tensors.logging import LoggingTensor
from syft_core.tensors.plus_is_minus import PlusIsMinusTensor
from syft_core.workers.party.virtual import VirtualWorker
from syft_numpy.wrapper import wrap

from ..surface.checks import Case, Raised, attempt, map_tensors, parts_of, same_value, tensors
from ..surface.survey import Surface
from ..surface.torch_surface import same_values

OWNER, STRANGER = "owner", "stranger"
CAME_HERE = "a tensor that came here"
EXHAUSTIVE = bool(int(os.environ.get("SYFT_EXHAUSTIVE", "0")))
"""Whether every sample is called in every way, as in the nightly environment, or some only with one sample of each
operation."""

KINDS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "pointer": lambda head, bob, _alice: head.send(bob),
    "private": lambda head, bob, _alice: head.private_tensor([OWNER]).send(bob),
    "multi pointer": lambda head, bob, alice: head.send(bob, alice),
    "logging over a pointer": lambda head, bob, _alice: LoggingTensor().on(head.send(bob)),
    "logging there": lambda head, bob, _alice: LoggingTensor().on(head).send(bob),
    "plus is minus there": lambda head, bob, _alice: PlusIsMinusTensor().on(head).send(bob),
    "pointer to a pointer": lambda head, bob, alice: head.send(alice).send(bob),
}
"""What a tensor may be to one who works with it from afar."""
LIKE_ANOTHER_BY_WIRE = frozenset({"logging over a pointer", "plus is minus there"})
"""Kinds that say the same on the wire as another one: a pointer, a chain."""
_HEADS: dict[str, Callable[[Any], Any]] = {
    "torch": lambda tensor: tensor,
    "numpy": lambda array: wrap(np.asarray(array)),
}


class RemoteSurface:
    """Calls cases of a surface, whose framework must be hooked, on pointers to a worker."""

    def __init__(self, surface: Surface, *, kind: str, serialize: bool) -> None:
        self.surface = surface
        self.head = _HEADS[surface.name]
        """Makes of a plain tensor what can be sent."""
        self.kind = kind
        self.private = kind == "private"
        self.me = current_worker()
        self.worker, self.other = (
            VirtualWorker(self.me.hook, id=f"{name} {kind} {serialize}", serialize=serialize)
            for name in ("bob", "alice")
        )
        self.clear()

    def clear(self) -> None:
        """Let the workers forget everything."""
        for worker in (self.worker, self.other):
            worker.clear_objects()

    def cases(self, op: Op, most: int | None = None) -> list[Case]:
        """Return the samples of ``op`` that have a tensor to send, at most so many unless the test is exhaustive."""
        found = [
            case for case in self.surface.cases(op) if any(True for _ in tensors(self.surface, _arguments_of(case)))
        ]
        return found if EXHAUSTIVE else found[:most]

    def call(self, case: Case, change: Callable[[Any], Any] | None = None, place: int | None = None) -> Any:
        """Call ``case`` on pointers to copies of its tensors, each changed by ``change``; return what comes back.

        With a ``place`` only the tensor there is changed and what this surface is about; the others are just sent.
        """
        self.me.user = OWNER
        chosen = None if place is None else self.tensors_of(case)[place]
        sent = attempt(lambda *args, **kwargs: self._send_all((args, kwargs), change, chosen), *_arguments_of(case))
        self.me.user = STRANGER
        if isinstance(sent, Raised):  # nested tensors have no shape, and cannot be sent
            return sent
        return self.surface.run(lambda: attempt(case.call, *sent))[0]

    def tensors_of(self, case: Case) -> list[Any]:
        """Return the tensors that ``case`` is called with, each once."""
        return list({id(tensor): tensor for tensor in tensors(self.surface, _arguments_of(case))}.values())

    def _send_all(self, given: Any, change: Callable[[Any], Any] | None, chosen: Any) -> Any:
        def send(tensor: Any) -> Any:
            if chosen is None or tensor is chosen:
                return self._send(tensor, change)
            return self.head(self.surface.copy(tensor)).send(self.worker)

        return map_tensors(self.surface, send, given)

    def _send(self, tensor: Any, change: Callable[[Any], Any] | None) -> Any:
        copy = self.surface.copy(tensor)
        head = self.head(change(copy) if change is not None else copy)
        return KINDS[self.kind](head, self.worker, self.other)

    def call_mixed(self, case: Case, place: int) -> list[str]:
        """Call ``case`` with the tensor at ``place`` private, the others free; return which of these reveal it."""
        self.me.user = OWNER
        secret, free = self.tensors_of(case)[place], {}

        def send(tensor: Any) -> Any:
            head = self.head(self.surface.copy(tensor))
            if tensor is secret:
                return head.private_tensor([OWNER]).send(self.worker)
            pointer = head.send(self.worker)
            free[pointer.id_at_location] = self.surface.copy(tensor)
            return pointer

        sent = attempt(lambda *args, **kwargs: map_tensors(self.surface, send, (args, kwargs)), *_arguments_of(case))
        self.me.user = STRANGER
        if not isinstance(sent, Raised):
            self.surface.run(lambda: attempt(case.call, *sent))
        entries = [(self.worker.object_store.entry(id), value) for id, value in free.items()]
        return [case.op for entry, before in entries if entry.access is None and self._reveals(entry.value, before)]

    def _reveals(self, value: Any, before: Any) -> bool:
        """Return whether a value has changed, or has a gradient."""
        value = getattr(value, "child", value)
        if getattr(value, "requires_grad", False) and value.is_leaf and value.grad is not None:
            return True
        same = same_values if self.surface.name == "torch" else np.testing.assert_array_equal
        return tuple(value.shape) != tuple(before.shape) or isinstance(attempt(same, (before, value), {}), Raised)

    def reveal(self, result: Any) -> list[Any]:
        """Return everything in a result that can be read here without fetching; of private tensors, shapes too."""
        found = list(self._reveal(result))
        if self.private:
            heads = [tensor for tensor in tensors(self.surface, result) if is_remote(tensor)]
            # Arrays of objects stay where they are; by wire not even their dtype is told.
            found += [(tuple(head.shape), attempt(lambda head: str(head.dtype), (head,), {})) for head in heads]
        return found

    def _reveal(self, result: Any) -> Iterator[Any]:
        if isinstance(result, Raised):
            yield result.kind
            yield result.text if self.private and not issubclass(result.kind, SyftError) else ""
        elif self.surface.is_tensor(result):
            yield "pointer" if is_remote(result) else CAME_HERE
        elif (parts := parts_of(result)) is not None:
            yield len(parts)
            for part in parts:
                yield from self._reveal(part)
        else:
            yield result

    def count(self) -> int:
        """Return how many objects all workers have, after collecting what nobody points to."""
        gc.collect(0)
        # What the other holds for this one is counted after this one has dropped its pointers.
        return sum(int(worker.objects_count) for worker in (self.me, self.worker, self.other))


def _arguments_of(case: Case) -> Any:
    return case.args, case.kwargs


def is_remote(tensor: Any) -> bool:
    """Return whether a tensor is a wrapper around a pointer."""
    return isinstance(getattr(tensor, "child", None), ObjectPointer)


def same(one: list[Any], other: list[Any]) -> bool:
    """Return whether two lists of facts are equal."""
    return len(one) == len(other) and all(map(same_value, one, other))
