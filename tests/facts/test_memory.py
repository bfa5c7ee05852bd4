"""What changes when something else is written shares memory with it in the index, whatever operation, whatever kind.

By effect: each result and each operand is written, and all others are looked at. A few calls are tried, chosen by a
seed; ``SYFT_EXHAUSTIVE=1`` tries all of them.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

from syft_core.hook.hook import FrameworkHook
from syft_core.hook.rules import leaves
from syft_core.workers.party.store import memory_of, share_memory
from syft_numpy.hook import NumpyHook
from syft_torch.hook import TorchHook

from ..surface.checks import map_tensors
from . import kinds

pytestmark = pytest.mark.filterwarnings("ignore")

EXHAUSTIVE = bool(int(os.environ.get("SYFT_EXHAUSTIVE", "0")))
SHARE = 1.0 if EXHAUSTIVE else 0.01
"""Which share of the calls to try."""
SEED = 11
LARGEST = 200
"""How many elements a tensor may have, all of which are shown."""
MOST_SHOWN = 5
KINDS = {"torch": kinds.OF_TORCH, "numpy": kinds.OF_NUMPY}
HOOKS: dict[str, Callable[[], FrameworkHook]] = {"torch": lambda: TorchHook(torch), "numpy": lambda: NumpyHook(np)}


@pytest.mark.timeout(0 if EXHAUSTIVE else 120)
def test_what_a_write_changes_shares_memory_in_the_index(surface: Any) -> None:
    unknown: list[str] = []
    tried = 0
    with HOOKS[surface.name]():
        for op in surface.ops:
            found, count = run_in_child(find_unknown, surface, op) if EXHAUSTIVE else find_unknown(surface, op)
            unknown += found
            tried += count

    assert unknown == []
    assert tried > (1000 if EXHAUSTIVE else 10)


def run_in_child(function: Callable[..., Any], *args: object) -> tuple[list[str], int]:
    """Return what a function returns in a process of its own: some kernels crash for kinds that they do not expect."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        with contextlib.suppress(Exception):
            os.write(writer, json.dumps(function(*args)).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return tuple(json.loads(text)) if text else ([], 0)  # type: ignore[return-value]  # the result of the function


def find_unknown(surface: Any, op: Any) -> tuple[list[str], int]:
    """Return what changes without sharing memory in the index, and how often something changes."""
    unknown, count = [], 0
    for kind, tensors in calls(surface, op):
        for written, other in find_changed(tensors):
            count += 1
            if not share_memory(written, other):
                unknown.append(f"{op.name} of a tensor of the kind {kind!r}: {type(written)}, {type(other)}")
    return unknown[:MOST_SHOWN], count


def calls(surface: Any, op: Any) -> Iterator[tuple[str, list[Any]]]:
    """Make calls with operands of all kinds; yield the kind, and the operands with the results."""
    chance = random.Random(f"{SEED} {op.name}")
    for case in surface.cases(op)[:3] if op.tier != "off" else ():
        count = sum(map(surface.is_tensor, leaves((case.args, case.kwargs))))
        for kind, make in KINDS[surface.name].items():
            for place in range(min(count, 3)):
                if chance.random() < SHARE and (tensors := call(surface, op, case, make, place)):
                    yield kind, tensors


def call(surface: Any, op: Any, case: Any, make: Callable[[Any], Any], place: int) -> list[Any]:
    """Make a call with the operand at a place replaced by one of a kind; return all tensors, or none if it fails."""
    places = iter(range(len(leaves((case.args, case.kwargs)))))
    try:
        replaced = map_tensors(
            surface, lambda x: make(x) if next(places) == place else surface.copy(x), (case.args, case.kwargs)
        )
        result = op.run(*replaced[0], **replaced[1])
        found = {id(leaf): leaf for leaf in leaves((replaced, result)) if surface.is_tensor(leaf)}
        return list(found.values()) if all(map(_is_small, found.values())) else []
    except Exception:  # noqa: BLE001  # most operations refuse most kinds
        return []


def _is_small(tensor: Any) -> bool:
    if isinstance(tensor, torch.Tensor):
        return bool(tensor.is_nested or tensor.numel() <= LARGEST)
    return bool(np.size(tensor) <= LARGEST)


def find_changed(tensors: list[Any]) -> Iterator[tuple[Any, Any]]:
    """Write into each tensor; yield it with each other one that has changed."""
    for written in tensors if len(tensors) > 1 else ():
        with contextlib.suppress(Exception):  # What cannot be shown, such as arrays of another library.
            before = [(other, kinds.show(other)) for other in tensors if other is not written]
            if kinds.write(written):
                yield from [(written, other) for other, then in before if kinds.show(other) != then]


# --- all kinds


@pytest.mark.parametrize("kind", kinds.OF_TORCH)
def test_a_copy_of_a_tensor_shares_nothing_with_it(kind: str) -> None:
    tensor = kinds.OF_TORCH[kind](torch.ones(3, 3))
    with TorchHook(torch) as hook:
        for copy in (hook.attributes.copy(tensor), hook.attributes.transfer(tensor)):
            assert not list(find_changed([copy, tensor]))
            assert tensor.is_mkldnn or not share_memory(copy, tensor)
            assert memory_of(copy) if not tensor.is_mkldnn else True


@pytest.mark.parametrize("kind", kinds.OF_NUMPY)
def test_a_copy_of_an_array_shares_nothing_with_it(kind: str) -> None:
    array = kinds.OF_NUMPY[kind](np.ones((3, 3)))
    with NumpyHook(np) as hook:
        copy = hook.attributes.copy(array)
        assert not list(find_changed([copy, array]))
        assert not share_memory(copy, array) or kind in ("objects", "masked")


@pytest.mark.parametrize("kind", kinds.OF_TORCH)
def test_an_alias_of_a_tensor_shares_memory_with_it(kind: str) -> None:
    with TorchHook(torch) as hook:
        tensor = kinds.OF_TORCH[kind](torch.ones(3, 3))
        for alias in (tensor.detach(), hook.attributes.alias(tensor)):
            assert share_memory(alias, tensor)


def test_the_scales_of_a_quantized_tensor_are_part_of_its_memory() -> None:
    scales, zeros = torch.ones(3, dtype=torch.float64), torch.zeros(3, dtype=torch.int64)
    quantized = torch.quantize_per_channel(torch.ones(3), scales, zeros, 0, torch.quint8)
    with TorchHook(torch) as hook:
        for part in (scales, zeros, quantized.q_per_channel_scales(), quantized.q_per_channel_zero_points()):
            assert share_memory(part, quantized)
            assert share_memory(quantized.clone(), part)  # torch gives a clone the same scales
            assert not hook.attributes.is_alone(part)
        assert not hook.attributes.is_alone(quantized)
        assert not share_memory(scales, zeros)
        assert not share_memory(torch.quantize_per_tensor(torch.ones(3), 1.0, 0, torch.quint8), scales)


def test_a_tensor_of_unknown_memory_shares_it_with_every_tensor_of_its_framework() -> None:
    dense, opaque, array = torch.ones(3, 3), torch.ones(3, 3).to_mkldnn(), np.ones(3)
    with TorchHook(torch) as hook, NumpyHook(np, hook.local_worker):
        assert hook.attributes.memory_of(opaque) is None
        assert share_memory(dense, opaque)
        assert share_memory(opaque, dense)
        assert share_memory(opaque, torch.ones(3, 3).to_mkldnn())
        assert not share_memory(opaque, array)
        assert not share_memory(array, opaque)
        assert share_memory(array, np.ma.array(np.ones(2)))


def test_a_subclass_of_tensors_has_unknown_memory() -> None:
    class Labelled(torch.Tensor):
        pass

    jagged = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
    with TorchHook(torch) as hook:
        assert hook.attributes.memory_of(torch.ones(2).as_subclass(Labelled)) is None
        assert hook.attributes.memory_of(jagged) is None


def test_arrays_in_the_memory_of_another_library_have_unknown_memory(tmp_path: Any) -> None:
    mapped = np.memmap(tmp_path / "numbers", "f8", "w+", shape=(4,))
    again = np.memmap(tmp_path / "numbers", "f8", "r+", shape=(2,))
    with NumpyHook(np) as hook:
        assert hook.attributes.memory_of(torch.ones(3).numpy()) is None
        assert hook.attributes.memory_of(np.array([1, None], dtype=object)) is None
        assert share_memory(mapped[1:], np.asarray(again))
        assert not share_memory(mapped, np.memmap(tmp_path / "others", "f8", "w+", shape=(4,)))
