from __future__ import annotations

import pytest

pytest.importorskip("torch")

import numpy as np

import syft_core as sy

from .workers import Hospitals


def test_the_sum_of_three_workers_is_weighted_by_their_samples(hospitals: Hospitals) -> None:
    study = hospitals.study()
    values = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.5]]

    result = study.sum(study.next_round, hospitals.put_all(values))

    np.testing.assert_allclose(result.vector, [540.0, 750.0, 180.0])
    assert result.samples == 180
    assert set(result.members) == {"north", "south", "east"}
    assert result.lost == {}


def test_a_trace_shows_what_is_masked_as_what_leaves(hospitals: Hospitals) -> None:
    study = hospitals.study()
    results = hospitals.put_all([[1.0, 2.0]] * 3)

    with sy.trace() as seen:
        study.sum(1, results)

    assert [event.operation for event in seen.departures] == ["mask round 1"] * 3
    assert {event.direction[0] for event in seen.departures} == {"north", "south", "east"}
    assert {event.form for event in seen.departures} == {""}


def test_the_ledger_has_the_sum_and_nothing_else(hospitals: Hospitals) -> None:
    study = hospitals.study()
    study.sum(1, hospitals.put_all([[1.0, 2.0]] * 3))

    for worker in hospitals.workers:
        (line,) = worker.ledger
        names = sorted(hospitals.fingerprints, key=hospitals.fingerprints.__getitem__)
        assert line.form == f'Tensor[3] of sum(study="icu", round=1, workers=3, noise=none) among {", ".join(names)}'
        assert (line.event, line.rule, line.user, line.names) == ("released", "aggregates", "dana", ("#x",))
        assert [entry.event for entry in worker.ledger.read_last()[-2:]] == ["released", "revealed"]
