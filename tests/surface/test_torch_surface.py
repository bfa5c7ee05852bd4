"""Every operation of torch behaves the same on a chain, or is listed with the reason."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="torch's own samples need it")

from .checks import DifferenceError, check
from .exceptions import TORCH_SPELLINGS
from .promises import SurfacePromises
from .torch_opinfo import other_spellings, spelling_cases
from .torch_surface import TorchSurface

# torch's samples use deprecated functions, and some kernels warn that they are in beta.
pytestmark = pytest.mark.filterwarnings("ignore")

SPELLINGS = other_spellings(TorchSurface().ops)


class TestTorch(SurfacePromises):
    surface = TorchSurface()

    @pytest.mark.parametrize("name", sorted(SPELLINGS.keys() - TORCH_SPELLINGS.keys()))
    def test_operators_and_compositions_run_on_a_chain(self, name):
        for case in spelling_cases(name, *SPELLINGS[name]):
            check(case, self.surface)

    @pytest.mark.parametrize("name", sorted(SPELLINGS.keys() & TORCH_SPELLINGS.keys()))
    def test_private_functions_of_torch_are_refused_by_name(self, name):
        case = spelling_cases(name, *SPELLINGS[name])[0]

        with pytest.raises(DifferenceError, match="not in the torch op table"):
            check(case, self.surface)
