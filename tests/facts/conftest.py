"""The surfaces of both frameworks, for the tests of the facts about their operations."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest

# torch's own samples need expecttest.
collect_ignore_glob = [] if all(map(find_spec, ("torch", "numpy", "expecttest"))) else ["test_*.py"]


@pytest.fixture(scope="session")
def torch_surface() -> Any:
    from ..surface.torch_surface import TorchSurface  # noqa: PLC0415  # only where torch is installed

    return TorchSurface()


@pytest.fixture(scope="session")
def numpy_surface() -> Any:
    from ..surface.numpy_surface import NumpySurface  # noqa: PLC0415  # only where numpy is installed

    return NumpySurface()


@pytest.fixture(params=["torch", "numpy"])
def surface(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(f"{request.param}_surface")
