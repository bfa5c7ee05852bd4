from __future__ import annotations

from typing import Any

import pytest

import syft_core as sy

torch = pytest.importorskip("torch")
from syft_torch import federated as fl  # noqa: E402  # torch may be missing


def make(count: int = 10) -> Any:
    return fl.BaseDataset(torch.arange(2.0 * count).view(count, 2), torch.arange(count))


def values(batch: Any) -> list[Any]:
    return batch[1].copy().get().tolist()


def test_a_loader_exhausts_worker_after_worker(hook: Any, bob: Any, alice: Any) -> None:
    loader = fl.FederatedDataLoader(make(7).federate([bob, alice]), batch_size=3)

    batches = list(loader)

    assert [(batch[0].location.id, values(batch)) for batch in batches] == [
        ("bob", [0, 1, 2]), ("bob", [3]), ("alice", [4, 5, 6]),
    ]  # fmt: skip
    assert len(loader) == len(batches) == 3


def test_next_continues_the_iteration_that_was_begun_last(hook: Any, bob: Any, alice: Any) -> None:
    loader = fl.FederatedDataLoader(make(4).federate([bob, alice]), batch_size=1)

    assert values(next(loader)) == [0]
    assert values(next(loader)) == [1]
    assert [values(batch) for batch in loader] == [[0], [1], [2], [3]]
    with pytest.raises(StopIteration):
        next(loader)
    iter(loader)
    assert values(next(loader)) == [0]


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
