"""Results have the memory layout that the CPU gives, also where forms are inferred and where data is private."""

from __future__ import annotations

import contextlib
import os
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
import torch

import syft_core as sy
from syft_core.exceptions import SyftError
from syft_core.hook.attributes import Op
from syft_core.hook.chain import plain_end
from syft_core.hook.forms import Form
from syft_core.hook.rules import leaves
from syft_torch.attributes import TorchAttributes

from ..surface.checks import Raised, attempt, map_tensors, tensors
from .test_reviewed import NEEDS_A_GRAPH, SEED, Calls, is_common
from .watching import run_samples

pytestmark = pytest.mark.filterwarnings("ignore")

MOST = 14 if os.environ.get("SYFT_EXHAUSTIVE") else 1
"""The number of calls to try per operation: the largest of the samples."""
NAMES_THE_META_DEVICE = {"_is_view", "device", "is_cpu", "is_meta", "type", "storage_type"}
"""Operations whose answers are about the tensors of the inference; pointers ask for them."""


def plain(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


def transposed(x: torch.Tensor) -> torch.Tensor:
    return x.mT.contiguous().mT if x.dim() > 1 else x.clone()


def reversed_dimensions(x: torch.Tensor) -> torch.Tensor:
    order = list(range(x.dim()))[::-1]
    return x.permute(order).contiguous().permute(order)


def channels_last(x: torch.Tensor) -> torch.Tensor:
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    return (
        x.contiguous(memory_format=formats[x.dim()]) if x.dim() in formats else x.movedim(0, -1).clone().movedim(-1, 0)
    )


def strided(x: torch.Tensor) -> torch.Tensor:
    return torch.stack([x, x], -1)[..., 0] if x.dim() else x.clone()


def expanded(x: torch.Tensor) -> torch.Tensor:
    return x[:1].clone().expand(x.shape) if x.numel() and x.dim() else x.clone()


def empty(x: torch.Tensor) -> torch.Tensor:
    return x[:0].clone() if x.dim() else x.clone()


def batched(x: torch.Tensor) -> torch.Tensor:
    return torch.stack([x, x, x])


def batched_last(x: torch.Tensor) -> torch.Tensor:
    return torch.stack([x, x, x], -1).movedim(-1, 0)


OF_TORCH = AssertionError, IndexError, NotImplementedError, RuntimeError, TypeError, ValueError
"""What functions of torch raise for calls that are wrong with another layout."""
VARIANTS = [plain, transposed, reversed_dimensions, channels_last, strided, expanded, empty, batched, batched_last]


LOADED = [variant for variant in VARIANTS if variant not in (strided, expanded)]
"""Those that a worker loads as they are: of a view with gaps or repetitions, it keeps a dense copy."""


@pytest.fixture(scope="module")
def calls(torch_surface: Any) -> Calls:
    found: Calls = defaultdict(list)

    @contextlib.contextmanager
    def watcher(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[None]:
        if op.tier != "off" and op.name not in NEEDS_A_GRAPH:
            given = list(tensors(torch_surface, (args, kwargs)))
            if given and all(map(is_common, given)):
                found[op].append(map_tensors(torch_surface, torch_surface.copy, (args, kwargs)))
        yield

    run_samples(torch_surface, watcher)
    return {op: sorted(each, key=partial(_count, torch_surface), reverse=True)[:MOST] for op, each in found.items()}


def _count(surface: Any, given: Any) -> int:
    return sum(tensor.numel() for tensor in tensors(surface, given))


def lay_out(surface: Any, variant: Callable[[torch.Tensor], torch.Tensor], given: Any) -> Any:
    return map_tensors(surface, lambda x: variant(x.detach()).requires_grad_(x.requires_grad), given)


def describe(leaf: Any) -> Any:
    if isinstance(leaf, Form):
        return tuple(leaf.shape), tuple(leaf.strides), leaf.dtype, leaf.requires_grad
    if isinstance(leaf, torch.Tensor):
        return tuple(leaf.shape), leaf.stride() if is_common(leaf) else None, leaf.dtype, leaf.requires_grad
    return repr(leaf)


def test_the_largest_samples_have_elements(torch_surface: Any, calls: Calls) -> None:
    assert len(calls) > 1400
    assert [op.name for op, found in calls.items() if not _count(torch_surface, found[0])] == []


@pytest.mark.parametrize("variant", VARIANTS)
def test_an_inferred_form_has_the_strides_of_the_result(torch_surface: Any, calls: Calls, variant: Any) -> None:
    attributes = TorchAttributes(torch)
    wrong, tried = {}, 0
    for op, given in [(op, each) for op, found in calls.items() for each in found]:
        call = attempt(lay_out, (torch_surface, variant, given), {})
        if op.operation in NAMES_THE_META_DEVICE or isinstance(call, Raised):
            continue
        inferred = attributes.infer(op, *map_tensors(torch_surface, attributes.form_of, call))
        torch.default_generator.manual_seed(SEED)
        result = attempt(op.run, *call)
        if inferred is None or isinstance(result, Raised):
            continue
        tried += 1
        operands = [leaf for leaf in leaves(call) if isinstance(leaf, torch.Tensor)]
        expected = [describe(leaf) for leaf in (*leaves(result), *operands)]
        found = [describe(leaf) for leaf in (*leaves(inferred.result), *inferred.after)]
        if found != expected:
            wrong[op.name] = expected, found

    assert wrong == {}
    assert tried > 500


@pytest.mark.parametrize("variant", LOADED if MOST > 1 else [plain, reversed_dimensions, channels_last, empty])
def test_a_result_on_private_data_has_the_strides_of_a_plain_one(
    torch_surface: Any, calls: Calls, variant: Any
) -> None:
    wrong, tried = {}, 0
    with sy.TorchHook(torch) as hook:
        hook.local_worker.user = "eve"
        bob = sy.VirtualWorker(hook, id="bob")

        def protect(tensor: torch.Tensor) -> Any:
            bob.load_data([tensor.private_tensor(["alice"]).tag(tag := f"#{bob.objects_count}")])
            return bob.search(tag)[0]

        for op, given in [(op, each) for op, found in calls.items() for each in found]:
            call = attempt(lay_out, (torch_surface, variant, given), {})
            if op.tier != "reviewed" or op.random or op.differentiates or isinstance(call, Raised):
                continue
            bob.clear_objects()
            args, kwargs = map_tensors(torch_surface, protect, lay_out(torch_surface, torch_surface.copy, call))
            with contextlib.suppress(SyftError, *OF_TORCH):
                found = [find_stride(bob, leaf) for leaf in leaves(op.func(*args, **kwargs))]
                result = attempt(op.run, *call)
                if isinstance(result, Raised) or op.inplace:
                    continue
                tried += 1
                expected = [leaf.stride() if isinstance(leaf, torch.Tensor) else None for leaf in leaves(result)]
                if found != expected:
                    wrong[op.name] = expected, found

    assert wrong == {}
    assert tried > 300


def find_stride(worker: Any, leaf: Any) -> Any:
    pointer = getattr(leaf, "child", None)
    end = None if pointer is None else plain_end(worker.get_obj(pointer.id_at_location))
    return None if end is None else end.stride()
