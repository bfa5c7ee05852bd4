"""The names of a beginner's notebook, in process and through the wire format."""

from __future__ import annotations

import copy
import io
import math
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@pytest.fixture(scope="module", params=[False, True], ids=["in_process", "by_wire"])
def hook(request: pytest.FixtureRequest) -> Iterator[Any]:
    torch = pytest.importorskip("torch")
    import syft_core as sy  # noqa: PLC0415  # loads its parts on first use

    with sy.TorchHook(torch) as hook:
        for id in ("bob", "alice"):
            sy.VirtualWorker(hook, id=id, serialize=request.param)
        yield hook


@pytest.fixture
def world(hook: Any) -> Iterator[dict[str, Any]]:
    with notebook(hook) as names:
        yield names


@contextmanager
def notebook(hook: Any) -> Iterator[dict[str, Any]]:
    """Yield pointers ``p`` to bob and ``q`` to alice, a local ``y``, a ``model``, and what notebooks import."""
    import numpy as np  # noqa: PLC0415  # the frameworks may be missing
    import torch  # noqa: PLC0415  # the same

    import syft_core as sy  # noqa: PLC0415  # loads its parts on first use

    known = hook.local_worker._known_workers
    before = dict(known)
    bob, alice = known["bob"], known["alice"]
    yield {
        **{"sy": sy, "torch": torch, "nn": torch.nn, "np": np, "math": math, "io": io, "pickle": pickle},
        **{"copy": copy, "VirtualWorker": sy.VirtualWorker, "hook": hook, "bob": bob, "alice": alice},
        "workers": [bob, alice],
        "p": torch.tensor([1.0, 2.0, 3.0]).send(bob),
        "q": torch.tensor([1.0, 5.0, 3.0]).send(alice),
        "y": torch.ones(3),
        "model": torch.nn.Linear(3, 1),
    }
    torch.distributions.Distribution.set_default_validate_args(__debug__)
    for id in known.keys() - before.keys():
        del known[id]
    bob.clear_objects()
