"""The examples in the documentation of plans run."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

pytest.importorskip("torch")

PAGE = Path(__file__).parents[2] / "docs" / "plans.md"


def test_the_examples_in_the_docs_run() -> None:
    failed, tried = doctest.testfile(str(PAGE), module_relative=False)

    assert tried
    assert not failed
