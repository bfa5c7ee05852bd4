"""Datasets on workers, loaders, and the small functions for training by hand."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import syft_core as sy

torch = pytest.importorskip("torch")

from syft_torch import federated as fl  # noqa: E402  # torch may be missing


def make(count: int = 10) -> Any:
    return fl.BaseDataset(torch.arange(2.0 * count).view(count, 2), torch.arange(count))


def values(batch: Any) -> list[Any]:
    return batch[1].copy().get().tolist()


def test_a_dataset_has_a_length_and_samples(hook: Any) -> None:
    dataset = make(3)

    assert len(dataset) == 3
    assert [part.tolist() for part in dataset[1]] == [[2.0, 3.0], 1]
    assert dataset.location is None


def test_samples_are_transformed_by_a_function_of_arrays(hook: Any) -> None:
    dataset = fl.BaseDataset(torch.ones(2, 2), torch.zeros(2), transform=lambda array: array + 1)

    assert dataset[0][0].tolist() == [2.0, 2.0]


def test_all_inputs_are_transformed_at_once(hook: Any, bob: Any) -> None:
    dataset = make(2)
    dataset.transform(lambda tensor: tensor * 10)

    assert dataset.data.tolist() == [[0.0, 10.0], [20.0, 30.0]]
    with pytest.raises(TypeError, match="not plain tensors"):
        dataset.send(bob).transform(lambda tensor: tensor)


def test_a_dataset_is_sent_and_fetched(hook: Any, bob: Any) -> None:
    dataset = fl.BaseDataset(torch.ones(2, 2), torch.zeros(2), tags=["#train"])

    assert dataset.send(bob) is dataset
    assert dataset.location.id == "bob"
    assert len(bob.search("#train")) == 2
    assert dataset.get().data.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_a_dataset_is_encoded_and_shared(hook: Any, bob: Any, alice: Any) -> None:
    carol = sy.VirtualWorker(hook, id="carol")
    dataset = fl.BaseDataset(torch.tensor([[0.5, -1.0]]), torch.tensor([[2.0]]))

    dataset.fix_prec().share(bob, alice, crypto_provider=carol).get().float_prec()

    assert dataset.data.tolist() == [[0.5, -1.0]]
    assert dataset.targets.tolist() == [[2.0]]


@pytest.mark.parametrize(("samples", "workers"), [(9, 4), (10, 3), (4, 4), (101, 7)])
def test_the_split_is_balanced_and_in_order(hook: Any, samples: int, workers: int) -> None:
    names = [f"w{number}" for number in range(workers)]

    data = make(samples).federate([sy.VirtualWorker(hook, id=name) for name in names])

    counts = [data.count(name) for name in names]
    assert max(counts) - min(counts) <= 1
    assert data.workers == names
    assert len(data) == sum(counts) == samples
    assert [label for name in names for label in data[name].targets.copy().get().tolist()] == [*range(samples)]


def test_every_torch_dataset_can_be_federated(hook: Any, bob: Any, alice: Any) -> None:
    class Squares(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return 5

        def __getitem__(self, index: int) -> tuple[Any, int]:
            return torch.tensor([float(index)]), index**2

    data = Squares().federate([bob, alice])

    assert data["alice"].get().targets.tolist() == [9, 16]
    tensors = torch.utils.data.TensorDataset(torch.ones(4, 2), torch.zeros(4))
    assert len(tensors.federate((bob, alice))["bob"]) == 2


def test_a_worker_may_have_several_datasets(hook: Any, bob: Any, alice: Any) -> None:
    data = fl.FederatedDataset([make(2).send(bob), make(3).send(bob), make(1).send(alice)])

    assert data.workers == ["bob", "alice"]
    assert len(data) == 6
    assert data["bob"].targets.copy().get().tolist() == [0, 1, 0, 1, 2]
    assert "Distributed accross: bob, alice" in repr(data)
    assert "Number of datapoints: 6" in repr(data)


def test_the_dataset_of_a_worker_is_fetched_and_removed(hook: Any, bob: Any, alice: Any) -> None:
    data = make(4).federate([bob, alice])

    assert data.get_dataset("bob").targets.tolist() == [0, 1]
    assert data.workers == ["alice"]


def test_data_that_was_there_before_is_found(hook: Any, bob: Any, alice: Any) -> None:
    for worker, count in ((bob, 3), (alice, 5)):
        worker.load_data([torch.ones(count, 2).tag("#scans"), torch.zeros(count).tag("#labels")])

    data = fl.find("#scans", "#labels", workers=[bob, "alice"])

    assert {name: data.count(name) for name in data.workers} == {"bob": 3, "alice": 5}
    assert tuple(data["alice"].data.shape) == (5, 2)


def test_a_search_may_have_several_inputs_and_several_datasets(hook: Any, bob: Any) -> None:
    for part in ("one", "two"):
        tensors = [torch.ones(2).tag(f"#{name}").describe(part) for name in ("a", "b", "y")]
        bob.load_data(tensors)

    data = fl.find("#a", ["#b"], "#y", workers=[bob])

    assert len(data.datasets["bob"]) == 2
    assert len(data["bob"].inputs) == 2


def test_bad_input_is_refused(hook: Any, bob: Any, alice: Any) -> None:
    bob.load_data([torch.ones(2, 2).tag("#scans")])
    wrong = [
        (lambda: fl.find("#scans", "#labels", workers=[bob]), "cannot find a dataset on worker 'bob'"),
        (lambda: fl.find("#scans", workers=[bob]), "with 1 searches"),
        (lambda: fl.find("#scans", "#labels", workers=[]), "no workers were given"),
        (lambda: fl.BaseDataset(torch.ones(3), torch.ones(2)), r"\[3, 2\] rows"),
        (lambda: make(1).federate([bob, alice]), "1 samples over 2 workers"),
        (lambda: make(4).federate([bob, bob]), "a worker is given twice"),
        (lambda: fl.FederatedDataset([make(2)]), "is not on a worker"),
        (lambda: fl.FederatedDataset([torch.ones(2)]), "of a Tensor"),
        (lambda: fl.FederatedDataLoader(make(2)), "expected a FederatedDataset"),
        (lambda: fl.FederatedDataLoader(make(2).federate([bob]), batch_size=0), "of 0 samples"),
    ]
    for call, text in wrong:
        with pytest.raises(fl.FederatedError, match=text):
            call()


# --- loaders


def test_a_loader_exhausts_worker_after_worker(hook: Any, bob: Any, alice: Any) -> None:
    loader = fl.FederatedDataLoader(make(7).federate([bob, alice]), batch_size=3)

    batches = list(loader)

    assert [(batch[0].location.id, values(batch)) for batch in batches] == [
        ("bob", [0, 1, 2]), ("bob", [3]), ("alice", [4, 5, 6]),
    ]  # fmt: skip
    assert len(loader) == len(batches) == 3


@pytest.mark.parametrize("options", [{}, {"drop_last": True}, {"iter_per_worker": True}, {"num_iterators": 2}])
def test_the_length_of_a_loader_is_the_number_of_its_items(hook: Any, options: Any) -> None:
    workers = [sy.VirtualWorker(hook, id=name) for name in "abc"]
    data = fl.FederatedDataset([make(n).send(w) for n, w in zip((1, 9, 4), workers, strict=True)])

    loader = fl.FederatedDataLoader(data, batch_size=2, **options)

    assert len(loader) == len(list(loader))


def test_all_workers_at_once_drop_nothing(hook: Any, bob: Any, alice: Any) -> None:
    data = fl.FederatedDataset([make(5).send(bob), make(2).send(alice)])

    items = list(fl.FederatedDataLoader(data, batch_size=2, iter_per_worker=True))

    assert [sorted(item) for item in items] == [["alice", "bob"], ["bob"], ["bob"]]
    seen = [label for item in items for label in values(item["bob"])]
    assert seen == [0, 1, 2, 3, 4]


def test_one_worker_alone_gives_dicts_too(hook: Any, bob: Any) -> None:
    (item,) = fl.FederatedDataLoader(make(2).federate([bob]), iter_per_worker=True)

    assert list(item) == ["bob"]


def test_several_iterators_see_all_data_once(hook: Any) -> None:
    workers = [sy.VirtualWorker(hook, id=name) for name in "abcd"]
    data = make(11).federate(workers)

    items = list(fl.FederatedDataLoader(data, batch_size=2, num_iterators=3))

    seen = sorted(label for item in items for batch in item.values() for label in values(batch))
    assert seen == [*range(11)]
    assert max(map(len, items)) == 3


def test_shuffling_gives_every_sample_once_in_another_order(hook: Any, bob: Any) -> None:
    torch.manual_seed(0)
    loader = fl.FederatedDataLoader(make(50).federate([bob]), batch_size=7, shuffle=True)

    first, second = ([label for batch in loader for label in values(batch)] for _ in range(2))

    assert sorted(first) == sorted(second) == [*range(50)]
    assert first != second != [*range(50)]


def test_unknown_options_are_ignored_with_a_warning(hook: Any, bob: Any, caplog: pytest.LogCaptureFixture) -> None:
    fl.FederatedDataLoader(make(2).federate([bob]), num_workers=4)

    assert "num_workers" in caplog.text


def test_samples_are_collated_here_and_on_workers(hook: Any, bob: Any) -> None:
    rows = torch.tensor([[1.0], [2.0]]).send(bob)

    there = fl.default_collate([rows[0], rows[1]])

    assert there.location.id == "bob"
    assert there.get().tolist() == [[1.0], [2.0]]
    assert fl.default_collate([{"a": 1, "b": (2.0, 3)}, {"a": 4, "b": (5.0, 6)}])["a"].tolist() == [1, 4]
    with pytest.raises(fl.FederatedError, match="different lengths"):
        fl.default_collate([(1, 2), (3,)])


def test_a_collate_function_gets_the_samples(hook: Any, bob: Any) -> None:
    loader = fl.FederatedDataLoader(make(4).federate([bob]), batch_size=2, collate_fn=len)

    assert list(loader) == [2, 2]


# --- by hand


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
