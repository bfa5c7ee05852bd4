"""Travelling: what a tensor and the head of a chain can be told about where to be, and who may have it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from syft_core.exceptions import SendNotPermittedError
from syft_core.hook.chain import below_wrapper, end_of, iter_links
from syft_core.hook.dispatch import framework_of
from syft_core.location import Location, Party
from syft_core.messages import Store
from syft_core.peer import Id, Peer
from syft_core.pointers.callable_pointer import CallablePointer
from syft_core.pointers.multi_pointer import MultiPointerTensor, combine_pointers
from syft_core.pointers.object_pointer import ObjectPointer, new_id
from syft_core.pointers.pointer_tensor import PointerTensor
from syft_core.tensors.identity import Identified
from syft_core.tensors.private import PrivateTensor, require_sendable
from syft_core.values import Kwargs, Tensor


class Travelling:
    """The names under which users send, fetch and move tensors; mixed into heads and, where possible, plain tensors.

    Who owns what: ``send`` gives the pointer an object of its own, which lives as long as a pointer to it does;
    ``publish`` gives it to the worker for good; ``get`` and ``move`` take the object away from its worker; ``copy``
    makes another one there.
    """

    # --- there

    def send(
        self,
        *workers: object,
        inplace: bool = False,
        user: str | None = None,
        local_autograd: bool = False,
        requires_grad: bool = False,
        preinitialize_grad: bool = False,
        no_wrap: bool = False,
        garbage_collect_data: bool = True,
        publish: bool = False,
    ) -> Tensor:
        """Send a copy to a worker and return a pointer to it; the tensor here stays as it is.

        Several workers get a copy each, and the result stands for all of them. With ``requires_grad`` the gradient
        that the copy gets comes back to this tensor, and backward goes on here. With ``preinitialize_grad`` a copy that
        needs a gradient starts with one of zeros. ``local_autograd`` is refused: the graph is where the data is.
        """
        if not workers:
            raise TypeError("cannot send to nobody: name a worker, e.g. `x.send(bob)`")
        if local_autograd:
            raise NotImplementedError(
                "cannot send with local_autograd: the graph of operations is kept where the data is, and a second one "
                "here would have to fetch values; leave it out, `p.backward()` and `p.grad` work without it"
            )
        if requires_grad or preinitialize_grad:
            _require_gradients(self)
        if inplace:
            return self.send_(*workers, user=user, requires_grad=requires_grad, preinitialize_grad=preinitialize_grad)
        owner = self.owner  # type: ignore[attr-defined]  # mixed into what is Identified
        locations = [owner.location_of(worker) for worker in workers]
        pointers = [sent(self, owner, location, user, publish, requires_grad) for location in locations]
        for pointer in pointers:
            pointer.garbage_collect_data = garbage_collect_data
            if preinitialize_grad:
                _start_with_zeros(self, pointer)
        all_of_them: Tensor = pointers[0] if len(pointers) == 1 else MultiPointerTensor(pointers)
        return all_of_them if no_wrap else head_of(all_of_them)

    def send_(
        self, *workers: object, user: str | None = None, requires_grad: bool = False, preinitialize_grad: bool = False
    ) -> Tensor:
        """Send the data away, and let this very object be the pointer to it."""
        if len(workers) != 1:
            raise TypeError(
                f"cannot send in place to {len(workers)} workers: one object is in one place; name one worker"
            )
        options: Kwargs = {"requires_grad": requires_grad, "preinitialize_grad": preinitialize_grad}
        framework_of(self).become(self, self.send(*workers, user=user, **options))
        return self

    def publish(self, *workers: object) -> Tensor:
        """Send a copy to a worker, which keeps it for good; on a pointer, let its worker keep the object."""
        if workers:
            return self.send(*workers, publish=True)
        _pointer_under(self, "publish").publish()
        return self

    # --- and back

    def get(
        self, user: str | None = None, reason: str = "", deregister_ptr: bool = True, sum_results: bool = False
    ) -> Tensor:
        """Fetch what the chain points to; it leaves its worker, which decides and records that."""
        options: Kwargs = {"user": user, "reason": reason}
        pointer = _pointer_under(self, "get")
        if isinstance(pointer, MultiPointerTensor):
            return pointer.get(sum_results=sum_results, **options)
        return _on_another_end(self, pointer.get(deregister_ptr=deregister_ptr, **options))

    def request(self, reason: str) -> int:
        """Ask the owner of what the chain points to for its release, and say why; ``get`` works after they approve."""
        number: int = _pointer_under(self, "request").request(reason)
        return number

    def get_(self, user: str | None = None, reason: str = "") -> Tensor:
        """Fetch what the chain points to, and let this very object be it."""
        framework_of(self).become(self, self.get(user=user, reason=reason))
        return self

    def virtual_get(self, sum_results: bool = False) -> Tensor:
        """Look at the tensors of workers in this process, which stay there; for tests and simulations only."""
        return _pointer_under(self, "virtual_get").virtual_get(sum_results)

    def move(self, worker: object, requires_grad: bool = False) -> Tensor:
        """Send what the chain points to on to another worker; return a pointer to where it is then."""
        pointer = _pointer_under(self, "move")
        if requires_grad:
            _require_gradients(self)
        moved = pointer.move(worker, requires_grad)
        return self if moved is pointer else _on_another_end(self, moved)

    def remote_send(self, worker: object) -> Tensor:
        """Let the worker of this pointer send the object on; what it keeps, and this points to, is a pointer."""
        _pointer_under(self, "remote_send").remote_send(worker)
        return self

    def remote_get(self) -> Tensor:
        """Let the worker of this pointer fetch what the pointer that it holds points to."""
        _pointer_under(self, "remote_get").remote_get()
        return self

    def mid_get(self) -> Tensor:
        """Do what ``remote_get`` does."""
        return self.remote_get()

    def combine(self, *pointers: Tensor) -> Tensor:
        """Return one tensor that stands for this pointer and the others, each on a worker of its own."""
        return combine_pointers(self, *pointers)

    # --- words

    def tag(self, *tags: str) -> Tensor:
        """Add tags, also to the object that a pointer points to, and return this very tensor."""
        return self._syft_word("tag", *tags)

    def describe(self, description: str) -> Tensor:
        """Set the description, also of the object that a pointer points to, and return this very tensor."""
        return self._syft_word("describe", description)

    def _syft_word(self, verb: str, *words: str) -> Tensor:
        pointer = getattr(self, "child", None)
        if isinstance(pointer, ObjectPointer):
            getattr(pointer, verb)(*words)
            _share_words(self, pointer)
            return self
        getattr(Identified, verb)(self, *words)
        _index_words(self)
        return self

    # --- the pointer

    def attr(self, name: str) -> Tensor:
        """Return a pointer to an attribute of what this points to, e.g. ``p.attr("grad")``."""
        return head_of(_pointer_under(self, "attr").attr(name))

    @property
    def gc(self) -> bool:
        """Whether dropping the last pointer drops the object that it points to."""
        return bool(_pointer_under(self, "gc").garbage_collect_data)

    @gc.setter
    def gc(self, collect: bool) -> None:
        _pointer_under(self, "gc").garbage_collect_data = collect

    @property
    def garbage_collection(self) -> bool:
        """Do what ``gc`` does."""
        return self.gc

    @garbage_collection.setter
    def garbage_collection(self, collect: bool) -> None:
        self.gc = collect

    @property
    def disable_gc(self) -> Tensor:
        """The tensor itself; from now on dropping the pointer leaves the object where it is."""
        self.gc = False
        return self

    # --- who may have it

    def private_tensor(self, allowed_users: Iterable[str] = (), no_wrap: bool = False) -> Tensor:
        """Restrict the data, and everything that will be computed from it, to these users.

        A user is who the transport says it is: the ``user`` of a worker, or its id.
        """
        if isinstance(end_of(self), ObjectPointer | MultiPointerTensor):
            raise TypeError(
                "cannot make a pointer private: its worker decides; make the tensor private and send it then"
            )
        users = frozenset([allowed_users] if isinstance(allowed_users, str) else allowed_users)
        layer = PrivateTensor(users, child=below_wrapper(self))
        return layer if no_wrap else framework_of(self).wrapper(layer)

    def allow(self, user: str) -> bool:
        """Say whether every layer of the chain lets ``user`` have the data."""
        return all(layer.allow(user) for layer in _private_layers(self))

    def register_credentials(self, users: Iterable[str]) -> Tensor:
        """Allow these users from now on, and nobody else."""
        layers = _private_layers(self)
        if not layers:
            raise TypeError("cannot register credentials: the tensor is not private; write `x.private_tensor(users)`")
        for layer in layers:
            layer.register_credentials(users)
        return self


def head_of(pointer: Tensor) -> Tensor:
    """Return what a user holds of a pointer: the wrapper of its framework, with the pointer's words."""
    head = framework_of(pointer).wrapper(pointer)
    _share_words(head, pointer)
    return head


