"""What a party sees while a protocol runs is uniform, and its distribution does not depend on the secrets.

The operands are fixed, and so are all their shares: what is random comes from the protocol. Every array that a party
receives, the sum of what all parties sent for an opening, and the difference of any two arrays of the same form must be
uniform, for two very different secrets, with the same distribution. The arrays have many equal elements, so a mask that
is used for more than one of them is found, and so is one that is used in more than one run.

A test fails if a statistic exceeds a bound that it exceeds by chance with a probability of less than e^-40.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from math import sqrt
from typing import Any

import pytest

np = pytest.importorskip("numpy")

from syft_mpc.numpy.kernels import NumpyKernels  # noqa: E402
from syft_mpc.protocol import PROTOCOLS, PROVIDER  # noqa: E402
from syft_mpc.securenn import P  # noqa: E402
from syft_mpc.spdz import MATRICES  # noqa: E402

from .groups import CORE, Group, Shares  # noqa: E402

SIZE, RUNS = 2500, 5
Make = Callable[[Group, int], list[Shares]]
Run = dict[tuple[int, int], list[Any]]
"""The arrays that were sent in a run, by sender and receiver."""


def fixed(*values: int, dtype: str = "int64", shape: tuple[int, ...] = (SIZE,)) -> Make:
    """Share arrays of equal elements: all parties but the last have the same share for every secret."""

    def make(group: Group, secret: int) -> list[Shares]:
        random = np.random.default_rng(1)
        operands = []
        for value in (secret, *values):
            others = [
                np.full(shape, random.integers(-(1 << 30), 1 << 30)).astype(dtype) for _ in range(group.count - 1)
            ]
            operands.append([*others, np.full(shape, value).astype(dtype) - sum(others)])
        return operands

    return make


def masked(value: int, shape: tuple[int, ...]) -> Make:
    """Share two arrays, and open the second one under a mask that serves all runs; it is kept under the number 1."""

    def make(group: Group, secret: int) -> list[Shares]:
        x, y = fixed(value, shape=shape)(group, secret)
        group.handle = group.run("spdz_mask", y)
        return [x, y]

    return make


def fresh(group: Group, secret: int) -> list[Shares]:
    """Share anew, for protocols that open a value as it is."""
    return [group.share(np.full(SIZE, secret))]


def digits(_group: Group, secret: int) -> list[Shares]:
    """Share the bits of a number, to be compared with a public one, and choose random bits."""
    bits = np.array([secret >> bit & 1 for bit in range(64)], "uint8")
    first = np.arange(64, dtype="uint8")
    shares = [np.tile(first, (SIZE, 1)), np.tile((bits + P - first) % P, (SIZE, 1)).astype("uint8")]
    beta = np.frombuffer(secrets.token_bytes(SIZE), "uint8") & 1
    return [shares, [np.full(SIZE, 1 << 40)] * 2, [beta] * 2]


def authenticated(*values: int, shape: tuple[int, ...] = (SIZE,)) -> Make:
    """Share and authenticate, once for all runs."""

    def make(group: Group, secret: int) -> list[Shares]:
        return [group.run("auth_input", [np.full(shape, value)] * group.count, owner=0) for value in (secret, *values)]

    return make


def plain(_group: Group, secret: int) -> list[Shares]:
    """Give all parties the same array; only the owner's is used."""
    return [[np.full(SIZE, secret)] * _group.count]


@dataclass(frozen=True)
class Scenario:
    name: str
    make: Make
    secrets: tuple[int, int] = (3, -(1 << 61) + 5)
    options: dict[str, Any] = field(default_factory=dict)
    count: int = 2
    again: bool = False
    """Whether the operands are made anew for every run."""

    def __str__(self) -> str:
        return f"{self.name}-{self.count}"


