"""Change where the data of a tensor is, and keep the tensor object: parameters and buffers on their travels.

A Parameter is known to its module, to optimizers and to other modules (tied weights) as an object. So its *content* is
exchanged (``torch.utils.swap_tensors``): the local tensor for a wrapper around a pointer, and back.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn.parameter import is_lazy
from torch.utils import swap_tensors

from syft_core.exceptions import WorkerError
from syft_core.hook.hook import attached_hook
from syft_core.messages import Forward
from syft_core.pointers.object_pointer import new_id
from syft_core.pointers.pointer_tensor import PointerTensor

Journey = Callable[[Any], Any]
"""Takes a tensor and returns its like at another place, leaving the tensor itself as it is."""


def relocate(tensors: Sequence[Any], journey: Journey) -> None:
    """Let every tensor object be what ``journey`` makes of it: all of them, or none when one cannot go.

    Every journey leaves a copy behind, so that one which fails, because a worker refuses, has changed nothing.
    """
    for tensor in tensors:
        _require_movable(tensor)
    arrived = [journey(tensor) for tensor in tensors]
    for tensor, content in zip(tensors, arrived, strict=True):
        exchange(tensor, content)


def location_of(tensor: Any) -> Any:
    """Return the worker that holds the data of ``tensor``, or None when it is here."""
    return getattr(getattr(tensor, "child", None), "location", None)


def sent(worker: Any) -> Journey:
    """Return the journey from here to ``worker``."""
    return lambda tensor: tensor.send(worker)


def fetched(user: str | None, reason: str) -> Journey:
    """Return the journey from a worker to here; the worker decides and records it."""
    return lambda tensor: tensor.get(user=user, reason=reason, deregister_ptr=False)


def moved(destination: Any) -> Journey:
    """Return the journey from one worker to another, which does not pass here."""

    def move(tensor: Any) -> Any:
        pointer = _pointer_of(tensor)
        id = new_id()
        message = Forward(pointer.id_at_location, pointer.point_to_attr, destination, id, keep=True)
        pointer.location.ask(message, pointer.owner)
        return pointer.framework.wrapper(PointerTensor(destination, id, pointer.framework, owner=pointer.owner))

    return move


def _pointer_of(tensor: Any) -> PointerTensor:
    pointer = tensor.child
    if not isinstance(pointer, PointerTensor):
        raise WorkerError(
            f"cannot move a {type(pointer).__name__} in place: it lies above the pointer; "
            f"fetch the module with `model.get()` and send it to the other worker"
        )
    pointer.require_alive()
    return pointer


def _require_movable(tensor: Any) -> None:
    """Refuse, before anything is changed, what torch would refuse in the middle of a module."""
    if is_lazy(tensor):
        raise WorkerError(
            "cannot move a parameter that has no shape yet: its lazy module has not seen data; run it first"
        )
    if weakref.getweakrefs(tensor):
        raise WorkerError(
            "cannot move a tensor in place: something keeps a weak reference to it, as torch.compile and some caches "
            "do; send a copy of the module instead, e.g. `model.copy().send(bob)`"
        )
    with torch._C.DisableTorchFunctionSubclass():
        # Beside the tensor itself, the node that adds to its gradient may refer to it.
        if tensor._use_count() > 1 + tensor.requires_grad:
            raise WorkerError(
                "cannot move a tensor in place: a graph of operations needs it as it is for a backward pass; run that "
                "pass or drop the results first, or send a copy of the module, e.g. `model.copy().send(bob)`"
            )


def exchange(tensor: Any, content: Any) -> None:
    """Give ``tensor`` the data of ``content``; its id, tags and further attributes stay, and optimizers are told."""
    if isinstance(tensor, torch.nn.Parameter) and not isinstance(content, torch.nn.Parameter):
        content._is_param = True
    _hand_on_attributes(tensor, content)
    # The checks of swap_tensors are about the wrapper here, not about what it points to.
    with torch._C.DisableTorchFunctionSubclass():
        swap_tensors(tensor, content)
    hook: Any = attached_hook("torch")
    if hook is not None:
        hook.optimizer_state.note_move()


_OF_THE_CONTENT = frozenset({"child", "_is_param", "_syft_grad"})
_OF_THE_OBJECT = ("_syft_id", "_syft_owner", "_syft_tags", "_syft_description")


def _hand_on_attributes(tensor: Any, content: Any) -> None:
    for name in _OF_THE_OBJECT:
        content.__dict__.pop(name, None)
    content.__dict__.update({name: value for name, value in tensor.__dict__.items() if name not in _OF_THE_CONTENT})
