"""Isolation: hide the tensors of an in-process worker from the modes of the caller's thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial

import torch
from torch.utils._device import DeviceContext

from syft_core.exceptions import WrapperLeakError
from syft_core.features import Later
from syft_torch.versions import saving_hooks

name_instead_of_numpy = Later("syft_torch.alternatives:name_instead_of_numpy")
"""Return what to write instead of a function of numpy."""
_is_tracing = torch._C._is_tracing
_count_function_modes = torch._C._len_torch_function_stack
_count_dispatch_modes = torch._C._len_torch_dispatch_stack
WATCHERS = (_is_tracing, _count_function_modes, _count_dispatch_modes, partial(saving_hooks, False))
"""Functions of torch that return a true value while something could see the tensors of a worker."""
_KEPT = (DeviceContext,)
"""Modes that stay active: the default device, which does not see tensors."""


def isolate() -> AbstractContextManager[None] | None:
    """Return a context without the caller's modes, or None if there are none; refuse to run while torch traces."""
    if _is_tracing():
        raise make_tracing_error()
    for is_watched in WATCHERS:
        if is_watched():
            break
    else:
        return None
    require_no_saving_hooks()
    modes = [torch._C._get_function_stack_at(place) for place in range(_count_function_modes())]
    modes += [torch._C._get_dispatch_stack_at(place) for place in range(_count_dispatch_modes())]
    watched = saving_hooks(False) or not all(type(mode) in _KEPT for mode in modes)
    return _without_modes() if watched else None


def make_tracing_error() -> WrapperLeakError:
    """Return the error for ``torch.jit.trace``; torch's own would show the worker's tensors."""
    return WrapperLeakError.unseen("torch.jit.trace", "fetch the model first: `model.get()`")


def require_no_saving_hooks() -> None:
    """Refuse to record a graph whose saved tensors a user's functions would change; those of torch only move them."""
    pair = saving_hooks(False)
    if pair is not None and torch.is_grad_enabled() and not str(pair[0].__module__).startswith("torch."):
        raise WrapperLeakError.unseen("saved_tensors_hooks", "leave out the hooks")


@contextmanager
def _without_modes() -> Iterator[None]:
    """Remove the modes of this thread, except those that stay active, and restore them afterwards."""
    functions = [torch._C._pop_torch_function_stack() for _ in range(_count_function_modes())]
    dispatches = [torch._C._pop_torch_dispatch_stack(None) for _ in range(_count_dispatch_modes())]
    hooks = []
    while (pair := saving_hooks(False)) is not None:
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
    """Push modes; the last one of each list was the outermost."""
    for mode in reversed(functions):
        torch._C._push_on_torch_function_stack(mode)
    for mode in reversed(dispatches):
        torch._C._push_on_torch_dispatch_stack(mode)
