"""Chains and workers as boxes, in HTML that is readable on light and dark pages and loads nothing.

Note [What a picture shows]
~~~~~~~~~~~~~~~~~~~~~~~~~~~
A picture of a chain shows exactly what its ``repr`` shows, in boxes: a layer whose ``repr`` does not end in that of its
child hides the child, and so does the picture. What a pointer points to is shown by name and form only.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any, NamedTuple

from syft_core.pictures.forms import form_of, format_place, get_child, is_pointer, is_wrapper
from syft_core.pictures.tables import html_table
from syft_core.values import Tensor

# Tints, not colours: the page shines through, and its own text colour stays readable on them.
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
    """One box: what kind of link it is, its title and what stands below it."""

    kind: str
    title: str
    lines: tuple[str, ...] = ()


def chain_html(head: Tensor) -> str | None:
    """Draw a chain, a bare layer or a pointer; None for a plain tensor, which a notebook shows as it always did."""
    if not (is_pointer(head) or hasattr(type(head), "rank")):
        return None
    return f'<div class="syft-chain">{"".join(_row(links) for links in _rows(head))}{_caption(head)}</div>'


def worker_html(worker: Any) -> str:
    """Draw a worker: who it is, and what it holds by id, form, tags and description."""
    count = worker.objects_count
    rows = []
    for id in worker.object_store:
        entry = worker.object_store.entry(id)
        tags = " ".join(sorted(map(str, entry.tags)))
        kept = "published" if entry.published else f"{entry.pointers} pointer{'' if entry.pointers == 1 else 's'}"
        private = "" if entry.access is None else ", ".join(sorted(entry.access)) or "nobody"
        words = [(entry.description or "").split("\n")[0], *[f"({failure})" for failure in entry.failures]]
        rows.append((str(id), form_of(entry.value), tags, " ".join(filter(None, words)), kept, private))
    name = f"{type(worker).__name__} {worker.id}: {count} object{'' if count == 1 else 's'}"
    if not rows:
        return _row([Link("wrapper", name)])
    return html_table(name, ("id", "form", "tags", "description", "kept by", "private to"), rows)


# --- the links of a chain


def _rows(head: Tensor) -> Iterator[list[Link]]:
    """Yield one row of links for the chain and, where it branches, one for each branch."""
    links: list[Link] = []
    link = head
    while True:
        if is_pointer(link):
            links += _pointer_links(link)
            break
        child = get_child(link)
        if isinstance(child, dict):
            links.append(Link("layer", type(link).__name__, (f"{len(child)} branches",)))
            yield links
            for name, branch in child.items():
                yield [Link("layer", str(name)), *(_pointer_links(branch) if is_pointer(branch) else _hidden(branch))]
            return
        if child is None:
            links.append(_end(link))
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


def _end(link: Tensor) -> Link:
    if hasattr(type(link), "rank"):
        return Link("layer", repr(link))
    return Link("data", repr(link), (form_of(link),))


def _hidden(branch: Tensor) -> list[Link]:
    return [Link("data", form_of(branch))]


def _pointer_links(pointer: Tensor) -> list[Link]:
    owner = getattr(pointer.owner, "id", "?")
    name = Link("pointer", type(pointer).__name__, (f"{owner}:{pointer.id}",))
    if getattr(pointer, "gone", None) is not None:
        return [name, Link("remote", format_place(pointer), (f"gone: {pointer.gone}",))]
    return [name, Link("remote", format_place(pointer), _known_form(pointer))]


def _known_form(pointer: Tensor) -> tuple[str, ...]:
    """Return the form of what a pointer points to, if that is known here: a picture sends no message."""
    form = getattr(pointer, "known_form", None)
    return () if form is None else (str(list(form.shape)),)


# --- their look


def _row(links: list[Link]) -> str:
    arrow = '<span style="opacity:.6">▸</span>'
    far = '<span style="opacity:.8">⇢</span>'
    parts = []
    for number, link in enumerate(links):
        if number:
            parts.append(far if link.kind == "remote" else arrow)
        parts.append(_box(link))
    return f'<div style="{_ROW}">{"".join(parts)}</div>'


def _box(link: Link) -> str:
    style = _BOX.format(line="dashed" if link.kind == "remote" else "solid", tint=_TINTS[link.kind])
    title = f'<div style="white-space:pre">{escape(link.title)}</div>'
    lines = "".join(f'<div style="{_SMALL}">{escape(line)}</div>' for line in link.lines)
    return f'<div style="{style}">{title}{lines}</div>'


def _caption(head: Tensor) -> str:
    tags, description = getattr(head, "_syft_tags", None), getattr(head, "_syft_description", None)
    words = [" ".join(sorted(map(str, tags)))] if tags else []
    if description:
        words.append(description.split("\n")[0])
    return f'<div style="{_SMALL}">{escape(" · ".join(words))}</div>' if words else ""
