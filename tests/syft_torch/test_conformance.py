from __future__ import annotations

import pytest

pytest.importorskip("torch")

from syft_torch.testing import TorchConformance


class TestTorch(TorchConformance): ...
