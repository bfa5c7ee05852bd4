"""BackendConformance: the contract of a backend, as tests.

Subclass it in a test file of your backend and set two attributes; pytest does the rest::

    class TestMyBackend(BackendConformance):
        framework = my_framework
        hook_class = MyHook

        def concatenate(self, tensors):
            return my_framework.concat(tensors)

Override ``concatenate``, and ``numbers``, ``leaks`` and ``patched_objects`` if the defaults do not fit the framework.
Set ``mutable = False`` if tensors are immutable. A failed check names the method of the backend to fix;
``docs/backends.md`` explains the sections.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from syft_core.features import FEATURES
from syft_core.testing.chains import ChainSection, LayerSection
from syft_core.testing.disclosure import DisclosureSection
from syft_core.testing.forms import FormSection
from syft_core.testing.hooking import HookSection
from syft_core.testing.op_table import OpTableSection, SpellingSection
from syft_core.testing.pointers import PointerSection
from syft_core.testing.private_data import PrivateDataSection
from syft_core.testing.serde import SerdeSection


class KernelConformance(
    HookSection,
    OpTableSection,
    SpellingSection,
    ChainSection,
    LayerSection,
    SerdeSection,
    FormSection,
    PointerSection,
    DisclosureSection,
    PrivateDataSection,
):
    """The sections of the contract that need no feature."""


if TYPE_CHECKING:
    BackendConformance = KernelConformance
else:

    def _load_sections() -> Iterator[type]:
        for path in FEATURES.list_sections():
            pytest.register_assert_rewrite(path.partition(":")[0])
            yield pkgutil.resolve_name(path)

    BackendConformance = type("BackendConformance", (KernelConformance, *_load_sections()), {"__module__": __name__})
    BackendConformance.__doc__ = """All sections of the contract, those of features too; a backend subclasses this."""
