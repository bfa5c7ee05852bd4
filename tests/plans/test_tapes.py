from __future__ import annotations

import pytest

from syft_core.plans.errors import PlanError
from syft_core.plans.program import Step
from syft_core.plans.tapes import Tape


def test_a_tape_numbers_the_results_of_its_steps() -> None:
    tape = Tape("double")

    numbers = [tape.add(Step("torch", "torch.add", (), {}, count)) for count in (1, 0, 2, 1)]

    assert numbers == [0, 1, 1, 3]
    assert tape.count == 4
    assert tape.lines[0][0] == __file__


def test_a_refusal_names_the_line_and_is_kept_if_the_function_catches_it() -> None:
    tape = Tape("double")
    for problem in ("reads a value", "draws a number"):
        with pytest.raises(PlanError, match=f"cannot record the plan 'double': train.py:7 {problem}; return a tensor"):
            tape.refuse(problem, "return a tensor", ("train.py", 7))

    assert tape.failure is not None
    assert "reads a value" in str(tape.failure[0])
    assert tape.failure[1] == ("train.py", 7)
