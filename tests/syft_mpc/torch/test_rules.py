from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch.nn import functional  # noqa: E402

from syft_core.exceptions import OperationNotAllowedError  # noqa: E402
from syft_mpc.fixed_precision import FixedPrecisionTensor  # noqa: E402
from syft_torch.aten import ATEN  # noqa: E402
from syft_torch.structural import STRUCTURAL  # noqa: E402

from ..settings import Setting, assert_close  # noqa: E402
from ..test_operations import compare  # noqa: E402

INF = float("inf")


@pytest.fixture
def setting(torch_hook: Any) -> Setting:
    return Setting(torch_hook, 2)


@pytest.fixture(autouse=True)
def _same_numbers() -> None:
    torch.manual_seed(0)


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


def test_bernoulli_draws_with_public_probabilities_only(setting: Setting) -> None:
    x = setting.put(np.full((50,), 0.5))
    drawn = setting.read(x.clone().bernoulli_())
    assert set(drawn) == {0.0, 1.0}
    for draw in (lambda: torch.bernoulli(x), lambda: x.clone().bernoulli_(torch.full((50,), 0.5))):
        with pytest.raises(OperationNotAllowedError, match=re.escape("`torch.rand(p.shape) < p`")):
            draw()


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


def test_products_accumulate(setting: Setting) -> None:
    x = torch.rand(3, 5) + 0.5
    for axis in (0, 1, -1):
        compare(setting, lambda x, axis=axis: x.cumprod(axis), x, gradients=False)
    integers = setting.share(torch.tensor([3, -2, 5]))
    assert integers.cumprod(0).get().tolist() == [3, -6, -30]
