from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_core.exceptions import GetNotPermittedError, WorkerError  # noqa: E402  # torch may be missing
from syft_torch import federated as fl  # noqa: E402  # the same
from syft_torch.demo import hospitals  # noqa: E402  # the same
from syft_torch.demo.hospitals import USER, start_hospitals  # noqa: E402  # the same
from syft_torch.demo.patients import find_data, make_patients  # noqa: E402  # the same

CLINICS = {
    name: (f"clinic {place}", make_patients(8, place, torch.Generator().manual_seed(place)))
    for place, name in enumerate(("north", "east", "south"))
}
RULE = {"user": USER, "computed_from": ["#patients"], "any_program": True, "at_least": 3, "count": 1}


def test_hospitals_let_out_what_their_rule_says_and_write_it_down(hook: Any, tmp_path: Path) -> None:
    hook.local_worker.user = USER
    with start_hospitals(hook, tmp_path, CLINICS, RULE, in_process=True) as started:
        data = find_data(*[hospital.location for hospital in started])
        with pytest.raises(GetNotPermittedError):
            started[0].location.search("#patients")[0].sum(0).get()
        total = fl.sum(data, aggregation=fl.SecureAggregation("a table"))

        left = [hospital.read_departures() for hospital in started]

    expected = sum(rows.double().sum(0) for _, (rows, _) in CLINICS.values())
    assert torch.allclose(total.double(), expected, atol=1e-4)
    assert [(entry.rule, entry.names) for entries in left for entry in entries] == [("aggregates", ("#patients",))] * 3


@pytest.mark.slow
def test_hospitals_that_cannot_start_are_named_and_stopped(
    hook: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hospitals, "OUTCOMES", ["well"])  # So the file of patients is not as the configuration says.
    before = set(threading.enumerate())

    with (
        pytest.raises(WorkerError, match="cannot start the hospital 'north': its process is not ready; see the lines"),
        start_hospitals(hook, tmp_path, CLINICS, RULE, in_process=False),
    ):
        raise AssertionError("it has started")

    assert set(threading.enumerate()) <= before
