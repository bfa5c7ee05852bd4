"""Draw chains and workers as boxes, in self-contained HTML for light and dark pages; describe forms as text.

Note [What a picture shows]
~~~~~~~~~~~~~~~~~~~~~~~~~~~
A picture of a chain shows exactly what its ``repr`` shows: a layer whose ``repr`` does not end with that of its child
hides the child, and so does the picture. Of a remote object it shows only the name and the form.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

from syft_core.pictures.tables import html_table
from syft_core.printing import printable
from syft_core.values import Tensor

# Translucent, so that text is readable on light and dark pages.
_TINTS = {
    "wrapper": "rgba(245,158,11,.18)",
    "layer": "rgba(139,92,246,.18)",
    "data": "rgba(34,197,94,.16)",
    "pointer": "rgba(59,130,246,.16)",
    "remote": "transparent",
}
_BOX = "border:1px {line} rgba(128,128,128,.7);border-radius:6px;padding:4px 10px;background:{tint}"
_ROW = "display:flex;align-items:center;gap:6px;flex-wrap:wrap;font-family:monospace;font-size:13px;margin:2px 0"
_SMALL = "font-size:11px;opacity:.75"


class Box(NamedTuple):
    """One box: its kind, its title and the lines below the title."""

    kind: str
    title: str
    lines: tuple[str, ...] = ()


def chain_html(outermost: Tensor) -> str | None:
    """Draw a chain, a layer or a pointer; return None for a plain tensor, so that a notebook shows its ``repr``."""
    if not (_is_pointer(outermost) or hasattr(type(outermost), "rank")):
        return None
    rows = "".join(_draw_row(links) for links in _iter_rows(outermost))
    return f'<div class="syft-chain">{rows}{_draw_caption(outermost)}</div>'


def worker_html(worker: str, rows: list[tuple[str, ...]]) -> str:
    """Draw a worker as a table of its objects: id, form, tags, description, leases and allowed users."""
    name = f"{worker}: {len(rows)} object{'' if len(rows) == 1 else 's'}"
    if not rows:
        return _draw_row([Box("wrapper", name)])
    return html_table(name, ("id", "form", "tags", "description", "kept by", "private to"), rows)


# --- forms as text


def form_of(value: object) -> str:
    """Return the types in a chain and the shape of its end; for a pointer, its location.

    >>> form_of(memoryview(b"abc"))
    'memoryview[3]'
    """
    if getattr(type(value), "rank", None) is None:
        return _describe_end(value, None)
    names = []
    while (child := _get_child(value)) is not None and not isinstance(child, dict):
        if not _is_wrapper(value):
            names.append(type(value).__name__)
        value = child
    return ">".join([*names, _describe_end(value, child)])


def _get_child(link: Tensor) -> Tensor:
    has_child = getattr(type(link), "has_child", None)
    return link.child if has_child is not None and has_child(link) else None


def _is_wrapper(link: Tensor) -> bool:
    return getattr(type(link), "is_wrapper", False) is True


def _is_pointer(link: Tensor) -> bool:
    return hasattr(type(link), "point_to_attr")


def _format_place(pointer: Tensor) -> str:
    attr = f"::{pointer.point_to_attr}" if pointer.point_to_attr else ""
    return f"{pointer.location.id}:{pointer.id_at_location}{attr}"


def _describe_end(end: Tensor, child: object) -> str:
    if _is_pointer(end):
        return f"→ {_format_place(end)}"
    name = type(end).__name__
    if isinstance(child, dict):
        return f"{name} of {len(child)}"
    try:
        shape = getattr(end, "shape", None)
    except RuntimeError:  # A nested tensor has no shape.
        shape = None
    return describe_form(name, shape)


def describe_form(name: str, shape: Sequence[int] | None) -> str:
    """Return the name of a type and the shape of a tensor.

    >>> describe_form("Tensor", (2, 3))
    'Tensor[2, 3]'
    """
    return name if shape is None else f"{name}{list(shape)}"


# --- the links of a chain


def _iter_rows(link: Tensor) -> Iterator[list[Box]]:
    links: list[Box] = []
    while (child := _get_child(link)) is not None and not isinstance(child, dict):
        if _is_wrapper(link):
            links.append(Box("wrapper", "Wrapper"))
        elif (shown := repr(link)).endswith(inner := repr(child)):
            links.append(Box("layer", shown.removesuffix(inner).rstrip(">")))
        else:  # See Note [What a picture shows].
            yield [*links, Box("layer", shown)]
            return
        link = child
    yield links + _end_links(link, child)
    for name, branch in (child or {}).items():
        ends = _end_links(branch, None) if _is_pointer(branch) else [Box("data", form_of(branch))]
        yield [Box("layer", str(name)), *ends]


def _end_links(link: Tensor, child: dict[str, Tensor] | None) -> list[Box]:
    if _is_pointer(link):
        name = Box("pointer", type(link).__name__, (f"{getattr(link.owner, 'id', '?')}:{link.id}",))
        gone, form = getattr(link, "gone", None), getattr(link, "known_form", None)
        known = () if form is None else (str(list(form.shape)),)
        return [name, Box("remote", _format_place(link), known if gone is None else (f"gone: {gone}",))]
    if child is not None:
        return [Box("layer", type(link).__name__, (f"{len(child)} branches",))]
    return [Box("layer", repr(link)) if hasattr(type(link), "rank") else Box("data", repr(link), (form_of(link),))]


# --- HTML


def _draw_row(links: list[Box]) -> str:
    arrow, far = '<span style="opacity:.6">▸</span>', '<span style="opacity:.8">⇢</span>'
    parts = [(far if link.kind == "remote" else arrow) + _draw_box(link) for link in links[1:]]
    return f'<div style="{_ROW}">{_draw_box(links[0])}{"".join(parts)}</div>'


def _draw_box(link: Box) -> str:
    style = _BOX.format(line="dashed" if link.kind == "remote" else "solid", tint=_TINTS[link.kind])
    title = f'<div style="white-space:pre">{_escape(link.title)}</div>'
    lines = "".join(f'<div style="{_SMALL}">{_escape(line)}</div>' for line in link.lines)
    return f'<div style="{style}">{title}{lines}</div>'


def _draw_caption(outermost: Tensor) -> str:
    tags, description = getattr(outermost, "_syft_tags", None), getattr(outermost, "_syft_description", None)
    parts = [" ".join(sorted(map(str, tags)))] if tags else []
    if description:
        parts.append(description.split("\n")[0])
    return f'<div style="{_SMALL}">{_escape(" · ".join(parts))}</div>' if parts else ""


def _escape(text: str) -> str:
    return escape(printable(text, lines=True))
