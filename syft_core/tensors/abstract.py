"""AbstractTensor: the base class of layers."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from syft_core.exceptions import NotRegisteredError
from syft_core.hook.dispatch import OPAQUE, WRAPPER, Forwarding, Respond, framework_of, no_child_error
from syft_core.hook.hook import FrameworkHook
from syft_core.hook.hook_args import backward_func, type_rule
from syft_core.hook.overload import iter_rules
from syft_core.hook.rules import resolve
from syft_core.tensors.identity import Identified, keep_words
from syft_core.values import Function, Kwargs, Tensor


class AbstractTensor(Identified, Forwarding):
    """A layer of a chain. Its child is another layer or the end of the chain.

    A subclass overrides operations with ``overloaded.method``, ``overloaded.function`` and ``overloaded.module``; all
    others run on the child, and their results get the same layer. Register each subclass with
    ``hook_args.default_register_tensor``.
    """

    rank: ClassVar[int] = OPAQUE
    """Which layer is unwrapped first when a call has several types; see Note [Ranks] in ``hook/ranks.py``."""
    numeric: ClassVar[bool] = False
    """Whether the child encodes the values; the chain then gets the framework's numeric wrapper."""
    rules: ClassVar[Mapping[str, Respond]] = {}
    """The operations that this type overrides."""
    respond: ClassVar[Function | None] = None
    """An optional class method ``respond(op, plan, args, kwargs)`` for all operations without a rule."""
    on_function_call: ClassVar[Function | None] = None
    """An optional class method, called with ``(name, None, args, kwargs)`` before each function."""
    on_method_call: ClassVar[Function | None] = None
    """An optional class method, called with ``(name, None, args, kwargs)`` before each method."""

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

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        inherited = {name: rule for base in reversed(cls.__mro__[1:]) for name, rule in _get_rules(base).items()}
        cls.rules = {**inherited, **dict(iter_rules(cls))}

    def get_class_attributes(self) -> Kwargs:
        """Return the constructor arguments of a layer like this one; results are created with them."""
        return {}

    @classmethod
    def lift(cls, plain: Tensor, **_kwargs: object) -> Tensor:
        """Convert a plain operand to a child of this layer.

        The default suits layers that do not change values; a layer that encodes values must encode or refuse here.
        """
        return plain

    # --- the chain

    def on(self, tensor: Tensor, wrap: bool = True) -> Tensor:
        """Put this layer on ``tensor`` and return the wrapper, or the layer itself with ``wrap=False``.

        In an existing chain, the layer is inserted under the wrapper. A plain tensor gets a new wrapper, which takes
        over its id. A numeric layer always gets a new wrapper, because the dtype changes.
        """
        if resolve(type_rule, type(self)) is None or type(self) not in backward_func:
            raise NotRegisteredError.of(
                "type_rule",
                type(self).__name__,
                (),
                f"call `syft_core.hook.hook_args.default_register_tensor({type(self).__name__})` after defining it",
            )
        if not wrap:
            self.child = tensor
            return keep_words(tensor, self)
        is_wrapper = getattr(type(tensor), "rank", None) == WRAPPER
        if is_wrapper and not self.numeric:
            self.child, tensor.child = tensor.child, self
            return tensor
        self.child = tensor.child if is_wrapper else tensor
        keep_words(tensor, self)
        known = getattr(tensor, "_syft_id", None)
        wrapper = self.wrap()
        if known is not None:
            wrapper.id = known
        return wrapper

    def assign(self, child: Tensor) -> None:
        """Replace the child with the result of an in-place operation."""
        self.child = child

    def copy_onto(self, child: Tensor) -> Tensor:
        """Return a layer with the same attributes on ``child``."""
        layer = type(self)(**self.get_class_attributes())
        layer.child = child
        return layer

    def wrap(self, register: bool = True, type: object = None) -> Tensor:  # the dtype is always that of the chain
        """Return a framework wrapper around this layer, registered on its owner unless that is a client."""
        resolve(type_rule, self.__class__)  # Loads additional operations on the layer from features.
        wrapper = keep_words(self, framework_of(self).wrapper(self))
        owner = self.owner
        if register and owner is not None and not owner.is_client_worker:
            owner.register_obj(wrapper)
        return wrapper

    def copy(self) -> Tensor:
        """Return a copy of the chain and its data, with a new id."""
        return keep_words(self, self.copy_onto(None if self.child is None else _copy_child(self.child)))

    def clone(self) -> Tensor:
        """Return a copy with the same id, owner, tags and description."""
        clone = self.copy()
        for name in ("_syft_id", "_syft_owner", "_syft_tags", "_syft_description"):
            if name in self.__dict__:
                setattr(clone, name, copy.copy(self.__dict__[name]) if name == "_syft_tags" else self.__dict__[name])
        return clone

    def get(self, *args: Any, **options: Any) -> Tensor:
        """Fetch the object that the chain points to, and return it under the same layers."""
        if self.child is None:
            raise no_child_error(self, "get")
        fetched = self.child.get(*args, **options)
        return self.copy_onto(fetched.child if getattr(type(fetched), "rank", None) == WRAPPER else fetched)

    def mid_get(self) -> Tensor:
        """Make the remote worker fetch the object behind the pointer that it holds."""
        if self.child is None:
            raise no_child_error(self, "mid_get")
        self.child.mid_get()
        return self

    def __str__(self) -> str:
        name = type(self).__name__
        return f"{name}>{self.child!r}" if self.has_child() else name

    __repr__ = __str__


def initialize_tensor(hook: FrameworkHook, obj: Tensor, owner: object = None, id: int | str | None = None) -> Tensor:
    """Set the owner (default: the local worker of ``hook``) and the id of a tensor, and return it."""
    obj.owner = owner if owner is not None else hook.local_worker
    if id is not None:
        obj.id = id
    return obj


def _get_rules(base: type) -> Mapping[str, Respond]:
    return getattr(base, "rules", {})


def _copy_child(child: Tensor) -> Tensor:
    if isinstance(child, AbstractTensor):
        return child.copy()
    return framework_of(child).copy(child)
