from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")
import syft_core as sy  # noqa: E402
from syft_core.exceptions import OperationNotAllowedError  # noqa: E402
from syft_mpc.errors import PrecisionError  # noqa: E402

from .encrypted import read, share  # noqa: E402


@pytest.fixture(scope="module")
def workers() -> Iterator[list[Any]]:
    """Four workers; the last one is the provider."""
    with sy.TorchHook(torch) as hook:
        yield [sy.VirtualWorker(hook, id=name) for name in ("bob", "alice", "dan", "carol")]


@pytest.mark.parametrize(("method", "error"), [("chebyshev", 1e-3), ("exp", 5e-5), ("maclaurin", 0.05)])
def test_sigmoid_has_the_methods_of_the_ancestor(method: str, error: float, workers: list[Any]) -> None:
    x = torch.linspace(-6, 6, 50)
    assert (read(share(x, workers).sigmoid(method=method)) - x.sigmoid()).abs().max() < error


@pytest.mark.parametrize(("method", "error"), [("chebyshev", 1e-3), ("sigmoid", 5e-5)])
def test_tanh_has_the_methods_of_the_ancestor(method: str, error: float, workers: list[Any]) -> None:
    x = torch.linspace(-10, 10, 50)
    assert (read(share(x, workers).tanh(method=method)) - x.tanh()).abs().max() < error


@pytest.mark.parametrize("method", ["NR", "newton", "log", "division"])
def test_reciprocal_has_the_methods_of_the_ancestor(method: str, workers: list[Any]) -> None:
    x = torch.linspace(0.2, 20, 50)
    x[::2] *= -1
    assert (read(share(x, workers).reciprocal(method=method)) - 1 / x).abs().max() < 1e-3


def test_a_method_is_refused_if_it_is_unknown_or_needs_a_gradient(workers: list[Any]) -> None:
    x = share(torch.ones(2), workers)
    for call in (x.sigmoid, x.tanh, x.reciprocal):
        with pytest.raises(PrecisionError, match="there is none of this name"):
            call(method="magic")
    x.requires_grad_()
    with pytest.raises(OperationNotAllowedError, match="it has no gradient"):
        x.sigmoid(method="exp")
    assert read(x.detach()).tolist() == [1, 1]
