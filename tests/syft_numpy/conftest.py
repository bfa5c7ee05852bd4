from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ..hooks import hook_for_test


@pytest.fixture
def hook(request: pytest.FixtureRequest) -> Iterator[Any]:
    yield from hook_for_test(request, "numpy")
