"""Matrix products of all ranks that torch and numpy accept, of shared, encoded and plain operands in either order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from .settings import Setting, assert_close

SHAPES = [
    ((3,), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3,)),
    ((2, 3), (3, 4)),
    ((5, 2, 3), (3,)),
    ((3,), (5, 3, 4)),
    ((5, 2, 3), (3, 4)),
    ((2, 3), (5, 3, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((6, 1, 2, 3), (5, 3, 4)),
    ((0, 3), (3, 2)),
    ((2, 0), (0, 3)),
]
each_shape = pytest.mark.parametrize("shapes", SHAPES, ids=str)
OPERANDS = [("shared", "shared"), ("shared", "plain"), ("plain", "shared"), ("shared", "encoded"), ("encoded", "plain")]


def draw(shapes: Any) -> list[np.ndarray]:
    numbers = np.random.default_rng(7)
    return [numbers.normal(size=shape) for shape in shapes]


def make(setting: Setting, values: np.ndarray, kind: str) -> Any:
    if kind == "plain":
        return setting.hook.torch.tensor(values) if setting.name == "torch" else values
    return setting.put(values) if kind == "shared" else setting.encode(values)


@each_shape
def test_matrix_products_of_all_ranks_are_those_of_plain_numbers(any_hook: Any, shapes: Any) -> None:
    setting, (x, y) = Setting(any_hook), draw(shapes)

    for kinds in OPERANDS:
        one, other = (make(setting, value, kind) for value, kind in zip((x, y), kinds, strict=True))
        for product in (one @ other, setting.xp.matmul(one, other)):
            assert_close(setting.read(product), x @ y)


@each_shape
def test_gradients_of_matrix_products_of_all_ranks_are_those_of_torch(torch_hook: Any, shapes: Any) -> None:
    torch, setting, values = torch_hook.torch, Setting(torch_hook), draw(shapes)
    expected = [torch.tensor(value, requires_grad=True) for value in values]
    (expected[0] @ expected[1]).square().sum().backward()

    for kinds in OPERANDS:
        operands = [make(setting, value, kind).requires_grad_() for value, kind in zip(values, kinds, strict=True)]
        (operands[0] @ operands[1]).square().sum().backward()

        for operand, plain in zip(operands, expected, strict=True):
            gradient = operand.grad.detach()
            found = gradient if type(gradient) is torch.Tensor else torch.tensor(setting.read(gradient))
            assert_close(np.asarray(found), plain.grad, 2e-2)


@each_shape
@pytest.mark.parametrize("protocol", ["fast", "authenticated"])
def test_matrix_products_of_integers_are_exact(any_hook: Any, shapes: Any, protocol: str) -> None:
    setting, numbers = Setting(any_hook), np.random.default_rng(8)
    x, y = (numbers.integers(-9, 10, shape) for shape in shapes)

    def share(values: np.ndarray) -> Any:
        return setting.plain(values).share(*setting.workers, crypto_provider=setting.carol, protocol=protocol)

    for one, other in ((share(x), share(y)), (share(x), setting.plain(y)), (setting.plain(x), share(y))):
        assert (np.asarray((one @ other).get()) == x @ y).all()


@pytest.mark.parametrize("kinds", [kinds for kinds in OPERANDS if "shared" in kinds], ids=str)
@pytest.mark.parametrize("bias_kind", ["shared", "plain", "encoded"])
def test_a_bias_is_added_to_matrix_products_and_convolutions(torch_hook: Any, kinds: Any, bias_kind: str) -> None:
    torch, setting = torch_hook.torch, Setting(torch_hook)
    functional = torch.nn.functional
    for function, shapes in (
        (functional.linear, ((2, 3), (4, 3), (4,))),
        (functional.conv1d, ((2, 3, 7), (4, 3, 2), (4,))),
        (functional.conv2d, ((2, 3, 5, 6), (4, 3, 2, 2), (4,))),
        (lambda x, y, bias: torch.addmm(bias, x, y, beta=0.5, alpha=2), ((2, 3), (3, 4), (2, 1))),
    ):
        values = draw(shapes)
        operands = [make(setting, value, kind) for value, kind in zip(values, (*kinds, bias_kind), strict=True)]
        expected = function(*map(torch.tensor, values))

        for _ in range(3):  # The third time, the second operand is under a kept mask.
            assert_close(setting.read(function(*operands)), expected)
