"""Run operations on private operands without disclosing their values to the sender.

Each call first runs without data (``FrameworkAttributes.shadow``), once per signature. An error of this dry run depends
only on forms, so it is raised as it is. Operations that cannot run without data are refused. The real result must have
the inferred form, or it is refused.
"""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from functools import partial
from typing import Any, NamedTuple

from syft_core.exceptions import OperationNotAllowedError, SyftError, ValueRefusedError
from syft_core.hook.caches import remember
from syft_core.hook.chain import is_chain, iter_links, plain_end
from syft_core.hook.dispatch import dispatch, framework_of
from syft_core.hook.forms import Form
from syft_core.hook.hook_args import is_framework_tensor
from syft_core.hook.rules import leaves, map_leaves, signature
from syft_core.values import Args, Kwargs, Nested, Tensor
from syft_core.workers.execution import Execution
from syft_core.workers.transfer import rebuild


class DryRun(NamedTuple):
    """A call that ran without data: its arguments afterwards, and its result."""

    args: Args
    kwargs: Kwargs
    result: Nested


def require_undisclosed(execution: Execution) -> None:
    """Refuse an operation whose result would disclose values that the sender may not have."""
    op, location = execution.op, str(execution.worker.id)
    if op.disclosure(execution.args, execution.kwargs) != "nothing":
        raise ValueRefusedError.form(op.name, location)
    for stored in execution.parents:
        end = plain_end(stored.value)
        if (end is None or framework_of(end).memory_of(end) is None) and not execution.may_read(stored):
            raise ValueRefusedError.undecided(op.name, location)
    for target in execution.written:
        if not any(target is operand for operand in execution.operands):
            raise OperationNotAllowedError.refused_by(
                "worker",
                op.name,
                "a target of private values must be stored there; send it first",
            )


def compute_undisclosed(execution: Execution, expected: list[Form | None] | None) -> Nested:
    """Run an operation on values that the sender may not have; the result must have the expected forms."""
    with execution.framework.protect_rng(execution.op):
        result = execution.compute()
    return result if expected is None else _require_forms(execution, result, expected)


def _require_forms(execution: Execution, result: Nested, expected: list[Form | None]) -> Nested:
    """Return the result with the expected memory layout; raise if its shapes or dtypes differ."""
    found = _forms(result)
    if [_strides(known) for known in found] == [_strides(known) for known in expected]:
        return result
    if [_shape(known) for known in found] != [_shape(known) for known in expected]:
        raise ValueRefusedError.form(execution.op.name, str(execution.worker.id))
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
    call = execution.args, execution.kwargs
    if execution.op.differentiates:
        return None
    if execution.op.states_fact and sum(plain_end(leaf) is not None for leaf in leaves(call)) == 1:
        return None
    parts = tuple([_part(execution, leaf) for leaf in leaves(call)])
    key = execution.op, execution.message.modes, signature(call), parts
    try:
        known = _inferred.get(key)
    except TypeError:  # An argument is not hashable.
        return _forms(run_dry(execution).result)
    return remember(_inferred, key, _forms(run_dry(execution).result)) if known is None else known


_inferred: dict[object, list[Form | None]] = {}


def _part(execution: Execution, leaf: Tensor) -> Nested:
    """Return the part of an argument that determines the form of the result."""
    end = plain_end(leaf)
    if end is not None:
        return (_form(execution, end), *map(type, iter_links(leaf)))
    return None if type(leaf) is float and not execution.op.shape_depends_on_floats else leaf


def _forms(result: Nested) -> list[Form | None]:
    ends = [plain_end(leaf) for leaf in leaves(result)]
    return [None if end is None else framework_of(end).form_of(end) for end in ends]


def run_dry(execution: Execution) -> DryRun:
    """Run a call without data. Errors caused by forms are raised; a call that needs values is refused."""
    op, framework, modes = execution.op, execution.framework, execution.message.modes
    framework.warm_up()
    call = execution.args, execution.kwargs
    ends = [end for leaf in leaves(call) if (end := plain_end(leaf)) is not None]
    device = _form(execution, ends[0]).device if ends else None
    try:
        args, kwargs = map_leaves(partial(_shadow, execution, device), call)
        context = nullcontext() if modes is None else framework.apply_modes(modes, args, kwargs)
        with framework.protect_rng(op), context, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # The framework warns again in the real run.
            return DryRun(args, kwargs, dispatch(op, args, kwargs))
    except Exception as error:
        if isinstance(error, SyftError) or not framework.needs_data(error):
            raise
    raise ValueRefusedError.undecided(op.name, str(execution.worker.id))


def _shadow(execution: Execution, device: object, leaf: Tensor) -> Nested:
    """Return an argument without its data."""
    end = plain_end(leaf)
    if end is None:
        return execution.framework.shadow(leaf, device)
    shadow = framework_of(end).shadow(_form(execution, end), device)
    return rebuild(leaf, lambda _end: shadow) if is_chain(leaf) and not is_framework_tensor(type(leaf)) else shadow


def _form(execution: Execution, end: Tensor) -> Form:
    known = framework_of(end).form_of(end)
    if known is None:
        raise ValueRefusedError.undecided(execution.op.name, str(execution.worker.id))
    return known
