"""The methods that a hook adds to ``nn.Module`` and optimizers for encrypted computation.

A module changes in place, and its Parameter objects stay the same: see ``parameter.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import nn

from syft_core.values import Function, Tensor
from syft_torch.module import AddedName, M, find_parts, get, move_weights
from syft_torch.parameter import relocate


def fix_precision(module: M, *args: object, **options: object) -> M:
    """Encode parameters and buffers with fixed precision, in place; integer buffers stay as they are."""
    return _convert(module, lambda tensor: tensor.fix_precision(*args, **options))


def float_precision(module: M) -> M:
    """Decode parameters and buffers, in place."""
    return _convert(module, lambda tensor: tensor.float_precision())


def share(module: M, *owners: object, **options: object) -> M:
    """Share parameters and buffers among workers, in place."""
    return _convert(module, lambda tensor: tensor.share(*owners, **options))


def encrypt(module: M, **options: object) -> M:
    """Encode parameters and buffers, and share them, in place."""
    return _convert(module, lambda tensor: tensor.encrypt(**options))


def decrypt(module: M) -> M:
    """Fetch shared parameters and buffers, and decode them, in place."""
    return float_precision(get(module))


def _convert(module: M, convert: Callable[[Tensor], Tensor]) -> M:
    layers, tensors = find_parts(module)
    real = [tensor for tensor in tensors if tensor.is_floating_point()]

    def convert_all(originals: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        converted = []
        for tensor in originals:
            new = convert(tensor.detach())
            is_parameter = isinstance(tensor, nn.Parameter)
            converted.append(nn.Parameter(new, tensor.requires_grad) if is_parameter else new)
        return converted

    move_weights(layers, partial(relocate, real, convert_all))
    return module


_METHODS: dict[str, Function] = {
    "fix_precision": fix_precision,
    "fix_prec": fix_precision,
    "float_precision": float_precision,
    "float_prec": float_precision,
    "share": share,
    "encrypt": encrypt,
    "decrypt": decrypt,
}
ADDED_FOR_SHARING: dict[str, AddedName] = {
    name: AddedName(name, function) for word, function in _METHODS.items() for name in (word, f"{word}_")
}
"""The names that a hook adds to ``nn.Module`` for encrypted computation; all of them change the module in place."""


def keep_precision(optimizer: torch.optim.Optimizer, *_args: object, **_options: object) -> torch.optim.Optimizer:
    """Return the optimizer itself: its hyper-parameters are public numbers, which encoded parameters accept."""
    return optimizer


SHARING_OPTIMIZERS: dict[str, Function] = dict.fromkeys(
    ("fix_precision", "fix_prec", "float_precision", "float_prec"), keep_precision
)
"""The names that a hook adds to optimizers, so that programs for the ancestor run."""
