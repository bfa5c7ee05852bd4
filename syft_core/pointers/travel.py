"""Travelling: tensor methods that send, fetch, move, tag and restrict tensors."""

from __future__ import annotations

from collections.abc import Iterable

from syft_core.exceptions import ColumnError, OperationNotAllowedError, SendNotPermittedError
from syft_core.features import FEATURES
from syft_core.hook.chain import below_wrapper, end_of, is_wrapper, iter_links
from syft_core.hook.dispatch import framework_of
from syft_core.hook.ranks import is_framework_tensor
from syft_core.location import Location, Party, Sending
from syft_core.messages import Store
from syft_core.peer import Id, Peer
from syft_core.pointers.callable_pointer import CallablePointer
from syft_core.pointers.fetches import FetchSteps, complete_all
from syft_core.pointers.multi_pointer import MultiPointerTensor, combine_pointers
from syft_core.pointers.object_pointer import ObjectPointer, new_id
from syft_core.pointers.pointer_tensor import PointerTensor
from syft_core.tensors.identity import Identified, keep_words, require_text
from syft_core.tensors.numeric import NumericTensor
from syft_core.tensors.private import PrivateTensor, require_sendable
from syft_core.tensors.schema import Column, Schema
from syft_core.values import Kwargs, Outcome, Tensor