def found(
    location: Location, owner: Party, id: Id, tags: Any, description: str | None, kind: str, publisher: Any
) -> Tensor:
    """Return a pointer to an object that a search has found, in the form in which users hold it.

    ``kind`` is the framework of a tensor; anything else is CALLABLE or just an OBJECT. ``publisher`` is the worker and
    the user who published it, if anybody did.
    """
    location.note_alias(id)
    words: Kwargs = {"owner": owner, "tags": tags, "description": description}
    if kind in _POINTERS:
        pointer: ObjectPointer = _POINTERS[kind](location, id, **words)
    else:
        pointer = PointerTensor(location, id, owner.attributes_of(kind), **words)
    pointer.published_by = None if publisher is None else Peer(*publisher)
    return pointer if kind in _POINTERS else head_of(pointer)


CALLABLE, OBJECT = "()", ""
"""What a search says of objects that are no tensors: that they can be called, or can only be named and fetched."""
_POINTERS: dict[str, type[ObjectPointer]] = {CALLABLE: CallablePointer, OBJECT: ObjectPointer}


def sent(
    tensor: Tensor,
    owner: Any,
    location: Location,
    user: str | None = None,
    publish: bool = False,
    requires_grad: bool = False,
) -> PointerTensor:
    """Send a copy of ``tensor`` from ``owner`` to ``location``, if its owner may, and return the pointer to it."""
    sender: Peer = owner.peer
    if user is not None and user != sender.user:
        raise SendNotPermittedError.claimed(user, str(sender))
    require_sendable(tensor, sender)
    framework, id = framework_of(tensor), new_id()
    tags, description = getattr(tensor, "_syft_tags", None), getattr(tensor, "_syft_description", None)
    pointer = PointerTensor(location, id, framework, owner=owner, tags=tags, description=description)
    pointer.know_copy_of(tensor)
    origin = _keep_origin(tensor, owner, location) if requires_grad else None
    try:
        if origin is None:
            location.tell(Store(id, tensor, publish))
        else:
            pointer._origin = ()
            location.tell(Store(id, tensor, publish, (owner.id, origin)))
    except BaseException:
        pointer.gone = "it could not be sent"
        if origin is not None:
            owner.object_store.remove(origin, "its copy could not be sent")
        raise
    return pointer


