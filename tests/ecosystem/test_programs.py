"""Models, trainers and metrics of other people's give on a worker what they give at home."""

from __future__ import annotations

import copy
import importlib.util
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_core.workers.virtual import VirtualWorker  # noqa: E402
from syft_torch.hook import TorchHook  # noqa: E402

from .compare import compare  # noqa: E402
from .programs import Program, digits, programs  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(params=[False, True], ids=["in-process", "by-wire"])
def bob(request: Any) -> Iterator[Any]:
    with TorchHook(torch) as hook:
        yield VirtualWorker(hook, id="bob", serialize=request.param)


def require(package: str) -> Any:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed; `tox -e ecosystem` installs it")
    return pytest.importorskip(package)


@pytest.mark.parametrize("program", programs(), ids=lambda program: program.name)
def test_a_model_trains_as_at_home(program: Program, bob: Any) -> None:
    require(program.package)

    outcome = compare(program, bob)

    assert outcome.is_same, outcome.verdict
    assert "sy.revealing" not in outcome.verdict or program.reads_its_mask


def test_an_accuracy_is_computed_where_the_data_is(bob: Any) -> None:
    accuracy = require("torchmetrics").classification.MulticlassAccuracy(10, average="micro", validate_args=False)
    batch = digits()
    scores = torch.randn(64, 10)
    remote = copy.deepcopy(accuracy).send(bob)

    for start in (0, 32):
        rows = slice(start, start + 32)
        accuracy.update(scores[rows], batch["y"][rows])
        remote.update(scores[rows].send(bob), batch["y"][rows].send(bob))

    assert torch.equal(remote.compute().get(), accuracy.compute())
