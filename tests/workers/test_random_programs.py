"""Random programs over two workers do what the same programs do on plain tensors, and leave nothing behind.

``SYFT_EXAMPLES`` sets the number of programs in each mode: 40 by default, 2,000 in the nightly environment.
"""

from __future__ import annotations

import gc
import operator
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

torch = pytest.importorskip("torch")
hypothesis = pytest.importorskip("hypothesis")

from hypothesis import HealthCheck, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from syft_core.exceptions import NotCollocatedError  # noqa: E402

EXAMPLES = int(os.environ.get("SYFT_EXAMPLES", "40"))

COMPUTE: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "subtract a number": lambda x, _y: x - 1.5,
    "multiply": torch.mul,
    "concatenate": lambda x, y: torch.cat([x, y]).view(2, -1).sum(0),
    "where": lambda x, y: torch.where(x > y, x, y),
    "largest": lambda x, _y: x.max(0).values + x,
    "parts": lambda x, _y: torch.cat(list(reversed(x.chunk(3)))),
    "the same": lambda x, _y: x.contiguous(),
    "a view": lambda x, _y: x.view(-1),
    "clone": lambda x, _y: x.clone(),
}
CHANGE: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x.add_(y),
    "multiply": operator.imul,
    "zero the first": lambda x, _y: x.__setitem__(0, 0.0),
    "assign": lambda x, y: x.__setitem__(slice(1, None), y[1:]),
    "clamp": lambda x, _y: x.clamp_(-100, 100),
    "out": lambda x, y: torch.add(x, y, out=x),
}
HERE = "here"


class Step(NamedTuple):
    """One line of a program; numbers stand for variables, counted from the first and round again."""

    verb: str
    what: str
    first: int
    second: int
    place: str


places = st.sampled_from(["bob", "alice"])
numbers = st.integers(0, 7)
steps = st.one_of(
    st.builds(Step, st.just("make"), st.just(""), numbers, numbers, places),
    st.builds(Step, st.just("compute"), st.sampled_from(sorted(COMPUTE)), numbers, numbers, places),
    st.builds(Step, st.just("change"), st.sampled_from(sorted(CHANGE)), numbers, numbers, places),
    st.builds(
        Step, st.sampled_from(["get", "move", "copy", "point twice", "delete"]), st.just(""), numbers, numbers, places
    ),
)


class Program:
    """Runs steps on pointers and on plain tensors in parallel."""

    def __init__(self, workers: dict[str, Any]) -> None:
        self.workers = workers
        self.variables: list[tuple[Any, Any, str]] = []
        """What a pointer, or a tensor that was fetched, should be; the thing itself; where it is."""

    def do(self, step: Step) -> None:
        if step.verb == "make" or not self.variables:
            plain = torch.tensor([float(step.first), -2.0, step.second / 4])
            self.variables.append((plain, plain.send(self.workers[step.place]), step.place))
            return
        getattr(self, "_" + step.verb.replace(" ", "_"))(step, step.first % len(self.variables))

    def _compute(self, step: Step, first: int) -> None:
        (x, p, place), (y, q, other) = self.variables[first], self.variables[step.second % len(self.variables)]
        run = COMPUTE[step.what]
        if place == other:
            self.variables.append((run(x, y), run(p, q), place))
        elif _meets(run):
            with pytest.raises(NotCollocatedError):
                run(p, q)
        else:
            self.variables.append((run(x, y), run(p, q), place))

    def _change(self, step: Step, first: int) -> None:
        (x, p, place), (y, q, other) = self.variables[first], self.variables[step.second % len(self.variables)]
        run = CHANGE[step.what]
        if place == other or not _meets(run):
            run(x, y)
            run(p, q)
        else:
            with pytest.raises(NotCollocatedError):
                run(p, q)

    def _get(self, _step: Step, first: int) -> None:
        x, p, place = self.variables[first]
        if place != HERE and not p.child.gone:
            self.variables[first] = (x.clone(), p.get(), HERE)

    def _move(self, step: Step, first: int) -> None:
        x, p, place = self.variables[first]
        if place not in (HERE, step.place):
            self.variables[first] = (x.clone(), p.move(self.workers[step.place]), step.place)

    def _copy(self, _step: Step, first: int) -> None:
        x, p, place = self.variables[first]
        self.variables.append((x.clone(), p.clone() if place == HERE else p.copy(), place))

    def _point_twice(self, _step: Step, first: int) -> None:
        x, p, place = self.variables[first]
        if place != HERE:
            second = p.child.clone()
            del p
            self.variables[first] = (x, second.framework.wrapper(second), place)

    def _delete(self, _step: Step, first: int) -> None:
        del self.variables[first]

    def check(self) -> None:
        for x, p, place in self.variables:
            assert tuple(p.shape) == tuple(x.shape)
            value = p if place == HERE else p.copy().get()
            torch.testing.assert_close(value, x, rtol=0, atol=0, equal_nan=True)


def _meets(run: Callable[[Any, Any], Any]) -> bool:
    """Return whether a call uses its second operand."""
    return "_y" not in getattr(run, "__code__", _meets.__code__).co_varnames


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[*HealthCheck])
@given(st.lists(steps, min_size=1, max_size=25))
def test_a_program_on_workers_does_what_it_does_on_plain_tensors(bob: Any, alice: Any, program: list[Step]) -> None:
    for worker in (bob, alice):
        worker.clear_objects()
    run = Program({"bob": bob, "alice": alice})

    for step in program:
        run.do(step)

    run.check()
    del run
    gc.collect(0)
    assert (bob.objects_count, alice.objects_count) == (0, 0)
