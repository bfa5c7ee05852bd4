"""There is one way to run, one way to leave, and one kind of answer."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("syft_core", "syft_torch", "syft_numpy", "syft_mpc", "syft_privacy", "syft_sums", "syft_worker", "syft_ray")


def find(pattern: str) -> list[str]:
    """Return the modules in whose text a pattern occurs."""
    files = [file for package in PACKAGES for file in (ROOT / package).rglob("*.py")]
    return sorted(file.relative_to(ROOT).as_posix() for file in files if re.search(pattern, file.read_text()))


def test_one_file_writes_departures_to_a_ledger() -> None:
    assert find(r"(?<!def )describe_departure\(") == ["syft_core/workers/moving/departure.py"]
    assert find(r"ledger\.(hold|withdraw)\(") == ["syft_core/workers/moving/departure.py"]


def test_nothing_leaves_without_the_stages_of_leaving() -> None:
    """Where the restrictions of what leaves are put on again, it was permitted and recorded before."""
    assert find(r"\bfreeze\(") == ["syft_core/workers/moving/departure.py"]


def test_handlers_are_functions() -> None:
    assert find(r"GeneratorType|Elsewhere") == []


def test_no_decision_reads_the_text_of_an_error() -> None:
    assert find(r"in str\(error\)") == []


def test_the_doors_for_plugins_have_typed_signatures() -> None:
    assert find(r"Callable\[\.\.\., None\]") == []
