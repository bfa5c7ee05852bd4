"""Identified: the id, owner, tags and description of tensors and layers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, ClassVar, TypeVar

from syft_core.exceptions import SyftError
from syft_core.hook.chain import end_of
from syft_core.hook.hook import current_worker
from syft_core.ids import IdProvider
from syft_core.peer import Owner
from syft_core.pictures.boxes import chain_html
from syft_core.printing import printable
from syft_core.serde import serialize
from syft_core.tensors.schema import Schema
from syft_core.values import Function, Tensor

ID_PROVIDER = IdProvider()
C = TypeVar("C")
T = TypeVar("T", bound="Identified")


class Identified:
    """Anything in a chain: it has an id, an owner, tags and a description, each created on first use."""

    is_wrapper: bool = False
    records_lineage: ClassVar[bool] = False
    """Whether results of this type record their ``parents`` and ``command``."""
    _syft_id: int | str | None = None
    _syft_owner: Any = None
    """A worker, or its id: plain tensors store the id, so that they can be copied and saved."""
    _syft_tags: set[str] | None = None
    _syft_description: str | None = None
    _syft_schema: Schema | None = None

    @property
    def id(self) -> int | str:
        """The id of this object on its worker."""
        if self._syft_id is None:
            self._syft_id = ID_PROVIDER.pop()
        return self._syft_id

    @id.setter
    def id(self, value: int | str) -> None:
        self._syft_id = value

    @property
    def owner(self) -> Any:
        """The worker that owns this object, by default the local worker."""
        owner = self._syft_owner
        if owner is None:
            return current_worker()
        if type(owner) is not int and type(owner) is not str:
            return owner
        here = current_worker()
        return None if here is None else here._known_workers.get(owner, here)

    @owner.setter
    def owner(self, worker: Owner | None) -> None:
        in_chain = getattr(type(self), "rank", None) is not None
        self._syft_owner = worker if worker is None or in_chain else worker.id

    @property
    def tags(self) -> set[str]:
        """The tags by which this object can be found."""
        if self._syft_tags is None:
            self._syft_tags = set()
        return self._syft_tags

    @tags.setter
    def tags(self, value: Iterable[str] | None) -> None:
        self._syft_tags = set(value) if value is not None else None

    @property
    def description(self) -> str | None:
        """A description in plain text."""
        return self._syft_description

    @description.setter
    def description(self, value: str | None) -> None:
        self._syft_description = value

    @property
    def location(self) -> Any:
        """The worker that holds the data, or None if it is local."""
        return getattr(getattr(self, "child", None), "location", None)

    @property
    def id_at_location(self) -> Any:
        """The id of the data on the worker that holds it, or None if it is local."""
        return getattr(getattr(self, "child", None), "id_at_location", None)

    def has_child(self) -> bool:
        """Return whether this object has a child."""
        return getattr(self, "child", None) is not None

    def serialize(self) -> bytes:
        """Serialize this object and the chain under it."""
        return serialize(self)

    def ser(self) -> bytes:
        """Alias of ``serialize``."""
        return serialize(self)

    def _repr_html_(self) -> str | None:
        return chain_html(self)

    def tag(self: T, *tags: str) -> T:
        """Add ``tags`` and return the object."""
        require_text("tag", *tags)
        self.tags.update(tags)
        return self

    def describe(self: T, description: str) -> T:
        """Set the description and return the object."""
        require_text("description", description)
        self.description = description
        return self


def keep_words(source: object, target: Tensor) -> Tensor:
    """Give ``target`` the tags, the description and the schema of ``source``, unless it has its own, and return it.

    A plain numpy array can have none of these.
    """
    tags, description = getattr(source, "_syft_tags", None), getattr(source, "_syft_description", None)
    schema = getattr(source, "_syft_schema", None)
    if (tags or description is not None or schema is not None) and hasattr(type(target), "_syft_tags"):
        target._syft_tags = target._syft_tags or set(tags or ())
        if target._syft_description is None:
            target._syft_description = description
        if target._syft_schema is None:
            target._syft_schema = schema
    return target


def keeping_words(*names: str) -> Callable[[type[C]], type[C]]:
    """Return a class decorator: the results of these methods keep the tensor's tags and description."""

    def decorate(cls: type[C]) -> type[C]:
        for name in names:
            setattr(cls, name, _keeping_words(vars(cls)[name]))
        return cls

    return decorate


def _keeping_words(method: Function) -> Function:
    @wraps(method)
    def call(self: object, *args: object, **options: object) -> Tensor:
        return keep_words(self, method(self, *args, **options))

    return call


def require_text(what: str, *values: object) -> None:
    """Raise if a tag, a description or a reason is not a string."""
    for value in values:
        if not isinstance(value, str):
            raise TypeError(f"cannot use this {what}: expected a string, got {type(value).__name__}; write `str(x)`")


def format_chain(wrapper: Tensor) -> str:
    """Return the ``repr`` of a wrapper: its chain, the form of a remote object, tags and the start of a description."""
    lines = [f"(Wrapper)>{wrapper.child!r}{_format_form(end_of(wrapper))}"]
    if wrapper._syft_tags:
        lines.append("\tTags: " + printable(" ".join(sorted(wrapper._syft_tags))))
    if wrapper._syft_description:
        lines.append("\tDescription: " + printable(wrapper._syft_description.split("\n")[0]))
    return "\n".join(lines)


def format_wrapper(wrapper: Tensor, spec: str) -> str:
    """Format a wrapper as text, or as its value if the format is numeric."""
    return format(wrapper.item() if spec[-1:] in _NUMBER_FORMATS else str(wrapper), spec)


_NUMBER_FORMATS = frozenset("bcdeEfFgGnoxX%")


def _format_form(end: Tensor) -> str:
    if getattr(end, "gone", "") is not None:
        return ""
    try:
        form = end.look()
    except (SyftError, OSError):  # Printing must not fail.
        return ""
    return "" if form is None else f" shape {tuple(form.shape)}, {form.dtype}, on {end.location_id}"
