from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_core.exceptions import GetNotPermittedError, WorkerError  # noqa: E402  # torch may be missing
from syft_torch.demo.hospitals import USER, start_hospitals  # noqa: E402  # the same
from syft_torch.demo.patients import make_patients  # noqa: E402  # the same

CLINICS = {"north": ("heart clinic", make_patients(8, 0, torch.Generator().manual_seed(1)))}
RULES = {"rules.sums": {"user": USER, "computed_from": ["#patients"], "form": "Tensor[7]", "count": 1}}


def test_a_hospital_lets_out_what_its_rule_says_and_writes_it_down(hook: Any, tmp_path: Path) -> None:
    hook.local_worker.user = USER
    with start_hospitals(hook, tmp_path, CLINICS, RULES, in_process=True) as (north,):
        (patients,) = north.location.search("#patients")
        total = patients.sum(0)
        with pytest.raises(GetNotPermittedError):
            patients.get()
        total.get(reason="a table")

        (left,) = north.read_departures()

    assert (left.rule, left.names, left.form) == ("sums", ("#patients",), "Tensor[7]")


@pytest.mark.slow
def test_hospitals_that_cannot_start_are_named_and_stopped(hook: Any, tmp_path: Path) -> None:
    before = set(threading.enumerate())

    with (
        pytest.raises(WorkerError, match="cannot start the hospital 'north': its process is not ready; see the lines"),
        start_hospitals(hook, tmp_path, CLINICS, {"limits": {"memory": 1}}, in_process=False),
    ):
        raise AssertionError("it has started")

    assert set(threading.enumerate()) <= before
