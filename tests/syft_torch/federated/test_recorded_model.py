from __future__ import annotations

import copy
from typing import Any

import pytest

import syft_core as sy

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402  # torch may be missing

from syft_torch import federated as fl  # noqa: E402
from syft_torch.federated import recorded_model  # noqa: E402

from .trainers import STRATEGIES, make_data, make_model, make_samples, make_trainer  # noqa: E402


def test_small_floats_are_averaged_with_32_bits(hook: Any) -> None:
    parts = [make_samples(40, n) for n in range(4)]
    workers = [sy.VirtualWorker(hook, id=f"b{n}") for n in range(4)]
    data = fl.FederatedDataset(
        [fl.BaseDataset(x.bfloat16(), y).send(w) for (x, y), w in zip(parts, workers, strict=True)]
    )
    model = make_model().bfloat16()
    before = [parameter.detach().clone() for parameter in model.parameters()]

    class Keep(fl.FedAvg):
        def aggregate(self, weights: Any, updates: Any) -> Any:
            self.seen = [update.difference for update in updates]
            return super().aggregate(weights, updates)

    strategy = Keep()
    make_trainer(hook, data, model=model, strategy=strategy).fit(1)

    mean = sum(difference.double() for difference in strategy.seen) / 4
    expected = torch.cat([tensor.reshape(-1) for tensor in before]).double() + mean
    found = torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])
    assert {difference.dtype for difference in strategy.seen} == {torch.float32}
    assert found.dtype == torch.bfloat16
    assert torch.equal(found, expected.float().bfloat16())


def test_models_that_are_trained_apart_stay_on_their_workers(hook: Any) -> None:
    trainer = make_trainer(hook, make_data(hook, (40, 24), private=True), epochs=3)
    before = trainer.weights

    found = trainer.train_apart()

    assert list(found) == ["w0", "w1"]
    assert torch.equal(trainer.weights, before)
    for model in found.values():
        with pytest.raises(sy.exceptions.GetNotPermittedError):
            model.get()


def test_models_are_trained_apart_with_the_bits_of_a_run_on_one_worker(hook: Any) -> None:
    x, y = make_samples(40)
    pair = [fl.FederatedDataset([fl.BaseDataset(x, y).send(sy.VirtualWorker(hook, id=id))]) for id in ("a", "b")]
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))
    apart, together = [
        make_trainer(hook, data, model=copy.deepcopy(model), epochs=3, shuffle=False, engine="workers") for data in pair
    ]

    found = apart.train_apart()["a"].get()
    together.fit(1)

    for name, tensor in together.model.state_dict().items():
        assert torch.equal(found.state_dict()[name], tensor), name


@pytest.mark.parametrize("make", STRATEGIES)
def test_parameters_that_are_combined_in_parts_are_those_of_the_whole(
    hook: Any, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for size in (recorded_model.PART, 7):
        monkeypatch.setattr(recorded_model, "PART", size)
        trainer = make_trainer(hook, strategy=make())
        trainer.fit(2)
        found.append(trainer.weights)

    assert torch.equal(*found)
