"""Tests are found where the code is: each module has a test file of its name at the mirrored place."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from syft_core.packages import PACKAGES

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
SMALL = 40
"""Modules of up to this many lines need no test file of their own."""
EXEMPT = {"__init__.py", "__main__.py", "plugin.py", "feature.py", "errors.py", "testing.py"}
"""Modules that only import, register or declare."""
SUITE = ROOT / "syft_core" / "testing"
"""The conformance suite consists of tests; `tests/core/test_mutations.py` tests it."""


def find_modules() -> Iterator[Path]:
    """Yield the modules that need a test file."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if path.name in EXEMPT or SUITE in path.parents or len(text.splitlines()) <= SMALL:
                continue
            if any(isinstance(node, ast.FunctionDef | ast.ClassDef) for node in ast.parse(text).body):
                yield path


def list_places(module: Path) -> list[Path]:
    """Return where the tests of a module may be: those of the core in `tests/core` if they need no framework.

    Tests in `tests/ray` need Ray itself.
    """
    package, *folders = module.relative_to(ROOT).parts[:-1]
    name = f"test_{module.name}"
    if package == "syft_ray":
        return [TESTS.joinpath(package, *folders, name), TESTS.joinpath("ray", *folders, name)]
    if package != "syft_core":
        return [TESTS.joinpath(package, *folders, name)]
    return [TESTS.joinpath("core", *folders, name), TESTS.joinpath(*folders, name)]


MODULES = list(find_modules())


def test_the_modules_are_found() -> None:
    assert len(MODULES) > 200
    assert ROOT / "syft_core" / "hook" / "folds.py" in MODULES


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_has_tests_at_the_mirrored_place(module: Path) -> None:
    places = list_places(module)

    found = [place for place in places if place.exists()]

    assert found, f"write tests in {' or '.join(str(place.relative_to(ROOT)) for place in places)}"
    for place in found:
        assert "def test_" in place.read_text(encoding="utf-8"), place
