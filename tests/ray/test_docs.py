"""The examples of the page about Ray run."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

pytest.importorskip("ray")
pytest.importorskip("torch")


def test_the_examples_of_the_page_run() -> None:
    page = Path(__file__).parents[2] / "docs" / "ray.md"

    found = doctest.testfile(str(page), module_relative=False)

    assert found.failed == 0
    assert found.attempted > 10
