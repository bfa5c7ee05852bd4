from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy")
from ..groups import make_kernels  # noqa: E402


@pytest.fixture(params=["numpy", "torch"])
def arrays(request: pytest.FixtureRequest) -> Any:
    """The kernels with which a party of a framework computes."""
    return make_kernels(request.param).arrays


def test_a_product_does_not_change_how_many_threads_torch_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    arrays, x, before = make_kernels("torch").arrays, np.ones((70, 70), "int64"), torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        for name in arrays.ways_to_multiply():
            monkeypatch.setenv("SYFT_PRODUCTS", name)
            arrays.matmul(x, x)
            assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