class Travelling:
    """Mixin with the methods to send, fetch and move tensors, for wrappers and, where possible, plain tensors.

    Ownership: ``send`` creates an object that lives as long as a pointer to it; ``publish`` gives it to the worker
    permanently; ``get`` and ``move`` remove the object from its worker; ``copy`` creates another one there.
    """

    # --- sending

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
        """Send a copy to a worker and return a pointer to it; this tensor stays unchanged.

        Several workers get one copy each, and the result is a multi-pointer. With ``requires_grad`` the gradient of the
        copy comes back to this tensor, and the backward pass continues here. With ``preinitialize_grad`` the gradient
        of a copy that requires one starts with zeros. ``local_autograd`` is refused: the graph is kept on the worker.
        """
        if not workers:
            raise TypeError("cannot send without a worker: pass one, e.g. `x.send(bob)`")
        if isinstance(end_of(self), NumericTensor):
            raise SendNotPermittedError.stays("send")
        if local_autograd:
            raise NotImplementedError(
                "cannot send with local_autograd: the graph is kept on the worker of the data, and one here would have "
                "to fetch values; leave it out, `p.backward()` and `p.grad` work without it"
            )
        if requires_grad or preinitialize_grad:
            _require_autograd(self)
        if inplace:
            return self.send_(*workers, user=user, requires_grad=requires_grad, preinitialize_grad=preinitialize_grad)
        owner = self.owner  # type: ignore[attr-defined]  # mixed into subclasses of Identified
        locations = [owner.location_of(worker) for worker in workers]
        pointers = [send_copy(self, owner, location, user, publish, requires_grad) for location in locations]
        for pointer in pointers:
            pointer.garbage_collect_data = garbage_collect_data
            if preinitialize_grad:
                _zero_grad(self, pointer)
        result: Tensor = pointers[0] if len(pointers) == 1 else keep_words(self, MultiPointerTensor(pointers))
        return result if no_wrap else wrap(result)

    def send_(
        self, *workers: object, user: str | None = None, requires_grad: bool = False, preinitialize_grad: bool = False
    ) -> Tensor:
        """Send the data, and turn this tensor into a pointer to it, in place."""
        if len(workers) != 1:
            raise TypeError(f"cannot send in place to {len(workers)} workers: pass exactly one worker")
        options: Kwargs = {"requires_grad": requires_grad, "preinitialize_grad": preinitialize_grad}
        framework_of(self).replace_in_place(self, self.send(*workers, user=user, **options))
        return self

    def publish(self, *workers: object) -> Tensor:
        """Send a copy to a worker, which keeps it permanently; without ``workers``, publish the remote object."""
        if workers:
            return self.send(*workers, publish=True)
        require_pointer(self, "publish").publish()
        return self

    # --- fetching and moving

    def get(
        self, user: str | None = None, reason: str = "", deregister_ptr: bool = True, sum_results: bool = False
    ) -> Tensor:
        """Fetch the remote object; it leaves its worker if the policy permits it."""
        pointer = require_pointer(self, "get")
        if isinstance(pointer, MultiPointerTensor):
            return pointer.get(sum_results=sum_results, user=user, reason=reason)
        return replace_end(self, pointer, pointer.get(user=user, reason=reason, deregister_ptr=deregister_ptr))

    def get_(self, user: str | None = None, reason: str = "") -> Tensor:
        """Fetch the remote object, and replace this tensor's contents by it."""
        framework_of(self).replace_in_place(self, self.get(user=user, reason=reason))
        return self

    def virtual_get(self, sum_results: bool = False) -> Tensor:
        """Return the tensors of workers in this process without fetching them; for tests and simulations only."""
        return require_pointer(self, "virtual_get").virtual_get(sum_results)

    def move(self, worker: object, requires_grad: bool = False) -> Tensor:
        """Send the object directly to another worker, and return a pointer to it there."""
        pointer = require_pointer(self, "move")
        if requires_grad:
            _require_autograd(self)
        moved = pointer.move(worker, requires_grad)
        return self if moved is pointer else replace_end(self, pointer, moved)

    def remote_send(self, worker: object) -> Tensor:
        """Make the worker send the object to another one; this pointer then refers to a pointer to it."""
        require_pointer(self, "remote_send").remote_send(worker)
        return self

    def remote_get(self) -> Tensor:
        """Undo ``remote_send``: make the worker fetch the object that its pointer points to."""
        require_pointer(self, "remote_get").remote_get()
        return self

    def mid_get(self) -> Tensor:
        """Alias of ``remote_get``."""
        return self.remote_get()

    def combine(self, *pointers: Tensor) -> Tensor:
        """Return a multi-pointer to the objects of several pointers, each on a different worker."""
        return combine_pointers(self, *pointers)

    # --- tags

    def tag(self, *tags: str) -> Tensor:
        """Add tags, also to the remote object, and return the tensor itself."""
        return self._syft_annotate("tag", *tags)

    def describe(self, description: str) -> Tensor:
        """Set the description, also of the remote object, and return the tensor itself."""
        return self._syft_annotate("describe", description)

    def _syft_annotate(self, verb: str, *texts: str) -> Tensor:
        pointer = getattr(self, "child", None)
        if isinstance(pointer, ObjectPointer):
            getattr(pointer, verb)(*texts)
            _copy_metadata(self, pointer)
            return self
        getattr(Identified, verb)(self, *texts)
        _index_metadata(self)
        return self

    # --- tables

    @property
    def schema(self) -> Schema:
        """The owner's description of a table: its columns, and the id of its mock."""
        end = end_of(self)
        return end.schema if isinstance(end, PointerTensor) else (self._syft_schema or Schema())

    @property
    def columns(self) -> list[str]:
        """The names of a table's columns; empty without names."""
        return self.schema.names

    @property
    def mock(self) -> Tensor:
        """A pointer to the mock of this table: artificial data of the same form that anyone may fetch."""
        return wrap(require_pointer(self, "use the mock of").mock)

    def name_columns(self, *columns: str | Column) -> Tensor:
        """Name the columns of a local table, before its owner loads it, and return the tensor."""
        if isinstance(end_of(self), ObjectPointer | MultiPointerTensor):
            raise TypeError("cannot name the columns of a pointer: the owner of a table names them, before loading it")
        named = tuple([Column(column) if isinstance(column, str) else column for column in columns])
        shape = self.shape  # type: ignore[attr-defined]  # mixed into tensors
        if tuple(shape[1:]) != (len(named),):
            raise ValueError(f"cannot name {len(named)} columns: the shape is {tuple(shape)}; give each column a name")
        self._syft_schema: Schema | None = Schema(named)
        return self

    def select_columns(self, names: str | list[str]) -> Tensor:
        """Return one column, or a table of several, by name, like ``p["age"]`` and ``p[["age", "weight"]]``."""
        require_text("column name", *([names] if isinstance(names, str) else names))
        schema = self.schema
        if not schema.columns:
            where = f" of worker {self.location.id!r}" if self.location is not None else ""  # type: ignore[attr-defined]
            raise ColumnError.unnamed(f"this object{where}")
        if isinstance(names, str):
            return self[:, schema.find([names])[0]]  # type: ignore[index]  # mixed into tensors
        chosen = self[:, schema.find(names)]  # type: ignore[index]  # the same
        end = end_of(chosen)
        if isinstance(end, PointerTensor):
            end._schema = schema.choose(names)
        else:
            chosen._syft_schema = schema.choose(names)
        return chosen

    # --- pointer options

    def attr(self, name: str) -> Tensor:
        """Return a pointer to an attribute of the object, e.g. ``p.attr("grad")``."""
        return wrap(require_pointer(self, "attr").attr(name))

    def request(self, reason: str) -> Outcome:
        """Ask the worker's owner to release the object; after approval, ``get`` works.

        Return the request, a ``RequestHandle``; for a shared value, a dict with one per party.
        """
        return require_pointer(self, "request").request(reason)

    @property
    def gc(self) -> bool:
        """Whether dropping the last pointer removes the object."""
        return bool(require_pointer(self, "gc").garbage_collect_data)

    @gc.setter
    def gc(self, collect: bool) -> None:
        require_pointer(self, "gc").garbage_collect_data = collect

    @property
    def garbage_collection(self) -> bool:
        """Alias of ``gc``."""
        return self.gc

    @garbage_collection.setter
    def garbage_collection(self, collect: bool) -> None:
        self.gc = collect

    @property
    def disable_gc(self) -> Tensor:
        """The tensor itself; from now on, dropping the pointer does not remove the object."""
        self.gc = False
        return self

    # --- privacy

    def private_tensor(self, allowed_users: Iterable[str] = (), no_wrap: bool = False) -> Tensor:
        """Restrict the data, and everything computed from it, to these users.

        The transport authenticates users: see ``Worker.user``.
        """
        if isinstance(end_of(self), ObjectPointer | MultiPointerTensor):
            raise TypeError(
                "cannot make a pointer private: its data has left; make the data private before it is sent, e.g. "
                f"`p = y.private_tensor({allowed_users!r}).send(bob)`"
            )
        is_encoded_leaf = isinstance(below_wrapper(self), NumericTensor) and getattr(self, "requires_grad", False)
        if is_encoded_leaf and not self.is_leaf:  # type: ignore[attr-defined]  # mixed into tensors
            raise OperationNotAllowedError.in_graph("make private")
        users = frozenset([allowed_users] if isinstance(allowed_users, str) else allowed_users)
        layer = keep_words(self, PrivateTensor(users, child=below_wrapper(self)))
        if no_wrap:
            return layer
        wrapper = keep_words(self, framework_of(self).wrapper(layer))
        if is_encoded_leaf:
            wrapper.requires_grad = True
        return wrapper

    def allow(self, user: str) -> bool:
        """Return whether all private layers of the chain allow ``user``."""
        return all(layer.allow(user) for layer in _private_layers(self))

    def register_credentials(self, users: Iterable[str]) -> Tensor:
        """Replace the allowed users."""
        layers = _private_layers(self)
        if not layers:
            raise TypeError("cannot register credentials: the tensor is not private; use `x.private_tensor(users)`")
        for layer in layers:
            layer.register_credentials(users)
        return self


