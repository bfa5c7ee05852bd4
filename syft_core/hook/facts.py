"""Facts: properties of an operation that decide whether it may run on data that a peer may not see."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from syft_core.hook.rules import base_types, is_flat, leaves
from syft_core.values import Tensor

Discloses = Literal["nothing", "form", "values"]
Tier = Literal["reviewed", "public", "off"]
Places = frozenset[int | str]
"""Arguments of a call, by position and by keyword."""

WRITES_ALL: Places = frozenset({"*"})
"""Unknown: the operation is assumed to change every tensor among its arguments."""
WRITES_FIRST: Places = frozenset({0, "input", "self", "tensor"})
"""The first argument, under the names that frameworks use for it."""
_NO_TENSORS = base_types | {type(None), type(Ellipsis)}


@dataclass(frozen=True)
class Option:
    """An argument that enables a behaviour; ``default`` is its value when it is omitted."""

    position: int | None
    name: str
    default: Any = None
    off: tuple[Any, ...] = (None, False)
    """The values that disable it; any other value enables it."""

    def is_on(self, args: Sequence[object], kwargs: Mapping[str, object]) -> bool:
        """Return whether a call may enable the behaviour."""
        value = kwargs.get(self.name, self.default)
        if self.position is not None and self.position < len(args):
            value = args[self.position]
        for off in self.off:  # noqa: SIM110  # much faster than a generator
            if value is off:
                return False
        return True


@dataclass(frozen=True, eq=False)
class Facts:
    """The facts about an operation. The defaults, for an operation without a description, assume the worst."""

    first: str = ""
    """The name of the first argument, if it can be passed by keyword."""
    writes: Places = WRITES_ALL
    """The arguments that a call may change; ``out=`` is always included and not listed."""
    writes_if: Mapping[int | str, Option] = field(default_factory=dict)
    """The options that must be on for a call to change some of these arguments: ``inplace``, ``training``."""
    discloses: Discloses = "values"
    """What a result discloses: "nothing" (its form follows from the forms of operands and plain arguments), "form" (its
    form depends on values), or "values"."""
    form_depends: Callable[[Sequence[Any], Mapping[str, Any]], bool] | None = None
    """Return whether the form depends on values in this call, although it usually does not: a mask as an index, a
    tensor as a size."""
    reads_beyond: bool = True
    """It may read memory outside of its arguments."""
    uninitialized: bool = False
    """The result is uninitialized memory."""
    partial: bool = True
    """It can fail depending on values."""
    random: bool = False
    """It draws from the framework's random number generator."""
    tier: Tier = "public"
    """Reviewed operations may run on data the sender may not see, public ones only on data the sender may see. Those
    that are off never run on a worker."""
    states_fact: bool = False
    """Its result is plain (an int, a bool, a string, a tuple of them) and follows from the form."""
    reveals: bool = False
    """It returns a plain value instead of a tensor: a number, a string, a memory address."""
    local: bool = False
    """It makes sense only where the data is: it runs the caller's code, shares memory or opens a file."""
    differentiates: bool = False
    """It runs a backward pass."""
    accumulates: bool = False
    """It accumulates gradients in the leaves of its first argument."""
    selects: bool = False
    """It returns single elements of an operand: the largest, the middle one, those at an index."""
    retains: bool = False
    """It makes a non-leaf tensor keep its gradient."""
    alters_autograd: bool = False
    """It changes the autograd state of its first argument: gradient, ``requires_grad``, data."""
    indices: Places = frozenset()
    """The arguments that are indices; local ones are sent with a call."""
    joins: bool = False
    """It moves its first argument to the place of the second: a local tensor goes to the worker of a pointer."""
    shape_depends_on_floats: bool = True
    """The form of the result may depend on float arguments: an end, a scale, a probability."""
    instead: str = ""
    """For refusals: a line that computes the same, or nearly the same, and is permitted more often."""

    @cached_property
    def _options(self) -> list[Option]:
        return list(dict.fromkeys(self.writes_if.values()))

    def targets(self, args: Sequence[object], kwargs: Mapping[str, object]) -> list[Any]:
        """Return the argument objects that a call may change, as a flat list."""
        if self._options and self._is_off(args, kwargs):
            return []
        unnamed = not kwargs or ("out" not in kwargs and self.writes.isdisjoint(kwargs))
        if self.writes is WRITES_FIRST and args and unnamed and not self.writes_if:
            return [args[0]] if is_flat(type(args[0])) else _tensors(args[0])
        if self.writes is WRITES_ALL:
            return _tensors((args, dict(kwargs)))
        out = kwargs.get("out") if kwargs else None
        written = [] if out is None else [out]
        on = [option for option in self._options if option.is_on(args, kwargs)]
        if places := [place for place in self.writes if self.writes_if.get(place) in (None, *on)]:
            named = [value for name, value in kwargs.items() if name in places]
            placed = [args[place] for place in places if type(place) is int and place < len(args)]
            # Only unknown keywords: any of them may be changed.
            written += named + placed if named or args else kwargs.values()
        return _tensors(written) if written else []

    @cached_property
    def _writes_only_if(self) -> bool:
        return self.writes <= self.writes_if.keys()

    def _is_off(self, args: Sequence[object], kwargs: Mapping[str, object]) -> bool:
        if not self._writes_only_if or kwargs.get("out") is not None:
            return False
        for option in self._options:  # noqa: SIM110  # much faster than a generator
            if option.is_on(args, kwargs):
                return False
        return True

    def indexes(self, args: Sequence[object], kwargs: Mapping[str, object]) -> list[Any]:
        """Return the argument objects of a call that are indices, as a flat list."""
        places = self.indices
        placed = [args[place] for place in places if type(place) is int and place < len(args)]
        return leaves((placed, [value for name, value in kwargs.items() if name in places])) if places else []

    def disclosure(self, args: Sequence[object], kwargs: Mapping[str, object]) -> Discloses:
        """Return what the result of a call discloses."""
        if self.discloses == "nothing" and self.form_depends is not None and self.form_depends(args, kwargs):
            return "form"
        return self.discloses


def _tensors(obj: object) -> list[Tensor]:
    """Return the leaves of ``obj`` that are not plain Python values, each once."""
    found = {id(leaf): leaf for leaf in leaves(obj) if type(leaf) not in _NO_TENSORS}
    return list(found.values())
