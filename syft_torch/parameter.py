"""Move the data of parameters and buffers between workers, keeping the tensor objects.

Modules, optimizers and tied weights refer to a Parameter as a Python object. So its *content* is swapped
(``torch.utils.swap_tensors``): the local tensor for a wrapper around a pointer, and back.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import torch
from torch.autograd.graph import get_gradient_edge
from torch.nn.parameter import is_lazy
from torch.utils import swap_tensors

from syft_core.exceptions import WorkerError
from syft_core.location import Location
from syft_core.messages import FetchAll, Forward
from syft_core.pointers.fetches import FetchSteps, complete
from syft_core.pointers.object_pointer import new_id
from syft_core.pointers.pointer_tensor import PointerTensor, pointer_at
from syft_core.tensors.identity import require_text
from syft_torch.wrapper import Wrapper

PLAIN_TYPES = frozenset({torch.Tensor, torch.nn.Parameter})
"""The types of plain tensors; subclasses may behave differently."""
Transfer = Callable[[Sequence[torch.Tensor]], list[torch.Tensor]]
"""Takes tensors and returns equivalent tensors with their data at another place, without changing the originals."""


def relocate(tensors: Sequence[torch.Tensor], transfer: Transfer) -> None:
    """Replace the content of every tensor with the result of ``transfer``; if one fails, change none."""
    require_all_movable(tensors, in_graphs=True)
    exchange_all(tensors, transfer(tensors))


def location_of(tensor: torch.Tensor) -> Any:
    """Return the location of the data of ``tensor``, or None if it is local."""
    return getattr(getattr(tensor, "child", None), "location", None)


def find_remote(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Return those of ``tensors`` whose data is on a worker."""
    if PLAIN_TYPES.issuperset(map(type, tensors)):
        return []
    for tensor in tensors:
        if type(getattr(tensor, "child", None)) is not PointerTensor:
            break
    else:
        return list(tensors)
    return [tensor for tensor in tensors if location_of(tensor) is not None]


def send_in_place(tensors: Sequence[torch.Tensor], location: Location) -> None:
    """Send the data of every tensor to ``location``, keeping the tensor objects; if one fails, send none."""
    require_all_movable(tensors)
    plain: list[torch.Tensor] = []
    others: list[torch.Tensor] = []
    for tensor in tensors:
        is_bare = type(tensor) in PLAIN_TYPES and not (tensor._syft_tags or tensor._syft_description)
        (plain if is_bare else others).append(tensor)  # Words must be sent with the tensor.
    sent: list[torch.Tensor] = []
    try:
        for tensor in others:
            exchange_all([tensor], [tensor.send(location)])
            sent.append(tensor)
        _give_away(plain, location, sent)
    except BaseException:
        relocate(sent, lambda tensors: complete(fetch(tensors, None, "not all of its module could be sent")))
        raise
    if location.predicts:
        pointers = [tensor.child for tensor in tensors if type(tensor.child) is PointerTensor]
        together = [weakref.ref(pointer) for pointer in pointers]
        for pointer in pointers:
            pointer._sent_with = together


def _give_away(tensors: Sequence[torch.Tensor], location: Location, sent: list[torch.Tensor]) -> None:
    """Send the data and give up ownership, so that an in-process receiver need not copy it; append it to ``sent``."""
    pointers: list[PointerTensor] = []
    contents: list[torch.Tensor] = []
    for tensor in tensors:
        pointer = pointer_at(location, new_id(), Wrapper.framework, location.client)
        if location.predicts:
            pointer.remember_forms_of(tensor)
        pointers.append(pointer)
        contents.append(Wrapper(pointer))
    exchange_all(tensors, contents)
    try:
        location.give([pointer._id_at_location for pointer in pointers], contents)
    except BaseException:
        first = len(tensors) - len(contents)
        sent += tensors[:first]
        for missing in pointers[first:]:
            missing.gone = "it could not be sent"
        exchange_all(tensors[first:], contents)
        raise
    sent += tensors


def fetch(tensors: Sequence[torch.Tensor], user: str | None, reason: str) -> FetchSteps:
    """Fetch tensors as a generator; a worker permits and records all of its tensors or none.

    With several workers, or layers above the pointers, it fetches copies, because one worker may refuse.
    """
    require_text("reason", reason)
    if not tensors:
        return []
    first: PointerTensor = tensors[0].child
    ids = []
    for tensor in tensors:
        pointer = tensor.child
        is_whole = type(pointer) is PointerTensor and pointer.whole is None
        if not is_whole or pointer._location is not first._location:
            return [tensor.get(user=user, reason=reason, deregister_ptr=False) for tensor in tensors]
        if pointer.gone is not None:
            pointer.require_alive()
        ids.append(pointer._id_at_location)
    arrived: list[torch.Tensor] = yield first._location, FetchAll(tuple(ids), user, reason)
    gone = f"it was fetched by {first.owner.id!r}"
    for tensor in tensors:
        tensor.child.gone = gone
    return arrived


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
            f"cannot move a {type(pointer).__name__} in place: it is a layer above the pointer; "
            f"fetch the module with `model.get()` and send it to the other worker"
        )
    pointer.require_alive()
    return pointer


