"""Run operations on private operands without disclosing their values to the sender.

Each call first runs without data (``FrameworkAttributes.shadow``), once per signature. An error of this dry run depends
only on forms, so it is raised as it is. Operations that cannot run without data are refused. Then the call runs on
examples of the same forms, because a dry run checks less than a real one: an error that all examples have in common
depends only on forms, too. The real result must have the inferred shapes and dtypes, or it is refused. Its memory
layout is that of an example, as with plain data: without data, a framework may give the layout of another device.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any, NamedTuple

from syft_core.exceptions import OperationNotAllowedError, SyftError, ValueRefusedError
from syft_core.hook.chain import is_chain, plain_end
from syft_core.hook.dispatch import dispatch, framework_of, frameworks_of_types
from syft_core.hook.forms import Form
from syft_core.hook.hook_args import is_framework_tensor
from syft_core.hook.rules import leaves, map_leaves
from syft_core.hook.signatures import note
from syft_core.values import Args, Kwargs, Nested, Tensor
from syft_core.workers.moving.transfer import rebuild
from syft_core.workers.road.execution import Execution


class DryRun(NamedTuple):
    """A call that ran without data: its arguments afterwards, and its result."""

    args: Args
    kwargs: Kwargs
    result: Nested


def require_undisclosed(execution: Execution, is_known: bool = False) -> None:
    """Refuse an operation whose result would disclose values that the sender may not have.

    ``is_known`` means that a call of this signature was permitted before, so its form discloses nothing.
    """
    op = execution.op
    if not is_known and op.disclosure(execution.args, execution.kwargs) != "nothing":
        raise ValueRefusedError.form(op.name, str(execution.worker.id), op.instead)
    for stored, operand in zip(execution.parents, execution.operands, strict=True):
        framework = frameworks_of_types.get(type(operand))
        if framework is not None and framework.memory_of(operand) is not None:
            continue
        end = plain_end(stored.value)
        if (end is None or framework_of(end).memory_of(end) is None) and not execution.may_read(stored):
            raise ValueRefusedError.undecided(op.name, str(execution.worker.id), op.instead)
    for target in execution.written:
        if not any(target is operand for operand in execution.operands):
            why = "a target of private values must be stored there; send it first"
            raise OperationNotAllowedError.refused_by("worker", op.name, why)


def require_forms(execution: Execution, result: Nested, expected: list[Form | None]) -> Nested:
    """Return the result with the expected memory layout; raise if its shapes or dtypes differ."""
    framework = frameworks_of_types.get(type(result))
    if framework is not None and len(expected) == 1 and framework.form_of(result) is expected[0]:
        return result
    found = _forms(result)
    if [_strides(known) for known in found] == [_strides(known) for known in expected]:
        expected[:] = found  # The next result has this form, not one of the meta device.
        return result
    if [_shape(known) for known in found] != [_shape(known) for known in expected]:
        raise ValueRefusedError.form(execution.op.name, str(execution.worker.id), execution.op.instead)
    following = iter(expected)
    return map_leaves(lambda leaf: _lay_out(leaf, next(following)), result)


def _lay_out(leaf: Tensor, known: Form | None) -> Tensor:
    if known is None or _strides(framework_of(leaf).form_of(plain_end(leaf))) == _strides(known):
        return leaf
    framework, end = framework_of(leaf), plain_end(leaf)
    (twin,) = framework.zeros([known], [end])
    framework.overwrite(twin, end)
    return twin if is_framework_tensor(type(leaf)) else rebuild(leaf, lambda _end: twin)


def _shape(known: Form | None) -> Any:
    return None if known is None else (known.shape, known.dtype)


def _strides(known: Form | None) -> Any:
    return None if known is None else (known.shape, known.dtype, known.strides)


def infer_forms(execution: Execution) -> list[Form | None] | None:
    """Infer the forms of the tensors that a call returns, without values.

    None for a backward pass and for queries about the form of one tensor, whose answers do not depend on values.
    """
    op = execution.op
    if op.differentiates or (op.states_fact and _count_tensors(execution) == 1):
        return None
    return note(execution.memo, execution.modes or execution.framework.modes(), _forms(rehearse(execution).result))


def find_forms(execution: Execution) -> list[Form | None] | None:
    """Return the forms that were inferred for the signature of a call in the same modes, or None."""
    return execution.memo.get(execution.modes or execution.framework.modes())


def _count_tensors(execution: Execution) -> int:
    return sum(plain_end(leaf) is not None for leaf in leaves((execution.args, execution.kwargs)))


def _forms(result: Nested) -> list[Form | None]:
    ends = [plain_end(leaf) for leaf in leaves(result)]
    return [None if end is None else framework_of(end).form_of(end) for end in ends]


def rehearse(execution: Execution) -> DryRun:
    """Run a call without data, then on examples; return the run on an example. Errors caused by forms are raised.

    Return the run without data if there are no examples, or if the successful ones have results of other shapes.
    """
    dry_run = _run_dry(execution)
    found = _run_on_examples(execution)
    if isinstance(found, Exception):
        raise found
    return found if found is not None and _shapes(found) == _shapes(dry_run) else dry_run


def _shapes(run: DryRun) -> list[Any]:
    return [_shape(known) for known in _forms(run)]


def _run_dry(execution: Execution) -> DryRun:
    """Run a call without data. Raise errors caused by forms; refuse a call that needs values."""
    op, framework = execution.op, execution.framework
    framework.warm_up()
    call = execution.args, execution.kwargs
    ends = [end for leaf in leaves(call) if (end := plain_end(leaf)) is not None]
    device = _form(execution, ends[0]).device if ends else None
    on_device = framework.infers_on_device(execution.modes)

    def shadow(argument: Nested) -> Tensor:
        if not on_device:
            return framework.shadow(argument, device)
        return framework.zeros([argument], [])[0] if type(argument) is Form else argument

    try:
        return _run_in_place_of(execution, shadow)
    except Exception as error:
        if isinstance(error, SyftError):
            raise
        if not framework.needs_data(error):
            found = _run_on_examples(execution)  # A shadow that has values may have had the wrong ones.
            if isinstance(found, DryRun):
                return found
            raise (found or framework.as_with_data(error)) from None
    raise ValueRefusedError.undecided(op.name, str(execution.worker.id), op.instead)


def _run_on_examples(execution: Execution) -> DryRun | Exception | None:
    """Run a call on examples of its forms until it works; return the error if all fail alike, None if undecided.

    A single example may fail in another way, for instance because all its ones are out of range.
    """
    call = execution.args, execution.kwargs
    if any(isinstance(leaf, execution.framework.generators) for leaf in leaves(call)):
        return None  # It would draw numbers that the sender expects.
    errors: list[Exception] = []
    for kind in range(EXAMPLES):
        try:
            return _run_in_place_of(execution, partial(_make_example, execution, kind))
        except _NoExampleError:  # noqa: PERF203  # each kind may fail in another way
            break
        except Exception as error:  # noqa: BLE001  # a framework may raise any error
            errors.append(error)
    if len(errors) < 2:
        return None
    missing = [error for error in errors if isinstance(error, NotImplementedError)]  # There is no kernel for a dtype.
    texts = [(type(error), _DIGITS.sub("", str(error))) for error in errors]  # They may name an index of the examples.
    (common, count), *_ = Counter(texts).most_common(1)
    first = missing[0] if missing else errors[texts.index(common)]
    is_certain = bool(missing) or count >= max(len(errors) - 1, 2)
    return first.with_traceback(None) if is_certain and not isinstance(first, (SyftError, MemoryError)) else None


_DIGITS = re.compile(r"\d+")
EXAMPLES = 4
"""The number of kinds of examples: zeros, ones, identity matrices, different numbers."""


class _NoExampleError(Exception):
    """A framework has no example of a form."""


def _make_example(execution: Execution, kind: int, argument: object) -> Tensor:
    if type(argument) is not Form:
        return argument
    example = execution.framework.example(argument, kind)
    if example is None:
        raise _NoExampleError
    return example


def _run_in_place_of(execution: Execution, replace: Callable[[Nested], Tensor]) -> DryRun:
    op, framework, modes = execution.op, execution.framework, execution.modes
    args, kwargs = map_leaves(partial(_replace, execution, replace), (execution.args, execution.kwargs))
    context = nullcontext() if modes is None else framework.apply_modes(modes, args, kwargs)
    with framework.protect_rng(op), context, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # The framework warns again in the real run.
        return DryRun(args, kwargs, dispatch(op, args, kwargs))


def _replace(execution: Execution, replace: Callable[[Nested], Tensor], leaf: Tensor) -> Nested:
    end = plain_end(leaf)
    if end is None:
        return replace(leaf)
    replaced = replace(_form(execution, end))
    return rebuild(leaf, lambda _end: replaced) if is_chain(leaf) and not is_framework_tensor(type(leaf)) else replaced


def _form(execution: Execution, end: Tensor) -> Form:
    known = framework_of(end).form_of(end)
    if known is None:
        raise ValueRefusedError.undecided(execution.op.name, str(execution.worker.id), execution.op.instead)
    return known
