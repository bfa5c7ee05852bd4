"""Third-party models, trainers and metrics give the same results on a worker as locally."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import syft_core as sy  # noqa: E402
from syft_core.exceptions import ValueRefusedError  # noqa: E402
from syft_core.workers.party.virtual import VirtualWorker  # noqa: E402
from syft_torch.hook import TorchHook  # noqa: E402

from .compare import compare  # noqa: E402
from .programs import Program, programs, small_bert, text  # noqa: E402
from .tools import (  # noqa: E402
    generate,
    measure_with_torchmetrics,
    run_layers_of_opacus,
    train_with_lightning,
    train_with_opacus,
    train_with_peft,
    train_with_transformers,
)

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

    assert compare(program, bob).verdict == "same bits"


def test_a_mask_of_the_worker_is_read_with_consent(bob: Any) -> None:
    require("transformers")
    batch = text()()
    bob.load_data([batch["attention_mask"].tag("#mask")])
    model = small_bert().eval()
    expected = model(**batch).logits.detach()
    there = {name: tensor.send(bob) for name, tensor in batch.items()} | {"attention_mask": bob.search("#mask")[0]}
    model.send(bob)

    with pytest.raises(ValueRefusedError) as caught:
        model(**there)
    with sy.revealing("is anything masked?"):
        found = model(**there).logits.get()

    assert "masking_utils.py" in getattr(caught.value, "__notes__", [""])[0]
    assert torch.equal(found, expected)


def test_a_trainer_trains_as_locally(bob: Any) -> None:
    require("lightning")

    assert train_with_lightning(bob).verdict == "same bits"


def test_an_accuracy_is_computed_on_the_worker(bob: Any) -> None:
    require("torchmetrics")

    assert measure_with_torchmetrics(bob).verdict == "same bits"


def test_the_trainer_of_transformers_trains_as_locally(bob: Any) -> None:
    require("transformers")
    require("accelerate")

    assert train_with_transformers(bob).verdict == "same bits"


@pytest.mark.parametrize("options", [{}, {"do_sample": True}, {"num_beams": 2}], ids=["greedy", "sampled", "beams"])
def test_text_is_generated_as_locally(bob: Any, options: Any) -> None:
    require("transformers")

    assert generate(bob, **options).verdict == "same bits"


@pytest.mark.parametrize("sends_first", [True, False])
def test_low_rank_layers_are_trained_as_locally(bob: Any, sends_first: bool) -> None:
    require("transformers")
    require("peft")

    assert train_with_peft(bob, sends_first).verdict == "same bits"


def test_differentially_private_training_gives_the_numbers_of_local_training(bob: Any) -> None:
    require("opacus")

    assert train_with_opacus(bob).verdict == "same bits"
    assert run_layers_of_opacus(bob).verdict == "same bits"
