"""Every reviewed operation meets its conditions: forms and the state of the generator do not depend on values."""

from __future__ import annotations

import contextlib
import os
import random
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

import syft_core as sy
from syft_core.hook.attributes import Op
from syft_core.hook.forms import Form
from syft_core.hook.rules import leaves
from syft_core.messages import Describe
from syft_torch.attributes import TorchAttributes

from ..surface.checks import Raised, attempt, map_tensors, tensors
from .watching import run_samples

pytestmark = pytest.mark.filterwarnings("ignore")

MOST = 14 if os.environ.get("SYFT_EXHAUSTIVE") else 3
"""The number of calls to try per operation."""
EXTREMES = ((float("nan"), 0), (0.0, 1), (3e4, 2), (-5.0, -7), (float("inf"), 100_000))
"""Values to fill tensors with: floats, and integers."""
SEED = 7
NEEDS_A_GRAPH = {"torch.Tensor.backward", "torch.autograd.backward", "torch.autograd.grad"}
Calls = dict[Op, list[tuple[tuple[Any, ...], dict[str, Any]]]]


@pytest.fixture(scope="module")
def torch_calls(torch_surface: Any) -> Calls:
    return collect(torch_surface)


@pytest.fixture(scope="module")
def numpy_calls(numpy_surface: Any) -> Calls:
    return collect(numpy_surface)


