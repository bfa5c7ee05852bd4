"""Operations on shared numbers, compared with torch and numpy on plain ones: each is right, or refused with advice."""

from __future__ import annotations

import inspect
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

from syft_core.crypto.errors import PrecisionError  # noqa: E402
from syft_core.crypto.fixed_precision import FixedPrecisionTensor  # noqa: E402
from syft_core.exceptions import OperationNotAllowedError, SyftError  # noqa: E402
from syft_torch.alternatives import ALTERNATIVES  # noqa: E402
from syft_torch.aten import ATEN  # noqa: E402
from syft_torch.structural import STRUCTURAL  # noqa: E402

from .settings import Setting, assert_close  # noqa: E402

INF = float("inf")
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


def overloads() -> Iterator[Any]:
    """Yield all kernels that have a rule, with the function of the rule and how many arguments precede the kernel's."""
    for name in dir(torch.ops.aten):
        packet = getattr(torch.ops.aten, name)
        for overload in packet.overloads() if isinstance(packet, torch._ops.OpOverloadPacket) else ():
            func = getattr(packet, overload)
            op = ATEN.of(func)
            rule = next((key for key in (op.name, op.attr, op.operation) if key in FixedPrecisionTensor.rules), None)
            function = FixedPrecisionTensor.functions.get(rule or "")
            if function is not None:
                yield func, function, 1
            elif rule is None and op.operation in STRUCTURAL:
                yield func, STRUCTURAL[op.operation], 0


def test_a_rule_has_the_defaults_of_its_kernel(setting: Setting) -> None:
    """Torch leaves out arguments that equal their default, so a rule must have the same one."""
    same = {"memory_format": (None, torch.preserve_format), "stable": (None, True), "decimals": (None, 0)}
    wrong, count = [], 0
    for func, function, skipped in overloads():
        parameters = list(inspect.signature(function).parameters.values())[skipped:]
        arguments = func._schema.arguments
        positional = [argument for argument in arguments if not argument.kwarg_only]
        named = {parameter.name: parameter for parameter in parameters}
        pairs = [(argument, named[argument.name]) for argument in arguments if argument.name in named]
        if func._overloadname not in ("t", "str"):  # lists and strings, not tensors
            by_position = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.POSITIONAL_ONLY)]
            pairs += zip(positional, by_position, strict=False)
        for argument, parameter in pairs:
            if not argument.has_default_value() or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                continue
            count += 1
            expected, own = argument.default_value, parameter.default
            expected, own = (tuple(x) if isinstance(x, list) else x for x in (expected, own))
            if own != expected and own not in same.get(argument.name, ()):
                wrong.append(f"{func}: {argument.name}={expected!r}, the rule has {parameter}")

    assert wrong == []
    assert count > 100


@pytest.mark.parametrize("p", [0.0, 0.25, 0.5, 1.0])
@pytest.mark.parametrize("name", ["dropout", "dropout1d", "alpha_dropout", "feature_alpha_dropout"])
def test_dropout_keeps_or_drops(setting: Setting, name: str, p: float) -> None:
    x = torch.ones(4, 16, 4)
    result = setting.read(getattr(functional, name)(setting.put(x.numpy()), p, True))
    levels = np.unique(result.round(2))
    assert len(levels) == (1 if p in (0.0, 1.0) else 2)
    if "alpha" not in name:
        assert_close(levels.max(), 1 / (1 - p) if p < 1 else 0.0, 1e-2)


def test_bernoulli_draws_with_public_probabilities_only(setting: Setting) -> None:
    x = setting.put(np.full((50,), 0.5))
    drawn = setting.read(x.clone().bernoulli_())
    assert set(drawn) == {0.0, 1.0}
    for draw in (lambda: torch.bernoulli(x), lambda: x.clone().bernoulli_(torch.full((50,), 0.5))):
        with pytest.raises(OperationNotAllowedError, match=re.escape("`torch.rand(p.shape) < p`")):
            draw()


@pytest.mark.parametrize("operation", [torch.add, torch.sub, torch.rsub])
def test_a_multiple_of_an_operand_is_added(setting: Setting, operation: Any) -> None:
    compare(setting, lambda x: operation(x, 2.5, alpha=3), torch.randn(4))
    compare(setting, lambda x, y: operation(x, y, alpha=-0.5), torch.randn(4), torch.randn(4))


# --- infinity as a mask

