"""Every protocol computes the right values, for any number of parties, in both rings and on both frameworks."""

from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy")

from syft_mpc.channel import Counted, counting  # noqa: E402
from syft_mpc.numpy.kernels import NumpyKernels  # noqa: E402
from syft_mpc.protocol import PROTOCOLS, Spec, rehearse  # noqa: E402

from .groups import Group  # noqa: E402

COSTS: list[tuple[str, tuple[Spec, ...], dict[str, Any]]] = [
    ("spdz_mul", (Spec((4, 3)), Spec((3,))), {}),
    ("spdz_mul", (Spec((4, 3)), Spec((3, 2))), {"op": "matrices", "divisor": 1000}),
    ("spdz_mask", (Spec((5, 2)),), {}),
    ("square", (Spec((5,)),), {"divisor": 2}),
    ("truncate", (Spec((5,), "int32"),), {"divisor": 10}),
    ("is_negative", (Spec((5,)),), {}),
    ("is_negative", (Spec((5,)), Spec((5,))), {"negated": True, "scale": 10}),
    ("relu", (Spec((5,), "int32"),), {"derivative": True}),
    ("maximum", (Spec((5,)), Spec((5,))), {}),
    ("is_zero", (Spec((5,)),), {}),
]


@pytest.mark.parametrize(("name", "specs", "options"), COSTS, ids=lambda part: str(part)[:30])
def test_a_protocol_costs_what_its_declaration_says(name: str, specs: Any, options: Any) -> None:
    group, entry = Group(2, NumpyKernels()), PROTOCOLS[name]
    operands = [group.share(np.zeros(spec.shape, spec.dtype)) for spec in specs]
    counted = Counted()
    token = counting.set(counted)
    try:
        group.run(name, *operands, **options)
    finally:
        counting.reset(token)

    rounds, sends = (cost if isinstance(cost, int) else cost(*specs, **options) for cost in (entry.rounds, entry.sends))
    assert (counted.rounds, counted.bytes) == (rounds, 2 * sends)
    rehearsed = rehearse(NumpyKernels(), name, specs, tuple(sorted(options.items())), 2)
    assert (rehearsed.rounds, rehearsed.sends) == (rounds, sends)
