from __future__ import annotations

import copy
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from syft_torch import federated as fl  # noqa: E402  # torch may be missing


def make(count: int = 10) -> Any:
    return fl.BaseDataset(torch.arange(2.0 * count).view(count, 2), torch.arange(count))


def values(batch: Any) -> list[Any]:
    return batch[1].copy().get().tolist()


def test_batches_are_sorted_by_worker(hook: Any, bob: Any, alice: Any) -> None:
    data = make(7).federate([bob, alice])
    for options in ({}, {"iter_per_worker": True}):
        found = fl.extract_batches_per_worker(fl.FederatedDataLoader(data, batch_size=3, **options))

        assert {worker: [values(batch) for batch in batches] for worker, batches in found.items()} == {
            "bob": [[0, 1, 2], [3]], "alice": [[4, 5, 6]],
        }  # fmt: skip


def constant(value: float) -> Any:
    model = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.BatchNorm1d(1))
    for tensor in model.state_dict().values():
        tensor.fill_(value)
    return model


def test_models_are_added_and_scaled_in_place() -> None:
    model = constant(1)

    fl.scale_model(fl.add_model(model, constant(3)), 0.5)

    assert {float(value.flatten()[0]) for value in model.state_dict().values()} == {2.0}


def test_the_average_needs_no_constructor_and_has_buffers_and_weights() -> None:
    models = {"bob": constant(1), "alice": constant(4)}
    before = copy.deepcopy(models["bob"].state_dict())

    plain, weighted = fl.federated_avg(models), fl.federated_avg(models, weights={"bob": 200, "alice": 100})

    assert {float(value.flatten()[0]) for value in plain.state_dict().values()} == {2.5, 2.0}  # An integer is rounded.
    assert {float(value.flatten()[0]) for value in weighted.state_dict().values()} == {2.0}
    assert all(torch.equal(before[name], value) for name, value in models["bob"].state_dict().items())


def test_models_that_do_not_fit_are_refused() -> None:
    with pytest.raises(fl.FederatedError, match="other names or shapes"):
        fl.add_model(constant(1), torch.nn.Linear(2, 2))
    with pytest.raises(fl.FederatedError, match="none were given"):
        fl.federated_avg({})
    with pytest.raises(fl.FederatedError, match="must not be negative"):
        fl.federated_avg({"bob": constant(1)}, weights={"bob": 0})


def test_the_accuracy_is_a_fraction_here_and_on_a_worker(hook: Any, bob: Any) -> None:
    scores, target = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]]), torch.tensor([0, 1, 1])

    assert fl.accuracy(scores, target).item() == pytest.approx(2 / 3)
    assert fl.accuracy(scores.send(bob), target.send(bob)).get().item() == pytest.approx(2 / 3)


def test_toy_data_has_the_expected_form() -> None:
    points, kinds = fl.create_gaussian_mixture_toy_data(100)
    flowers, species = fl.iris_data_partial()

    assert tuple(points.shape) == (100, 2)
    assert kinds.sum() == 50
    assert tuple(flowers.shape) == (30, 4)
    assert species.bincount().tolist() == [10, 10, 10]
