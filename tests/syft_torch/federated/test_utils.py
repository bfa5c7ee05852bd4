from __future__ import annotations

import copy
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from syft_torch import federated as fl  # noqa: E402  # torch may be missing
from syft_torch.federated.dataloader import ByWorker  # noqa: E402  # the same


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


def test_batches_are_found_by_the_worker_or_its_id(hook: Any, bob: Any, alice: Any) -> None:
    data = make(4).federate([bob, alice])
    for options in ({}, {"iter_per_worker": True}):
        loader = fl.FederatedDataLoader(data, batch_size=2, **options)
        batches = fl.extract_batches_per_worker(loader)

        assert batches[bob] is batches["bob"]
        assert alice in batches
        assert batches.get(bob) is batches["bob"]
        with pytest.raises(KeyError):
            batches[hook.local_worker]
        assert hook.local_worker not in batches
        assert batches.get("carol", 7) == 7
    item = next(iter(fl.FederatedDataLoader(data, batch_size=2, iter_per_worker=True)))
    assert item[bob] is item["bob"]


def test_every_method_of_a_dict_by_worker_takes_workers(hook: Any, bob: Any, alice: Any) -> None:
    found = ByWorker({"bob": 1})

    found[alice] = 2
    assert found.setdefault(bob, 3) == 1
    assert found == {"bob": 1, "alice": 2}
    assert found.pop(bob) == 1
    assert found.pop(bob, 4) == 4
    del found[alice]
    assert not found


def tied() -> Any:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2, bias=False), torch.nn.Linear(2, 2, bias=False))
    model[1].weight = model[0].weight
    model[0].weight.data.fill_(2.0)
    return model


def test_tied_parameters_are_added_and_scaled_once_and_stay_tied() -> None:
    model = tied()

    fl.scale_model(fl.add_model(model, tied()), 0.5)

    assert model[0].weight is model[1].weight
    assert model[0].weight.unique().tolist() == [2.0]


def test_adding_and_scaling_leave_tensors_alone_that_shared_memory_with_the_model() -> None:
    start = torch.ones(1, 2)
    model, source = torch.nn.Linear(2, 1, bias=False), torch.nn.Linear(2, 1, bias=False)
    model.weight = parameter = torch.nn.Parameter(start)
    source.load_state_dict(model.state_dict(), assign=True)
    view, optimizer = start[:, :1], torch.optim.SGD(model.parameters(), lr=1.0)

    fl.scale_model(fl.add_model(model, source), 3.0)

    assert model.weight.tolist() == [[6.0, 6.0]]
    assert source.weight.tolist() == start.tolist() == [[1.0, 1.0]]
    assert view.tolist() == [[1.0]]
    assert model.weight is parameter
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    assert model.weight.tolist() == [[5.0, 5.0]]


def test_models_on_a_worker_are_added_and_scaled_there(hook: Any, bob: Any) -> None:
    model, other = constant(1).send(bob), constant(3).send(bob)

    fl.scale_model(fl.add_model(model, other), 0.5)

    assert {float(value.flatten()[0]) for value in model.get().state_dict().values()} == {2.0}


def test_models_that_do_not_fit_are_refused() -> None:
    with pytest.raises(fl.FederatedError, match="other names or shapes"):
        fl.add_model(constant(1), torch.nn.Linear(2, 2))
    with pytest.raises(fl.FederatedError, match="none were given"):
        fl.federated_avg({})
    with pytest.raises(fl.FederatedError, match=r"expected a dict of models, got a list; .*`dict\(enumerate\("):
        fl.federated_avg([constant(1), constant(3)])
    with pytest.raises(fl.FederatedError, match="must not be negative"):
        fl.federated_avg({"bob": constant(1)}, weights={"bob": 0})


def test_the_accuracy_is_a_fraction_here_and_on_a_worker(hook: Any, bob: Any) -> None:
    scores, target = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]]), torch.tensor([0, 1, 1])

    assert fl.accuracy(scores, target).item() == pytest.approx(2 / 3)
    assert fl.accuracy(scores.send(bob), target.send(bob)).get().item() == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("scores", "target"),
    [
        ((4, 3), (4, 1)),
        ((4, 3), (4, 3)),
        ((2, 3, 5), (2, 5)),
        ((2, 3, 5), (2, 1, 5)),
        ((2, 3, 5), (2, 3, 5)),
    ],
)
def test_targets_may_be_numbers_columns_or_scores(hook: Any, bob: Any, scores: Any, target: Any) -> None:
    torch.manual_seed(0)
    found = torch.rand(scores)
    right = torch.nn.functional.one_hot(found.argmax(1), 3).movedim(-1, 1) if target == scores else found.argmax(1)
    right = right.reshape(target)

    assert fl.accuracy(found, right).item() == 1.0
    assert fl.accuracy(found.send(bob), right.send(bob)).get().item() == 1.0
    assert fl.accuracy(-found, right).item() < 1.0


@pytest.mark.parametrize(
    ("scores", "target", "words"),
    [
        ((4, 1), (4, 1), "at least two classes; for one score, compare it with a threshold"),
        ((4,), (4,), "at least two classes"),
        ((4, 3), (3,), r"with targets of shape \(3,\) for scores of shape \(4, 3\)"),
        ((4, 3), (1, 4), "each sample needs the number of its class"),
        ((4, 3), (), "each sample needs the number of its class"),
    ],
)
def test_scores_and_targets_that_do_not_fit_are_refused(scores: Any, target: Any, words: str) -> None:
    with pytest.raises(fl.FederatedError, match=words):
        fl.accuracy(torch.zeros(scores), torch.zeros(target))


def test_toy_data_has_the_expected_form() -> None:
    points, kinds = fl.create_gaussian_mixture_toy_data(100)
    flowers, species = fl.iris_data_partial()

    assert tuple(points.shape) == (100, 2)
    assert kinds.sum() == 50
    assert tuple(flowers.shape) == (30, 4)
    assert species.bincount().tolist() == [10, 10, 10]
