"""Unread: a mode in which torch cannot read values to decide on a form: a tensor as a size, ``nonzero``, ``item``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

import torch
from torch.autograd.graph import increment_version
from torch.utils._python_dispatch import TorchDispatchMode

from syft_core.hook.rules import leaves

_READING = frozenset({torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape})
_MASKS = (torch.bool, torch.uint8)


class Unread(TorchDispatchMode):  # type: ignore[misc]  # torch's values pass as Any
    """Refuses every kernel that torch itself marks as depending on data, unless all that it reads is ``readable``.

    Torch turns a tensor into a number, wherever one is expected, with such a kernel; no list of operations is needed.
    """

    def __init__(self, readable: Collection[Any], memory_of: Callable[[Any], Any], refusal: Exception) -> None:
        super().__init__()
        self.readable = readable
        self.memory_of = memory_of
        self.refusal = refusal

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run a kernel, or refuse it; one that fails may have changed something, which torch does not count here."""
        if not _READING.isdisjoint(func.tags) and not all(map(self._is_readable, _read_by(func, args))):
            raise self.refusal
        named = kwargs or {}
        try:
            return func(*args, **named)
        except BaseException:
            for tensor in _written_by(func, args, named):
                if not tensor.is_inference():
                    increment_version(tensor)
            raise

    def _is_readable(self, arg: Any) -> bool:
        return not isinstance(arg, torch.Tensor) or self.memory_of(arg) in self.readable


def _read_by(func: Any, args: Any) -> Any:
    """Return what a kernel reads to decide on the form of its result: of indices, only the masks."""
    if func is torch.ops.aten.index.Tensor:
        return [index for index in args[1] if index is not None and index.dtype in _MASKS]
    return args


def _written_by(func: Any, args: Any, kwargs: Any) -> Iterator[Any]:
    """Yield the tensors that a kernel writes into."""
    for number, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            given = args[number] if number < len(args) else kwargs.get(argument.name)
            yield from (leaf for leaf in leaves(given) if isinstance(leaf, torch.Tensor))
