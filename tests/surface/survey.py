"""Check every operation of a framework's op table with samples."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from syft_core.hook.attributes import Op, OpTable

from .checks import Backend, Case, check
from .exceptions import REFERENCE


class Surface(Backend, Protocol):
    """A framework's operations, with samples for each."""

    name: str
    version: str
    ops: OpTable
    exceptions: Mapping[str, str]
    """The operations that are known to differ, each with the reason."""
    arrives_as: Mapping[str, str]
    """Spellings that the framework turns into another one before it calls the chain."""

    def cases(self, op: Op) -> list[Case]:
        """Return the samples of ``op``."""

    def attach_hook(self) -> contextlib.AbstractContextManager[None]:
        """Return a context in which the framework is hooked."""


class Verdict(Enum):
    """The outcome of the samples of one operation."""

    PASSES = "gives the same result on chains"
    SAME_ERROR = "raises the same error on chains"
    FAILS = "differs"
    UNREACHED = "was never reached"

    @property
    def good(self) -> bool:
        """Whether a chain behaves like a tensor."""
        return self in (Verdict.PASSES, Verdict.SAME_ERROR)


@dataclass(frozen=True)
class Finding:
    """The verdict on one operation, with the first difference."""

    op: Op
    verdict: Verdict
    detail: str = ""


def survey(surface: Surface) -> list[Finding]:
    """Check all operations."""
    with surface.attach_hook():
        return [judge(surface, op) for op in surface.ops]


def is_reference(surface: Surface) -> bool:
    """Return whether the samples and exceptions are exact for the installed version."""
    return surface.version.startswith(REFERENCE[surface.name] + ".")


@functools.cache
def judge(surface: Surface, op: Op) -> Finding:
    """Run all samples of ``op``; the framework must be hooked."""
    verdict = Verdict.UNREACHED
    first_name = surface.ops.of(op.func).name  # one function may have several names
    arrival = surface.arrives_as.get(op.name, first_name)
    for case in surface.cases(op):
        try:
            passed = check(case, surface)
        except Exception as error:  # noqa: BLE001  # any failure is a difference, and the finding names it
            return Finding(op, Verdict.FAILS, f"{type(error).__name__}: {error}")
        if passed is None or arrival not in passed.reached:
            continue
        if not passed.raised:
            verdict = Verdict.PASSES
        elif verdict is Verdict.UNREACHED:
            verdict = Verdict.SAME_ERROR
    return Finding(op, verdict)
