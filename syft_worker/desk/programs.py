"""What rules ask about how a result was computed: its program, its rows, and what a row can change.

The checks of a rule with programs need no values, so that a refusal reveals nothing. They are for honest mistakes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from syft_core.values import Json, Table
from syft_core.workers.party.derivations import SHORT, SIGNS, Data, Derivation, Hole, Operand, find_option
from syft_core.workers.party.store import Source, Stored
from syft_core.workers.party.worker import Worker
from syft_core.workers.road.derivation import derivation_of_attribute
from syft_core.workers.seeing.ledger import describe_value
from syft_worker.desk.examination import Examination, count_rows_behind
from syft_worker.desk.patterns import count_numbers
from syft_worker.desk.rules_in_words import describe_any_program

NUMBERS_PER_ROW, ROWS_BEHIND = 0.33, 10
"""What a rule with programs requires unless it states something else."""
SUFFICIENT = ("program", "samples", "any_program")
"""A rule has one of these conditions: form and data alone do not say how a result was computed."""
PROGRAM_CONDITIONS = ("program", "free", "labels", "numbers_per_row", "rows_behind")
"""The conditions that ``any_program`` replaces."""
_DIGEST = re.compile("[0-9a-f]{64}")
MAX_PROGRAMS = 64


class Computed(NamedTuple):
    """An object that would leave: how it was computed, how many numbers it has, and from how many rows."""

    derivation: Derivation
    form: str
    numbers: int | None
    rows: int | None
    """The smallest number of rows of the worker's own data in it; None if it is not known."""

    @property
    def samples(self) -> int | None:
        """The rows that the worker itself counted, if a loop of its own computed the result."""
        return count_samples(self.derivation)


def describe_result(worker: Worker, entry: Stored, value: object = None, attr: str | None = None) -> Computed:
    """Return what rules ask about an object that would leave, or about an attribute of it; ``value`` is what leaves."""
    form = describe_value(entry.value if value is None else value)
    derivation = derivation_of_attribute(entry, attr)
    rows = min([leaf.rows for leaf in derivation.data], default=None) or _count_rows(worker, entry)
    return Computed(derivation, form, count_numbers(form), rows)


def suggest_program_conditions(results: Sequence[Computed]) -> Table:
    """Return the conditions of a rule for the programs of results; checks that they do not pass are stated."""
    programs = list(dict.fromkeys([found for result in results if (found := result.derivation.find_program())]))
    if not programs:
        return {}
    conditions: Table = {"program": sorted(programs)}
    labels = {tag for result in results for tag in _find_labels(result.derivation)}
    if len(labels) == 1:
        conditions["labels"] = labels.pop()
    if refuse_many_numbers(NUMBERS_PER_ROW, results) is not None:
        shares = [(result.numbers or 0) / rows for result in results if (rows := _find_rows(result))]
        conditions |= {"numbers_per_row": math.ceil(sum(shares) * 100) / 100} if sum(shares) else {}
    if refuse_few_rows(ROWS_BEHIND, results) is not None:
        conditions["rows_behind"] = 0
    return conditions


def count_samples(derivation: Derivation) -> int | None:
    """Return how many rows of loaded data a loop of the worker used; 0 if its data was computed, or is used twice."""
    found = derivation.whole
    samples, datasets = find_option(found.maker, "samples"), find_option(found.maker, "datasets")
    if not isinstance(samples, int) or not isinstance(datasets, int) or found.operands is None:
        return None
    roles = found.action.roles or ("",) * len(found.operands)
    data = [operand for operand, role in zip(found.operands, roles, strict=True) if not role]
    size = len(data) // datasets
    used = [{leaf.digest for part in data[n * size : (n + 1) * size] for leaf in part.data} for n in range(datasets)]
    are_apart = len(set().union(*used)) == sum(map(len, used))
    return samples if are_apart and all(part.is_arranged for part in data) else 0


