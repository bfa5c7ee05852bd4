"""Give the surface tests every operation of their framework in turn."""

from __future__ import annotations

import pytest


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "op" in metafunc.fixturenames:
        ops = list(metafunc.cls.surface.ops)
        metafunc.parametrize("op", ops, ids=[op.name for op in ops])
