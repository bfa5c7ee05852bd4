"""Every operation of numpy behaves the same on a chain, or is listed with the reason."""

from __future__ import annotations

import pytest

pytest.importorskip("numpy")

from .numpy_surface import NumpySurface
from .promises import SurfacePromises

# Some samples are outside of a function's domain, and numpy warns: arccosh(0.5), an empty mean.
pytestmark = pytest.mark.filterwarnings("ignore")


class TestNumpy(SurfacePromises):
    surface = NumpySurface()
