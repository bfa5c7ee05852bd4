"""Tests for every operation in a framework's op table."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from syft_core.hook.attributes import Op

from .disclosure import returns_values
from .mixed import check_mixed
from .survey import Surface, Verdict, is_reference, judge


class SurfacePromises:
    """Subclass it with a ``surface``; a test that takes an ``op`` runs for every operation in its table."""

    surface: Surface

    @pytest.fixture(autouse=True, scope="class")
    def _attach_hook(self) -> Iterator[None]:
        with self.surface.attach_hook():
            yield

    def test_an_operation_behaves_the_same_on_a_chain_or_is_listed(self, op: Op) -> None:
        finding = judge(self.surface, op)

        allowed = {Verdict.PASSES, Verdict.SAME_ERROR}
        if op.name in self.surface.exceptions:
            allowed = {Verdict.FAILS, Verdict.UNREACHED}
        if not is_reference(self.surface):
            allowed |= {Verdict.UNREACHED} if op.name not in self.surface.exceptions else set(Verdict)
        assert finding.verdict in allowed, (
            f"{op.name} {finding.verdict.value} {finding.detail}; tests/surface/exceptions.py says otherwise"
        )

    def test_chains_and_plain_tensors_can_be_mixed(self) -> None:
        differing = {op.name: text for op in self.surface.ops if (text := self._find_mixed_difference(op))}

        assert {name: text for name, text in differing.items() if name not in self.surface.exceptions} == {}

    def _find_mixed_difference(self, op: Op) -> str:
        try:
            for case in self.surface.cases(op):
                check_mixed(case, self.surface)
        except AssertionError as error:
            return str(error)
        return ""

    def test_an_operation_that_returns_a_value_is_marked(self) -> None:
        unmarked = [op.name for op in self.surface.ops if not op.reveals and returns_values(self.surface, op)]

        assert unmarked == []

    def test_every_listed_exception_is_an_operation(self) -> None:
        unknown = set(self.surface.exceptions) - set(self.surface.ops.by_name)

        assert not unknown or not is_reference(self.surface)
