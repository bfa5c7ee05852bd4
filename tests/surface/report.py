"""Write docs/surface.md: how much of torch and numpy works on a chain. Run ``python -m tests.surface.report``."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

from .numpy_surface import NumpySurface
from .survey import Finding, Surface, Verdict, survey
from .torch_surface import TorchSurface

PAGE = Path(__file__).parents[2] / "docs" / "surface.md"
_INTRODUCTION = """\
# How much of torch and numpy works on a chain

Every operation in the op tables is called on plain tensors and on `Wrapper > LoggingTensor > tensor`, with the same
arguments: torch's own testing samples where there are any, and arguments made by hand for the rest. Both must give the
same values, dtypes, shapes and structure; tensors in the result must be chains; a result that is an argument, as of
operations in place, must be the very same object; and both must change their arguments alike.

This page is written by `python -m tests.surface.report`; a test fails when it is out of date.
"""


def main() -> None:
    """Survey both frameworks and write the page."""
    warnings.simplefilter("ignore")
    PAGE.write_text(page([(surface, survey(surface)) for surface in (TorchSurface(), NumpySurface())]))


def page(surveys: Sequence[tuple[Surface, list[Finding]]]) -> str:
    """Return the text of the page."""
    lines = [_INTRODUCTION, "| | operations | same result | same error | different | share that passes |"]
    lines.append("|---|---|---|---|---|---|")
    lines += [_row(surface, findings) for surface, findings in surveys]
    for surface, findings in surveys:
        lines += ["", *_section(surface, findings)]
    return "\n".join(lines) + "\n"


def _row(surface: Surface, findings: list[Finding]) -> str:
    passing, same_error = len(_names(findings, Verdict.PASSES)), len(_names(findings, Verdict.SAME_ERROR))
    total = len(findings)
    share = (passing + same_error) / total
    rest = total - passing - same_error
    return f"| {surface.name} {surface.version} | {total} | {passing} | {same_error} | {rest} | {share:.1%} |"


def _section(surface: Surface, findings: list[Finding]) -> list[str]:
    lines = [f"## {surface.name}", "", "Different on a chain:", ""]
    by_reason: dict[str, list[str]] = {}
    for name in _names(findings, Verdict.FAILS, Verdict.UNREACHED):
        by_reason.setdefault(surface.exceptions.get(name, "not explained yet"), []).append(f"`{name}`")
    lines += [f"- {', '.join(names)}: {reason}." for reason, names in by_reason.items()] or ["- nothing."]
    errors = [f"`{name}`" for name in _names(findings, Verdict.SAME_ERROR)]
    if errors:
        lines += ["", f"Refused by {surface.name} itself here, with the same error on a chain: {', '.join(errors)}."]
    return lines


def _names(findings: list[Finding], *verdicts: Verdict) -> list[str]:
    return sorted(finding.op.name for finding in findings if finding.verdict in verdicts)


if __name__ == "__main__":
    main()
