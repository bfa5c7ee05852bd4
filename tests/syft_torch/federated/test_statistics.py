from __future__ import annotations

import math
import statistics
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import syft_core as sy  # noqa: E402
from syft_core.exceptions import GetNotPermittedError  # noqa: E402
from syft_core.pointers.object_pointer import new_id  # noqa: E402
from syft_torch import federated as fl  # noqa: E402
from syft_torch.federated.statistics import BITS, LIMBS, Summarize, _join, _split  # noqa: E402

from .owners import fill, find, owners  # noqa: E402


def spread(*parts: Any, names: Any = ("bob", "alice", "carol"), private: bool = False) -> fl.FederatedDataset:
    datasets = []
    for name, part in zip(names, parts, strict=False):
        worker = sy.VirtualWorker(sy.local_worker.hook, id=name)
        labels = torch.zeros(len(part))
        if private:
            worker.load_data([part.clone().private_tensor([]).tag("#x"), labels.private_tensor([]).tag("#y")])
            datasets.append(fl.BaseDataset(worker.search("#x")[0], worker.search("#y")[0]))
        else:
            datasets.append(fl.BaseDataset(part.clone(), labels).send(worker))
    return fl.FederatedDataset(datasets)


@pytest.fixture
def rows(hook: Any) -> torch.Tensor:
    rows = torch.randn(30, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    rows[3, 0] = rows[20, 2] = torch.nan
    return rows


def test_statistics_are_those_of_all_rows_together(rows: torch.Tensor) -> None:
    data = spread(rows[:11], rows[11:13], rows[13:])

    torch.testing.assert_close(fl.sum(data), rows.nansum(0), rtol=1e-14, atol=0)
    torch.testing.assert_close(fl.mean(data), rows.nanmean(0), rtol=1e-14, atol=0)
    expected = torch.stack([column[~column.isnan()].var() for column in rows.T])
    torch.testing.assert_close(fl.var(data), expected, rtol=1e-14, atol=0)
    torch.testing.assert_close(fl.var(data, correction=0)[1], rows[:, 1].var(correction=0), rtol=1e-14, atol=0)


@pytest.mark.parametrize("mean", [0.0, 1e3, -1.6e9])
@pytest.mark.parametrize("deviation", [0.1, 1.0, 1e6])
def test_the_variance_is_right_even_if_it_is_much_smaller_than_the_mean(
    rows: torch.Tensor, mean: float, deviation: float
) -> None:
    rows = rows.nan_to_num() * deviation + mean

    found = fl.var(spread(rows[:11], rows[11:])).tolist()

    columns = [list(map(Fraction, column.tolist())) for column in rows.T]
    expected = [float(statistics.variance(column)) for column in columns]
    assert found == pytest.approx(expected, rel=1e-10)


def test_sums_do_not_depend_on_how_rows_are_spread(rows: torch.Tensor) -> None:
    rows = (rows * 1024).round() / 1024  # So that the sums of each worker are exact, too.

    found = [fl.sum(spread(*parts)) for parts in ([rows], [rows[:4], rows[4:]], [rows[20:], rows[:20]])]

    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


def test_a_histogram_counts_like_that_of_numpy(rows: torch.Tensor) -> None:
    numpy = pytest.importorskip("numpy")
    rows[5] = torch.tensor([1.0, 2.0, -5.0])
    edges = [-1.0, -0.5, 0.0, 1.0, 2.0]

    found = fl.histogram(spread(rows[:11], rows[11:]), edges)

    expected = [numpy.histogram(column[~column.isnan()].numpy(), edges)[0].tolist() for column in rows.T]
    assert found.tolist() == expected
    assert found.dtype is torch.int64


def test_rows_may_have_any_shape(hook: Any) -> None:
    images = torch.arange(24.0).reshape(4, 2, 3)

    data = spread(images[:1], images[1:])

    assert torch.equal(fl.mean(data), images.double().mean(0))
    assert fl.histogram(data, [0, 12, 24]).tolist() == [[[2, 2]] * 3] * 2


def test_a_column_without_values_has_no_mean(hook: Any) -> None:
    data = spread(torch.full((2, 1), torch.nan), torch.full((3, 1), torch.nan))

    assert math.isnan(fl.mean(data).item())
    assert fl.sum(data).item() == 0.0
    assert fl.histogram(data, [0, 1]).tolist() == [[0]]


def test_infinite_values_are_refused(hook: Any) -> None:
    with pytest.raises(fl.FederatedError, match="one of them has infinite values"):
        fl.sum(spread(torch.tensor([[torch.inf], [1.0]])))


@pytest.mark.parametrize("edges", [[1.0], [1.0, 1.0], [2.0, 1.0], [0.0, math.inf], [0.0, math.nan]])
def test_edges_must_increase(rows: torch.Tensor, edges: list[float]) -> None:
    with pytest.raises(fl.FederatedError, match="its edges are not at least two finite numbers in increasing order"):
        fl.histogram(spread(rows), edges)


def test_one_tensor_of_sums_leaves_each_worker(rows: torch.Tensor) -> None:
    data = spread(rows[:11], rows[11:])

    fl.var(data)
    fl.histogram(data, [0.0, 1.0, 2.0])

    for dataset in data:
        assert [entry.form for entry in dataset.location.ledger] == ["Tensor[57] float64", "Tensor[6] float64"]


def test_statistics_of_private_data_stay_unless_the_owner_agrees(workers: list[Any]) -> None:
    fill(workers, users=["noor"], gaps=False)
    data = find(workers)

    with pytest.raises(GetNotPermittedError):
        fl.histogram(data, [0.0, 1.0])
    with owners(workers):
        assert fl.histogram(data, [-1.0, 0.5, 2.0], reason="a study")[2].sum() == len(data)


def test_a_private_statistic_names_its_program_and_its_whole_operands(rows: torch.Tensor) -> None:
    data = spread(rows, private=True)
    worker = data["bob"].location
    pointer = data["bob"].data.child

    def run(**changes: Any) -> Any:
        message = replace(Summarize((pointer,), "moments", new_id()), **changes)
        pointer._location.ask(message)
        return worker.object_store.entry(message.result).made_by

    maker, edges = run(), torch.tensor([0.0, 1.0], dtype=torch.float64)
    assert (maker.protocol, maker.operands[0][:3]) == ("statistic", (("#x",), (30, 3), True))
    assert dict(maker.options)["samples"] == 30
    assert not dict(maker.options)["weighted"]
    programs = [dict(run(**changes).options)["program"] for changes in ({}, {"statistic": "histogram", "edges": edges})]
    assert programs[0] == dict(maker.options)["program"] != programs[1]
    moved = dict(run(statistic="histogram", edges=edges + 1).options)["program"]
    assert moved not in programs


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"statistic": "median"}, "there is no such statistic"),
        ({"statistic": "histogram"}, "its edges are not"),
        ({"edges": torch.ones(2, dtype=torch.float64)}, "only a histogram has edges"),
        ({"data": (torch.ones(3, 2),)}, "its data is not stored there"),
        ({"data": ()}, "its data is not stored there"),
    ],
)
def test_a_wrong_message_is_refused(rows: torch.Tensor, changes: Any, error: str) -> None:
    pointer = spread(rows)["bob"].data.child

    with pytest.raises(fl.FederatedError, match=error):
        pointer._location.ask(replace(Summarize((pointer,), "moments", new_id()), **changes))


def test_numbers_are_split_into_whole_numbers_and_joined_again() -> None:
    values = torch.tensor([0.0, 1.0, -1.5, 1e-20, -3.25e28, 2.0**98, 0.1], dtype=torch.float64)

    limbs = _split(values)

    assert len(limbs) == LIMBS
    assert all(bool((limb == limb.round()).all() and (limb.abs() < 2**BITS).all()) for limb in limbs)
    joined = torch.tensor([number / 2**99 for number in _join(limbs)], dtype=torch.float64)
    torch.testing.assert_close(joined, values, rtol=1e-9, atol=0)
    assert torch.equal(joined[[0, 1, 2, 4, 5, 6]], values[[0, 1, 2, 4, 5, 6]])
