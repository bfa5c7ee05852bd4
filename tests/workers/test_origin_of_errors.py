"""The first note of an error names the line of the program that issued the command which failed."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import syft_core as sy

from ..network.served import serve

torch = pytest.importorskip("torch")


def here() -> str:
    """Return the place of the line that calls this."""
    frame: Any = inspect.currentframe()
    return f"{__file__}:{frame.f_back.f_lineno}"


def first_note(error: BaseException) -> str:
    return str(error.__notes__[0])  # type: ignore[attr-defined]  # Python 3.10 has no notes


def test_an_error_that_surfaces_later_names_the_line_that_caused_it(hook: Any) -> None:
    with serve(hook) as served:
        far = served.connect()
        a, b = torch.ones(2, 2).send(far), -torch.eye(2)
        b = b.send(far)
        line, failed = here(), torch.linalg.cholesky(b)
        later = (failed + 1) * 2
        for use in (lambda: (a + 1).get(), later.get, lambda: (failed * 2).get(), later.get):
            with pytest.raises(RuntimeError, match="cholesky") as caught:
                use()
            assert first_note(caught.value) == f"torch.linalg.cholesky was issued by {line}"


def test_an_error_in_a_plan_names_the_line_that_called_it_first(hook: Any) -> None:
    with serve(hook) as served:
        far = served.connect()
        there = sy.Plan("root", torch.linalg.cholesky).build(torch.eye(2)).send(far)
        there(torch.eye(2))
        line, failed = here(), there(-torch.eye(2))
        for use in (far.flush, failed.get):
            with pytest.raises(RuntimeError, match="cholesky") as caught:
                use()
            assert first_note(caught.value) == f"RunPlan was issued by {line}"


def test_an_error_by_wire_names_the_line_first(hook: Any) -> None:
    bob = sy.VirtualWorker(hook, id="bob", serialize=True)
    b = (-torch.eye(2)).send(bob)
    there = sy.Plan("root", torch.linalg.cholesky).build(torch.eye(2)).send(bob)
    with pytest.raises(RuntimeError, match="cholesky") as caught:
        line = here(), torch.linalg.cholesky(b)
    line = f"{__file__}:{inspect.getsourcelines(test_an_error_by_wire_names_the_line_first)[1] + 5}"
    assert first_note(caught.value) == f"torch.linalg.cholesky was issued by {line}"
    with pytest.raises(RuntimeError, match="cholesky") as caught:
        there(b)
    assert first_note(caught.value).startswith(f"RunPlan was issued by {__file__}:")
