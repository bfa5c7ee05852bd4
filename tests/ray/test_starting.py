from __future__ import annotations

import re
from typing import Any

import pytest

pytest.importorskip("ray")
torch = pytest.importorskip("torch")


PROGRAM = """
import sys
{before}
import torch, syft_core as sy
try:
    sy.RayWorkers(sy.TorchHook(torch), 1{arguments})
except sy.ray.errors.RayStartError as error:
    print("refused:", error)
"""


def test_a_ray_that_does_not_start_is_explained(run_program: Any) -> None:
    before = "import os; os.environ['RAY_TMPDIR'] = '/dev/null/nowhere'"

    text = run_program(PROGRAM.format(before=before, arguments=""))

    assert "refused: cannot start Ray on this machine: " in text
    assert "not ready within 15 seconds" in text
    assert "session_latest/logs" in text


def test_a_cluster_that_is_not_there_is_explained(run_program: Any) -> None:
    text = run_program(PROGRAM.format(before="", arguments=", address='127.0.0.1:9'"))

    assert "refused: cannot connect to Ray at '127.0.0.1:9'" in text


SHUT_DOWN = """
import torch, ray, syft_core as sy
workers = sy.RayWorkers(sy.TorchHook(torch), 1)
x = torch.ones(2).send(workers[0])
ray.shutdown()
try:
    x.get()
except sy.ray.errors.ActorLostError as error:
    print("lost:", error)
print("started again:", ray.is_initialized())
"""


def test_a_ray_that_was_shut_down_is_not_started_again_by_itself(run_program: Any) -> None:
    text = run_program(SHUT_DOWN)

    assert "cannot be called, because Ray was shut down; start Ray and new RayWorkers" in text
    assert "started again: False" in text


def test_a_missing_package_is_named_with_the_command_that_installs_it(run_program: Any) -> None:
    text = run_program(PROGRAM.format(before="sys.modules['ray'] = None", arguments=""))

    assert re.search("run `pip install '?ray", text)
