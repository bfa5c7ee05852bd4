"""Thousands of calls of unreviewed operations over the network: the worker still serves afterwards."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from syft_core.exceptions import ConnectionLostError
from syft_core.messages import Run
from syft_core.network.client import WebsocketClientWorker
from syft_core.pointers.object_pointer import new_id

from .supervised import SupervisedWorker, supervise

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the supervisor relies on Linux")

CALLS = int(os.environ.get("SYFT_FUZZ_CALLS", "3000"))
CONFIG = """
id = "fuzzed"
framework = "torch"
[limits]
operation_seconds = 5
memory = "3GB"
[users.default]
bytes = "50MB"
objects = 2000
crashes = 1000
"""


@pytest.fixture
def fuzzed(tmp_path: Path) -> Iterator[SupervisedWorker]:
    (tmp_path / "worker.toml").write_text(CONFIG)
    with supervise(str(tmp_path / "worker.toml"), "--data", "tests.network.test_fuzz:load") as worker:
        yield worker


def load() -> dict[str, Any]:
    return {"ages": torch.tensor([30.0, 40.0])}


def send_pool(far: WebsocketClientWorker) -> list[Any]:
    shapes: list[tuple[int, ...]] = [(), (0,), (3,), (3, 3), (2, 3, 4), (1, 2, 5, 5)]
    plain = [torch.arange(max(1, torch.Size(shape).numel())).float() for shape in shapes]
    floats = [x[: torch.Size(shape).numel()].reshape(shape) for x, shape in zip(plain, shapes, strict=True)]
    others = [floats[3].long(), floats[4].long(), floats[2] > 1, floats[3].double(), floats[3].to(torch.complex64)]
    others += [floats[3].half(), floats[2].to(torch.uint8), floats[3].t()]
    return [x.send(far).child for x in (*floats, *others)]


def draw(rng: random.Random, pool: list[Any], depth: int = 0) -> Any:
    kind = rng.random()
    if kind < 0.55:
        return rng.choice(pool)
    if kind < 0.75:
        return rng.choice([0, 1, 2, -1, 3, 10**6, -(2**63), 2**63 - 1, 7])
    if kind < 0.85:
        return rng.choice([None, True, False, 0.5, -1.0, float("inf"), float("nan"), "mean", "none", "x", torch.int64])
    if depth:
        return 1
    return [draw(rng, pool, 1) for _ in range(rng.randrange(4))]


def test_a_worker_still_serves_after_any_calls_of_unreviewed_operations(hook: Any, fuzzed: SupervisedWorker) -> None:
    rng = random.Random(11)
    names = [op.name for op in hook.attributes.ops if op.tier == "public" and not (op.local or op.reveals)]
    far = fuzzed.connect(hook, fuzzed.read_token())
    pool, ran, reasons = send_pool(far), 0, list[str]()
    for number in range(CALLS):
        args = tuple(draw(rng, pool) for _ in range(rng.choice([1, 1, 2, 2, 3, 4])))
        try:
            far.ask(Run("torch", names[number % len(names)], args, None, new_id()))
            ran += 1
        except ConnectionLostError as error:
            reasons.append(str(error))
            pool = send_pool(far)
        except Exception:  # noqa: BLE001  # most of the calls make no sense
            pass

    (ages,) = far.search("#ages")
    assert ages.copy().get().tolist() == [30.0, 40.0]
    assert ran > CALLS / 50
    assert all("and is refused from now on" in reason for reason in reasons)
    far.close()
    assert fuzzed.stop() == 0
