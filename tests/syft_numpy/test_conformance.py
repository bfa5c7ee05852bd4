from __future__ import annotations

import pytest

pytest.importorskip("numpy")

from syft_numpy.testing import NumpyConformance


class TestNumpy(NumpyConformance): ...
