from __future__ import annotations

import math
from typing import Any

import pytest
import torch

import syft_core as sy
from syft_core.exceptions import GetNotPermittedError
from syft_torch import federated as fl
from syft_worker.desk.errors import ReleaseDeniedError

from .owners import fill, find, owners


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
    assert line.form == "Tensor[57] float64"
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
