"""The message that runs a stored plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from syft_core.messages import MAX_RESULTS, Message, MessageFacts


@dataclass(slots=True)
class RunPlan(Message):
    """Run a stored plan on stored objects and numbers, and store the tensors that it returns."""

    code: ClassVar[int] = 330
    facts: ClassVar[MessageFacts] = MessageFacts(
        text=lambda _m: "run plan",
        uses=lambda m, _receiver: (m.id,),
        creates=lambda m, _receiver: (m.result,),
        stores_results=True,
        waits=True,
    )
    id: int | str
    args: tuple[Any, ...]
    result: int
    count: int = -1
    """The predicted number of results; -1 if the caller needs their forms."""

    @property
    def expected(self) -> range:
        """The ids of the results."""
        return range(self.result, self.result + self.count) if 0 < self.count <= MAX_RESULTS else range(0)
