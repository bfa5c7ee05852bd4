"""Third-party models, trainers and metrics give the same results on a worker as locally."""

from __future__ import annotations

import copy
import importlib.util
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import syft_core as sy  # noqa: E402
from syft_core.exceptions import GetNotPermittedError, ValueRefusedError  # noqa: E402
from syft_core.workers.party.virtual import VirtualWorker  # noqa: E402
from syft_torch import federated as fl  # noqa: E402
from syft_torch.hook import TorchHook  # noqa: E402

from .compare import compare  # noqa: E402
from .programs import LANGUAGE_MODELS, Program, masked_text, programs, small_bert, text  # noqa: E402
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


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
@pytest.mark.parametrize("length", [4, -1])
def test_a_language_model_with_a_mask_runs_in_a_plan(bob: Any, name: str, length: int) -> None:
    require("peft" if name == "lora" else "transformers")
    model, (ids, mask, _) = LANGUAGE_MODELS[name]().eval(), masked_text()
    shape = (length, ids.shape[1])
    plan = sy.Plan(name, lambda ids, mask: model(ids, mask), args_shape=[shape, shape], args_dtypes=[torch.long] * 2)

    found = plan.build().send(bob)(ids.send(bob), mask.send(bob)).get()

    assert torch.equal(found, model(ids, mask))


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_a_plan_trains_a_language_model_with_a_mask_as_locally(bob: Any, name: str) -> None:
    require("peft" if name == "lora" else "transformers")
    torch.manual_seed(0)
    model, batch = LANGUAGE_MODELS[name]().eval(), masked_text()
    other = copy.deepcopy(model)

    def make_step(model: Any) -> Any:
        optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)

        def step(ids: Any, mask: Any, labels: Any) -> Any:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(ids, mask), labels)
            loss.backward()
            optimizer.step()
            return loss

        return step

    there, local = sy.Plan(name, make_step(model)).build(*batch).send(bob), make_step(other)

    for _ in range(2):
        local(*batch)
        there(*[part.send(bob) for part in batch])

    there.get()
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), other.parameters(), strict=True))
    bob.load_data([part.clone().private_tensor([]).tag(f"#{place}") for place, part in enumerate(batch)])
    loss = sy.Plan(name, make_step(model)).build(*batch).send(bob)(*[bob.search(f"#{place}")[0] for place in range(3)])
    with pytest.raises(GetNotPermittedError):
        loss.get()


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_a_language_model_with_a_mask_is_trained_by_the_trainer(bob: Any, name: str) -> None:
    require("peft" if name == "lora" else "transformers")
    torch.manual_seed(0)
    model, (ids, mask, labels) = LANGUAGE_MODELS[name]().eval(), masked_text()
    other = copy.deepcopy(model)
    make = lambda p: torch.optim.SGD(p, lr=0.1)  # noqa: E731  # short
    data = fl.FederatedDataset([fl.BaseDataset((ids, mask), labels).send(bob)])

    options = fl.Options(shuffle=False)
    fl.FederatedTrainer(model, torch.nn.functional.cross_entropy, make, data, batch_size=3, options=options).fit(1)

    optimizer = make([parameter for parameter in other.parameters() if parameter.requires_grad])
    for rows in (slice(0, 3), slice(3, 4)):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(other(ids[rows], mask[rows]), labels[rows]).backward()
        optimizer.step()
    torch.testing.assert_close(dict(model.named_parameters()), dict(other.named_parameters()), atol=1e-6, rtol=1e-5)
