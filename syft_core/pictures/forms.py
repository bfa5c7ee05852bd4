"""Describe the form of a value as text, without sending a message or reading the value."""

from __future__ import annotations

from syft_core.values import Tensor


def form_of(value: object) -> str:
    """Return the types in a chain and the shape of its end; for a pointer, its location.

    >>> form_of(memoryview(b"abc"))
    'memoryview[3]'
    """
    names = []
    while (child := get_child(value)) is not None and not isinstance(child, dict):
        if not is_wrapper(value):
            names.append(type(value).__name__)
        value = child
    return ">".join([*names, _form_of_end(value, child)])


def end_of(link: Tensor) -> Tensor:
    """Return the end of a chain: data, a pointer, or a layer that branches."""
    while (child := get_child(link)) is not None and not isinstance(child, dict):
        link = child
    return link


def get_child(link: Tensor) -> Tensor:
    """Return the child of a link of a chain, or None; a pointer has none."""
    has_child = getattr(type(link), "has_child", None)
    return link.child if has_child is not None and has_child(link) else None


def is_wrapper(link: Tensor) -> bool:
    """Return whether ``link`` is a wrapper."""
    return getattr(type(link), "is_wrapper", False) is True


def is_pointer(link: Tensor) -> bool:
    """Return whether ``link`` is a pointer."""
    return hasattr(type(link), "point_to_attr")


def format_place(pointer: Tensor) -> str:
    """Return ``worker:id`` of a pointer's object, with the attribute if it points to one."""
    attr = f"::{pointer.point_to_attr}" if pointer.point_to_attr else ""
    return f"{pointer.location.id}:{pointer.id_at_location}{attr}"


def _form_of_end(end: Tensor, child: object) -> str:
    if is_pointer(end):
        return f"→ {format_place(end)}"
    name = type(end).__name__
    if isinstance(child, dict):
        return f"{name} of {len(child)}"
    shape = getattr(end, "shape", None)
    return name if shape is None else f"{name}{list(shape)}"
