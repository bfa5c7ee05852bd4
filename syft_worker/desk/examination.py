"""Run programs again, on examples: how many rows are behind each number of a result, and how much one row changes it.

The first question is answered without the data: leaves are replaced by examples of the same forms, one row of which is
changed after another. So the answer reveals nothing. The second one is for the owner alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from syft_core.hook.chain import plain_end
from syft_core.hook.dispatch import framework_of
from syft_core.hook.forms import Form
from syft_core.hook.rules import build_rule, leaves, map_leaves
from syft_core.values import Nested, Tensor
from syft_core.workers.party.derivations import CORRECTION, WEIGHTS, Data, Derivation, Hole

SECONDS = 5.0
"""How long a program may run in all, for one answer."""
MAX_TRIED = 256
"""How many rows are changed, one after another."""
MAX_KNOWN = 1024
"""How many answers are remembered."""


class Examination(NamedTuple):
    """How many rows are behind each number of a result."""

    rows: int
    """The smallest number of rows that was found behind a number; those that depend on no row do not count."""
    why: str = ""
    """Why it is not known; empty if it is."""


class _NotRunError(Exception):
    """A program cannot be run on examples."""


def count_rows_behind(derivation: Derivation, wanted: int) -> Examination:
    """Return how many rows are behind each number of what a program computes; stop at ``wanted``.

    The answer depends on the program and on forms alone.
    """
    forms = [(leaf.form, type(leaf)) for leaf in derivation.iter_nodes() if leaf.is_leaf]  # type: ignore[attr-defined]
    key = derivation.find_program(), tuple(forms), wanted
    known = _known.get(key)
    if known is None:
        try:
            known = _count(derivation, wanted)
        except _NotRunError as error:
            known = Examination(0, str(error))
        except Exception as error:  # noqa: BLE001  # an operation may fail on examples
            known = Examination(0, f"it failed on examples with {type(error).__name__}")
        if not known.why:  # What is missing may come again.
            if len(_known) >= MAX_KNOWN:
                _known.clear()
            _known[key] = known
    return known


_known: dict[object, Examination] = {}


def measure_influence(derivation: Derivation) -> str:
    """Return the largest influence that one row of the data has on a result, in words, for the owner alone."""
    try:
        program = _Program.of(derivation)
        values = {leaf.digest: _find_value(leaf) for leaf in program.leaves}
        if program.repeat is not None:
            return "not computed: a training would have to be repeated for each row"
        return _measure(program, values)
    except _NotRunError as error:
        return f"not computed: {error}"
    except Exception as error:  # noqa: BLE001  # an operation may fail
        return f"not computed: it failed with {type(error).__name__}"


class _Program:
    """A derivation that can be run again."""

    def __init__(self, derivation: Derivation) -> None:
        self.derivation, self.nodes = derivation, list(derivation.iter_nodes())
        self.inputs = derivation.list_inputs()
        self.leaves: list[Nested] = [node for node in self.nodes if node.is_leaf]
        self.repeat: Callable[[Sequence[Tensor]], Tensor] | None = None
        self.batch: Callable[[int], int] = lambda rows: rows

    @classmethod
    def of(cls, derivation: Derivation) -> _Program:
        """Return the program of a derivation; raise if a step cannot be repeated."""
        if derivation.operands is None:
            raise _NotRunError(f"it has up to {derivation.count:,} steps, of which only the last ones are known")
        derivation = derivation.whole
        program = cls(derivation)
        if derivation.maker is not None:
            rerun = derivation.action.find_rerun()
            if rerun is None or not all(operand.is_leaf for operand in derivation.operands or ()):
                raise _NotRunError(f"{derivation.action.name!r} cannot be repeated on examples")
            program.repeat = partial(rerun.run_again, derivation.action.roles)
            program.batch = rerun.find_length
            return program
        for node in program.nodes:
            op, name = node.action.op, node.action.name
            if node.is_leaf or node.action.part:
                continue
            if op is None or op.differentiates or op.alters_autograd:
                raise _NotRunError(f"its step {name!r} cannot be repeated on examples")
            if op.random:
                raise _NotRunError(f"its step {name!r} draws random numbers")
        return program

    def run(self, values: Mapping[bytes, Tensor]) -> Tensor:
        """Return the result for values of the leaves."""
        if self.repeat is not None:
            operands = self.derivation.operands or ()
            return self.repeat([values[operand.digest] for operand in operands])
        found: dict[int, Nested] = {}
        for node in self.nodes:
            made = [found[id(operand)] for operand in node.operands or ()]
            if node.is_leaf:
                found[id(node)] = values[node.digest]
            elif node.action.op is None:
                found[id(node)] = _tensors(made[0])[node.action.part]
            else:
                found[id(node)] = _run_step(node, made)
        return _first(found[id(self.derivation)])


def _run_step(node: Derivation, operands: Sequence[Nested]) -> Nested:
    """Run an operation on copies if it changes operands; return a tensor, or all results for a part of them."""
    action = node.action
    op = action.op
    first = [_first(operand) for operand in operands]

    def fill(leaf: Nested) -> Nested:
        return first[leaf.number] if type(leaf) is Hole else leaf

    call = map_leaves(fill, (action.args, action.kwargs or {}))
    if op.targets(*call):  # type: ignore[union-attr]  # steps without one do not come here
        first = [framework_of(each).copy(each) for each in first]
        call = map_leaves(fill, (action.args, action.kwargs or {}))
    args, kwargs = call
    result = op.run(*args, **kwargs)  # type: ignore[union-attr]  # the same
    return kwargs.get("out", args[0]) if result is None else result


def _first(result: Nested) -> Tensor:
    return _tensors(result)[0]


def _tensors(result: Nested) -> list[Tensor]:
    return [leaf for leaf in leaves(result) if build_rule(leaf)]


def _count(derivation: Derivation, wanted: int) -> Examination:
    program = _Program.of(derivation)
    data = [leaf for leaf in program.leaves if isinstance(leaf, Data)]
    if not data:
        raise _NotRunError("it depends on no data of this worker that was loaded as it is")
    rows = max(leaf.rows for leaf in data)
    length = program.batch(rows)
    values = {leaf.digest: _make_value(program, leaf, length) for leaf in program.leaves}
    base, deadline = program.run(values), time.monotonic() + SECONDS
    if bool((base != base).any()):  # noqa: PLR0124  # whether a number is NaN
        raise _NotRunError("its result on examples is not a number")
    behind = (base != base) * 1  # noqa: PLR0124  # zeros
    for row in _choose_rows(length):
        changed = {leaf.digest: _change(values[leaf.digest], row) for leaf in data if leaf.rows >= length}
        behind = behind + (program.run({**values, **changed}) != base) * 1
        if int(behind.min()) >= wanted or time.monotonic() > deadline:
            break
    least = min((int(number) for number in behind.reshape(-1).tolist() if number), default=0)
    if not least:
        raise _NotRunError("its result on examples depends on no row")
    return Examination(least if least >= wanted else least * rows // length)


def _choose_rows(count: int) -> list[int]:
    """Return the rows to change: all, or some at equal distances."""
    tried = min(count, MAX_TRIED)
    return [place * count // tried for place in range(tried)]


def _make_value(program: _Program, leaf: Nested, length: int) -> Tensor:
    """Return an example for data and for weights, and anything else that was supplied as it is."""
    if isinstance(leaf, Data):
        example = _make_example(leaf)
        return example if program.repeat is None else example[:length]
    end = None if (known := leaf.find()) is None else plain_end(known.value)
    if end is not None:
        return framework_of(end).copy(framework_of(end).detach(end))
    name = next((name for name, each in program.inputs.items() if each.digest == leaf.digest), "")
    if name not in (WEIGHTS, CORRECTION):
        raise _NotRunError(f"their {name} is not here any more: keep a pointer to it until the result has left")
    return _make_example(leaf)


def _make_example(leaf: Nested) -> Tensor:
    known: Form | None = leaf.form
    if known is None:
        raise _NotRunError("a form does not describe one of its tensors")
    example = leaf.framework.example(known, _DIFFERENT)
    if example is None:
        raise _NotRunError("its data is too large for an example")
    return leaf.framework.detach(example)


_DIFFERENT = 3
"""The kind of example with different numbers."""


def _change(value: Tensor, row: int) -> Tensor:
    """Return a copy in which one row has other numbers."""
    changed = framework_of(value).copy(value)
    if "float" in str(value.dtype) or "complex" in str(value.dtype):
        changed[row] = changed[row] * -0.37 + 1.618
    elif "bool" in str(value.dtype):
        changed[row] = ~changed[row]
    else:
        changed[row] = 1 - changed[row]
    return changed


# --- influence


def _find_value(leaf: Nested) -> Tensor:
    known = leaf.find()
    end = None if known is None else plain_end(known.value)
    if end is None:
        raise _NotRunError(f"{leaf} is not here any more")
    return framework_of(end).detach(end)


def _measure(program: _Program, values: Mapping[bytes, Tensor]) -> str:
    data = [leaf for leaf in program.leaves if isinstance(leaf, Data)]
    if not data:
        raise _NotRunError("it depends on no data of this worker that was loaded as it is")
    rows, deadline = max(leaf.rows for leaf in data), time.monotonic() + SECONDS
    base = program.run(values)
    largest, where, tried = 0.0, 0, 0
    for row in _choose_rows(rows):
        changed = {leaf.digest: _replace(values[leaf.digest], row) for leaf in data if leaf.rows == rows}
        difference = abs((program.run({**values, **changed}) - base) * 1.0)
        found = float(difference.max()) if len(difference.reshape(-1)) else 0.0
        largest, where = (found, row) if found > largest else (largest, where)
        tried += 1
        if time.monotonic() > deadline:
            break
    scale = float(abs(base * 1.0).max()) if len(base.reshape(-1)) else 0.0
    share = f", {largest / scale:.2g} of the largest number of the result" if scale else ""
    some = "" if tried == rows else f" (of {tried:,} rows that were tried, of {rows:,})"
    return f"with another row in place of row {where}, a number changes by {largest:.4g}{share}{some}"


def _replace(value: Tensor, row: int) -> Tensor:
    """Return a copy in which a row is replaced by the one before it, as if there was one record fewer."""
    changed = framework_of(value).copy(value)
    changed[row] = value[row - 1]
    return changed
