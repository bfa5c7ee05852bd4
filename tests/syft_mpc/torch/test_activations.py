from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch.nn import functional  # noqa: E402

from ..settings import Setting  # noqa: E402
from ..test_operations import compare  # noqa: E402


@pytest.fixture
def setting(torch_hook: Any) -> Setting:
    return Setting(torch_hook, 2)


@pytest.fixture(autouse=True)
def _same_numbers() -> None:
    torch.manual_seed(0)


def test_softplus_has_a_threshold(setting: Setting) -> None:
    compare(setting, lambda x: functional.softplus(x, 3, 0.2), torch.linspace(-1, 1, 8))
