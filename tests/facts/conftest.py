"""The surfaces of both frameworks, for the tests of the facts about their operations."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("numpy")
pytest.importorskip("expecttest", reason="torch's own samples need it")


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
