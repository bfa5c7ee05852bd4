"""A fixture that hooks the toy framework."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import toy
from syft_toy.hook import ToyHook


@pytest.fixture
def hook() -> Iterator[ToyHook]:
    with ToyHook(toy) as attached:
        yield attached
