from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy")
from syft_mpc.channel import Counted, counting  # noqa: E402
from syft_mpc.comparison import is_negative  # noqa: E402
from syft_mpc.numpy.kernels import NumpyKernels  # noqa: E402
from syft_mpc.protocol import PROTOCOLS, Draw, Rest, Role, Spec, rehearse, together  # noqa: E402
from syft_mpc.spdz import spdz_mul  # noqa: E402

from .groups import Group  # noqa: E402

COSTS: list[tuple[str, Spec, dict[str, Any]]] = [
    *[("activation", Spec((5,), ring), {"function": name}) for name in ("tanh", "gelu") for ring in ("int64", "int32")],
    ("wave", Spec((2, 3)), {"function": "sin"}),
    ("exponential", Spec((5,)), {}),
    ("reciprocal", Spec((5,)), {}),
    ("root", Spec((5,), "int32"), {"function": "rsqrt"}),
    ("logarithm", Spec((5,)), {}),
    *[("softmax", Spec((2, size)), {"axis": 1, "log": log}) for size in (1, 10, 16, 17, 300) for log in (True, False)],
]


@pytest.mark.parametrize(("name", "spec", "options"), COSTS, ids=str)
@pytest.mark.parametrize("scale", [1 << 16, 1 << 20])
def test_a_function_costs_what_its_declaration_says(name: str, spec: Spec, options: dict[str, Any], scale: int) -> None:
    group, entry = Group(2, NumpyKernels()), PROTOCOLS[name]
    options = {**options, "scale": scale}
    counted = Counted()
    token = counting.set(counted)
    try:
        group.run(name, group.share(np.ones(spec.shape, spec.dtype)), **options)
    finally:
        counting.reset(token)

    rounds, sends = (cost if isinstance(cost, int) else cost(spec, **options) for cost in (entry.rounds, entry.sends))
    assert (counted.rounds, counted.bytes) == (rounds, 2 * sends)
    rehearsed = rehearse(NumpyKernels(), name, (spec,), tuple(sorted(options.items())), 2)
    assert (rehearsed.rounds, rehearsed.sends) == (rounds, sends)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("activation", {"function": "gelu"}),
        ("wave", {"function": "cos"}),
        ("exponential", {}),
        ("reciprocal", {}),
        ("root", {"function": "sqrt"}),
        ("logarithm", {}),
        ("softmax", {"axis": 1}),
    ],
    ids=str,
)
def test_what_the_parties_open_is_uniform_and_does_not_depend_on_the_secret(name: str, options: dict[str, Any]) -> None:
    seen: dict[int, list[Any]] = {0: [], 1: []}

    def watch(sender: int, receiver: int, payload: Any) -> None:
        if receiver >= 0 and sender >= 0:
            seen[sender].append(payload)

    for secret in (0, 3 << 16, -(1 << 40)):
        seen[0].clear()
        seen[1].clear()
        group = Group(2, NumpyKernels(), watch)
        group.run(name, group.share(np.full((1024, 2), secret)), scale=65536, **options)
        assert len(seen[0]) == len(seen[1]) > 1
        for first, second in zip(seen[0], seen[1], strict=True):
            for one, other in zip(first, second, strict=True):
                opened = one + other if one.dtype == np.int64 else one ^ other
                top = (opened >> (opened.itemsize * 8 - 4)) & 15 if one.dtype == np.int64 else opened & 1
                counts = np.bincount(top.ravel().astype(np.int64), minlength=16 if one.dtype == np.int64 else 2)
                expected = top.size / len(counts)
                assert ((counts - expected) ** 2 / expected).sum() < 80  # 15 degrees of freedom: less than 1e-9


def test_protocols_side_by_side_need_as_many_rounds_as_the_longest() -> None:
    kernels = NumpyKernels()
    party, x = Role(0, 2, kernels), np.zeros(3, np.int64)
    result, rounds = _drive(kernels, together(is_negative(party, x), spdz_mul(party, x, x), _no_steps()))

    assert rounds == 4
    assert result[2] == "done"


def _drive(kernels: Any, steps: Any) -> tuple[Any, int]:
    rounds, answer = 0, None
    while True:
        try:
            request = steps.send(answer)
        except StopIteration as end:
            return end.value, rounds
        if isinstance(request, Draw):
            answer = [kernels.blank(*s) for s in request.correlation.forms[0]]
        elif isinstance(request, Rest):
            answer = [kernels.blank(*s) for s in request.draw.correlation.forms[1]]
        else:
            rounds, answer = rounds + 1, list(request.shares)


def _no_steps() -> Any:
    return "done"
    yield
