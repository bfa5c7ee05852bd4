"""What a rule says about programs, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from syft_core.values import Json
from syft_worker.desk.patterns import count_numbers

SHORT = 12
"""The number of digits of a digest that are shown."""


def describe_any_program(conditions: Mapping[str, Json]) -> str:
    """Return what it means that a rule does not ask for a program, with a number if there is one."""
    form, count = conditions.get("form"), conditions.get("count")
    numbers = None if form is None else count_numbers(form)
    if numbers is None:
        return f"{'unlimited' if count is None else f'{count:,}'} uses of {form or 'any form'}: any part of the data"
    if count is None:
        return f"each use of {form}: up to {numbers:,} numbers of the data, without a limit"
    uses = "use" if count == 1 else "uses"
    return f"{count:,} {uses} of {form}: up to {count * numbers:,} numbers of the data"


def shorten_programs(programs: Sequence[str]) -> str:
    """Return digests as they are shown."""
    return " or ".join([f"{program[:SHORT]}…" for program in programs])
