"""Programs that are written by hand."""

from __future__ import annotations

from typing import Any

import pytest

from syft_core.hook.forms import form
from syft_core.plans.program import Program, Routine, Slot, Step

torch = pytest.importorskip("torch")

X = form((2,), None, torch.float32)
RUN = Step("torch", "torch.Tensor.abs", (Slot(0),), {}, 1)


def program(*steps: Any, answer: Any = None, **changes: Any) -> Program:
    return Program(**{
        "name": "p", "inputs": (X,), "state": (), "made": 0, "routines": (Routine(steps, answer),), **changes
    })  # fmt: skip
