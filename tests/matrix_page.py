"""The tables of docs/compatibility.md that the matrix writes: environments, and why tests were skipped."""

from __future__ import annotations

import dataclasses
import datetime
import re
from collections.abc import Mapping
from pathlib import Path

from .architecture.wrapping import wrap

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "compatibility.md"
CHANGELOG = ROOT / "CHANGELOG.md"
HEADING = "## Versions"
STALE = "stale"
TEXT = """
`python -m tests.matrix` runs the whole suite on each version, the third-party programs (`ecosystem`) and the tests on
Ray (`ray`), and writes a row for each when it has ended. A row older than the newest release is marked as stale; an
environment that could not run keeps what was measured before, and says why.
"""
SKIPS = """
Why tests were skipped:
"""


@dataclasses.dataclass(frozen=True)
class Row:
    """What is known about one environment."""

    environment: str
    python: str = "-"
    torch: str = "-"
    numpy: str = "-"
    commit: str = "-"
    passed: str = "-"
    failed: str = "-"
    skipped: str = "-"
    date: str = "-"
    seconds: str = "-"
    state: str = ""

    def __str__(self) -> str:
        return f"| {' | '.join(dataclasses.astuple(self))} |".replace("|  |", "| |")

    def mark(self, release: datetime.date) -> Row:
        """Return the row, marked as stale if it is older than a release; what else its state says is kept."""
        is_stale = self.date != "-" and datetime.date.fromisoformat(self.date) < release
        others = [part for part in self.state.split("; ") if part not in ("", STALE)]
        return dataclasses.replace(self, state="; ".join([*([STALE] if is_stale else []), *others]))


Rows = dict[str, Row]
Skips = dict[str, dict[str, int]]


def find_release(changelog: str) -> datetime.date:
    """Return the date of the newest release."""
    dates = re.findall(r"^## \S+ \((\d{4}-\d\d-\d\d)\)$", changelog, re.MULTILINE)
    return max(map(datetime.date.fromisoformat, dates))


def read_rows(page: Path = PAGE) -> tuple[Rows, Skips]:
    """Return the rows of a page, and the reasons of skipped tests with their counts."""
    rows: Rows = {}
    skips: Skips = {}
    for line in section_of(page.read_text(encoding="utf-8"), HEADING).splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("| ") or cells[0] == "environment":
            continue
        if len(cells) == len(dataclasses.fields(Row)):
            rows[cells[0]] = Row(*cells)
        else:
            name, times, reason = cells
            skips.setdefault(name, {})[reason] = int(times)
    return rows, skips


def write_rows(page: Path, rows: Mapping[str, Row], skips: Mapping[str, Mapping[str, int]]) -> None:
    """Write all rows, those that are older than the newest release marked as stale."""
    release = find_release(CHANGELOG.read_text(encoding="utf-8"))
    names = [field.name for field in dataclasses.fields(Row)]
    lines = [TEXT, make_head(names), *(str(rows[name].mark(release)) for name in sorted(rows))]
    if any(skips.values()):
        lines += [SKIPS, make_head(["environment", "times", "reason"])]
    for name in sorted(skips):
        ordered = sorted(skips[name].items(), key=lambda pair: (-pair[1], pair[0]))
        lines += [f"| {name} | {times} | {reason} |" for reason, times in ordered]
    page.write_text(put_section(page.read_text(encoding="utf-8"), HEADING, "\n".join(lines)), encoding="utf-8")


def make_head(names: list[str]) -> str:
    """Return the head of a table."""
    return f"| {' | '.join(names)} |\n|{'---|' * len(names)}"


def section_of(page: str, heading: str) -> str:
    """Return what stands under a heading, up to the next one of its level."""
    return page.partition(f"\n{heading}\n")[2].partition("\n## ")[0]


def put_section(page: str, heading: str, text: str) -> str:
    """Return the page with another text under a heading, which is added at the end if it is missing."""
    before, _heading, rest = page.partition(f"\n{heading}\n")
    _old, following, after = rest.partition("\n## ")
    return f"{before.rstrip()}\n\n{heading}\n\n{wrap(text.strip())}{following}{after}"
