"""Every operation of numpy does on a chain what it does on a plain array, or is listed with the reason."""

from __future__ import annotations

import pytest

pytest.importorskip("numpy")

from .numpy_surface import NumpySurface
from .promises import SurfacePromises

# The samples leave the domain of some functions, of which numpy warns: arccosh(0.5), an empty mean.
pytestmark = pytest.mark.filterwarnings("ignore")


class TestNumpy(SurfacePromises):
    surface = NumpySurface()