LOGITS = torch.tensor([[1.5, -0.25, 3.0, 0.5], [0.75, 2.0, -1.0, 4.0], [-2.0, 0.0, 1.0, -3.0]])
MASK = torch.tensor([[False, True, True, False], [False, False, False, True], [True, False, False, True]])
ADDED = torch.zeros(3, 4).masked_fill(MASK, -INF)
FLOOR = torch.finfo(torch.float32).min
MASKED: dict[str, Callable[[Any], Any]] = {
    "masked_fill": lambda x: x.masked_fill(MASK, -INF),
    "masked_fill in place": lambda x: (x * 1).masked_fill_(MASK, -INF),
    "masked_fill with a tensor": lambda x: x.masked_fill(MASK, torch.tensor(-INF)),
    "masked_fill with the smallest float": lambda x: x.masked_fill(MASK, FLOOR),
    "masked_fill with a large number": lambda x: x.masked_fill(MASK, -1e9),
    "where": lambda x: torch.where(MASK, -INF, x),
    "where full": lambda x: torch.where(MASK, torch.full((3, 4), -INF), x),
    "where full_like": lambda x: torch.where(MASK, torch.full_like(x, -INF), x),
    "an added mask": lambda x: x + ADDED,
    "an added mask of doubles": lambda x: x + ADDED.double(),
    "an added mask of halves": lambda x: x + ADDED.half(),
    "an added smallest float": lambda x: x + ADDED.clamp(min=FLOOR),
    "a subtracted mask": lambda x: x - ADDED.abs(),
    "a scaled mask": lambda x: (x + ADDED) / 8**0.5,
    "two masks": lambda x: x + ADDED + ADDED,
    "an assignment": lambda x: _assign(x, MASK, -INF),
    "a column": lambda x: x.index_fill(1, torch.tensor([2]), -INF),
    "concatenation": lambda x: torch.cat([x, torch.full((3, 2), -INF)], 1),
    "padding": lambda x: functional.pad(x, (1, 2), value=-INF),
}


def _assign(x: Any, mask: Any, number: float) -> Any:
    y = x * 1
    y[mask] = number
    return y


@pytest.mark.parametrize("name", MASKED)
def test_infinity_masks_numbers(setting: Setting, name: str) -> None:
    mask = MASKED[name]
    compare(setting, lambda x: mask(x).softmax(-1), LOGITS)


@pytest.mark.parametrize("name", ["amax", "logsumexp", "argmax"])
def test_a_mask_excludes_numbers(setting: Setting, name: str) -> None:
    compare(setting, lambda x: getattr(x.masked_fill(MASK, -INF), name)(1), LOGITS, gradients=False)


@pytest.mark.parametrize(
    "compute",
    [
        lambda x: x > -INF,
        lambda x: x < -INF,
        lambda x: x == INF,
        lambda x: x.clamp(-INF, 1.0),
        lambda x: x.clamp(min=-1.0, max=INF),
        lambda x: torch.maximum(x, torch.tensor(-INF)),
        lambda x: functional.hardtanh(x, 0.0, INF),
        lambda x: torch.isfinite(x),
        lambda x: torch.nan_to_num(x),
    ],
)
def test_infinity_is_a_bound(setting: Setting, compute: Callable[[Any], Any]) -> None:
    result = compute(setting.put(LOGITS.numpy()))
    found = setting.read(result) if hasattr(result, "child") else result.numpy()
    assert_close(found, compute(LOGITS))
    large = setting.put(np.array([1e9, -1e9]))
    assert setting.read((large > -INF) * (large < INF)).tolist() == [1.0, 1.0]


def test_a_mask_works_in_the_small_ring(setting: Setting) -> None:
    encoded = torch.tensor([[1.0, 2.0, 3.0]]).fix_precision(dtype="int")
    x = setting.share(encoded).masked_fill(torch.tensor([[False, True, False]]), -INF)
    assert_close(setting.read(x.amax(1)), [3.0])
    assert_close(setting.read((x * 0.3).amin(1)) < -100, [True])


# --- others


def test_products_accumulate(setting: Setting) -> None:
    x = torch.rand(3, 5) + 0.5
    for axis in (0, 1, -1):
        compare(setting, lambda x, axis=axis: x.cumprod(axis), x, gradients=False)
    integers = setting.share(torch.tensor([3, -2, 5]))
    assert integers.cumprod(0).get().tolist() == [3, -6, -30]


def test_a_linear_system_has_gradients(setting: Setting) -> None:
    matrix = torch.eye(3) * 2 + torch.randn(3, 3) * 0.2
    for shape in ((3, 2), (3,)):
        compare(setting, torch.linalg.solve, matrix, torch.randn(shape))
        compare(setting, lambda a, b: torch.linalg.solve(a.mT, b), matrix, torch.randn(shape))
    compare(setting, lambda a, b: torch.linalg.solve(a, b, left=False), matrix, torch.randn(2, 3))
    compare(setting, torch.linalg.solve, torch.stack([matrix, matrix.mT]), torch.randn(2, 3, 1))


def test_softplus_has_a_threshold(setting: Setting) -> None:
    compare(setting, lambda x: functional.softplus(x, 3, 0.2), torch.linspace(-1, 1, 8))


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


def test_alternatives_are_for_operations_without_a_rule() -> None:
    assert ALTERNATIVES.keys().isdisjoint(FixedPrecisionTensor.rules)
    assert ALTERNATIVES.keys().isdisjoint(STRUCTURAL)


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
