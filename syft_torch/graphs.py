"""The memory that autograd graphs keep: what their nodes have saved for a backward pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

import torch

from syft_core.values import Nested, Tensor


def find_saved(roots: Iterable[Tensor]) -> dict[int, int]:
    """Return the sizes in bytes of all storages that the graphs of tensors keep, by the storage's identity."""
    found: dict[int, int] = {}
    waiting = [root.grad_fn for root in roots if root.grad_fn is not None]
    seen = set(waiting)
    while waiting:
        node = waiting.pop()
        for saved in iter_saved(node):
            storage = saved.untyped_storage()
            found[storage._cdata] = storage.nbytes()
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                waiting.append(following)
    return found


def iter_saved(node: Nested) -> Iterator[Tensor]:
    """Yield the dense tensors that a node has saved and not yet freed, also those that were changed since."""
    kind = type(node)
    names = _names.get(kind)
    if names is None:
        names = _names[kind] = [name for name in dir(kind) if name.startswith("_raw_saved_")]
    for name in names:
        with suppress(RuntimeError):  # They were freed.
            for saved in _as_list(getattr(node, name)):
                data = saved.data if _SHOWS_DATA else None
                if isinstance(data, torch.Tensor) and data.layout is torch.strided:
                    yield data
            if not _SHOWS_DATA:
                parts = _as_list(getattr(node, "saved_tensors" if name == "_raw_saved_tensors" else name[4:]))
                yield from [part for part in parts if isinstance(part, torch.Tensor) and part.layout is torch.strided]


def _as_list(saved: Nested) -> list[Nested]:
    return list(saved) if isinstance(saved, list | tuple) else [saved]


_SHOWS_DATA = hasattr(torch._C._autograd.SavedTensor, "data")
"""Whether torch shows what was saved even if it was changed since; older versions raise an error."""
_names: dict[type, list[str]] = {}
"""The attributes of each type of nodes in which it saves tensors."""
