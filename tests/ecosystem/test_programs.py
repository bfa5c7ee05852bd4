"""Third-party models, trainers and metrics give the same results on a worker as locally."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_core.workers.virtual import VirtualWorker  # noqa: E402
from syft_torch.hook import TorchHook  # noqa: E402

from .compare import compare  # noqa: E402
from .programs import Program, programs  # noqa: E402
from .tools import measure_with_torchmetrics, train_with_lightning  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(params=[False, True], ids=["in-process", "by-wire"])
def bob(request: Any) -> Iterator[Any]:
    with TorchHook(torch) as hook:
        yield VirtualWorker(hook, id="bob", serialize=request.param)


def require(package: str) -> Any:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed; `tox -e ecosystem` installs it")
    return pytest.importorskip(package)


@pytest.mark.parametrize("program", list(programs()), ids=lambda program: program.name)
def test_a_model_trains_as_locally(program: Program, bob: Any) -> None:
    require(program.package)

    outcome = compare(program, bob)

    assert outcome.verdict == "same bits"
    assert bool(outcome.reads) == program.reads_its_mask


def test_the_error_names_the_value_that_a_model_reads(bob: Any) -> None:
    require("transformers")
    program = next(program for program in programs() if program.reads_its_mask)

    outcome = compare(program, bob)

    assert "__bool__" in outcome.reads
    assert "masking_utils.py" in outcome.reads


def test_a_trainer_trains_as_locally(bob: Any) -> None:
    require("lightning")

    assert train_with_lightning(bob).verdict == "same bits"


def test_an_accuracy_is_computed_on_the_worker(bob: Any) -> None:
    require("torchmetrics")

    assert measure_with_torchmetrics(bob).verdict == "same bits"
