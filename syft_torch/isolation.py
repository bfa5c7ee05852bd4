"""Isolation: keep the modes of a caller's thread away from the tensors of a worker in the same process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import torch
from torch.utils._device import DeviceContext

from syft_core.exceptions import WrapperLeakError

_is_tracing = torch._C._is_tracing
_count_function_modes = torch._C._len_torch_function_stack
_count_dispatch_modes = torch._C._len_torch_dispatch_stack


_saved_tensors_hooks = torch._C._autograd._top_saved_tensors_default_hooks
"""Returns the innermost pair of functions that see every tensor a graph saves, or None."""
_KEPT = (DeviceContext,)
"""Modes that stay: the default device, which sees no tensor."""


def isolate() -> AbstractContextManager[None] | None:
    """Return a context without the modes of the caller; None when there are none. Refuse to run while torch traces."""
    if _is_tracing():
        raise tracing_refused()
    if not (_count_function_modes() or _count_dispatch_modes() or _saved_tensors_hooks(False)):
        return None
    modes = [torch._C._get_function_stack_at(place) for place in range(_count_function_modes())]
    modes += [torch._C._get_dispatch_stack_at(place) for place in range(_count_dispatch_modes())]
    watched = _saved_tensors_hooks(False) or not all(type(mode) in _KEPT for mode in modes)
    return _without_modes() if watched else None


def tracing_refused() -> WrapperLeakError:
    """Return the error for ``torch.jit.trace``, whose own would show tensors of the worker."""
    return WrapperLeakError.at(
        "torch.jit.trace", "the operations run on a worker, where torch cannot record them; fetch the model first"
    )


@contextmanager
def _without_modes() -> Iterator[None]:
    """Take all modes off the stacks of this thread but those that stay, and put them back."""
    functions = [torch._C._pop_torch_function_stack() for _ in range(_count_function_modes())]
    dispatches = [torch._C._pop_torch_dispatch_stack(None) for _ in range(_count_dispatch_modes())]
    hooks = []
    while (pair := _saved_tensors_hooks(False)) is not None:
        hooks.append(pair)
        torch._C._autograd._pop_saved_tensors_default_hooks()
    _push([mode for mode in functions if type(mode) in _KEPT], [mode for mode in dispatches if type(mode) in _KEPT])
    try:
        yield
    finally:
        while _count_function_modes():
            torch._C._pop_torch_function_stack()
        while _count_dispatch_modes():
            torch._C._pop_torch_dispatch_stack(None)
        _push(functions, dispatches)
        for pair in reversed(hooks):
            torch._C._autograd._push_saved_tensors_default_hooks(*pair)


def _push(functions: list[object], dispatches: list[object]) -> None:
    """Put modes on the stacks; the last one of each list was the outermost."""
    for mode in reversed(functions):
        torch._C._push_on_torch_function_stack(mode)
    for mode in reversed(dispatches):
        torch._C._push_on_torch_dispatch_stack(mode)
