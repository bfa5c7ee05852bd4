"""Each phase of a round, at each worker: a worker that is killed, silent, late or restarted."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import numpy as np

from syft_core.exceptions import ConnectionLostError
from syft_sums.client import SumStudy
from syft_sums.errors import SumError
from syft_sums.messages import JoinSum, MaskSum, RevealSum

from ..waiting import wait_for_end
from .workers import NAMES, Hospitals

PHASES = {"join": JoinSum, "mask": MaskSum, "reveal": RevealSum}
KINDS = ("killed", "answer lost", "silent", "restarted")
VALUES = [[1.0], [10.0], [100.0], [1000.0]]


class Faulty:
    """A way to a worker that fails once it is asked for one kind of message."""

    is_parallel = True

    def __init__(self, location: Any, kind: str, phase: str, hospitals: Hospitals) -> None:
        self.id, self._location = location.id, location
        self._kind, self._phase, self._hospitals = kind, PHASES[phase], hospitals
        self.is_back = threading.Event()
        self.has_failed = False
        self.late: list[object] = []
        """What the worker answered when nobody waited any more."""

    def ask(self, message: Any) -> Any:
        if self.is_back.is_set() or not (self.has_failed or isinstance(message, self._phase)):
            return self._location.ask(message)
        self.has_failed = True
        if self._kind == "restarted":
            self._hospitals.restart(self.id)
            self._location = self._hospitals.hook.local_worker.location_of(self.id)
            self.is_back.set()
            return self._location.ask(message)
        if self._kind == "silent":
            self.is_back.wait(60)
            try:
                self.late.append(self._location.ask(message))
            except Exception as error:
                self.late.append(error)
                raise
        if self._kind == "answer lost":
            self._location.ask(message)
        raise ConnectionLostError("the connection was lost")


@pytest.fixture
def four(hook: Any, tmp_path: Path) -> Iterator[Hospitals]:
    yield Hospitals(hook, tmp_path, 4, changes=9)
    for thread in threading.enumerate():
        if thread.name.startswith("sum at"):
            wait_for_end(thread)


def break_study(hospitals: Hospitals, name: str, kind: str, phase: str) -> tuple[SumStudy, Faulty]:
    study = hospitals.study()
    faulty = Faulty(study.locations[name], kind, phase, hospitals)
    study.locations[name] = faulty  # type: ignore[assignment]  # it has what a study needs
    study._patience = 0.3 if kind == "silent" else None
    return study, faulty


def read_lines(hospitals: Hospitals, name: str) -> list[Any]:
    worker = hospitals.hook.local_worker.get_worker(name)
    return [entry for entry in worker.ledger.read_last() if entry.sum is not None]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("name", NAMES[:4])
def test_one_worker_that_fails_in_a_phase(four: Hospitals, name: str, phase: str, kind: str) -> None:
    study, faulty = break_study(four, name, kind, phase)
    place = NAMES.index(name)

    result = study.sum(1, four.put_all(VALUES))

    with_all = phase == "reveal"
    expected = 60.0 * (1111 if with_all else 1111 - 10**place)
    np.testing.assert_allclose(result.vector, [expected, 240.0 if with_all else 180.0])
    assert (name in result.lost) is not with_all
    faulty.is_back.set()
    for worker in NAMES[:4]:
        lines = read_lines(four, worker)
        assert len({line.request for line in lines if line.event == "released"}) <= 1
        assert len([line for line in lines if line.event == "revealed"]) <= 1
        is_in_sum = with_all or worker != name
        assert any(line.event == "released" for line in lines) or not is_in_sum

    again = four.study()
    values = four.put_all(VALUES, supplied="77" * 32)
    np.testing.assert_allclose(again.sum(again.next_round, values).vector, [60.0 * 1111, 240.0])


@pytest.mark.parametrize("phase", PHASES)
def test_what_a_late_worker_answers_opens_nothing_more(four: Hospitals, phase: str) -> None:
    study, faulty = break_study(four, "south", "silent", phase)
    result = study.sum(1, four.put_all(VALUES))
    faulty.is_back.set()
    for thread in threading.enumerate():
        if thread.name == "sum at south":
            wait_for_end(thread)

    assert len(faulty.late) >= 1
    assert len([line for line in read_lines(four, "south") if line.event == "revealed"]) == (phase == "reveal")
    assert result.samples == (240 if phase == "reveal" else 180)


@pytest.mark.parametrize("kind", ["killed", "answer lost"])
def test_with_three_workers_a_lost_one_is_waited_for(hospitals: Hospitals, kind: str) -> None:
    study, faulty = break_study(hospitals, "east", kind, "reveal")
    with pytest.raises(SumError, match="2 of 3 workers are left, and 3 must take part to the end; east: .*`resume"):
        study.sum(1, hospitals.put_all(VALUES[:3]))

    faulty.is_back.set()

    np.testing.assert_allclose(study.resume(1).vector, [60.0 * 111, 180.0])
    for name in NAMES[:3]:
        assert [line.event for line in read_lines(hospitals, name)] == ["released", "revealed"]


def test_with_three_workers_a_restarted_one_ends_the_round(hospitals: Hospitals) -> None:
    study, _ = break_study(hospitals, "east", "restarted", "reveal")
    with pytest.raises(SumError, match="it was restarted, or the round has ended"):
        study.sum(1, hospitals.put_all(VALUES[:3]))

    again = hospitals.study()
    assert again.next_round == 2
    values = hospitals.put_all(VALUES[:3])
    np.testing.assert_allclose(again.sum(2, values).vector, [60.0 * 111, 180.0])


def test_two_of_four_are_too_few_and_the_error_names_why(four: Hospitals) -> None:
    study, _ = break_study(four, "east", "killed", "mask")
    study.locations["west"] = Faulty(study.locations["west"], "killed", "mask", four)  # type: ignore[assignment]
    with pytest.raises(SumError, match="2 of 4 workers are left, and 3 must take part .*; east: .*; west: "):
        study.sum(1, four.put_all(VALUES))


def test_a_round_that_was_given_up_cannot_be_resumed(four: Hospitals) -> None:
    study, _ = break_study(four, "east", "killed", "join")
    with pytest.raises(SumError, match="was not begun here, or has a sum"):
        study.resume(1)
    study.sum(1, four.put_all(VALUES))
    with pytest.raises(SumError, match="was not begun here, or has a sum"):
        study.resume(1)
