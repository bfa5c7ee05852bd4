"""The toy backend passes the conformance suite, also with immutable vectors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest
import toy
from syft_toy.attributes import ToyAttributes
from syft_toy.hook import ToyHook
from syft_toy.testing import ToyConformance

from syft_core.hook import hook_args
from syft_core.hook.dispatch import frameworks


class Toy:
    """What the suite must know about toy, for single sections."""

    framework = ToyConformance.framework
    hook_class: Any = ToyHook
    concatenate = ToyConformance.concatenate
    numbers = ToyConformance.numbers
    patched_objects = ToyConformance.patched_objects


@contextmanager
def install(attributes: ToyAttributes) -> Iterator[None]:
    """Replace the attributes of toy's vectors for the duration of a block."""
    with patch.dict(frameworks._entries, {toy.Vector: attributes}):
        hook_args._clear_caches()
        yield
    hook_args._clear_caches()


class FrozenAttributes(ToyAttributes):
    """Toy without the operations that change a vector."""

    exclude = ToyAttributes.exclude | ToyAttributes.inplace_methods
    inplace_methods = frozenset()


class FrozenHook(ToyHook):
    frozen = FrozenAttributes(toy)

    def _make_attributes(self) -> ToyAttributes:
        return self.frozen


class TestToyBackend(ToyConformance): ...


class TestImmutableToyBackend(ToyConformance):
    hook_class = FrozenHook
    mutable = False

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def _installed(cls) -> Iterator[None]:
        with install(FrozenHook.frozen):
            yield
