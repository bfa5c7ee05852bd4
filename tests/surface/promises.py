"""What is promised of every operation in a framework's op table."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from syft_core.hook.attributes import Op

from .beside import check_beside_plain
from .survey import Surface, Verdict, is_reference, judge
from .telling import tells_values


class SurfacePromises:
    """Subclass it with a ``surface``; a test that takes an ``op`` runs for every operation in its table."""

    surface: Surface

    @pytest.fixture(autouse=True, scope="class")
    def _hooked(self) -> Iterator[None]:
        with self.surface.attach_hook():
            yield

    def test_an_operation_does_on_a_chain_what_it_does_on_a_tensor_or_is_listed(self, op: Op) -> None:
        finding = judge(self.surface, op)

        allowed = {Verdict.PASSES, Verdict.SAME_ERROR}
        if op.name in self.surface.exceptions:
            allowed = {Verdict.FAILS, Verdict.UNREACHED}
        if not is_reference(self.surface):
            allowed |= {Verdict.UNREACHED} if op.name not in self.surface.exceptions else set(Verdict)
        assert finding.verdict in allowed, (
            f"{op.name} {finding.verdict.value} {finding.detail}; tests/surface/exceptions.py says otherwise"
        )

    def test_plain_tensors_may_stand_beside_a_chain(self) -> None:
        differing = {op.name: text for op in self.surface.ops if (text := self._difference_beside_plain(op))}

        assert {name: text for name, text in differing.items() if name not in self.surface.exceptions} == {}

    def _difference_beside_plain(self, op: Op) -> str:
        try:
            for case in self.surface.cases(op):
                check_beside_plain(case, self.surface)
        except AssertionError as error:
            return str(error)
        return ""

    def test_an_operation_that_returns_a_value_is_marked(self) -> None:
        unmarked = [op.name for op in self.surface.ops if not op.reveals and tells_values(self.surface, op)]

        assert unmarked == []

    def test_every_listed_exception_is_an_operation(self) -> None:
        unknown = set(self.surface.exceptions) - set(self.surface.ops.by_name)

        assert not unknown or not is_reference(self.surface)
