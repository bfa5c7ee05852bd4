"""Tables of several workers: agree on columns, replace missing values, scale, split, and measure."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

import syft_core as sy
from syft_core.desk.errors import ReleaseDeniedError
from syft_core.exceptions import GetNotPermittedError
from syft_torch import federated as fl

NAMES = ("north", "east", "south")
COLUMNS = [
    sy.Column("age", "integer", "years"),
    sy.Column("bmi", "real", "kg/m2", nullable=True),
    sy.Column("sex", "category", categories=("f", "m")),
    sy.Column("outcome", "category", categories=("no", "yes")),
]


@pytest.fixture(params=[False, True], ids=["in_process", "by_wire"])
def workers(hook: Any, request: pytest.FixtureRequest) -> list[Any]:
    hook.local_worker.user = "eve"
    return [sy.VirtualWorker(hook, id=name, serialize=request.param) for name in NAMES]


def make_table(number: int, rows: int = 40, gaps: bool = True) -> torch.Tensor:
    source = torch.Generator().manual_seed(number)
    table = torch.randn(rows + number, 4, generator=source) * 3 + 1000 * torch.tensor([1.0, 1, 0, 0])
    table[:, 2:] = (table[:, 2:] > 0).float()
    if gaps:
        table[:: number + 3, 1] = math.nan
    return table


def fill(
    workers: list[Any], users: list[str] | None = None, gaps: bool = True, **changes: list[sy.Column]
) -> torch.Tensor:
    """Load a table on each worker, and return all rows."""
    tables = [make_table(number, gaps=gaps) for number in range(len(workers))]
    for worker, table in zip(workers, tables, strict=True):
        named = table.clone().name_columns(*changes.get(worker.id, COLUMNS)).tag("#patients")
        worker.load_data([named if users is None else named.private_tensor(users)])
    return torch.cat(tables)


def find(workers: list[Any], **options: Any) -> fl.FederatedDataset:
    return fl.find("#patients", **{"label": "outcome", "missing": 0.0, "workers": workers, **options})


@contextmanager
def owners(workers: list[Any], decide: str = "approve") -> Iterator[None]:
    """Let the owners of workers decide on all requests."""
    done = threading.Event()

    def work() -> None:
        while not done.wait(0.01):
            for worker in workers:
                for request in [each for each in worker.requests if each.state == "open"]:
                    worker.decide(decide, request, "because")

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


# --- agreement


def test_a_label_and_columns_make_a_dataset(workers: list[Any]) -> None:
    rows = fill(workers, gaps=False)

    data = find(workers, columns=["sex", "age"])

    assert len(data) == len(rows)
    found = torch.cat([dataset.get().data for dataset in data])
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

    found = torch.cat([dataset.get().data for dataset in data])[:, 0]
    expected = rows[:, 1].double().nanmean().float() if rule == "mean" else torch.tensor(7.0)
    torch.testing.assert_close(found, rows[:, 1].nan_to_num(float(expected)))


# --- scaling


def test_the_scaling_is_that_of_all_rows_together(workers: list[Any]) -> None:
    rows = fill(workers, gaps=False)[:, :3]
    data = find(workers)

    scaling = fl.Scaling.fit(data)
    scaled = torch.cat([dataset.get().data for dataset in scaling.apply(data)])

    torch.testing.assert_close(scaling.mean, rows.double().mean(0).float())
    torch.testing.assert_close(scaling.deviation, rows.double().std(0, unbiased=False).float(), rtol=1e-5, atol=0)
    torch.testing.assert_close(scaled, (rows - scaling.mean) / scaling.deviation)


def test_a_constant_column_is_not_divided_by_zero(workers: list[Any]) -> None:
    for worker in workers:
        worker.load_data([torch.ones(5, 2).name_columns("a", "outcome").tag("#patients")])
    data = find(workers)

    scaled = fl.Scaling.fit(data).apply(data)

    assert scaled["north"].data.get().tolist() == [[0.0]] * 5


def test_a_worker_without_values_in_a_column_counts_for_nothing(workers: list[Any]) -> None:
    for number, worker in enumerate(workers):
        table = torch.full((4, 2), math.nan if number == 0 else float(number))
        table[:, 1] = 1
        worker.load_data([table.name_columns(sy.Column("a", nullable=True), "outcome").tag("#patients")])

    data = find(workers, missing="mean")

    assert fl.Scaling.fit(data).mean.tolist() == [1.5]
    assert data["north"].data.get().tolist() == [[1.5]] * 4


def test_what_cannot_be_scaled_is_refused(workers: list[Any]) -> None:
    for worker in workers:
        worker.load_data([torch.tensor([[math.inf, 1.0]] * 4).name_columns("a", "outcome").tag("#patients")])

    with pytest.raises(fl.FederatedError, match="one of them has infinite values"):
        fl.Scaling.fit(find(workers))
    for call in (fl.Scaling.fit, fl.train_test_split):
        with pytest.raises(fl.FederatedError, match="cannot use a list: expected a FederatedDataset"):
            call([])


def test_what_leaves_for_a_scaling_is_one_sum_for_each_worker(workers: list[Any]) -> None:
    fill(workers, gaps=False)
    data = find(workers)

    fl.Scaling.fit(data)

    (line,) = workers[0].ledger
    assert line.form == "Tensor[3, 3]"
    assert workers[0].search("#patients")[0].id_at_location in line.sources


def test_sums_of_private_data_stay_unless_the_owner_agrees(workers: list[Any]) -> None:
    rows = fill(workers, users=["noor"], gaps=False)[:, :3]
    data = find(workers)

    with pytest.raises(GetNotPermittedError):
        fl.Scaling.fit(data)
    with owners(workers, "deny"), pytest.raises(ReleaseDeniedError, match="because"):
        fl.Scaling.fit(data, reason="a study")
    with owners(workers):
        scaling = fl.Scaling.fit(data, reason="a study")

    torch.testing.assert_close(scaling.mean, rows.double().mean(0).float())
    with pytest.raises(GetNotPermittedError):
        scaling.apply(data)["north"].data.get()


# --- splitting


def test_a_split_has_every_row_once_and_is_the_same_again(workers: list[Any]) -> None:
    rows = fill(workers, gaps=False)
    data = find(workers, columns=["age"])

    halves = [fl.train_test_split(data, test_size=0.25, seed=seed) for seed in (1, 1, 2)]
    ages = [[torch.cat([d.get().data[:, 0] for d in half]).tolist() for half in pair] for pair in halves]

    assert len(halves[0][1]) == sum(round(0.25 * (40 + number)) for number in range(3))
    assert sorted(ages[0][0] + ages[0][1]) == sorted(rows[:, 0].tolist())
    assert ages[0] == ages[1] != ages[2]


def test_rows_of_inputs_and_targets_stay_together(workers: list[Any]) -> None:
    for worker in workers:
        numbers = torch.arange(12.0)
        worker.load_data([torch.stack([numbers, numbers], 1).name_columns("a", "outcome").tag("#patients")])

    train, _ = fl.train_test_split(find(workers))

    for dataset in train:
        local = dataset.get()
        assert local.data[:, 0].tolist() == local.targets.tolist()


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


def exact_auc(scores: torch.Tensor, targets: torch.Tensor) -> float:
    ill, healthy = scores[targets == 1], scores[targets == 0]
    order = (ill.unsqueeze(1) > healthy).double() + (ill.unsqueeze(1) == healthy).double() / 2
    return float(order.mean())


@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_the_auc_of_counts_is_that_of_all_samples(workers: list[Any], scale: float) -> None:
    targets = [(torch.randn(200, generator=torch.Generator().manual_seed(n)) > 0).long() for n in range(3)]
    scores = [
        scale * (torch.randn(200, generator=torch.Generator().manual_seed(9 + n)) + t) for n, t in enumerate(targets)
    ]

    found = fl.AUC().of(
        [score.send(worker) for score, worker in zip(scores, workers, strict=True)],
        [target.send(worker) for target, worker in zip(targets, workers, strict=True)],
    )

    assert found == pytest.approx(exact_auc(torch.cat(scores), torch.cat(targets)), abs=2e-3)
    assert found == pytest.approx(fl.AUC().of(torch.cat(scores), torch.cat(targets)))


def test_the_auc_of_a_single_class_is_not_a_number() -> None:
    assert math.isnan(fl.AUC().of(torch.tensor([1.0, 2.0]), torch.tensor([1, 1])))


@pytest.mark.parametrize("shape", ["one score", "scores of classes"])
def test_a_confusion_matrix_counts_pairs(workers: list[Any], shape: str) -> None:
    targets, guesses = torch.tensor([0, 0, 1, 1, 1]), torch.tensor([0, 1, 1, 1, 0])
    output = (guesses - 0.5).unsqueeze(1) if shape == "one score" else torch.eye(2)[guesses]

    found = fl.ConfusionMatrix().of([output.send(workers[0])], [targets.send(workers[0])])

    assert found.tolist() == [[1, 1], [1, 2]]
    with pytest.raises(fl.FederatedError, match="there are 1 outputs and 2 targets"):
        fl.ConfusionMatrix().of(output, [targets, targets])


def test_counts_of_private_data_leave_only_if_the_owner_agrees(workers: list[Any]) -> None:
    secret = torch.tensor([3.0, -1.0, 2.0, 0.5]).private_tensor(["eve"])
    workers[0].load_data([secret.tag("#scores"), torch.tensor([1, 0, 1, 0]).private_tensor(["eve"]).tag("#truth")])
    (scores,), (truth,) = workers[0].search("#scores"), workers[0].search("#truth")
    hook = scores.owner.hook
    hook.local_worker.user = "mallory"

    for metric in (fl.AUC(), fl.ConfusionMatrix()):
        with pytest.raises(GetNotPermittedError):
            metric.of(scores, truth)
    with owners(workers):
        assert fl.AUC().of(scores, truth, reason="a study") == 1.0
        assert fl.ConfusionMatrix().of(scores, truth, reason="a study").tolist() == [[1, 1], [0, 2]]


def test_a_trainer_evaluates_metrics_from_counts(workers: list[Any]) -> None:
    fill(workers, users=["noor"], gaps=False)
    train, test = fl.train_test_split(find(workers, columns=["sex"]))
    model = torch.nn.Linear(1, 2)
    options = {"reason": "a study", "batch_size": 16}
    with owners(workers):
        trainer = fl.FederatedTrainer(
            model, torch.nn.functional.cross_entropy, lambda p: torch.optim.SGD(p, lr=0.1), train, **options
        )
        trainer.fit(1)
        found = trainer.evaluate(test, {"auc": fl.AUC(), "confusion": fl.ConfusionMatrix()})

    assert 0 <= found["auc"] <= 1
    assert int(found["confusion"].sum()) == len(test) == found.samples
    assert sum(int(each["confusion"].sum()) for each in found.workers.values()) == len(test)
    assert "confusion" in str(found)
    assert "confusion" in found._repr_html_()


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
    dataset = scaled.datasets["north"][0]
    before = dataset.data.copy().get()
    workers[0].clear_objects()
    workers[0].load_data([make_table(0).name_columns(*COLUMNS).tag("#patients")])

    dataset.find_again()

    assert torch.equal(dataset.data.get(), before)
