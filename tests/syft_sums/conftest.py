from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.hooks import hook_for_test

from .workers import Hospitals, Make


@pytest.fixture
def hook(request: pytest.FixtureRequest) -> Iterator[Any]:
    yield from hook_for_test(request, "torch")


@pytest.fixture
def hospitals(hook: Any, tmp_path: Path) -> Hospitals:
    return Hospitals(hook, tmp_path)


@pytest.fixture
def make(hook: Any, tmp_path: Path) -> Make:
    return partial(Hospitals, hook, tmp_path)