def are_names(index: object) -> bool:
    """Return whether an index is a column name, or a list of names."""
    return type(index) is str or (type(index) is list and len(index) > 0 and type(index[0]) is str)


def get_all(*objects: Tensor, user: str | None = None, reason: str = "") -> list[Tensor]:
    """Fetch several objects at the same time, with one wait, also from several workers.

    Takes pointers and modules, and returns the result of ``get`` for each. If one cannot be fetched, the others are
    fetched before the first error is raised: modules are then local, and ``get`` of the other pointers returns their
    objects.
    """
    for place, each in enumerate(objects):
        if not callable(getattr(each, "get", None)) or isinstance(each, dict):
            raise TypeError(
                f"cannot get argument {place} of type {type(each).__name__!r}: it is not a pointer or a module; "
                f"pass each of them, e.g. `sy.get_all(x, y)` or `sy.get_all(*pointers)`"
            )

    def keep(place: int, value: object) -> None:
        end = end_of(objects[place]) if is_wrapper(objects[place]) else objects[place]
        if isinstance(end, ObjectPointer):
            end.keep_arrived(value)

    return complete_all([_fetch(each, user, reason) for each in objects], keep)


def _fetch(chain: Tensor, user: str | None, reason: str) -> FetchSteps:
    if is_wrapper(chain) or is_framework_tensor(type(chain)):
        end = require_pointer(chain, "get")
        if isinstance(end, ObjectPointer):
            return replace_end(chain, end, (yield from end.fetch(user, reason)))
    elif isinstance(chain, ObjectPointer):
        return (yield from chain.fetch(user, reason))
    elif (fetch := getattr(chain, "_syft_fetch", None)) is not None:  # A module.
        return (yield from fetch(user, reason))
    yield None
    return chain.get(user=user, reason=reason)


def wrap(pointer: Tensor) -> Tensor:
    """Return a wrapper around a pointer, with its tags and description."""
    wrapper = framework_of(pointer).wrapper(pointer)
    _copy_metadata(wrapper, pointer)
    return wrapper


