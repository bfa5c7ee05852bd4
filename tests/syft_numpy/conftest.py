from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture
def hook() -> Iterator[Any]:
    np = pytest.importorskip("numpy")
    from syft_numpy.hook import NumpyHook  # noqa: PLC0415  # numpy may be missing

    with NumpyHook(np) as hook:
        yield hook
