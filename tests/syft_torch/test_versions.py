"""Differences between versions of torch do not change results."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import syft_core as sy  # noqa: E402
from syft_torch import versions  # noqa: E402
from syft_torch.hook import TorchHook  # noqa: E402

from ..matrix_page import read_rows  # noqa: E402

ROOT = Path(__file__).parents[2]
UNTESTED = """
import torch
torch.__version__ = "3.1.0"
import syft_core as sy
sy.TorchHook(torch).unhook()
sy.TorchHook(torch).unhook()
"""
WITHOUT_PRIVATE_NAMES = """
import torch
del torch.autograd.graph._engine_run_backward
collect = torch.optim.SGD._init_group
torch.optim.SGD._init_group = lambda optimizer, *lists: collect(optimizer, *lists)
own = torch.optim.SGD._init_group
import tests.syft_torch.test_versions as test
assert test.versions.run_engine is None
with test.TorchHook(torch) as hook:
    assert torch.optim.SGD._init_group is own
    print(test.train(hook))
"""


def train(hook: Any) -> list[list[str]]:
    """Train with and without momentum; return the bits of the parameters and of the last loss."""
    bits = []
    for by_wire in (False, True):
        place = sy.VirtualWorker(hook, id=f"by wire: {by_wire}", serialize=by_wire)
        for momentum in (0.0, 0.9):
            torch.manual_seed(0)
            model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1)).send(place)
            x, y = torch.randn(5, 3).send(place), torch.randn(5, 1).send(place)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=momentum)
            for _ in range(3):
                optimizer.zero_grad()
                loss = torch.nn.functional.mse_loss(model(x), y)
                loss.backward()
                optimizer.step()
            values = [loss.get(), *model.get().parameters()]
            bits.append([number.hex() for value in values for number in value.flatten().tolist()])
    return bits


@pytest.mark.slow
def test_training_without_the_private_names_of_torch_gives_the_same_bits() -> None:
    with TorchHook(torch) as hook:
        expected = train(hook)

    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PRIVATE_NAMES], cwd=ROOT, check=True, capture_output=True, text=True, timeout=120
    )

    assert done.stdout.strip() == str(expected)


def test_this_torch_has_the_private_names() -> None:
    assert versions.run_engine is not None
    assert versions.collects_gradients_in_lists(torch.optim.SGD)


def test_an_untested_major_version_of_torch_is_named_once() -> None:
    done = subprocess.run(
        [sys.executable, "-c", UNTESTED], capture_output=True, text=True, check=False, timeout=120, cwd=ROOT
    )

    assert done.returncode == 0, done.stderr
    assert done.stderr.count("torch 3.1.0 is untested: this release was tested on torch 2") == 1


def test_the_tested_major_version_has_rows_and_is_not_warned_of(recwarn: pytest.WarningsRecorder) -> None:
    rows, _skips = read_rows()

    versions.warn_if_untested(torch.__version__)

    assert {row.torch.partition(".")[0] for row in rows.values()} - {"-"} == {versions.TESTED}
    assert list(recwarn) == []
