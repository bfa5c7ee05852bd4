"""Wrappers of two frameworks in one call."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

from syft_core.exceptions import MixedLayersError, OperationNotAllowedError, ValueRefusedError  # noqa: E402
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


# --- functions of the other framework

ONE = np.array([3.0, 1.0, 2.0, 4.0])
SAMPLES: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("std", "var", "median", "nanmedian", "sort", "nonzero"), (ONE,)),
    **dict.fromkeys(("cumsum", "cumprod", "flip", "transpose", "sum", "mean", "max"), (ONE.reshape(2, 2),)),
    **dict.fromkeys(("split", "array_split"), (ONE, 1)),
    "meshgrid": (ONE, ONE),
}


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("kind", ["pointer", "shared"])
def test_the_function_of_torch_that_is_advised_computes_what_numpy_computes(hooks: Any, name: str, kind: str) -> None:
    bob, alice, carol = (VirtualWorker(hooks, id=id) for id in ("bob", "alice", "carol"))
    values = torch.from_numpy(SAMPLES[name][0].copy())
    x = values.send(bob) if kind == "pointer" else values.fix_precision().share(bob, alice, crypto_provider=carol)

    with pytest.raises(OperationNotAllowedError if kind == "shared" else ValueRefusedError) as caught:
        getattr(np, name)(x, *[x if arg is ONE else arg for arg in SAMPLES[name][1:]])
    line = re.findall(r"use `([^`]*)`", str(caught.value))[0]

    found = eval(line, {"torch": torch, "p": values, "x": values})
    expected = getattr(np, name)(*SAMPLES[name])
    assert np.allclose(np.stack([*found]) if isinstance(found, tuple | list) else found, expected)


def test_a_function_of_torch_on_an_array_is_refused_with_that_of_numpy(hooks: Any) -> None:
    bob = VirtualWorker(hooks, id="bob")
    array = bob.remote.numpy.ones(3)

    with pytest.raises(ValueRefusedError, match=r"'torch.sum' on a pointer: .* use `numpy.sum\(p\)`, or fetch"):
        torch.sum(array)
    with pytest.raises(ValueRefusedError, match="use numpy.add with the same arguments"):
        torch.add(array, torch.ones(3))
