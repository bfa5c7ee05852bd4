"""Operations on shared numbers, compared with torch and numpy on plain ones: each is right, or refused with advice."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional  # noqa: E402
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

from syft_core.exceptions import SyftError  # noqa: E402
from syft_mpc.errors import PrecisionError  # noqa: E402
from syft_mpc.fixed_precision import FixedPrecisionTensor  # noqa: E402

from .settings import Setting, assert_close  # noqa: E402

EXHAUSTIVE = bool(int(os.environ.get("SYFT_EXHAUSTIVE", "0")))
MOST, LARGEST = 14, 600
"""How many of torch's samples of one function are used, and their largest number of elements."""


@pytest.fixture
def setting(torch_hook: Any) -> Setting:
    return Setting(torch_hook, 2)


@pytest.fixture(autouse=True)
def _same_numbers() -> None:
    torch.manual_seed(0)


def compare(
    setting: Setting, compute: Callable[..., Any], *plain: Any, gradients: bool = True, **tolerance: Any
) -> None:
    """Assert that a function of shared numbers has the same result and gradients as of plain ones."""
    originals = [x.clone().requires_grad_(gradients) for x in plain]
    encoded = [setting.put(x.detach().numpy()).requires_grad_(gradients) for x in plain]
    expected, found = compute(*originals), compute(*encoded)
    assert_close(setting.read(found.detach()), expected.detach(), **tolerance)
    if gradients:
        (expected * expected / 2 + expected).sum().backward()
        (found * found / 2 + found).sum().backward()
        for one, other in zip(encoded, originals, strict=True):
            assert_close(setting.read(one.grad), other.grad, **tolerance)


# --- arguments that torch leaves out


@pytest.mark.parametrize("p", [0.0, 0.25, 0.5, 1.0])
@pytest.mark.parametrize("name", ["dropout", "dropout1d", "alpha_dropout", "feature_alpha_dropout"])
def test_dropout_keeps_or_drops(setting: Setting, name: str, p: float) -> None:
    x = torch.ones(4, 16, 4)
    result = setting.read(getattr(functional, name)(setting.put(x.numpy()), p, True))
    levels = np.unique(result.round(2))
    assert len(levels) == (1 if p in (0.0, 1.0) else 2)
    if "alpha" not in name:
        assert_close(levels.max(), 1 / (1 - p) if p < 1 else 0.0, 1e-2)


@pytest.mark.parametrize("operation", [torch.add, torch.sub, torch.rsub])
def test_a_multiple_of_an_operand_is_added(setting: Setting, operation: Any) -> None:
    compare(setting, lambda x: operation(x, 2.5, alpha=3), torch.randn(4))
    compare(setting, lambda x, y: operation(x, y, alpha=-0.5), torch.randn(4), torch.randn(4))


# --- infinity as a mask

LOGITS = torch.tensor([[1.5, -0.25, 3.0, 0.5], [0.75, 2.0, -1.0, 4.0], [-2.0, 0.0, 1.0, -3.0]])


# --- others


def test_a_linear_system_has_gradients(setting: Setting) -> None:
    matrix = torch.eye(3) * 2 + torch.randn(3, 3) * 0.2
    for shape in ((3, 2), (3,)):
        compare(setting, torch.linalg.solve, matrix, torch.randn(shape))
        compare(setting, lambda a, b: torch.linalg.solve(a.mT, b), matrix, torch.randn(shape))
    compare(setting, lambda a, b: torch.linalg.solve(a, b, left=False), matrix, torch.randn(2, 3))
    compare(setting, torch.linalg.solve, torch.stack([matrix, matrix.mT]), torch.randn(2, 3, 1))


def test_a_layer_encodes_the_numbers_that_it_is_put_on(setting: Setting) -> None:
    assert (FixedPrecisionTensor().on(torch.tensor([1.5])) + 1).float_precision().tolist() == [2.5]


