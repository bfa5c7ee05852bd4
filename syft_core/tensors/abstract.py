"""AbstractTensor: one layer of a chain."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from syft_core.exceptions import NotRegisteredError
from syft_core.hook.dispatch import OPAQUE, WRAPPER, Answer, framework_of
from syft_core.hook.hook import FrameworkHook
from syft_core.hook.hook_args import backward_func, type_rule
from syft_core.hook.overload import iter_rules
from syft_core.hook.rules import resolve
from syft_core.tensors.forwarding import Forwarding, no_child_error
from syft_core.tensors.identity import Identified
from syft_core.values import Function, Kwargs, Tensor


class AbstractTensor(Identified, Forwarding):
    """A layer: it has a child, which is another layer or what the chain ends in.

    A subclass states what it does differently with ``overloaded.method``, ``overloaded.function`` and
    ``overloaded.module``; every other operation runs on the child and comes back under the same layer. Register the
    class once with ``hook_args.default_register_tensor``.
    """

    rank: ClassVar[int] = OPAQUE
    """Which layer comes off first when several types meet; see Note [Ranks] in ``hook/ranks.py``."""
    numeric: ClassVar[bool] = False
    """Whether the child encodes the values, so that the chain gets the framework's numeric wrapper."""
    rules: ClassVar[Mapping[str, Answer]] = {}
    """The operations that the type answers itself."""
    respond: ClassVar[Function | None] = None
    """``respond(op, plan, args, kwargs)`` answers every operation without a rule, where a type defines it as a class
    method."""
    on_function_call: ClassVar[Function | None] = None
    """Called with ``(name, None, args, kwargs)`` before each function, where a type defines it as a class method."""
    on_method_call: ClassVar[Function | None] = None
    """The same for methods."""

    def __init__(
        self,
        id: int | str | None = None,
        owner: object = None,
        tags: Iterable[str] | None = None,
        description: str | None = None,
        child: Tensor = None,
    ) -> None:
        if id is not None:
            self._syft_id = id
        if owner is not None:
            self._syft_owner = owner
        if tags is not None:
            self.tags = set(tags)
        if description is not None:
            self._syft_description = description
        if child is not None:
            self.child = child

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        inherited = {name: rule for base in reversed(cls.__mro__[1:]) for name, rule in _get_rules(base).items()}
        cls.rules = {**inherited, **dict(iter_rules(cls))}

    def get_class_attributes(self) -> Kwargs:
        """Return what the constructor needs to make a layer like this one; results take it over."""
        return {}

    @classmethod
    def lift(cls, plain: Tensor, **_kwargs: object) -> Tensor:
        """Return the child that a plain tensor would have under this layer, when both meet in one call.

        Right for layers that leave values as they are; a layer that encodes them must encode, or refuse, here.
        """
        return plain

    # --- the chain

    def on(self, tensor: Tensor, wrap: bool = True) -> Tensor:
        """Put this layer on ``tensor`` and return the wrapper, or with ``wrap=False`` the layer itself.

        On a wrapper, the layer goes between it and the rest of its chain; a plain tensor gets a new wrapper, which
        takes over its id. A numeric layer always gets a new wrapper, because the dtype changes.
        """
        if resolve(type_rule, type(self)) is None or type(self) not in backward_func:
            raise NotRegisteredError.of(
                "type_rule",
                type(self).__name__,
                (),
                f"call `syft_core.hook.hook_args.default_register_tensor({type(self).__name__})` after the class",
            )
        if not wrap:
            self.child = tensor
            return self
        is_wrapper = getattr(type(tensor), "rank", None) == WRAPPER
        if is_wrapper and not self.numeric:
            self.child, tensor.child = tensor.child, self
            return tensor
        self.child = tensor.child if is_wrapper else tensor
        known = getattr(tensor, "_syft_id", None)
        wrapper = self.wrap()
        if known is not None:
            wrapper.id = known
        return wrapper

    def assign(self, child: Tensor) -> None:
        """Take the result of an operation that was called in place."""
        self.child = child

    def copy_onto(self, child: Tensor) -> Tensor:
        """Return a layer with the attributes of this one, on ``child``."""
        twin = type(self)(**self.get_class_attributes())
        twin.child = child
        return twin

    def wrap(self, register: bool = True, type: object = None) -> Tensor:  # dtype is always the chain's own
        """Return the framework's wrapper on this layer, registered on its owner unless that is a client."""
        wrapper = framework_of(self).wrapper(self)
        owner = self.owner
        if register and owner is not None and not owner.is_client_worker:
            owner.register_obj(wrapper)
        return wrapper

    def copy(self) -> Tensor:
        """Return a chain of the same layers on a copy of the data, with an id of its own."""
        return self.copy_onto(None if self.child is None else _copy_child(self.child))

    def clone(self) -> Tensor:
        """Return a copy that keeps id, owner, tags and description."""
        twin = self.copy()
        for name in ("_syft_id", "_syft_owner", "_syft_tags", "_syft_description"):
            if name in self.__dict__:
                setattr(twin, name, copy.copy(self.__dict__[name]) if name == "_syft_tags" else self.__dict__[name])
        return twin

    def get(self, *args: Any, **options: Any) -> Tensor:
        """Fetch what the chain points to, and return the same layers on it."""
        if self.child is None:
            raise no_child_error(self, "get")
        fetched = self.child.get(*args, **options)
        return self.copy_onto(fetched.child if getattr(type(fetched), "rank", None) == WRAPPER else fetched)

    def mid_get(self) -> Tensor:
        """Let the worker that the chain points to fetch what the pointer that it holds points to."""
        if self.child is None:
            raise no_child_error(self, "mid_get")
        self.child.mid_get()
        return self

    def __str__(self) -> str:
        name = type(self).__name__
        return f"{name}>{self.child!r}" if self.has_child() else name

    __repr__ = __str__


def initialize_tensor(hook: FrameworkHook, obj: Tensor, owner: Any = None, id: int | str | None = None) -> Tensor:
    """Give a tensor its owner, the local worker of ``hook`` unless it is named, and an id; return the tensor."""
    obj.owner = owner if owner is not None else hook.local_worker
    if id is not None:
        obj.id = id
    return obj


def _get_rules(base: type) -> Mapping[str, Answer]:
    return getattr(base, "rules", {})


def _copy_child(child: Tensor) -> Tensor:
    if isinstance(child, AbstractTensor):
        return child.copy()
    return framework_of(child).copy(child)
