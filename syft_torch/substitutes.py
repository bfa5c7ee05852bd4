"""Substitutes for the few helpers inside of torch that make tensors, or lists of them, around torch's own protocol.

A helper that looks at tensors from C++ sees heads without data, all on one device. While torch is hooked these helpers
ask the heads; for plain tensors each of them is torch's own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import torch

from syft_torch.parameter import location_of
from syft_torch.wrapper import Wrapper

_GROUP = "_group_tensors_by_device_and_dtype"


def substitutes() -> Iterator[tuple[Any, str, Any]]:
    """Yield who has a helper, its name, and what is there while torch is hooked; versions of torch differ in that."""
    optimizer = torch.optim.Optimizer
    yield optimizer, _GROUP, staticmethod(_keeping_workers_apart(getattr(optimizer, _GROUP)))
    for path, name, substitute in (
        ("torch.nn.utils.clip_grad", _GROUP, _keeping_workers_apart),
        ("torch.optim.swa_utils", _GROUP, _keeping_workers_apart),
        ("torch.optim.adagrad", "_make_sparse", _made_beside_its_values),
    ):
        module = import_module(path)
        if hasattr(module, name):
            yield module, name, substitute(getattr(module, name))


class _Key(tuple[Any, Any]):
    """A device and a dtype, as torch groups by; those of another worker are others, though they look the same."""

    __slots__ = ()
    __eq__ = object.__eq__
    __hash__ = object.__hash__


def _keeping_workers_apart(group: Callable[..., Any]) -> Callable[..., Any]:
    """Group tensors by their worker, too, and by the device and dtype that they have there."""

    @functools.wraps(group)
    def grouped(tensorlists: Any, with_indices: bool = False) -> Any:
        leaders = tensorlists[0]
        if not any(isinstance(leader, Wrapper) for leader in leaders):
            return group(tensorlists, with_indices)
        places: dict[Any, list[int]] = {}
        for index, leader in enumerate(leaders):
            places.setdefault((location_of(leader), leader.dtype), []).append(index)
        groups = {}
        for (_worker, dtype), members in places.items():
            lists = [[tensors[index] for index in members] if tensors else tensors for tensors in tensorlists]
            for found, indices in group(lists, True).values():
                groups[_Key((found[0][0].device, dtype))] = found, [members[index] for index in indices]
        return groups

    return grouped


def _made_beside_its_values(make: Callable[..., Any]) -> Callable[..., Any]:
    """Make a sparse tensor like ``grad`` where its values are; ``torch.sparse_coo_tensor`` does not ask a head."""

    @functools.wraps(make)
    def made(grad: Any, grad_indices: Any, values: Any) -> Any:
        if isinstance(values, Wrapper):
            return grad.new(grad_indices, values, grad.size())
        return make(grad, grad_indices, values)

    return made