def point_to_found(
    location: Location,
    owner: Party,
    id: Id,
    tags: object,
    description: str | None,
    kind: str,
    publisher: tuple[Id, str | None] | None,
) -> Tensor:
    """Return a pointer to an object found by a search; pointers to tensors are wrapped.

    ``kind`` is the framework of a tensor, or a key of ``pointer_types``. ``publisher`` is the worker id and user of the
    peer that published it, or None.
    """
    location.note_alias(id)
    options: Kwargs = {"owner": owner, "tags": tags, "description": description}
    if kind not in pointer_types:
        FEATURES.load("kind", kind)
    if kind in pointer_types:
        pointer: ObjectPointer = pointer_types[kind](location, id, **options)
    else:
        pointer = PointerTensor(location, id, owner.attributes_of(kind), **options)
    pointer.published_by = None if publisher is None else Peer(*publisher)
    return pointer if kind in pointer_types else wrap(pointer)


CALLABLE, OBJECT = "()", ""
"""The kinds of objects other than tensors in search results."""
pointer_types: dict[str, type[ObjectPointer]] = {CALLABLE: CallablePointer, OBJECT: ObjectPointer}
"""The pointer types of these kinds."""


def send_copy(
    tensor: Tensor,
    owner: Sending,
    location: Location,
    user: str | None = None,
    publish: bool = False,
    requires_grad: bool = False,
) -> PointerTensor:
    """Send a copy of ``tensor`` from ``owner`` to ``location``, if permitted, and return the bare pointer to it."""
    sender: Peer = owner.peer
    if user is not None and user != sender.user:
        raise SendNotPermittedError.claimed(user, str(sender))
    require_sendable(tensor, sender)
    framework, id = framework_of(tensor), new_id()
    tags, description = getattr(tensor, "_syft_tags", None), getattr(tensor, "_syft_description", None)
    pointer = PointerTensor(location, id, framework, owner=owner, tags=tags, description=description)
    pointer.remember_forms_of(tensor)
    origin = owner.keep_origin(tensor, location) if requires_grad else None
    message = Store(id, tensor, publish, tags=tuple(tags or ()), description=description)
    if origin is not None:
        pointer._origin, message.origin = (), (location.client_id, origin)
    try:
        location.tell(message)
    except BaseException:
        pointer.gone = "it could not be sent"
        if origin is not None:
            owner.drop_origin(origin)
        raise
    return pointer


def _require_autograd(tensor: Tensor) -> None:
    framework = framework_of(tensor)
    if framework.autograd is None:
        raise TypeError(f"cannot return gradients: {framework.ALIAS} does not compute any; leave the option out")


def _zero_grad(tensor: Tensor, pointer: PointerTensor) -> None:
    if getattr(tensor, "requires_grad", False) and tensor.grad is None:
        copy = wrap(pointer)
        copy.grad = copy.new_zeros(copy.shape)


def _index_metadata(tensor: Tensor) -> None:
    """Make a tensor searchable; workers other than clients store tagged tensors."""
    owner = tensor.owner
    if owner is None:
        return
    if not owner.is_client_worker and tensor.id not in owner.object_store:
        owner.register_obj(tensor)
    id, store = tensor._syft_id, owner.object_store
    if id in store and store.entry(id).value is tensor:
        store.tag(id, tensor.tags, tensor.description)


def _copy_metadata(wrapper: Tensor, pointer: Tensor) -> None:
    if pointer._syft_tags is not None:
        wrapper._syft_tags = pointer._syft_tags
    if pointer._syft_description is not None:
        wrapper._syft_description = pointer._syft_description


def require_pointer(chain: Tensor, verb: str) -> Tensor:
    """Return the pointer at the end of a chain; raise if there is none."""
    end = getattr(chain, "child", None)
    if type(end) is PointerTensor:
        return end
    end = end_of(chain)
    if not isinstance(end, ObjectPointer | MultiPointerTensor) and not hasattr(end, "locations"):
        raise TypeError(f"cannot {verb} a tensor: it is not a pointer, its data is in this process; use it as it is")
    if isinstance(end, NumericTensor) and not hasattr(end, verb):
        raise SendNotPermittedError.stays(verb)
    return end


def replace_end(chain: Tensor, end: Tensor, new: Tensor) -> Tensor:
    """Return the layers of ``chain`` on another end: a pointer, a plain tensor or another chain."""
    link = chain.child
    if link is not end:
        new = framework_of(new).wrapper(_stack_layers(link, end, below_wrapper(new)))
    elif not (is_framework_tensor(type(new)) or is_wrapper(new)):
        new = wrap(new)
    return keep_words(chain, new)


def _stack_layers(link: Tensor, end: Tensor, new: Tensor) -> Tensor:
    return new if link is end else link.copy_onto(_stack_layers(link.child, end, new))


def _private_layers(chain: Tensor) -> list[PrivateTensor]:
    return [link for link in iter_links(chain) if isinstance(link, PrivateTensor)]
