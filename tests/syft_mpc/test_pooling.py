from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch.nn import functional  # noqa: E402

from syft_core.exceptions import OperationNotAllowedError, SyftError  # noqa: E402

from .settings import Setting  # noqa: E402
from .test_operations import compare  # noqa: E402


@pytest.fixture
def setting(torch_hook: Any) -> Setting:
    return Setting(torch_hook, 2)


@pytest.fixture(autouse=True)
def _same_numbers() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize(("size", "stride", "padding"), [(2, 2, 0), (3, 2, 1), (3, 3, 0), (2, 3, 1)])
@pytest.mark.parametrize("shape", [(2, 2, 7, 6), (2, 7, 6)])
@pytest.mark.parametrize("ceil", [False, True])
def test_pools_are_those_of_torch(
    setting: Setting, size: int, stride: int, padding: int, shape: tuple[int, ...], ceil: bool
) -> None:
    x = torch.randn(shape)
    compare(setting, lambda x: functional.max_pool2d(x, size, stride, padding, ceil_mode=ceil), x)
    for counts in (False, True):
        compare(
            setting,
            lambda x, counts=counts: functional.avg_pool2d(x, size, stride, padding, ceil, counts),
            x,
        )
    line = torch.randn(2, 3, 7)
    compare(setting, lambda x: functional.max_pool1d(x, size, stride, padding, ceil_mode=ceil), line)
    compare(setting, lambda x: functional.avg_pool1d(x, size, stride, padding, ceil), line)


def test_a_dilated_pool_is_that_of_torch(setting: Setting) -> None:
    compare(setting, lambda x: functional.max_pool2d(x, 2, 2, 1, 2, ceil_mode=True), torch.randn(1, 2, 7, 7))


def test_the_places_of_a_pool_are_secret(setting: Setting) -> None:
    result, places = functional.max_pool2d(setting.put(np.random.rand(1, 1, 4, 4)), 2, return_indices=True)
    assert places.shape == result.shape == (1, 1, 2, 2)
    uses: tuple[Callable[[], Any], ...] = (
        lambda: places + 1,
        lambda: places.float_precision(),
        lambda: functional.max_unpool2d(result, places, 2),
        lambda: result.flatten()[places],
    )
    for use in uses:
        with pytest.raises(SyftError):
            use()
    with pytest.raises(OperationNotAllowedError, match="leave out `return_indices`"):
        _ = places + 1
