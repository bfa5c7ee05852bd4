"""Tables of several workers: agree on columns, replace missing values, scale, split, and measure."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import syft_core as sy
from syft_core.exceptions import GetNotPermittedError
from syft_torch import federated as fl

from .owners import COLUMNS, NAMES, fill, find, make_table

# --- agreement


def test_a_label_and_columns_make_a_dataset(workers: list[Any]) -> None:
    rows = fill(workers, gaps=False)

    data = find(workers, columns=["sex", "age"])

    assert len(data) == len(rows)
    found = torch.cat([dataset.data.copy().get() for dataset in data])
    assert torch.equal(found, rows[:, [2, 0]])


def test_without_columns_all_but_the_label_are_inputs(workers: list[Any]) -> None:
    rows = fill(workers, gaps=False)

    dataset = find(workers)["north"]

    assert dataset.data.shape == (40, 3)
    assert dataset.targets.get().tolist() == rows[:40, 3].long().tolist()


@pytest.mark.parametrize(
    ("worker", "column", "problem"),
    [
        ("south", sy.Column("weight"), "worker 'south' has no column 'age'"),
        ("south", sy.Column("age", "real", "years"), "worker 'south' has the type 'real' for column 'age', and others"),
        (
            "north",
            sy.Column("age", "integer", "days"),
            "worker 'north' has the unit 'days' for column 'age', and others",
        ),
        (
            "east",
            sy.Column("age", "integer"),
            "worker 'east' has the unit none for column 'age', and others have 'years'",
        ),
    ],
)
def test_the_worker_that_differs_is_named(workers: list[Any], worker: str, column: Any, problem: str) -> None:
    fill(workers, **{worker: [column, *COLUMNS[1:]]})

    with pytest.raises(fl.FederatedError, match=f"cannot use these tables together: {problem}") as caught:
        find(workers)
    assert sum(f"worker {name!r}" in str(caught.value) for name in NAMES) == 1


def test_categories_must_be_in_the_same_order(workers: list[Any]) -> None:
    fill(workers, east=[*COLUMNS[:3], sy.Column("outcome", "category", categories=("yes", "no"))])

    with pytest.raises(
        fl.FederatedError, match="'east' has the categories yes, no for column 'outcome', and others have no, y"
    ):
        find(workers)
    with pytest.raises(fl.FederatedError, match="no worker has a column 'aeg'"):
        find(workers, columns=["aeg"])


def test_a_table_without_names_is_named(workers: list[Any], hook: Any) -> None:
    fill(workers)
    other = sy.VirtualWorker(hook, id="west")
    other.load_data([make_table(7).tag("#patients")])

    with pytest.raises(fl.FederatedError, match="worker 'west' has no column names"):
        find([*workers, other])


@pytest.mark.parametrize(
    "options",
    [{"label": None, "columns": ["age"]}, {"columns": "age"}, {"columns": []}, {"columns": ["age", "outcome"]}],
)
def test_incomplete_questions_are_refused(workers: list[Any], options: Any) -> None:
    fill(workers)

    with pytest.raises(fl.FederatedError, match="a label, one search and a list of other columns belong together"):
        find(workers, **options)
    with pytest.raises(fl.FederatedError, match="no workers were given"):
        find([])


# --- categories

WARD = sy.Column("ward", "category", categories=("surgery", "heart", "eyes"), nullable=True)
TABLE = torch.tensor([[1.0, 50.0, 0.0], [float("nan"), 60.0, 1.0], [2.0, 70.0, 1.0], [0.0, 80.0, 0.0]])


def load_wards(workers: list[Any], ward: Any = WARD, private: bool = False) -> None:
    for worker in workers:
        table = TABLE.name_columns(ward, sy.Column("age"), sy.Column("outcome", "category", categories=("no", "yes")))
        worker.load_data([(table.private_tensor(["ana"]) if private else table).tag("#wards")])


ONE_HOT = [[0.0, 1, 0, 50], [0, 0, 0, 60], [0, 0, 1, 70], [1, 0, 0, 80]]


def test_categories_become_columns_of_zeros_and_ones(workers: list[Any]) -> None:
    load_wards(workers)

    data = fl.find("#wards", label="outcome", one_hot=True, workers=workers)

    assert data["north"].data.copy().get().tolist() == ONE_HOT
    assert data.columns == ("ward=surgery", "ward=heart", "ward=eyes", "age")
    assert data["north"].targets.copy().get().tolist() == [0, 1, 1, 0]
    train, test = fl.train_test_split(fl.Scaling.fit(data).apply(data), test_size=0.5)
    assert train.columns == test.columns == data.columns
    trainer = fl.FederatedTrainer(
        torch.nn.Linear(len(data.columns), 2), torch.nn.functional.cross_entropy,
        lambda p: torch.optim.SGD(p, lr=0.1), train,
    )  # fmt: skip
    assert len(trainer.fit(1, held_out=test)) == 1


def test_categories_of_private_tables_become_private_columns(workers: list[Any]) -> None:
    load_wards(workers, private=True)

    data = fl.find("#wards", label="outcome", one_hot=True, workers=workers)

    assert data["east"].data.shape == (4, 4)
    with pytest.raises(GetNotPermittedError):
        data["east"].data.get()
    workers[1].hook.local_worker.user = "ana"
    assert data["east"].data.copy().get().child.child.tolist() == ONE_HOT


def test_categories_in_one_column_stay_there_unless_it_is_wanted(workers: list[Any]) -> None:
    load_wards(workers)

    data = fl.find("#wards", label="outcome", missing=9, workers=workers)

    assert data["north"].data.copy().get()[:, 0].tolist() == [1, 9, 2, 0]
    assert data.columns == ("ward", "age")


def test_a_missing_category_can_be_one_of_them(workers: list[Any]) -> None:
    load_wards(workers)

    data = fl.find("#wards", label="outcome", missing={"ward": 2}, one_hot=True, workers=workers)

    assert data["north"].data.copy().get()[1].tolist() == [0, 0, 1, 60]


def test_the_mean_of_categories_is_refused(workers: list[Any]) -> None:
    load_wards(workers)

    with pytest.raises(fl.FederatedError, match="categories have no mean: pass `one_hot=True`"):
        fl.find("#wards", label="outcome", missing="mean", workers=workers)
    data = fl.find("#wards", label="outcome", missing="mean", one_hot=True, workers=workers)
    assert data["south"].data.copy().get().tolist() == ONE_HOT


# --- missing values


def test_missing_values_need_a_rule_of_the_scientist(workers: list[Any]) -> None:
    fill(workers)

    with pytest.raises(fl.FederatedError, match="column 'bmi': on worker 'north', values may be missing; say what"):
        find(workers, missing=None)
    with pytest.raises(fl.FederatedError, match="column 'bmi': on worker 'north'"):
        find(workers, missing={"age": 3.0})
    with pytest.raises(fl.FederatedError, match="cannot replace missing values by 'median': there is no such rule"):
        find(workers, missing="median")
    assert find(workers, missing=None, columns=["age"])["north"].data.shape == (40, 1)


def test_missing_labels_are_refused(workers: list[Any]) -> None:
    fill(workers, east=[*COLUMNS[:3], sy.Column("outcome", "category", categories=("no", "yes"), nullable=True)])

    with pytest.raises(
        fl.FederatedError, match="column 'outcome': on worker 'east', values may be missing; ask its owner"
    ):
        find(workers)


@pytest.mark.parametrize("rule", [7.0, {"bmi": 7}, "mean"])
def test_missing_values_are_replaced_on_the_workers(workers: list[Any], rule: Any) -> None:
    rows = fill(workers)

    data = find(workers, columns=["bmi"], missing=rule)

    found = torch.cat([dataset.data.copy().get() for dataset in data])[:, 0]
    expected = rows[:, 1].double().nanmean().float() if rule == "mean" else torch.tensor(7.0)
    torch.testing.assert_close(found, rows[:, 1].nan_to_num(float(expected)))


# --- splitting


def test_a_split_has_every_row_once_and_is_the_same_again(workers: list[Any]) -> None:
    rows = fill(workers, gaps=False)
    data = find(workers, columns=["age"])

    halves = [fl.train_test_split(data, test_size=0.25, seed=seed) for seed in (1, 1, 2)]
    ages = [[torch.cat([d.data.copy().get()[:, 0] for d in half]).tolist() for half in pair] for pair in halves]

    assert len(halves[0][1]) == sum(round(0.25 * (40 + number)) for number in range(3))
    assert sorted(ages[0][0] + ages[0][1]) == sorted(rows[:, 0].tolist())
    assert ages[0] == ages[1] != ages[2]


def test_rows_of_inputs_and_targets_stay_together(workers: list[Any]) -> None:
    for worker in workers:
        numbers = torch.arange(12.0)
        worker.load_data([torch.stack([numbers, numbers], 1).name_columns("a", "outcome").tag("#patients")])

    train, _ = fl.train_test_split(find(workers))

    for dataset in train:
        inputs, targets = [part.copy().get() for part in dataset.parts]
        assert inputs[:, 0].tolist() == targets.tolist()


@pytest.mark.parametrize("share", [0, 1, -0.5, 0.001])
def test_a_split_without_rows_is_refused(workers: list[Any], share: float) -> None:
    fill(workers)

    with pytest.raises(fl.FederatedError, match="cannot split"):
        fl.train_test_split(find(workers), test_size=share)


def test_a_split_of_private_data_is_private(workers: list[Any]) -> None:
    fill(workers, users=["noor"])

    for half in fl.train_test_split(find(workers)):
        with pytest.raises(GetNotPermittedError):
            half["north"].data.get()


# --- metrics


def test_every_operation_of_the_helpers_is_reviewed(hook: Any) -> None:
    """A user of the tier "reviewed" may use them on private data."""
    ops = hook.attributes
    names = (
        "nanmean nansum isnan logical_not sum to index_select argmax cumsum new_ones new_zeros reshape unsqueeze "
        "clamp abs nan_to_num scatter_add"
    )

    assert [name for name in names.split() if ops.method(name).tier != "reviewed"] == []


# --- mocks, and workers that were started again


def test_a_program_runs_on_mocks_as_on_data(hook: Any) -> None:
    hook.local_worker.user = "eve"
    workers = [sy.VirtualWorker(hook, id=name) for name in NAMES]
    fill(workers, users=["noor"])
    for worker in workers:
        mock = make_table(5).name_columns(*COLUMNS).tag("#mock")
        worker.load_data([mock])
        entry = worker.object_store.entry(worker.search("#patients")[0].id_at_location)
        entry.schema = sy.Schema(entry.schema.columns, mock.id)

    data = find(workers, mock=True)
    scaling = fl.Scaling.fit(data)

    assert torch.isfinite(scaling.apply(data)["north"].data.get()).all()


def test_derived_data_is_found_again_after_a_restart(workers: list[Any], hook: Any) -> None:
    fill(workers)
    data = find(workers, missing="mean")
    train, _ = fl.train_test_split(data)
    scaled = fl.Scaling.fit(train).apply(train)
    dataset = scaled["north"]
    before = dataset.data.copy().get()
    workers[0].clear_objects()
    workers[0].load_data([make_table(0).name_columns(*COLUMNS).tag("#patients")])

    dataset.find_again()

    assert torch.equal(dataset.data.get(), before)
