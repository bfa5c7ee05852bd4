from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from .settings import Setting, assert_close  # noqa: E402


@pytest.fixture
def setting(torch_hook: Any) -> Setting:
    return Setting(torch_hook, 2)


@pytest.fixture(autouse=True)
def _same_numbers() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize(
    "equation",
    [
        *("ij,jk->ik", "ij->ji", "ij->", "ij->i", "ii->i", "ii", "bij,jk->bik"),
        *("ij,ij->ij", "i,j->ij", "...j,jk", "ij,jk,kl->il", "bij,bij->b", "i,i", "iij,j"),
    ],
)
def test_einsum_is_that_of_numpy(any_hook: Any, equation: str) -> None:
    setting = Setting(any_hook, 2)
    sizes = dict(zip("bijkl", (2, 3, 4, 5, 2), strict=True))
    terms = equation.partition("->")[0].replace("...", "b").split(",")
    arrays = [np.random.default_rng(3).normal(size=[sizes[letter] for letter in term]) for term in terms]
    expected = np.einsum(equation, *arrays)
    assert_close(setting.read(setting.xp.einsum(equation, *[setting.put(array) for array in arrays])), expected)
    public = [setting.put(arrays[0]), *map(setting.plain, arrays[1:])]
    assert_close(setting.read(setting.xp.einsum(equation, *public)), expected)


@pytest.mark.parametrize("equation", ["ij,jk", "ij->ik", "ij->ii", "ijk->i", "ij,ij->ij"])
def test_an_equation_that_does_not_fit_is_refused(any_hook: Any, equation: str) -> None:
    setting = Setting(any_hook, 2)
    x, y = setting.put(np.ones((3, 4))), setting.put(np.ones((3, 5)))
    with pytest.raises((ValueError, RuntimeError)):
        setting.xp.einsum(equation, *([x, y] if "," in equation else [x]))