def describe_check(result: Computed) -> str:
    """Return, for an owner, how many rows are behind each number of a result."""
    found = count_rows_behind(result.derivation, ROWS_BEHIND)
    if found.why:
        return f"unknown how many rows are behind each number: {found.why}"
    least = f"at least {ROWS_BEHIND}" if found.rows >= ROWS_BEHIND else f"as few as {found.rows}"
    return f"{least} rows are behind each number"


def _count_rows(worker: Worker, entry: Stored) -> int | None:
    """Return the smallest number of rows of the restricted data in the lineage of an object."""
    found = []
    for source in entry.sources:
        if isinstance(source, Source) and source.private:
            known = worker.object_store.get(source.id)
            shape = getattr(known.value, "shape", None) if known is not None and known.source is source else None
            found.append(int(shape[0]) if shape else None)
    counted = [rows for rows in found if rows is not None]
    return min(counted) if counted and len(counted) == len(found) else None


def _find_rows(result: Computed) -> int | None:
    return result.samples or result.rows


def _find_labels(derivation: Derivation) -> list[str]:
    """Return the tags of loaded data that a protocol with noise was computed on."""
    maker = derivation.maker
    if maker is None or len(maker.parties) < 2 or not all(map(_is_as_loaded, maker.operands)):
        return []
    return [operand.tags[0] for operand in maker.operands]


def _is_as_loaded(operand: Operand) -> bool:
    return any(map(operand.is_loaded_as, operand.tags))


# --- conditions: why results are not covered, or None


def refuse_programs(programs: Sequence[str], results: Sequence[Computed], free: Sequence[str]) -> str | None:
    """Refuse results of other programs; ``free`` names the supplied inputs that may be anything."""
    for result in results:
        found = result.derivation.find_program(free)
        if found not in programs:
            named = f"it has no input {' or '.join(map(repr, free))}" if found is None else f"{found[:SHORT]}…"
            return f"its program is not approved ({named})"  # The text may name data that the user may not see.
    return None if results else "nothing is known about how it was computed"


def refuse_few_samples(least: int, results: Sequence[Computed]) -> str | None:
    """Refuse results of fewer rows, as the worker counts them.

    What no loop of the worker has computed may have few numbers: those of a table without its means depend on all rows.
    """
    for result in results:
        counted = result.samples
        if counted is None:
            examined = count_rows_behind(result.derivation, least)
            if examined.why:
                return f"the worker cannot count the rows behind it: {examined.why}"
            counted = examined.rows
        if counted == 0:
            return "the worker cannot count its rows: the data was computed first, or is used twice"
        if counted < least:
            return f"it needs {least:,} rows, and {counted:,} are behind it"
    if not results:
        return "nothing is known about how it was computed"
    return refuse_many_numbers(NUMBERS_PER_ROW, [result for result in results if result.samples is None])


def refuse_other_labels(labels: str, results: Sequence[Computed]) -> str | None:
    """Refuse anything but votes with noise on labels that the worker itself has loaded, as they are."""
    for result in results:
        maker = result.derivation.maker
        if maker is None or find_option(maker, "samples") is not None:
            return "it is for votes with noise"
        if not maker.operands or not all(operand.is_loaded_as(labels) for operand in maker.operands):
            return f"its votes are not the labels {labels} as they were loaded"
    return None if results else "nothing is known about how it was computed"


def refuse_many_numbers(most: float, results: Sequence[Computed]) -> str | None:
    """Refuse more numbers than a share of the rows: they could contain the rows."""
    total = 0.0
    for result in results:
        rows = _find_rows(result)
        if result.numbers is None or not rows:
            return "the worker cannot compare its numbers with the rows of the data"
        total += result.numbers / rows
    if total <= most:
        return None
    return f"it has {total:.2f} numbers for each row of the data, and the rule allows {most:g}"