def require_all_movable(tensors: Sequence[torch.Tensor], in_graphs: bool = False) -> None:
    """Raise unless the data of every tensor can be replaced in place.

    Refuse, before anything is changed, what torch would refuse in the middle of a module. With ``in_graphs``, autograd
    graphs may need the old data: they keep it, and the worker does not get it.
    """
    if any(map(has_hooks, tensors)):
        raise WorkerError(
            "cannot move a tensor with hooks: your functions would not run where its gradient is computed; remove "
            "them with `handle.remove()`, and use hooks of modules, e.g. `layer.register_full_backward_hook(f)`"
        )
    with torch._C.DisableTorchFunctionSubclass():
        if not _NEVER_LAZY.issuperset(map(type, tensors)) and any(map(is_lazy, tensors)):
            raise WorkerError(
                "cannot move a parameter that has no shape yet: its lazy module has not been run; run it first"
            )
        if any(map(weakref.getweakrefcount, tensors)):
            raise WorkerError(
                "cannot move a tensor in place: there are weak references to it, for instance from torch.compile "
                "or a cache; send a copy of the module instead, e.g. `model.copy().send(bob)`"
            )
        for tensor in () if in_graphs else tensors:
            # The node that accumulates its gradient may also refer to it.
            if (users := tensor._use_count()) > 1 and users > 1 + tensor.requires_grad:
                raise WorkerError(
                    "cannot move a tensor in place: an autograd graph needs it for a backward pass; run that pass or "
                    "delete the results first, or send a copy of the module, e.g. `model.copy().send(bob)`"
                )


def has_hooks(tensor: torch.Tensor) -> bool:
    """Return whether backward passes call functions of the user with the gradient of ``tensor``."""
    with torch._C.DisableTorchFunctionSubclass():
        return bool(tensor._backward_hooks or tensor._post_accumulate_grad_hooks)


_NEVER_LAZY = PLAIN_TYPES | {Wrapper}


def exchange_all(tensors: Sequence[torch.Tensor], contents: Sequence[torch.Tensor], temporary: bool = False) -> None:
    """Swap the data of each tensor with its content, and notify optimizers.

    A tensor keeps its id, tags and other attributes; its content loses its own. Graphs that need the old data keep it,
    but a backward pass through them is refused, unless the exchange is ``temporary``.
    """
    # swap_tensors must check the wrapper itself, not its chain.
    with torch._C.DisableTorchFunctionSubclass():
        for tensor, content in zip(tensors, contents, strict=True):
            own, others, attributes = tensor.__dict__, content.__dict__, {}
            for name in own:
                if name not in CONTENT_ATTRIBUTES:
                    attributes[name] = own[name]
            for name in others:
                if name in CONTENT_ATTRIBUTES:
                    attributes[name] = others[name]
            if not issubclass(type(content), torch.nn.Parameter) and (
                type(tensor) is torch.nn.Parameter or isinstance(tensor, torch.nn.Parameter)
            ):
                attributes["_is_param"] = True
            if weakref.getweakrefcount(tensor):
                swap_tensors(tensor, content)  # It raises an error.
            if not temporary:
                _refuse_passes_to(tensor)
                _refuse_passes_to(content)
            tensor.__class__, content.__class__ = content.__class__, tensor.__class__
            _swap(tensor, content)
            tensor.__dict__, content.__dict__ = attributes, {}
    Moves.count += 1


_swap = torch._C._swap_tensor_impl


def _refuse_passes_to(tensor: torch.Tensor) -> None:
    """Make backward passes of graphs that need a tensor fail: its gradient would arrive at a tensor nobody holds."""
    if tensor._use_count() > 1 and tensor.is_leaf and tensor.requires_grad:
        get_gradient_edge(tensor).node.register_prehook(_refuse_backward)


def _refuse_backward(_gradients: object) -> NoReturn:
    raise WorkerError(
        "cannot run this backward pass: it began with a tensor whose data has been moved, shared or replaced since; "
        "compute the result again"
    )


class Moves:
    """Counts moves of tensors between workers, so that optimizers notice them."""

    count = 0


CONTENT_ATTRIBUTES = frozenset({"child", "_is_param", "_syft_grad", "_syft_device"})
