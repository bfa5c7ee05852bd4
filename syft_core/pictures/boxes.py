"""Draw chains and workers as boxes, in self-contained HTML for light and dark pages.

Note [What a picture shows]
~~~~~~~~~~~~~~~~~~~~~~~~~~~
A picture of a chain shows exactly what its ``repr`` shows: a layer whose ``repr`` does not end with that of its child
hides the child, and so does the picture. Of a remote object it shows only the name and the form.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any, NamedTuple

from syft_core.pictures.forms import form_of, format_place, get_child, is_pointer, is_wrapper
from syft_core.pictures.tables import html_table
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


class Link(NamedTuple):
    """One box: its kind, its title and the lines below the title."""

    kind: str
    title: str
    lines: tuple[str, ...] = ()


def chain_html(outermost: Tensor) -> str | None:
    """Draw a chain, a layer or a pointer; return None for a plain tensor, so that a notebook shows its ``repr``."""
    if not (is_pointer(outermost) or hasattr(type(outermost), "rank")):
        return None
    rows = "".join(_draw_row(links) for links in _iter_rows(outermost))
    return f'<div class="syft-chain">{rows}{_draw_caption(outermost)}</div>'


def worker_html(worker: Any) -> str:
    """Draw a worker as a table of its objects: id, form, tags, description, leases and allowed users."""
    count = worker.objects_count
    rows = []
    for id in worker.object_store:
        entry = worker.object_store.entry(id)
        tags = " ".join(sorted(map(str, entry.tags)))
        kept = "published" if entry.published else f"{entry.pointers} pointer{'' if entry.pointers == 1 else 's'}"
        private = "" if entry.access is None else ", ".join(sorted(entry.access)) or "nobody"
        parts = [(entry.description or "").split("\n")[0], *[f"({failure})" for failure in entry.failures]]
        rows.append((str(id), form_of(entry.value), tags, " ".join(filter(None, parts)), kept, private))
    name = f"{type(worker).__name__} {worker.id}: {count} object{'' if count == 1 else 's'}"
    if not rows:
        return _draw_row([Link("wrapper", name)])
    return html_table(name, ("id", "form", "tags", "description", "kept by", "private to"), rows)


# --- the links of a chain


def _iter_rows(outermost: Tensor) -> Iterator[list[Link]]:
    """Yield one row of links for the chain and, if it branches, one for each branch."""
    links: list[Link] = []
    link = outermost
    while True:
        if is_pointer(link):
            links += _pointer_links(link)
            break
        child = get_child(link)
        if isinstance(child, dict):
            links.append(Link("layer", type(link).__name__, (f"{len(child)} branches",)))
            yield links
            for name, branch in child.items():
                yield [
                    Link("layer", str(name)),
                    *(_pointer_links(branch) if is_pointer(branch) else _branch_links(branch)),
                ]
            return
        if child is None:
            links.append(_end_link(link))
            break
        if is_wrapper(link):
            links.append(Link("wrapper", "Wrapper"))
        else:
            shown, inner = repr(link), repr(child)
            if not shown.endswith(inner):  # See Note [What a picture shows].
                links.append(Link("layer", shown))
                break
            links.append(Link("layer", shown[: -len(inner)].rstrip(">")))
        link = child
    yield links


def _end_link(link: Tensor) -> Link:
    if hasattr(type(link), "rank"):
        return Link("layer", repr(link))
    return Link("data", repr(link), (form_of(link),))


def _branch_links(branch: Tensor) -> list[Link]:
    return [Link("data", form_of(branch))]


def _pointer_links(pointer: Tensor) -> list[Link]:
    owner = getattr(pointer.owner, "id", "?")
    name = Link("pointer", type(pointer).__name__, (f"{owner}:{pointer.id}",))
    if getattr(pointer, "gone", None) is not None:
        return [name, Link("remote", format_place(pointer), (f"gone: {pointer.gone}",))]
    return [name, Link("remote", format_place(pointer), _known_form(pointer))]


def _known_form(pointer: Tensor) -> tuple[str, ...]:
    """Return the form of a pointer's object if it is known here, without asking the worker."""
    form = getattr(pointer, "known_form", None)
    return () if form is None else (str(list(form.shape)),)


# --- HTML


def _draw_row(links: list[Link]) -> str:
    arrow = '<span style="opacity:.6">▸</span>'
    far = '<span style="opacity:.8">⇢</span>'
    parts = []
    for number, link in enumerate(links):
        if number:
            parts.append(far if link.kind == "remote" else arrow)
        parts.append(_draw_box(link))
    return f'<div style="{_ROW}">{"".join(parts)}</div>'


def _draw_box(link: Link) -> str:
    style = _BOX.format(line="dashed" if link.kind == "remote" else "solid", tint=_TINTS[link.kind])
    title = f'<div style="white-space:pre">{escape(link.title)}</div>'
    lines = "".join(f'<div style="{_SMALL}">{escape(line)}</div>' for line in link.lines)
    return f'<div style="{style}">{title}{lines}</div>'


def _draw_caption(outermost: Tensor) -> str:
    tags, description = getattr(outermost, "_syft_tags", None), getattr(outermost, "_syft_description", None)
    parts = [" ".join(sorted(map(str, tags)))] if tags else []
    if description:
        parts.append(description.split("\n")[0])
    return f'<div style="{_SMALL}">{escape(" · ".join(parts))}</div>' if parts else ""