def _keep_origin(tensor: Tensor, owner: Any, location: Location) -> Id:
    """Let ``owner`` keep a tensor for the gradient of its copy on ``location``, which holds a lease on it."""
    kept = new_id()
    owner.register_obj(tensor, kept)
    entry = owner.object_store.entry(kept)
    entry.published = entry.source.published = False
    entry.others, entry.lent = {(location.id, owner.id): 1}, frozenset({(location.id, owner.peer)})
    return kept


def _require_gradients(tensor: Tensor) -> None:
    framework = framework_of(tensor)
    if framework.autograd is None:
        raise TypeError(f"cannot bring gradients back: {framework.ALIAS} computes none; leave the option out")


def _start_with_zeros(tensor: Tensor, pointer: PointerTensor) -> None:
    """Give the copy of a tensor a gradient of zeros, if it needs one and none came along."""
    if getattr(tensor, "requires_grad", False) and tensor.grad is None:
        copy = head_of(pointer)
        copy.grad = copy.new_zeros(copy.shape)


def _index_words(tensor: Tensor) -> None:
    """Let a tensor be found on its worker under its words: a worker that serves others keeps what is tagged."""
    owner = tensor.owner
    if owner is None:
        return
    if not owner.is_client_worker and tensor.id not in owner.object_store:
        owner.register_obj(tensor)
    id, store = tensor._syft_id, owner.object_store
    if id in store and store.entry(id).value is tensor:
        store.tag(id, tensor.tags, tensor.description)


def _share_words(head: Tensor, pointer: Tensor) -> None:
    if pointer._syft_tags is not None:
        head._syft_tags = pointer._syft_tags
    if pointer._syft_description is not None:
        head._syft_description = pointer._syft_description


def _pointer_under(head: Tensor, verb: str) -> Tensor:
    end = end_of(head)
    if not isinstance(end, ObjectPointer | MultiPointerTensor):
        raise TypeError(f"cannot {verb} a tensor: it is not a pointer, its data is in this process; use it as it is")
    return end


def _on_another_end(head: Tensor, end: Tensor) -> Tensor:
    """Return a chain of the layers of ``head`` on another end: a pointer, a plain tensor, or a chain of its own."""
    link = head.child
    if isinstance(link, ObjectPointer):
        return head_of(end) if isinstance(end, ObjectPointer) else end
    return framework_of(end).wrapper(_layers_on(link, below_wrapper(end)))


def _layers_on(link: Tensor, end: Tensor) -> Tensor:
    return end if isinstance(link, ObjectPointer) else link.copy_onto(_layers_on(link.child, end))


def _private_layers(head: Tensor) -> list[PrivateTensor]:
    return [link for link in iter_links(head) if isinstance(link, PrivateTensor)]
