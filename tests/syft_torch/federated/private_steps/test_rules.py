from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_core.exceptions import SyftError  # noqa: E402  # torch may be missing
from syft_torch.federated.private_steps.marks import (  # noqa: E402  # the same
    LENGTH,
    LENGTH_OF_TRIAL,
    MIXED,
    SHARED,
    Batched,
    CoupledError,
    Reduced,
)
from syft_torch.federated.private_steps.rules import FACTS, RULES, Use, find_advice  # noqa: E402  # the same

L = LENGTH_OF_TRIAL
ROWS, COLUMNS = (torch.zeros(L, 3), Batched(0)), (torch.zeros(3, L), Batched(1))
WEIGHTS = torch.zeros(3, 3), SHARED


def follow(hook: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    """Follow an operation of arguments, each with its mark, or plain."""
    pairs = [
        arg if isinstance(arg, tuple) and len(arg) == 2 and not isinstance(arg[1], int) else (arg, SHARED)
        for arg in args
    ]
    values, marks = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    marks = [[SHARED] * len(v) if isinstance(v, list) else m for v, m in zip(values, marks, strict=True)]
    result = hook.attributes.command(name).run(*values, **kwargs)
    use = Use(name, tuple(values), kwargs, tuple(marks), dict.fromkeys(kwargs, SHARED), result)
    return RULES[name](use)


def is_known(hook: Any, name: str) -> bool:
    try:
        return bool(hook.attributes.command(name))
    except SyftError:
        return False


def test_every_operation_of_the_table_exists(hook: Any) -> None:
    words = {name.rpartition(".")[2] for name in RULES}

    found = {name.rpartition(".")[2] for name in RULES if is_known(hook, name)}

    assert not words - found
    assert all(is_known(hook, name) for name in FACTS)


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("torch.relu", [ROWS], Batched(0)),
        ("torch.Tensor.t", [ROWS], Batched(1)),
        ("torch.Tensor.sum", [COLUMNS, 0], Batched(0)),
        ("torch.Tensor.sum", [ROWS, 0], Reduced("sum")),
        ("torch.Tensor.mean", [COLUMNS, 1], Reduced("mean")),
        ("torch.Tensor.unsqueeze", [ROWS, 0], Batched(1)),
        ("torch.Tensor.flatten", [(torch.zeros(L, 3, 2), Batched(0)), 0, 1], Batched(0, 3)),
        ("torch.Tensor.matmul", [ROWS, WEIGHTS], Batched(0)),
        ("torch.Tensor.matmul", [WEIGHTS, (torch.zeros(L, 3, 2), Batched(0))], Batched(0)),
        ("torch.Tensor.select", [COLUMNS, 0, 1], Batched(0)),
        ("torch.Tensor.permute", [(torch.zeros(L, 3, 2), Batched(0)), 2, 0, 1], Batched(1)),
    ],
    ids=str,
)
def test_the_samples_are_followed(hook: Any, name: str, args: list[Any], expected: Any) -> None:
    assert follow(hook, name, *args) == expected


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("torch.Tensor.softmax", [ROWS, 0]),
        ("torch.Tensor.squeeze", [(torch.zeros(L, 1), Batched(0))]),
        ("torch.Tensor.matmul", [COLUMNS, ROWS]),
        ("torch.Tensor.matmul", [(torch.zeros(3, L), SHARED), ROWS]),
        ("torch.Tensor.__add__", [ROWS, (torch.zeros(L, 1), SHARED)]),
        ("torch.Tensor.__mul__", [(torch.zeros(L, L), Batched(0)), (torch.zeros(L, L), Batched(1))]),
        ("torch.Tensor.select", [ROWS, 0, 1]),
        ("torch.nn.functional.linear", [(torch.zeros(3, L), Batched(1)), (torch.zeros(2, L), SHARED)]),
        ("torch.nn.functional.pad", [ROWS, [0, 0, 1, 1]]),
        ("torch.Tensor.exp", [(torch.zeros(3), Reduced("mean"))]),
    ],
    ids=str,
)
def test_what_may_mix_samples_is_refused(hook: Any, name: str, args: list[Any]) -> None:
    with pytest.raises(CoupledError):
        follow(hook, name, *args)


@pytest.mark.parametrize("mark", [LENGTH, MIXED])
def test_numbers_that_depend_on_the_length_are_no_operands(hook: Any, mark: Any) -> None:
    with pytest.raises(CoupledError, match="length of the batch"):
        follow(hook, "torch.Tensor.__mul__", ROWS, (2.0, mark))


def test_advice_names_what_to_do() -> None:
    assert "without changing a tensor in place" in find_advice("torch.Tensor.add_")
    assert "do not differentiate" in find_advice("torch.autograd.grad")
    assert "plain mean" in find_advice("torch.Tensor.sort")