def refuse_few_rows(least: int, results: Sequence[Computed]) -> str | None:
    """Refuse results with a number behind which are too few rows, or that pick single elements."""
    for result in results if least else ():
        if (picked := find_picking(result.derivation)) is not None:
            return f"{picked} returns single elements of the data; state `rows_behind = 0` to allow it"
        examined: Examination = count_rows_behind(result.derivation, least)
        if examined.why:
            return f"it is not known how many rows are behind each number, because {examined.why}"
        if examined.rows < least:
            return f"a number of it depends on {examined.rows} rows, and the rule requires {least}"
    return None


def find_picking(derivation: Derivation) -> str | None:
    """Return the first operation that returns single elements of the data: the largest, or rows by index."""
    for node in derivation.iter_nodes():
        op = node.action.op
        if op is None:
            continue
        if op.selects:
            return f"its step {op.operation!r}"
        if _is_index(node) and type(_find_row_index(node)) is not slice and _has_rows((node.operands or ())[0]):
            return "its index"
    return None


def _is_index(node: Derivation) -> bool:
    op, args = node.action.op, node.action.args
    return op is not None and op.attr == "__getitem__" and len(args) > 1 and type(args[0]) is Hole


def _find_row_index(node: Derivation) -> object:
    index = node.action.args[1]
    return index[0] if type(index) is tuple and index else index


def _has_rows(node: Derivation) -> bool:
    """Return whether a step has the rows of the data: it is data, a range of its rows, or computed number by number."""
    if isinstance(node, Data):
        return True
    if _is_index(node):
        return _has_rows((node.operands or ())[0])
    op = node.action.op
    is_elementwise = op is not None and op.operation in SIGNS and op.operation != "matmul"
    return is_elementwise and any(map(_has_rows, node.operands or ()))


# --- conditions: reading them, and in words


def read_programs(value: Json) -> list[str]:
    """Return digests of programs; each is a whole one."""
    programs = [value] if type(value) is str else value
    if not isinstance(programs, list | tuple) or not 0 < len(programs) <= MAX_PROGRAMS:
        raise ValueError(f"must be a list of 1 to {MAX_PROGRAMS} digests, as requests show them, not {value!r}")
    for program in programs:
        if type(program) is not str or not _DIGEST.fullmatch(program):
            raise ValueError(f"has {program!r}, which is not a digest of 64 digits; copy it from a request")
    return sorted(set(programs))


def read_names(value: Json) -> list[str]:
    """Return names of supplied inputs."""
    names = [value] if type(value) is str else value
    if not isinstance(names, list | tuple) or not names or not all(type(name) is str and name for name in names):
        raise ValueError(f"must be a list of names of inputs, such as ['input 1'] or ['correction'], not {value!r}")
    return sorted(set(names))


def read_share(value: Json) -> float:
    """Return a positive number."""
    if type(value) not in (int, float) or not 0 < value < math.inf:
        raise ValueError(f"must be a positive number, such as 0.33, not {value!r}")
    return float(value)


def read_least(value: Json) -> int:
    """Return a number of rows, or 0 for no check."""
    if type(value) is not int or not 0 <= value < 2**31:
        raise ValueError(f"must be a whole number, or 0 for no check, not {value!r}")
    return value


def read_true(value: Json) -> bool:
    """Return True, the only value."""
    if value is not True:
        raise ValueError(f"must be true, not {value!r}; leave it out otherwise")
    return True


def require_program(conditions: Mapping[str, Json]) -> None:
    """Raise ``ValueError`` unless conditions say how results must be computed, or that it does not matter."""
    if not any(key in conditions for key in SUFFICIENT):
        raise ValueError(
            f"it does not say how results must be computed, so it covers the data itself: "
            f'{describe_any_program(conditions)}; name the programs with `program = ["digest"]`, or the rows with '
            f"`samples = 100`, or add `any_program = true`"
        )
    if "any_program" in conditions and "program" in conditions:
        raise ValueError("any_program = true contradicts program; leave one of them out")
    extra = [key for key in ("free", "numbers_per_row", "rows_behind") if key in conditions]
    if extra and "program" not in conditions:
        raise ValueError(f'{extra[0]} is for rules with programs; add `program = ["digest"]`')
