"""Datasets on workers, loaders, and the small functions for training by hand."""

from __future__ import annotations

import gc
from typing import Any

import pytest

import syft_core as sy

torch = pytest.importorskip("torch")

from syft_torch import federated as fl  # noqa: E402  # torch may be missing


def make(count: int = 10) -> Any:
    return fl.BaseDataset(torch.arange(2.0 * count).view(count, 2), torch.arange(count))


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

    assert data.get_dataset("alice").targets.tolist() == [9, 16]
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

    assert len(data.by_worker["bob"]) == 2
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


def parts() -> tuple[Any, Any]:
    return torch.arange(8.0).view(4, 2), torch.arange(4)


def test_a_dataset_has_the_methods_of_earlier_releases(hook: Any, bob: Any) -> None:
    dataset = fl.BaseDataset(*parts()).tag("#a", "#b").describe("four samples")

    assert dataset.owner is hook.local_worker
    assert fl.BaseDataset(*parts(), owner=bob, id=5).owner is bob
    assert dataset.get_data() is dataset.data
    assert dataset.get_targets() is dataset.targets
    sent = dataset.send(location=bob)
    assert isinstance(sent, fl.PointerDataset)
    assert {found.description for found in bob.search(["#a", "#b"])} == {"four samples"}
    assert len(bob.search("#a")) == 2


def test_the_datasets_of_workers_are_found_by_the_worker_or_its_id(hook: Any, bob: Any, alice: Any) -> None:
    data = fl.BaseDataset(*parts()).federate((alice, bob))

    assert list(data.datasets) == ["alice", "bob"]
    assert data.datasets["alice"].data.location.id == "alice"
    assert data.datasets[bob] is data[bob]


@pytest.mark.parametrize(
    ("action", "change"),
    [
        ("fetch", lambda dataset, alice: dataset.get()),
        ("send", lambda dataset, alice: dataset.send(alice)),
        ("encode", lambda dataset, alice: dataset.fix_prec()),
        ("share", lambda dataset, alice: dataset.share(alice)),
    ],
)
def test_a_part_of_a_federated_dataset_stays(hook: Any, bob: Any, alice: Any, action: str, change: Any) -> None:
    federated = fl.BaseDataset(*parts()).federate([bob, alice])

    with pytest.raises(fl.FederatedError, match=f"cannot {action} a dataset .* `federated.get_dataset\\('bob'\\)`"):
        change(federated[bob], alice)

    assert federated["bob"].location is bob
    assert len(federated) == 4
    assert len(fl.FederatedDataLoader(federated, batch_size=1)) == 4
    assert federated.get_dataset(bob).get_targets().tolist() == [0, 1]
    assert federated.workers == ["alice"]


def test_a_dataset_that_left_all_federated_ones_is_free_again(hook: Any, bob: Any) -> None:
    dataset = fl.BaseDataset(*parts()).send(bob)
    federated = fl.FederatedDataset([dataset])
    with pytest.raises(fl.FederatedError, match="part of a federated one"):
        dataset.get()

    del federated
    gc.collect()

    assert dataset.get().get_data().tolist() == parts()[0].tolist()
