"""Make the toy framework and its backend importable, and provide a fixture that hooks it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

TOY = Path(__file__).parent / "toy"
sys.path.insert(0, str(TOY))

import toy  # noqa: E402  # found where the line above says
from syft_toy.hook import ToyHook  # noqa: E402


@pytest.fixture
def hook() -> Iterator[ToyHook]:
    with ToyHook(toy) as attached:
        yield attached
