"""The errors of plans."""

from __future__ import annotations

from syft_core.exceptions import SyftError, Text


class PlanError(SyftError, TypeError, RuntimeError):
    """A plan cannot be recorded, sent or called."""

    at = Text("cannot record the plan {plan!r}: {file}:{line} {problem}; {advice}")
    arguments = Text(
        "cannot run the plan {plan!r}: it was recorded for {expected}, but was called with {found}; record it for "
        "these arguments, or for any length with -1 in `args_shape`"
    )
    other_lengths = Text(
        "cannot run the plan: {comparison} was {outcome} when it was recorded, which decides its steps; record it with "
        "arguments of these lengths and strides"
    )
    replaced = Text(
        "cannot run the plan {plan!r}: object {id!r}, a part of its state, is not the one it was sent with; send the "
        "plan again"
    )
    other_state = Text(
        "cannot run the plan {plan!r}: part {place} of its state {problem} when the plan was recorded; record it again "
        "with `plan.build(...)`, and send it"
    )
    changed = Text(
        "cannot run the plan {plan!r}: {setting!r}, a setting of its models or a variable that it reads, changed after "
        "it was recorded; undo the change, or fetch the plan with `get()` and send it again"
    )
    trained = Text(
        "cannot send the plan {plan!r} to worker {worker!r} again: its state has changed both here and there; fetch it "
        "with `get()` first, or record it again to send what is here"
    )
    not_built = Text(
        "cannot send the plan {plan!r}: it is not recorded yet; call `plan.build(...)` with example tensors"
    )
    elsewhere = Text(
        "cannot serialize the plan {plan!r}: a part of its state is on a worker; fetch the model first, or send the "
        "plan there with `plan.send(...)`"
    )


class PlanShapesError(PlanError, ValueError):
    """``args_shape`` is not a list of shapes, or does not fit the function."""

    count = Text(
        "cannot record the plan {plan!r}: `args_shape` has {count} shapes, but the function has other arguments "
        "({problem}); give one shape for each argument"
    )
