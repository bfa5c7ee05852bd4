"""docs/surface.md is up to date."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("numpy")
pytest.importorskip("expecttest", reason="torch's own samples need it")

from .report import PAGE, page
from .survey import is_reference, survey
from .test_numpy_surface import TestNumpy as Numpy
from .test_torch_surface import TestTorch as Torch

pytestmark = pytest.mark.filterwarnings("ignore")


def test_the_page_matches_the_survey():
    surfaces = (Torch.surface, Numpy.surface)
    if not all(is_reference(surface) for surface in surfaces):
        pytest.skip("the page is about other versions of torch and numpy")

    assert PAGE.read_text() == page([(surface, survey(surface)) for surface in surfaces])
