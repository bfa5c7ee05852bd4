"""Results of numpy on private data have the memory layout of plain ones, whatever that of the operands is.

Clients infer no forms of numpy: they ask for those of results.
"""

from __future__ import annotations

import contextlib
import os
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import syft_core as sy
from syft_core.exceptions import SyftError
from syft_core.hook.attributes import Op
from syft_core.hook.chain import plain_end
from syft_core.hook.rules import leaves
from syft_core.plugins.manager import load_backend

from ..surface.checks import Raised, attempt, map_tensors, tensors
from .test_reviewed import Calls
from .watching import run_samples

pytestmark = pytest.mark.filterwarnings("ignore")
MOST = 14 if os.environ.get("SYFT_EXHAUSTIVE") else 1
"""The number of calls to try per operation."""


def plain(x: Any) -> Any:
    return x.copy("C")


def fortran(x: Any) -> Any:
    return x.copy("F")


def backwards(x: Any) -> Any:
    return np.ascontiguousarray(x[::-1])[::-1] if x.ndim else x.copy()


def strided(x: Any) -> Any:
    return np.stack([x, x], -1)[..., 0]


def expanded(x: Any) -> Any:
    return np.broadcast_to(x[:1].copy(), x.shape).view() if x.ndim and x.size else x.copy()


def empty(x: Any) -> Any:
    return x[:0].copy() if x.ndim else x.copy()


@pytest.fixture(scope="module")
def calls(numpy_surface: Any) -> Calls:
    found: Calls = defaultdict(list)

    @contextlib.contextmanager
    def watcher(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[None]:
        is_wanted = op.tier == "reviewed" and not op.random and len(found[op]) < MOST
        if is_wanted and list(tensors(numpy_surface, (args, kwargs))):
            found[op].append(map_tensors(numpy_surface, numpy_surface.copy, (args, kwargs)))
        yield

    run_samples(numpy_surface, watcher)
    return found


def describe(leaf: Any) -> Any:
    return (leaf.shape, leaf.strides, leaf.dtype) if isinstance(leaf, np.ndarray) else None


@pytest.mark.parametrize("variant", [plain, fortran, backwards, strided, expanded, empty])
def test_a_result_on_private_data_has_the_strides_of_a_plain_one(
    numpy_surface: Any, calls: Calls, variant: Callable[[Any], Any]
) -> None:
    wrong, tried = {}, 0
    with load_backend("numpy")(np) as hook:
        hook.local_worker.user = "eve"
        bob = sy.VirtualWorker(hook, id="bob")

        def protect(array: Any) -> Any:
            private = hook.make_taggable(array).private_tensor(["alice"])
            bob.load_data([private.tag(tag := f"#{bob.objects_count}")])
            return bob.search(tag)[0]

        def find(leaf: Any) -> Any:
            return describe(plain_end(bob.get_obj(leaf.child.id_at_location))) if hasattr(leaf, "child") else None

        for op, given in [(op, each) for op, found in calls.items() for each in found]:
            call = attempt(map_tensors, (numpy_surface, variant, given), {})
            result = call if isinstance(call, Raised) else attempt(op.run, *call)
            if isinstance(result, Raised) or op.inplace:
                continue
            bob.clear_objects()
            with contextlib.suppress(SyftError, TypeError, ValueError, IndexError):
                args, kwargs = map_tensors(numpy_surface, protect, map_tensors(numpy_surface, variant, given))
                found = [find(leaf) for leaf in leaves(op.func(*args, **kwargs))]
                tried += 1
                if found != (expected := [describe(leaf) for leaf in leaves(result)]):
                    wrong[op.name] = expected, found

    assert wrong == {}
    assert tried > 150
