"""Tapes: the recorded steps of one run of a function."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NoReturn

from syft_core.hook.forms import Form
from syft_core.hook.hook import find_line_of_program
from syft_core.peer import Id
from syft_core.plans.errors import PlanError
from syft_core.plans.program import Step
from syft_core.values import Nested

CodeLine = tuple[str, int]


@dataclass(frozen=True)
class Ref:
    """A tensor or number in a recorded step: an argument, a part of the state, or the result of a step."""

    kind: str
    """``input``, ``state``, ``result``, or ``earlier`` for an object made by an earlier run."""
    key: Any
    attr: str | None = None


@dataclass
class Tape:
    """The steps of one run of the function."""

    plan: str
    steps: list[Step] = field(default_factory=list)
    lines: list[CodeLine] = field(default_factory=list)
    inputs: dict[Id, int] = field(default_factory=dict)
    shapes: dict[int, tuple[int, ...]] = field(default_factory=dict)
    results: dict[Id, int] = field(default_factory=dict)
    count: int = 0
    facts: dict[int, Nested] = field(default_factory=dict)
    """The facts about forms that were read, by the number of the result."""
    before: dict[Id, Form | None] = field(default_factory=dict)
    """The forms of the state before the run, by id."""
    gradients: set[Id] = field(default_factory=set)
    """The parts of the state that had a gradient before the run."""
    answer: Any = None
    state: str = "open"
    """"open" while the function runs, "closed" while it runs again, "over" after recording."""
    failure: tuple[Exception, CodeLine] | None = None
    """The first error raised by the recorder or a command, and its line; the function must not catch it."""

    def add(self, step: Step, line: CodeLine | None = None) -> int:
        """Append a step, and return the number of its first result."""
        self.steps.append(step)
        self.lines.append(line or find_line_of_program())
        self.count += step.count
        return self.count - step.count

    def refuse(self, problem: str, advice: str, line: CodeLine | None = None) -> NoReturn:
        """Raise an error that names the line of the user's program."""
        file, number = line = line or find_line_of_program()
        error = PlanError.at(self.plan, file, number, problem, advice)
        self.failure = self.failure or (error, line)
        raise error
