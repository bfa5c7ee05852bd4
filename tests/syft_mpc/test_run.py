from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy")
from syft_mpc.errors import ProtocolError  # noqa: E402
from syft_mpc.numpy.kernels import NumpyKernels  # noqa: E402
from syft_mpc.protocol import Spec  # noqa: E402

from .groups import Group  # noqa: E402


def test_a_run_cannot_be_repeated_with_the_same_randomness() -> None:
    group = Group(2, NumpyKernels())
    shares = group.share(np.arange(3))
    group.run("square", shares)
    group.number -= 1

    with pytest.raises(ProtocolError, match="cannot start run 1: a later one was started already"):
        group.run("square", shares)


def test_prepared_correlations_are_used_first() -> None:
    sent: list[Any] = []
    group = Group(2, NumpyKernels(), watch=lambda sender, receiver, payload: sent.append((sender, receiver)))
    x = np.arange(6)
    group.prepare("relu", (Spec((6,)),), 2)

    for _ in range(2):
        assert (group.open(group.run("relu", group.share(x - 3))) == np.maximum(x - 3, 0)).all()
    assert (-1, 0) not in sent
    assert (group.open(group.run("relu", group.share(x - 3))) == np.maximum(x - 3, 0)).all()
    assert (-1, 0) in sent


def test_corrections_may_arrive_after_the_run_that_uses_them_has_started_but_only_once() -> None:
    group = Group(2, NumpyKernels())
    provider, first = group.channels[-1], group.channels[0]
    late: list[Any] = []
    send, provider._post = provider._post, lambda *message: late.append(message)
    group.prepare("square", (Spec((6,)),), 2)
    provider._post = send

    results, errors = group.attempt("square", group.share(np.arange(6)))
    assert 0 not in results
    for _, number, payload in late:
        for run in first.receive(-1, number, payload):
            run.advance()

    assert not errors
    assert (group.open([results[0], results[1]]) == np.arange(6) ** 2).all()
    assert (group.open(group.run("square", group.share(np.arange(6)))) == np.arange(6) ** 2).all()
    for _, number, payload in late:
        with pytest.raises(ProtocolError, match="it was sent before"):
            first.receive(-1, number, payload)
    assert (first.held, first._stock, first._awaited) == (0, {}, set())
