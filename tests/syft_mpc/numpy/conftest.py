from __future__ import annotations

from tests.syft_numpy.conftest import hook  # noqa: F401  # a fixture
