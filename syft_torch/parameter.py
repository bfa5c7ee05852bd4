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
from syft_core.hook.dispatch import framework_of
from syft_core.hook.hook import attached_hook
from syft_core.location import Location
from syft_core.messages import FetchAll, Forward, Store
from syft_core.pointers.object_pointer import new_id
from syft_core.pointers.pointer_tensor import PointerTensor, pointer_at

PLAIN_TYPES = frozenset({torch.Tensor, torch.nn.Parameter})
"""The types of tensors that are all that they seem: subclasses may mean more."""
Transfer = Callable[[Sequence[torch.Tensor]], list[torch.Tensor]]
"""Takes tensors and returns their likes at another place, leaving the tensors themselves as they are."""


def relocate(tensors: Sequence[torch.Tensor], transfer: Transfer) -> None:
    """Let every tensor object be what ``transfer`` makes of it: all of them, or none when one cannot go."""
    _require_all_movable(tensors)
    for tensor, content in zip(tensors, transfer(tensors), strict=True):
        exchange(tensor, content)


def location_of(tensor: torch.Tensor) -> Any:
    """Return where the data of ``tensor`` is, or None when it is here."""
    return getattr(getattr(tensor, "child", None), "location", None)


def send_in_place(tensors: Sequence[torch.Tensor], location: Location) -> None:
    """Send the data of every tensor object to ``location``: all of them, or none when one cannot go."""
    _require_all_movable(tensors)
    away: list[torch.Tensor] = []
    try:
        for tensor in tensors:
            _send_in_place(tensor, location)
            away.append(tensor)
    except BaseException:
        relocate(away, make_fetch(None, "not all of its module could be sent"))
        raise
    pointers = [tensor.child for tensor in tensors if type(tensor.child) is PointerTensor]
    together = [weakref.ref(pointer) for pointer in pointers]
    for pointer in pointers:
        pointer._together = together


def _send_in_place(tensor: torch.Tensor, location: Location) -> None:
    """Give the data away; within one process it need not be copied, because nothing of it stays here."""
    if type(tensor) not in PLAIN_TYPES or tensor._syft_tags or tensor._syft_description:
        exchange(tensor, tensor.send(location))
        return
    framework, id = framework_of(tensor), new_id()
    pointer = pointer_at(location, id, framework, location.client)
    pointer.know_copy_of(tensor)
    data = framework.wrapper(pointer)
    exchange(tensor, data)
    message = Store(id, data, given=True)
    del data
    try:
        location.tell(message)
    except BaseException:
        pointer.gone = "it could not be sent"
        exchange(tensor, message.value)
        raise


def make_fetch(user: str | None, reason: str) -> Transfer:
    """Return the transfer from workers to here; each decides and records it, for all of its tensors or none.

    Copies are make_fetch where there are several workers, or layers above the pointers: one of them may refuse.
    """

    def fetch(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        if not tensors:
            return []
        pointers = [tensor.child for tensor in tensors]
        location: Any = getattr(pointers[0], "_location", None)
        if not all(type(p) is PointerTensor and p.whole is None and p._location is location for p in pointers):
            return [tensor.get(user=user, reason=reason, deregister_ptr=False) for tensor in tensors]
        for pointer in pointers:
            pointer.require_alive()
        ids = tuple([pointer.id_at_location for pointer in pointers])
        arrived: list[torch.Tensor] = location.ask(FetchAll(ids, user, reason))
        for pointer in pointers:
            pointer.gone = f"it was fetched by {pointer.owner.id!r}"
        return arrived

    return fetch


def make_move(destination: Location) -> Transfer:
    """Return a function that moves tensors directly to another worker; the sources are kept until all have arrived."""
    return lambda tensors: [_move(tensor, destination) for tensor in tensors]


def _move(tensor: torch.Tensor, destination: Location) -> torch.Tensor:
    pointer = _pointer_of(tensor)
    id = new_id()
    message = Forward(pointer.id_at_location, pointer.point_to_attr, destination.id, id, keep=True)
    pointer._location.ask(message)
    return pointer.framework.wrapper(PointerTensor(destination, id, pointer.framework, owner=pointer.owner))


def _pointer_of(tensor: torch.Tensor) -> PointerTensor:
    pointer = tensor.child
    if not isinstance(pointer, PointerTensor):
        raise WorkerError(
            f"cannot move a {type(pointer).__name__} in place: it lies above the pointer; "
            f"fetch the module with `model.get()` and send it to the other worker"
        )
    pointer.require_alive()
    return pointer


def _require_all_movable(tensors: Sequence[torch.Tensor]) -> None:
    with torch._C.DisableTorchFunctionSubclass():
        for tensor in tensors:
            _require_movable(tensor)


def _require_movable(tensor: torch.Tensor) -> None:
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
    # Beside the tensor itself, the node that adds to its gradient may refer to it.
    if tensor._use_count() > 1 + tensor.requires_grad:
        raise WorkerError(
            "cannot move a tensor in place: a graph of operations needs it as it is for a backward pass; run that "
            "pass or drop the results first, or send a copy of the module, e.g. `model.copy().send(bob)`"
        )


def exchange(tensor: torch.Tensor, content: torch.Tensor) -> None:
    """Give ``tensor`` the data of ``content``, which has that of ``tensor`` then, and nothing else.

    The id, tags and further attributes of ``tensor`` stay, and optimizers are told.
    """
    attributes = {name: value for name, value in tensor.__dict__.items() if name not in _CONTENT_ATTRIBUTES}
    attributes.update({name: value for name, value in content.__dict__.items() if name in _CONTENT_ATTRIBUTES})
    if isinstance(tensor, torch.nn.Parameter) and not isinstance(content, torch.nn.Parameter):
        attributes["_is_param"] = True
    # The checks of swap_tensors are about the wrapper here, not about what it points to.
    with torch._C.DisableTorchFunctionSubclass():
        _swap(tensor, content)
    tensor.__dict__, content.__dict__ = attributes, {}
    hook: Any = attached_hook("torch")
    if hook is not None:
        hook.optimizer_state.note_move()


_CONTENT_ATTRIBUTES = frozenset({"child", "_is_param", "_syft_grad", "_syft_device"})


def _swap(tensor: torch.Tensor, content: torch.Tensor) -> None:
    """Swap two tensors; the general way of torch is slow, because it also deals with those in a graph."""
    if tensor._use_count() > 1 or content._use_count() > 1 or weakref.getweakrefs(tensor):
        swap_tensors(tensor, content)
    else:
        tensor.__class__, content.__class__ = content.__class__, tensor.__class__
        torch._C._swap_tensor_impl(tensor, content)
