"""Wrappers of two frameworks in one call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

from syft_core.exceptions import MixedLayersError  # noqa: E402
from syft_core.tensors.logging import LoggingTensor  # noqa: E402
from syft_core.workers.party.virtual import VirtualWorker  # noqa: E402
from syft_numpy.hook import NumpyHook  # noqa: E402
from syft_torch.hook import TorchHook  # noqa: E402

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "torch function": lambda t, n: torch.add(t, n),
    "torch method": lambda t, n: t.add(n),
    "torch operator": lambda t, n: t + n,
    "torch list": lambda t, n: torch.stack([t, n]),
    "numpy function": lambda t, n: np.concatenate([n, t]),
    "ufunc": lambda t, n: np.add(n, t),
    "ufunc, torch first": lambda t, n: np.add(t, n),
    "numpy operator": lambda t, n: n * t,
}


@pytest.fixture
def hooks() -> Iterator[Any]:
    with TorchHook(torch) as torch_hook, NumpyHook(np):
        yield torch_hook


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("remote", [False, True], ids=["here", "remote"])
def test_wrappers_of_two_frameworks_are_refused_by_name(hooks: Any, call: Callable[..., Any], remote: bool) -> None:
    if remote:
        bob = VirtualWorker(hooks, id="bob")
        tensor, array = torch.ones(3).send(bob), bob.remote.numpy.ones(3)
    else:
        tensor, array = LoggingTensor().on(torch.ones(3)), LoggingTensor().on(np.ones(3))

    with pytest.raises(MixedLayersError, match=r"mixes a (torch|numpy) wrapper with a (numpy|torch) wrapper"):
        call(tensor, array)
