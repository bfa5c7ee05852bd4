from __future__ import annotations

from syft_core.plans.traced import Number, is_traced, make_types
from syft_core.values import Traced


def test_a_traced_number_is_known_without_plans() -> None:
    integers, floats = make_types((object, object))

    assert issubclass(Number, Traced)
    assert issubclass(integers, Traced)
    assert issubclass(floats, Traced)
    assert not is_traced(1)
    assert not issubclass(int, Traced)