SMALL = (2, -(1 << 29) + 5)
FAR = (3, -(1 << 33))
WINDOWS = {"size": (2, 2), "stride": (2, 2), "padding": (0, 0), "dilation": (1, 1)}
SILENT = {"zero", "sum_pool2d", "unpool2d", "auth_add_public"}
"""These send nothing."""
SCENARIOS = [
    Scenario("spdz_mul", fixed(7)),
    Scenario("spdz_mul", fixed(-1), count=3, options={"divisor": 1000}, secrets=(1, -(1 << 60))),
    Scenario("spdz_mul", fixed(5, dtype="int32", shape=(50, 50)), options={"op": MATRICES}, secrets=SMALL),
    Scenario("spdz_mask", fixed(), count=3),
    Scenario("spdz_mul_masked", masked(7, (50, 50)), options={"mask": 1, "op": MATRICES, "divisor": 1000}),
    Scenario("spdz_mul_masked", masked(-1, (SIZE,)), options={"mask": 1}, count=3),
    Scenario("square", fixed(), count=3),
    Scenario("truncate", fixed(), options={"divisor": 10}),
    Scenario("truncate", fixed(dtype="int32"), options={"divisor": 256}, secrets=SMALL, count=3),
    Scenario("is_negative", fixed()),
    Scenario("is_negative", fixed(dtype="int32"), count=3, secrets=SMALL),
    Scenario("is_negative", fixed(7), options={"negated": True, "scale": 1000}),
    Scenario("relu", fixed(), options={"derivative": True}),
    Scenario("maximum", fixed(100)),
    Scenario("is_zero", fixed(), secrets=(0, -(1 << 63))),
    Scenario("largest", fixed(shape=(3, SIZE)), options={"positions": True}),
    Scenario("max_pool2d", fixed(shape=(1, 1, 100, 100)), options=WINDOWS),
    Scenario("max_pool2d_positions", fixed(shape=(1, 1, 100, 100)), options=WINDOWS),
    Scenario(
        "sum_pool2d",
        fixed(shape=(1, 1, 10, 10)),
        options={name: option for name, option in WINDOWS.items() if name != "dilation"},
    ),
    Scenario("unpool2d", fixed(shape=(4, 1, 1, 5, 5)), options={"shape": (1, 1, 10, 10), **WINDOWS}),
    Scenario("activation", fixed(), options={"function": "gelu", "scale": 1 << 16}, secrets=FAR, count=3),
    Scenario("activation", fixed(dtype="int32"), options={"function": "sigmoid", "scale": 1 << 10}, secrets=SMALL),
    Scenario("wave", fixed(), options={"function": "sin", "scale": 1 << 16}, secrets=FAR),
    Scenario("exponential", fixed(), options={"scale": 1 << 16}, secrets=FAR),
    Scenario("reciprocal", fixed(), options={"scale": 1 << 16}, secrets=FAR),
    Scenario("quotient", fixed(7 << 16), options={"scale": 1 << 16}, secrets=FAR),
    Scenario("quotient", fixed(7 << 8, dtype="int32"), options={"scale": 1 << 8}, secrets=SMALL, count=3),
    Scenario("root", fixed(), options={"function": "sqrt", "scale": 1 << 16}, secrets=FAR),
    Scenario("logarithm", fixed(), options={"scale": 1 << 16}, secrets=FAR),
    Scenario("softmax", fixed(shape=(SIZE, 2)), options={"axis": 1, "scale": 1 << 16}, secrets=FAR),
    Scenario("zero", fixed()),
    Scenario("reconstruct", fresh, again=True),
    Scenario("snn_select_share", fixed(77, -(1 << 50)), secrets=(0, 1)),
    Scenario("snn_private_compare", digits, secrets=(3, (1 << 64) - 3), again=True),
    Scenario("snn_share_convert", fixed()),
    Scenario("snn_share_convert", fixed(dtype="int32"), secrets=SMALL),
    Scenario("snn_msb", fixed()),
    Scenario("snn_msb", fixed(dtype="int32"), secrets=SMALL),
    Scenario("snn_relu_deriv", fixed()),
    Scenario("snn_relu", fixed(dtype="int32"), secrets=SMALL),
    Scenario("snn_division", fixed(50), options={"bit_len_max": 1}, secrets=(0, -(1 << 30))),
    Scenario("snn_maxpool", fixed()),
    Scenario("snn_maxpool_deriv", fixed()),
    Scenario("snn_maxpool2d", fixed(shape=(1, 1, 100, 100)), options={"kernel_size": 2, "stride": 2}),
    Scenario("auth_random", lambda _group, _secret: [], options={"shape": (SIZE,)}, count=3),
    Scenario("auth_input", plain, options={"owner": 1}),
    Scenario("auth_input", plain, options={"owner": 0}, count=3),
    Scenario("auth_mul", authenticated(99)),
    Scenario("auth_mul", authenticated(-5), options={"divisor": 10}, count=3, secrets=(0, 1 << 20)),
    Scenario("auth_truncate", authenticated(), options={"divisor": 10}, count=3, secrets=(0, 1 << 20)),
    Scenario("auth_open", authenticated()),
    Scenario("auth_open", authenticated(), count=3),
    Scenario("auth_add_public", lambda group, secret: [*authenticated()(group, secret), *plain(group, 1)]),
]


