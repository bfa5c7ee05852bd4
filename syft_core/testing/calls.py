"""Call the operations of an op table with several sets of values, to check the facts about them."""

from __future__ import annotations

import math
import random
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from syft_core.hook.attributes import FrameworkAttributes, Op
from syft_core.hook.hook import FrameworkHook
from syft_core.hook.hook_args import is_framework_tensor
from syft_core.hook.rules import leaves, map_leaves
from syft_core.values import Args, Nested, Tensor

_FLOATS = (
    ([1.0, 2.0, 4.0], [3.0, 5.0, 2.0]),
    ([0.0, -1.0, 0.5], [1.0, 0.0, -2.0]),
    ([7.0, 7.0, 7.0], [-3.0, 0.25, 9.0]),
)
_INTEGERS = ([1, 2, 0], [2, 2, 2], [0, 0, 1])
_MASKS = ([True, False, True], [False, False, True], [True, True, True])
ALWAYS = ("add", "sub")
"""The operations that checks use by name; a sample has all their spellings."""
SETS = len(_FLOATS)
"""The number of sets of values."""


@dataclass(frozen=True)
class TriedCall:
    """One call with one set of values."""

    before: Args
    """Copies of the arguments."""
    args: Args
    """The arguments after the call."""
    result: Nested = None
    error: Exception | None = None


@dataclass(frozen=True)
class SampleCall:
    """One way to call an operation, with an outcome for each set of values."""

    op: Op
    outcomes: Sequence[TriedCall]

    @property
    def working(self) -> list[TriedCall]:
        """The outcomes of calls that did not raise."""
        return [outcome for outcome in self.outcomes if outcome.error is None]

    @property
    def discloses_nothing(self) -> bool:
        """Whether, according to the backend, the result discloses nothing."""
        return self.op.disclosure(self.outcomes[0].before, {}) == "nothing"

    @property
    def returns_named_tuple(self) -> bool:
        """Whether the result is a named tuple with tensors."""
        result = self.working[0].result
        return isinstance(result, tuple) and type(result) is not tuple and any(map(is_tensor, leaves(result)))

    def __str__(self) -> str:
        shown = ["a tensor" if is_tensor(leaf) else repr(leaf) for leaf in leaves(self.outcomes[0].before)]
        return f"{self.op.name} of {', '.join(shown)}"


def collect_calls(hook: FrameworkHook) -> list[SampleCall]:
    """Call every operation that may run on a worker in several ways; return the calls that work with some values."""
    return collect_sample(hook, None, 0)[0]


def collect_sample(hook: FrameworkHook, seconds: float | None, seed: int) -> tuple[list[SampleCall], int]:
    """Try operations for some seconds, or all; return the calls that work, and how many operations are untried."""
    ops = [op for op in hook.attributes.ops if op.tier != "off" and op.spelling != "setter" and not op.local]
    given = [list(_arguments(hook.create_tensor, number)) for number in range(SETS)]
    if seconds is not None:
        random.Random(seed).shuffle(ops)  # noqa: S311  # a sample, not a secret
        ops.sort(key=lambda op: op.operation not in ALWAYS)
    deadline = math.inf if seconds is None else time.monotonic() + seconds
    calls = list[SampleCall]()
    for tried, op in enumerate(ops):
        if time.monotonic() > deadline and op.operation not in ALWAYS:
            return calls, len(ops) - tried
        found = [SampleCall(op, _try(hook.attributes, op, sets)) for sets in zip(*given, strict=True)]
        calls += [call for call in found if call.working]
    return calls, 0


def _try(attributes: FrameworkAttributes, op: Op, sets: Sequence[Args]) -> list[TriedCall]:
    """Run an operation with each set of values; only once if it does not accept such arguments."""
    first = run(attributes, op, sets[0])
    if isinstance(first.error, TypeError):
        return [first]
    return [first, *[run(attributes, op, args) for args in sets[1:]]]


def run(attributes: FrameworkAttributes, op: Op, args: Args) -> TriedCall:
    """Run an operation on copies of ``args``."""
    own: Args = map_leaves(lambda leaf: attributes.copy(leaf) if is_tensor(leaf) else leaf, args)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return TriedCall(args, own, op.run(*own))
        except Exception as error:  # noqa: BLE001  # whatever a framework raises
            return TriedCall(args, own, error=error)


def _arguments(create: Callable[[Nested], Tensor], number: int) -> Iterator[Args]:
    """Yield arguments to try; the forms are the same for every set of values."""
    (x, y), whole, mask = map(create, _FLOATS[number]), create(_INTEGERS[number]), create(_MASKS[number])
    yield from ((x,), (x, y), (x, 2), (whole,), (whole, whole), (x, whole), (x, mask), (mask,), (mask, mask))
    yield from (([x, y],), (x, 0, whole), (x, mask, y), (x, x, y))


def is_tensor(value: object) -> bool:
    """Return whether ``value`` is a plain tensor."""
    return is_framework_tensor(type(value))


def form_of(attributes: FrameworkAttributes, tensor: Tensor) -> tuple[object, ...]:
    """Describe the form of a plain tensor."""
    known = attributes.form_of(tensor)
    return tuple(tensor.shape), str(tensor.dtype), None if known is None else (known.strides, known.requires_grad)


def forms(attributes: FrameworkAttributes, result: Nested) -> list[object]:
    """Describe the forms of the tensors in a result."""
    return [form_of(attributes, leaf) for leaf in leaves(result) if is_tensor(leaf)]


def plain_parts(result: Nested) -> list[object]:
    """Return the parts of a result that are not tensors; for objects that compare by identity, their type."""
    found = [leaf for leaf in leaves(result) if not is_tensor(leaf)]
    return [type(leaf) if getattr(type(leaf), "__eq__", None) is object.__eq__ else leaf for leaf in found]
