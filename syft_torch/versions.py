"""Versions: what differs between the versions of torch, found by looking for features."""

from __future__ import annotations

import functools
import inspect
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

import torch
from torch.overrides import handle_torch_function

from syft_core.values import Function, Nested, Tensor

TESTED = "2"
"""The major version of torch that docs/compatibility.md has rows for."""


def warn_if_untested(version: str) -> None:
    """Warn of a major version of torch on which the tests did not run."""
    if version.partition(".")[0] != TESTED:
        warnings.warn(
            f"torch {version} is untested: this release was tested on torch {TESTED} (docs/compatibility.md); "
            f"install `torch=={TESTED}.*` if something fails",
            stacklevel=2,
        )


warn_if_untested(torch.__version__)  # Once in a process, when this module is imported.

_autograd = torch._C._autograd
_ATTENTION = ("_transformer_encoder_layer_fwd", "_native_multi_head_attention")
_TOP, _PUSH, _POP = (f"_{verb}_saved_tensors_default_hooks" for verb in ("top", "push", "pop"))
_GENERATORS = ("_checkpoint_without_reentrant_generator_impl", "_checkpoint_without_reentrant_generator")
"""Torch 2.15 has both, and calls the first."""

UNCHECKABLE = frozenset(
    name for name in _ATTENTION if not torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", "Meta")
)
"""Fused kernels without meta kernels, as in torch 2.4 and 2.9: their arguments cannot be checked on the meta device."""

BACKWARD_BYPASSES = "handle_torch_function" not in torch.autograd.backward.__code__.co_names
"""Whether ``torch.autograd.backward`` bypasses the protocol, as before torch 2.12."""

_ENGINE = "_engine_run_backward"
run_engine: Function | None = (
    getattr(torch.autograd.graph, _ENGINE, None) if _ENGINE in torch.autograd.backward.__code__.co_names else None
)
"""The function by which ``torch.autograd.backward`` runs the engine, or None if it has another one."""


def find_decomposed(matrix: Tensor) -> Tensor:
    """Return what ``torch.linalg.solve`` decomposes: before torch 2.13, the transpose of a contiguous matrix."""
    return matrix.mT if _decomposes_transpose() and matrix.is_contiguous() else matrix


@functools.cache
def _decomposes_transpose() -> bool:
    upper = torch.tensor([[2.0, 1.0], [0.0, 2.0]])
    _solution, decomposed, *_others = torch.ops.aten._linalg_solve_ex(upper, upper)
    return not decomposed.equal(upper)


def find_checkpoint_generator() -> tuple[ModuleType, str]:
    """Return the owner and the name of the generator that runs around the forward of non-reentrant checkpoints."""
    checkpoint = import_module("torch.utils.checkpoint")  # Slow with torch 2.4.
    return checkpoint, next(name for name in _GENERATORS if hasattr(checkpoint, name))


def collects_gradients_in_lists(optimizer: type) -> bool:
    """Return whether an optimizer has the private method that fills three lists before a step."""
    collect = getattr(optimizer, "_init_group", None)
    lists = ["self", "group", "params", "grads", "momentum_buffer_list"]
    return inspect.isfunction(collect) and list(inspect.signature(collect).parameters) == lists


def saves_inputs(function: type) -> bool:
    """Return whether a function only keeps the arguments of a checkpoint, in a graph of its own; torch 2.4 has one."""
    return function.__name__ == "_NoopSaveInputs" and function.__module__ == "torch.utils.checkpoint"


def make_substitutes(chain: type) -> Iterator[tuple[Any, str, Function]]:
    """Yield the owner, the name and the substitute of each function that newer versions of torch do not need."""
    if BACKWARD_BYPASSES:
        yield torch.autograd, "backward", _make_backward(torch.autograd.backward, chain)
    if not hasattr(_autograd, _TOP):
        _hooks.pairs.clear()
        yield _autograd, _PUSH, _hooks.make_push(getattr(_autograd, _PUSH))
        yield _autograd, _POP, _hooks.make_pop(getattr(_autograd, _POP))


def _make_backward(native: Function, chain: type) -> Function:
    """Send ``torch.autograd.backward`` through the protocol, as torch 2.12 and newer do."""

    @functools.wraps(native)
    def backward(tensors: Iterable[Tensor], *args: object, **kwargs: object) -> Nested:
        roots = (tensors,) if isinstance(tensors, torch.Tensor) else tuple(tensors)
        if any(isinstance(root, chain) for root in roots):
            return handle_torch_function(native, roots, roots, *args, **kwargs)
        return native(tensors, *args, **kwargs)

    return backward


class _SavingHooks(threading.local):
    """The saved-tensor hooks of this thread, for torch 2.4, which does not tell them."""

    def __init__(self) -> None:
        self.pairs: list[tuple[Function, Function]] = []

    def top(self, ignore_is_tracing: bool) -> tuple[Function, Function] | None:
        return self.pairs[-1] if self.pairs else None

    def make_push(self, native: Function) -> Function:
        def push(pack: Function, unpack: Function) -> None:
            native(pack, unpack)
            self.pairs.append((pack, unpack))

        return push

    def make_pop(self, native: Function) -> Function:
        def pop() -> None:
            native()
            if self.pairs:  # There is none for hooks that were pushed before this function was installed.
                self.pairs.pop()

        return pop


_hooks = _SavingHooks()
saving_hooks: Callable[[bool], tuple[Function, Function] | None] = getattr(_autograd, _TOP, _hooks.top)
"""Returns the innermost pair of saved-tensor hooks, or None."""