def collect(surface: Any) -> Calls:
    """Return the calls of reviewed operations on plain tensors that the samples make."""
    calls: Calls = defaultdict(list)

    @contextlib.contextmanager
    def watcher(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[None]:
        usual = op.tier == "reviewed" and op.name not in NEEDS_A_GRAPH and len(calls[op]) < MOST
        if usual and op.disclosure(args, kwargs) == "nothing" and all(map(is_common, tensors(surface, (args, kwargs)))):
            calls[op].append(map_tensors(surface, surface.copy, (args, kwargs)))
        yield

    run_samples(surface, watcher)
    return {op: found for op, found in calls.items() if found}


def is_common(tensor: Any) -> bool:
    return not isinstance(tensor, torch.Tensor) or (
        tensor.layout is torch.strided and not (tensor.is_quantized or tensor.is_nested or tensor.is_inference())
    )


def results(surface: Any, op: Op, given: Any) -> Iterator[Any]:
    """Yield the results of a call with several sets of values, except those with which it fails."""
    change = [surface.copy, surface.other_values, *[partial(fill, surface, *extreme) for extreme in EXTREMES]]
    for replace in change:
        args, kwargs = map_tensors(surface, replace, map_tensors(surface, surface.copy, given))
        torch.default_generator.manual_seed(SEED)
        result = attempt(op.run, args, kwargs)
        if not isinstance(result, Raised):
            yield result


def fill(surface: Any, extreme: float, number: int, tensor: Any) -> Any:
    return surface.extreme_values(tensor, extreme, number)


def forms(result: Any) -> list[str]:
    """Describe the forms in a result."""
    return [describe(leaf) for leaf in leaves(result)]


def describe(leaf: Any) -> str:
    if isinstance(leaf, Form):
        return f"{tuple(leaf.shape)} {leaf.strides} {leaf.dtype} {leaf.requires_grad}"
    if isinstance(leaf, torch.Tensor):
        return f"{tuple(leaf.shape)} {leaf.stride()} {leaf.dtype} {leaf.requires_grad}"
    if isinstance(leaf, (np.ndarray, np.generic)):
        return f"{leaf.shape} {leaf.dtype}"
    return repr(leaf)


def test_almost_every_reviewed_operation_has_a_sample(torch_calls: Calls, numpy_calls: Calls) -> None:
    assert len(torch_calls) > 1100
    assert len(numpy_calls) > 450


def test_the_form_of_a_result_does_not_depend_on_values(torch_surface: Any, torch_calls: Calls) -> None:
    differing = {
        op.name: sorted(found)
        for op, calls in torch_calls.items()
        for given in calls
        if len(found := {tuple(forms(result)) for result in results(torch_surface, op, given)}) > 1
    }

    assert differing == {}


def test_the_form_of_a_result_does_not_depend_on_values_in_numpy(numpy_surface: Any, numpy_calls: Calls) -> None:
    with np.errstate(all="ignore"):
        differing = {
            op.name: sorted(found)
            for op, calls in numpy_calls.items()
            for given in calls
            if op.name not in numpy_surface.exceptions  # The result is a number of Python, which a chain replaces.
            and len(found := {tuple(forms(result)) for result in results(numpy_surface, op, given)}) > 1
        }

    assert differing == {}


def test_the_form_of_a_result_can_be_inferred(torch_surface: Any, torch_calls: Calls) -> None:
    attributes = TorchAttributes(torch)
    # Torch 2.4 has no meta kernel for `kthvalue`.
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key("aten::kthvalue", "Meta")
    not_inferred = set() if has_kernel else {"kthvalue"}
    wrong = {}
    for op, calls in torch_calls.items():
        for given in calls if not op.states_fact else ():
            expected = next(results(torch_surface, op, given), None)
            if expected is None:
                continue
            found = attributes.infer(op, *map_tensors(torch_surface, attributes.form_of, given))
            if found is None and op.operation in not_inferred:
                continue
            if found is None or forms(found[0]) != forms(expected):
                wrong[op.name] = forms(expected), None if found is None else forms(found[0])

    assert wrong == {}


def test_the_state_of_the_generator_does_not_depend_on_values(torch_surface: Any, torch_calls: Calls) -> None:
    generator, differing, drawing = torch.default_generator, set(), set()
    for op, calls in torch_calls.items():
        for given in calls:
            before = generator.manual_seed(SEED).get_state()
            states = [generator.get_state() for _ in results(torch_surface, op, given)]
            if not all(torch.equal(state, states[0]) for state in states):
                differing.add(op.name)
            if states and not torch.equal(states[0], before):
                drawing.add(op.name)

    assert differing == set()
    assert [name for name in drawing if not torch_surface.ops.look_up(name).random] == []


def test_an_operation_that_is_not_partial_works_with_all_values(surface: Any, request: pytest.FixtureRequest) -> None:
    calls: Calls = request.getfixturevalue(f"{surface.name}_calls")
    failing = {
        op.name
        for op, given in calls.items()
        if not op.partial
        for call in given
        if len([*results(surface, op, call)]) not in (0, 2 + len(EXTREMES))
    }

    assert failing == set()
    assert sum(not op.partial for op in calls) > 50


def test_a_gradient_has_the_form_of_its_tensor_for_all_values() -> None:
    for value in (0.0, 1.0, float("nan"), float("inf")):
        x = torch.full((2, 3), value, requires_grad=True)

        (found,) = torch.autograd.grad((x * x).log().sum(), x)

        assert (found.shape, found.stride(), found.dtype) == (x.shape, x.stride(), x.dtype)


# --- data of other forms

DTYPES = "float32 float64 float16 int64 int32 uint8 bool complex64".split()
VARIANTS = 1000 if os.environ.get("SYFT_EXHAUSTIVE") else 3
"""How many of the calls with other forms to try per operation."""


def change_forms(surface: Any, given: Any) -> Iterator[Any]:
    """Yield a call with one tensor, or all of them, of another dtype, or one of another shape."""
    count = len([*tensors(surface, given)])
    changes = [partial(to_dtype, surface, dtype) for dtype in DTYPES]
    shapes = [lambda x: x[..., None], lambda x: x[:0] if x.ndim else x, lambda x: x[0] if x.ndim and len(x) else x]
    places = [({place}, change) for place in range(count) for change in (*changes, *shapes)]
    for chosen, change in [*places, *[(set(range(count)), change) for change in changes]]:
        numbers = iter(range(count))
        yield map_tensors(surface, lambda x, c=chosen, f=change, n=numbers: f(x) if next(n) in c else x, given)


def to_dtype(surface: Any, name: str, tensor: Any) -> Any:
    if surface.name == "numpy":
        return np.asarray(tensor).astype(name) if np.asarray(tensor).dtype.kind in "biufc" else tensor
    dtype = getattr(torch, name)
    differentiable = tensor.requires_grad and (dtype.is_floating_point or dtype.is_complex)
    return tensor.detach().to(dtype).requires_grad_(differentiable)


def fails_for_all_values(surface: Any, op: Op, given: Any) -> bool:
    empty = np.zeros_like if surface.name == "numpy" else torch.zeros_like
    return not [*results(surface, op, given)] and not [*results(surface, op, map_tensors(surface, empty, given))]


def test_a_call_on_private_data_that_fails_for_all_values_raises(surface: Any, request: pytest.FixtureRequest) -> None:
    """Data of another dtype, for instance, must not be computed on as if the call had worked."""
    calls: Calls = request.getfixturevalue(f"{surface.name}_calls")
    make_hook = partial(sy.TorchHook, torch) if surface.name == "torch" else partial(sy.NumpyHook, np)
    silent, tried, chance = set(), 0, random.Random(SEED)
    with make_hook() as hook, np.errstate(all="ignore"):
        hook.local_worker.user = "eve"
        worker = sy.VirtualWorker(hook, id="bob")

        def protect(tensor: Any) -> Any:
            plain = tensor if surface.name == "torch" else hook.array(tensor)
            worker.load_data([plain.private_tensor(["alice"]).tag(tag := f"#{worker.objects_count}")])
            return worker.search(tag)[0]

        for op, found in calls.items():
            variants = [*change_forms(surface, found[0])] if found else []
            for given in chance.sample(variants, min(VARIANTS, len(variants))):
                if not fails_for_all_values(surface, op, given):
                    continue
                tried += 1
                worker.clear_objects()
                args, kwargs = map_tensors(surface, protect, given)
                with contextlib.suppress(Exception):
                    for leaf in leaves(op.func(*args, **kwargs)):
                        if (pointer := getattr(leaf, "child", None)) is not None:
                            pointer._location.ask(Describe((pointer.id_at_location,), None))
                    silent.add(op.name)

    assert silent == set()
    assert tried > 100