# --- refusals


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "logcumsumexp": (lambda x: torch.logcumsumexp(x, 1), "x.exp().cumsum(dim).log()"),
    "cummax": (lambda x: torch.cummax(x, 1), "torch.amax"),
    "qr": (lambda x: torch.linalg.qr(x), "torch.linalg.solve"),
    "cholesky": (lambda x: torch.linalg.cholesky(x[:, :3]), "torch.linalg.inv"),
    "pinv": (lambda x: torch.linalg.pinv(x), "torch.linalg.inv(a.T @ a) @ a.T"),
    "nonzero": (lambda x: torch.nonzero(x), "multiply by a mask"),
    "unique": (lambda x: torch.unique(x), "compare with each public value"),
    "max_pool3d": (lambda x: functional.max_pool3d(x[None, None, :, None], 1), "two-dimensional"),
    "max_norm": (lambda x: functional.embedding(torch.tensor([1]), x, max_norm=1.0), "max_norm"),
    "floor_divide": (lambda x: x // x, "(x / y).floor()"),
    "conv3d": (lambda x: functional.conv3d(x[None, None, None], x[None, None, None]), "slices"),
    "classes": (lambda x: functional.nll_loss(x, x[:, 0], reduction="sum"), "one-hot"),
    "norm": (lambda x: torch.linalg.vector_norm(x, 3), "from powers"),
    "scatter": (lambda x: x.scatter(0, torch.zeros(1, 4, dtype=torch.long), x[:1], reduce="multiply"), "use 'add'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_names_the_way_out(setting: Setting, name: str) -> None:
    compute, advice = REFUSED[name]
    with pytest.raises((SyftError, ValueError), match=re.escape(advice)):
        compute(setting.put(LOGITS.numpy()))


def test_functions_of_shared_integers_are_refused_with_the_way_out(setting: Setting) -> None:
    x = setting.share(torch.tensor([1, 2, 3]))
    for function in (torch.sigmoid, torch.exp, torch.std):
        with pytest.raises(PrecisionError, match=re.escape("`x.fix_precision().share(...)`")):
            function(x)


# --- all functions of torch

RANDOM = ("dropout", "rand", "bernoulli", "normal", "uniform", "exponential", "cauchy", "geometric", "multinomial")
FORM_ONLY = ("empty", "batch_norm", "layer_norm", "multi_head_attention", "tensorsolve", "__rmod__", "cov", "bfloat16")
"""Uninitialized or random numbers; results that torch does not need; matrices without an inverse."""


def samples() -> Iterator[Any]:
    for info in op_db:
        skipped = any(word in info.name for word in (*RANDOM, *FORM_ONLY))
        if skipped or torch.float32 not in info.dtypes or info.name.startswith(("_refs", "sparse", "torch.ops", "fft")):
            continue
        found = [
            sample
            for sample in islice(info.sample_inputs("cpu", torch.float32, requires_grad=False), MOST)
            if sum(x.numel() for x in tensors((sample.input, sample.args, sample.kwargs))) <= LARGEST
        ]
        yield from ((info, sample) for sample in found)


def tensors(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return tensors(list(value.values()))
    if isinstance(value, list | tuple):
        return [x for item in value for x in tensors(item)]
    return [value] if isinstance(value, torch.Tensor) else []


def convert(value: Any, function: Callable[[Any], Any]) -> Any:
    if isinstance(value, torch.Tensor):
        return function(value)
    if type(value) in (list, tuple):
        return type(value)(convert(item, function) for item in value)
    return {key: convert(item, function) for key, item in value.items()} if isinstance(value, dict) else value


@pytest.mark.skipif(not EXHAUSTIVE, reason="takes minutes; the nightly environment runs it (SYFT_EXHAUSTIVE=1)")
def test_a_function_of_torch_is_right_or_refused(setting: Setting) -> None:
    def shrink(x: Any) -> Any:
        return x * 0.3 if x.is_floating_point() else x

    def encode(x: Any) -> Any:
        return setting.put(x.numpy()) if x.dtype == torch.float32 else x

    wrong, right = [], 0
    for info, sample in samples():
        call = convert((sample.input, *sample.args), shrink), convert(sample.kwargs, shrink)
        try:
            expected = tensors(info.op(*convert(call[0], torch.clone), **convert(call[1], torch.clone)))
        except Exception:  # noqa: BLE001  # torch refuses the smaller numbers
            continue
        try:
            found = tensors(info.op(*convert(call[0], encode), **convert(call[1], encode)))
            numbers = [setting.read(x) if hasattr(x, "child") else x.numpy() for x in found]
        except (SyftError, ValueError, IndexError):
            continue
        except Exception as error:  # noqa: BLE001  # reported below
            wrong.append(f"{info.name} {call}: {error!r}")
            continue
        right += 1
        for one, other in zip(numbers, expected, strict=True):
            if one.shape != tuple(other.shape) or not _is_close(one, other.numpy()):
                wrong.append(f"{info.name} {call}: {one} instead of {other}")

    assert wrong == []
    assert right > 2000


def _is_close(found: Any, expected: Any) -> bool:
    """Compare where fixed precision has a number: not at infinity, NaN or large results."""
    if np.iscomplexobj(expected) or not expected.size:
        return True
    wanted = expected.astype(np.float64)
    usable = np.isfinite(wanted) & (np.abs(wanted) < 1000)
    return bool(np.allclose(found.astype(np.float64)[usable], wanted[usable], rtol=2e-2, atol=2e-2))
