from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from syft_mpc.fixed_precision import FixedPrecisionTensor  # noqa: E402
from syft_torch.alternatives import ALTERNATIVES  # noqa: E402
from syft_torch.structural import STRUCTURAL  # noqa: E402


@pytest.fixture(autouse=True)
def _same_numbers() -> None:
    torch.manual_seed(0)


def test_alternatives_are_for_operations_without_a_rule() -> None:
    assert ALTERNATIVES.keys().isdisjoint(FixedPrecisionTensor.rules)
    assert ALTERNATIVES.keys().isdisjoint(STRUCTURAL)
