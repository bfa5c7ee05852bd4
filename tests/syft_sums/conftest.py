from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.hooks import hook_for_test

if TYPE_CHECKING:
    from .workers import Hospitals, Make


@pytest.fixture
def hook(request: pytest.FixtureRequest) -> Iterator[Any]:
    yield from hook_for_test(request, "torch")


@pytest.fixture
def hospitals(hook: Any, tmp_path: Path) -> Hospitals:
    return _load_hospitals()(hook, tmp_path)


@pytest.fixture
def make(hook: Any, tmp_path: Path) -> Make:
    return partial(_load_hospitals(), hook, tmp_path)


def _load_hospitals() -> type[Hospitals]:
    from .workers import Hospitals  # noqa: PLC0415  # torch, which other tests here do not need

    return Hospitals