def test_every_protocol_is_simulated() -> None:
    assert {scenario.name for scenario in SCENARIOS} == CORE


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_what_each_party_sees_is_uniform_and_independent_of_the_secrets(scenario: Scenario) -> None:
    first, second = ([*observe(scenario, secret)] for secret in scenario.secrets)
    seen = [dict(join(map(statistics, runs, [scenario.name] * RUNS))) for runs in (first, second)]

    assert seen[0].keys() == seen[1].keys()
    assert bool(seen[0]) == (scenario.name not in SILENT)
    for what in seen[0]:
        one, other = seen[0][what], seen[1][what]
        one, other, bins = to_bins(one, other)
        counts = [np.bincount(part.ravel(), minlength=bins) for part in (one, other)]
        for count in counts:
            assert len(count) == bins, what
            expected = count.sum() / bins
            assert ((count - expected) ** 2 / expected).sum() < bound(bins - 1), f"{what} is not uniform"
        total = np.maximum(counts[0] + counts[1], 1)
        assert ((counts[0] - counts[1]) ** 2 / total).sum() < bound(bins - 1), f"{what} depends on the secret"


def test_what_the_provider_sees_in_a_private_comparison_is_one_zero_at_a_random_place_or_none() -> None:
    found: dict[int, Any] = {}
    for scenario in SCENARIOS:
        if scenario.name not in ("snn_private_compare", "snn_relu_deriv", "snn_relu"):
            continue
        for secret in scenario.secrets:
            runs = [*observe(scenario, secret)]
            for first, second in zip(
                *([x for run in runs for x in run[rank, PROVIDER] if x.dtype == np.uint8] for rank in (0, 1)),
                strict=True,
            ):
                sums = ((first + second) % P).reshape(first.shape[0], -1)
                found[len(found)] = sums
    for sums in found.values():
        length, size = sums.shape
        zeros = (sums == 0).sum(0)
        assert set(zeros.tolist()) == {0, 1}
        assert abs(zeros.sum() - size / 2) < sqrt(bound(1) * size / 4)
        places = np.bincount(np.nonzero(sums.T == 0)[1], minlength=length)
        expected = places.sum() / length
        assert ((places - expected) ** 2 / expected).sum() < bound(length - 1)
        values = np.bincount(sums[sums > 0], minlength=P)[1:]
        expected = values.sum() / (P - 1)
        assert ((values - expected) ** 2 / expected).sum() < bound(P - 2)


def test_values_under_a_mask_that_is_used_twice_are_found_out() -> None:
    """The statistics notice what they are for: a mask for several elements, and one for several runs."""
    random = np.random.default_rng(2)
    once = np.full(SIZE, 5) + random.integers(0, 1 << 62)
    again = random.integers(-(1 << 63), (1 << 63) - 1, SIZE)

    for samples in (once, np.concatenate([again] * RUNS)):
        part, _, bins = to_bins(samples, samples)
        count = np.bincount(part.ravel(), minlength=bins)
        expected = count.sum() / bins
        assert ((count - expected) ** 2 / expected).sum() > bound(bins - 1)


