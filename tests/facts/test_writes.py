"""``op.targets`` returns every argument that a call changes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from syft_core.hook.attributes import FrameworkAttributes, Op
from syft_core.hook.facts import WRITES_ALL, Facts, Option
from syft_core.hook.rules import leaves
from syft_numpy.attributes import NumpyAttributes
from syft_torch.attributes import TorchAttributes

from .watching import run_samples

pytestmark = pytest.mark.filterwarnings("ignore")

F = torch.nn.functional


def test_every_change_to_an_argument_is_declared(surface: Any) -> None:
    undeclared, seen = set(), set()

    @contextlib.contextmanager
    def watcher(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[None]:
        given = [leaf for leaf in leaves((args, kwargs)) if surface.is_tensor(leaf)]
        before = [snapshot(tensor) for tensor in given]
        targets = op.targets(args, kwargs)
        try:
            yield
        finally:
            seen.add(op.name)
            for tensor, then in zip(given, before, strict=True):
                if snapshot(tensor) != then and not any(tensor is target for target in targets):
                    undeclared.add(op.name)

    run_samples(surface, watcher)

    assert undeclared == set()
    assert len(seen) > 0.9 * len(surface.ops)


DAYS = np.array(["2024-01-01"], dtype="datetime64[D]")


@pytest.mark.parametrize(
    ("name", "args", "written"),
    [
        ("numpy.dot", (np.ones(2), np.ones(2), np.ones(())), 2),
        ("numpy.ndarray.dot", (np.ones((2, 2)), np.ones((2, 2)), np.ones((2, 2))), 2),
        ("numpy.concatenate", ([np.ones(2)], 0, np.ones(2)), 2),
        ("numpy.is_busday", (DAYS, "1111100", [], None, np.ones(1, bool)), 4),
        ("numpy.busday_count", (DAYS, DAYS, "1111100", [], None, np.ones(1, int)), 5),
        ("numpy.busday_offset", (DAYS, 1, "forward", "1111100", [], None, DAYS.copy()), 6),
        ("numpy.ndarray.byteswap", (np.ones(2), True), 0),
        ("numpy.ndarray.compress", (np.ones(2), [True, False], 0, np.ones(1)), 3),
    ],
)
def test_a_function_of_numpy_without_a_signature_declares_what_it_writes(name: str, args: Any, written: int) -> None:
    targets = NumpyAttributes(np).ops.by_name[name].targets(args, {})

    assert any(target is args[written] for target in targets)


def snapshot(tensor: Any) -> Any:
    """Return the values of a tensor and its form, to be compared later."""
    if not isinstance(tensor, torch.Tensor):
        return tensor.tobytes(), tensor.shape, tensor.dtype
    if tensor.is_nested or tensor.is_mkldnn or tensor.layout is not torch.strided:
        return tensor._version
    plain = (tensor.int_repr() if tensor.is_quantized else tensor.detach()).resolve_conj().resolve_neg()
    values = plain.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    return (
        values,
        tensor.shape,
        tensor.stride(),
        tensor.requires_grad,
        None if tensor.is_inference() else tensor._version,
    )


@pytest.fixture(scope="module")
def of_torch() -> FrameworkAttributes:
    return TorchAttributes(torch)


@pytest.fixture(scope="module")
def of_numpy() -> FrameworkAttributes:
    return NumpyAttributes(np)


x, y, mean, variance = (torch.rand(3) for _ in range(4))
found, scale, tracker = torch.zeros(1), torch.ones(1), torch.zeros(1, dtype=torch.int32)
weight, index = torch.rand(5, 3), torch.tensor([1])


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "changed"),
    [
        ("Tensor.add", (x, y), {}, []),
        ("Tensor.add_", (x, y), {}, [x]),
        ("Tensor.__iadd__", (x, y), {}, [x]),
        ("Tensor.__setitem__", (x, 0, y), {}, [x]),
        ("Tensor.grad.__set__", (x, y), {}, [x]),
        ("Tensor.grad.__get__", (x,), {}, []),
        ("add", (x, y), {"out": mean}, [mean]),
        ("max", (x, 0), {"out": (mean, index)}, [mean, index]),
        ("relu_", (), {"input": x}, [x]),
        ("nn.init.normal_", (), {"tensor": x}, [x]),
        ("nn.functional.relu", (x,), {}, []),
        ("nn.functional.relu", (x, True), {}, [x]),
        ("nn.functional.relu", (), {"inplace": True, "input": x}, [x]),
        ("nn.functional.dropout", (x, 0.5, True, True), {}, [x]),
        ("nn.functional.dropout", (x, 0.5, True, False), {}, []),
        ("nn.functional.batch_norm", (x, mean, variance), {}, []),
        ("nn.functional.batch_norm", (x, mean, variance), {"training": True}, [mean, variance]),
        ("nn.functional.batch_norm", (x, mean, variance, None, None, True), {}, [mean, variance]),
        ("nn.functional.batch_norm", (x, None, None, None, None, True), {}, []),
        ("nn.functional.instance_norm", (x,), {"running_mean": mean, "running_var": variance}, [mean, variance]),
        ("batch_norm", (x, y, y, mean, variance, True, 0.1, 1e-5, False), {}, [mean, variance]),
        ("nn.functional.embedding", (index, weight), {}, []),
        ("nn.functional.embedding", (index, weight), {"max_norm": 1.0}, [weight]),
        ("nn.functional.embedding", (index, weight, None, 1.0), {}, [weight]),
        ("_foreach_add_", ([x, y], [y, x]), {}, [x, y]),
        ("_foreach_lerp_", ([x], [y], 0.5), {}, [x]),
        ("_foreach_mul_", (), {"self": [x], "other": [y]}, [x]),
        ("_amp_foreach_non_finite_check_and_unscale_", ([x, y], found, scale), {}, [x, y, found]),
        ("_amp_update_scale_", (scale, tracker, found, 2.0, 0.5, 5), {}, [scale, tracker]),
    ],
)
def test_the_targets_of_a_call_on_torch(
    of_torch: FrameworkAttributes, name: str, args: Any, kwargs: Any, changed: list[Any]
) -> None:
    assert same(of_torch.ops.look_up(f"torch.{name}").targets(args, kwargs), changed)


a, b, out = np.ones(3), np.ones(3), np.ones(3)


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "changed"),
    [
        ("add", (a, b), {}, []),
        ("add", (a, b, out), {}, [out]),
        ("add", (a, b), {"out": (out,)}, [out]),
        ("divmod", (a, b, out, b), {}, [out, b]),
        ("add.at", (a, 0, b), {}, [a]),
        ("add.reduce", (a, 0, None, out), {}, [out]),
        ("add.accumulate", (a, 0, None, out), {}, [out]),
        ("cumsum", (a, 0, None, out), {}, [out]),
        ("ndarray.cumsum", (a, 0, None, out), {}, [out]),
        ("ndarray.sum", (a, 0, None, out), {}, [out]),
        ("ndarray.conj", (a, out), {}, [out]),
        ("ndarray.all", (a, 0, None, out), {}, [out]),
        ("copyto", (a, b), {}, [a]),
        ("copyto", (), {"dst": a, "src": b}, [a]),
        ("ndarray.sort", (a,), {}, [a]),
        ("ndarray.__setitem__", (a, 0, b), {}, [a]),
        ("median", (a,), {"overwrite_input": True}, [a]),
        ("median", (a, None, out), {}, [out]),
        ("nan_to_num", (a,), {}, []),
        ("nan_to_num", (a, False), {}, [a]),
    ],
)
def test_the_targets_of_a_call_on_numpy(
    of_numpy: FrameworkAttributes, name: str, args: Any, kwargs: Any, changed: list[Any]
) -> None:
    assert same(of_numpy.ops.look_up(f"numpy.{name}").targets(args, kwargs), changed)


def same(found: list[Any], expected: list[Any]) -> bool:
    """Return whether both lists contain the same objects, in any order."""
    return sorted(map(id, found)) == sorted(map(id, expected))


def test_an_operation_without_facts_may_change_every_tensor() -> None:
    assert Facts().writes is WRITES_ALL
    assert same(Facts().targets((x, [y, 2], None), {"z": {"deep": mean}, "n": 3}), [x, y, mean])


def test_undeclared_keywords_may_all_be_targets() -> None:
    facts = Facts(writes=frozenset({0}))

    assert same(facts.targets((), {"strange": x, "other": y}), [x, y])


@pytest.mark.parametrize(
    ("args", "kwargs", "on"),
    [
        ((), {}, False),
        ((x, True), {}, True),
        ((x,), {"inplace": 1}, True),
        ((x,), {"inplace": None}, False),
        ((x, False), {}, False),
    ],
)
def test_an_option_is_on_unless_it_is_omitted_or_disabled(args: Any, kwargs: Any, on: bool) -> None:
    assert Option(1, "inplace").is_on(args, kwargs) is on