# --- collecting


def observe(scenario: Scenario, secret: int) -> Iterator[Run]:
    """Run a protocol several times; yield what was sent in each run."""
    sent: Run = {}
    group = Group(
        scenario.count,
        NumpyKernels(),
        watch=lambda sender, receiver, payload: sent.setdefault((sender, receiver), []).extend(arrays_in(payload)),
    )
    operands = scenario.make(group, secret)
    for _ in range(RUNS):
        if scenario.again:
            operands = scenario.make(group, secret)
        sent.clear()
        group.run(scenario.name, *operands, **scenario.options)
        yield {ranks: list(arrays) for ranks, arrays in sent.items()}


def arrays_in(payload: Any) -> Iterator[Any]:
    for part in payload:
        if isinstance(part, tuple):
            yield from arrays_in(part)
        else:
            yield np.asarray(part)


def statistics(run: Run, name: str) -> dict[str, Any]:
    """Return arrays that should be uniform: what each party received, and combinations of it."""
    found: dict[str, Any] = {}
    ranks = sorted({rank for pair in run for rank in pair})
    for receiver in ranks:
        received = [
            (f"array {place} from {sender} to {receiver}", array)
            for sender in ranks
            for place, array in enumerate(run.get((sender, receiver), ()))
        ]
        found.update(received)
        if receiver != PROVIDER:
            for (one, x), (other, y) in combinations(received, 2):
                if (x.shape, x.dtype) == (y.shape, y.dtype):
                    found[f"{one} minus {other}"] = difference(x, y)
        if not PROTOCOLS[name].reveals:
            found.update(sums_at(run, ranks, receiver))
    return found


def sums_at(run: Run, ranks: list[int], receiver: int) -> dict[str, Any]:
    """Return the sums of what all parties sent for an opening, the receiver included."""
    parties = [rank for rank in ranks if rank != PROVIDER]
    lists = [run.get((sender, receiver), []) for sender in parties if sender != receiver]
    if receiver != PROVIDER:
        lists.append(next((run[receiver, other] for other in parties if (receiver, other) in run), []))
    found = {}
    for place, arrays in enumerate(zip(*lists, strict=False)):
        is_opening = len({(array.shape, array.dtype) for array in arrays}) == 1
        if is_opening and len(lists) > 1 and not is_digits(arrays[0]):
            join = np.bitwise_xor if arrays[0].dtype == np.uint8 else np.add
            found[f"the sum of arrays {place} at {receiver}"] = join.reduce(arrays, dtype=arrays[0].dtype)
    return found


def join(parts: Iterator[dict[str, Any]]) -> dict[str, Any]:
    """Return the samples of all runs together."""
    runs = list(parts)
    return {what: np.concatenate([run[what].ravel() for run in runs]) for what in runs[0]}


def difference(x: Any, y: Any) -> Any:
    if x.dtype != np.uint8:
        return x - y
    return (x + P - y) % P if is_digits(x) and is_digits(y) else x ^ y


def is_digits(x: Any) -> bool:
    return bool(x.dtype == np.uint8 and x.size >= 32 and 1 < x.max() < P)


def to_bins(one: Any, other: Any) -> tuple[Any, Any, int]:
    """Return samples as bytes, digits or bits, whatever they are, and how many values these have.

    If there are few samples, they are counted by bit.
    """
    if is_digits(one):
        return one, other, P
    one, other = (np.frombuffer(part.tobytes(), "uint8") for part in (one, other))
    if one.max(initial=0) <= 1:
        return one, other, 2
    if min(one.size, other.size) < 20 * 256:
        return np.unpackbits(one), np.unpackbits(other), 2
    return one, other, 256


def bound(freedom: int) -> float:
    """Return what a chi-square statistic exceeds with a probability below e^-40 (Laurent and Massart 2000)."""
    return freedom + 2 * sqrt(40 * freedom) + 80
