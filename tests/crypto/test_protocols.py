"""Every protocol computes the right values, for any number of parties, in both rings and on both frameworks."""

from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy")

from syft_core.crypto.channel import Counted, counting  # noqa: E402
from syft_core.crypto.errors import ProtocolError  # noqa: E402
from syft_core.crypto.protocol import PROTOCOLS, Spec, rehearse  # noqa: E402
from syft_numpy.kernels import NumpyKernels  # noqa: E402

from .groups import Group  # noqa: E402

LIMITS = {"int64": 1 << 61, "int32": 1 << 29}


def make_kernels(framework: str) -> Any:
    if framework == "numpy":
        return NumpyKernels()
    pytest.importorskip("torch")
    return pytest.importorskip("syft_torch.kernels").TorchKernels()


@pytest.fixture(params=[("numpy", 2), ("numpy", 3), ("numpy", 5), ("torch", 2), ("torch", 4)], ids=str)
def group(request: pytest.FixtureRequest) -> Group:
    framework, count = request.param
    return Group(count, make_kernels(framework))


@pytest.fixture(params=["int64", "int32"])
def values(request: pytest.FixtureRequest) -> Any:
    limit = LIMITS[request.param]
    random = np.random.default_rng(7)
    x = random.integers(-limit, limit, (300,)).astype(request.param)
    x[:8] = [0, 1, -1, limit - 1, -limit + 1, 2, -2, 255]
    y = random.integers(-limit, limit, (300,)).astype(request.param)
    y[::5] = x[::5]
    return x, y


def test_products_and_squares_are_exact(group: Group, values: Any) -> None:
    x, y = values

    assert (group.open(group.run("spdz_mul", group.share(x), group.share(y))) == x * y).all()
    assert (group.open(group.run("square", group.share(x))) == x * x).all()


def test_matrix_products_and_convolutions_are_exact(group: Group) -> None:
    random = np.random.default_rng(7)
    x, y = random.integers(-99, 99, (2, 3, 4)), random.integers(-99, 99, (4, 5))
    image, filters = random.integers(-99, 99, (2, 4, 7, 7)), random.integers(-99, 99, (6, 2, 3, 3))
    options = {"op": "images", "stride": (2, 2), "padding": (1, 1), "groups": 2}

    assert (group.open(group.run("spdz_mul", group.share(x), group.share(y), op="matrices")) == x @ y).all()
    expected = NumpyKernels().conv2d(image, filters, (2, 2), (1, 1), (1, 1), 2)
    assert (group.open(group.run("spdz_mul", group.share(image), group.share(filters), **options)) == expected).all()


def test_a_value_that_was_masked_once_serves_many_products(group: Group) -> None:
    random = np.random.default_rng(7)
    y, filters = random.integers(-99, 99, (4, 5)), random.integers(-99, 99, (6, 2, 3, 3))
    kept = [(values, group.run("spdz_mask", values), group.number) for values in map(group.share, (y, filters))]

    for _ in range(3):
        x, image = random.integers(-99, 99, (2, 3, 4)), random.integers(-99, 99, (2, 2, 7, 7))
        for one, options, expected, (other, _, mask) in (
            (x, {"op": "matrices"}, x @ y, kept[0]),
            (image, {"op": "images", "stride": (2, 2)}, NumpyKernels().conv2d(image, filters, (2, 2)), kept[1]),
        ):
            found = group.run("spdz_mul_masked", group.share(one), other, mask=mask, **options)
            assert (group.open(found) == expected).all()


def test_a_mask_is_used_for_one_opening_and_one_value() -> None:
    sent: list[Any] = []
    group = Group(2, NumpyKernels(), watch=lambda *message: sent.append(message))
    x, y = (group.share(np.arange(6) * k) for k in (1, 2))
    handles = [group.run("spdz_mask", y) for _ in range(2)]
    ((one,), _, (other,), _) = [arrays for _, _, arrays in sent if type(arrays) is tuple]
    assert not (one == other).any()

    sent.clear()
    with pytest.raises(ProtocolError, match="its mask 99 is unknown here"):
        group.attempt("spdz_mul_masked", x, y, mask=99)
    del handles
    assert not [arrays for sender, _, arrays in sent if sender != -1 and type(arrays) is tuple]


def test_a_mask_is_forgotten_with_what_was_opened_under_it() -> None:
    group = Group(2, NumpyKernels())
    x, y = group.share(np.arange(6)), group.share(np.arange(6))
    handle, mask = group.run("spdz_mask", y), group.number
    group.run("spdz_mul_masked", x, y, mask=mask)
    assert all(group.channels[rank].kept == 3 * 8 * 6 for rank in (0, 1))

    del handle
    group.run("square", x)

    for rank in (0, 1):
        channel = group.channels[rank]
        assert (channel.kept, channel._masks) == (0, {})


@pytest.mark.parametrize("divisor", [7, 256])
def test_a_quotient_reveals_one_comparison_on_the_lost_digits_to_whoever_knows_what_was_opened(divisor: int) -> None:
    """What truncation.md says, and no more than that."""
    sent: list[Any] = []
    group = Group(2, NumpyKernels(), watch=lambda sender, _to, arrays: sent.append((sender, arrays)))
    x = np.random.default_rng(7).integers(-(1 << 40), 1 << 40, 500)

    found = group.open(group.run("truncate", group.share(x), divisor=divisor))

    shares = [arrays[0] for sender, arrays in sent if sender != -1]
    lift = (1 << 62) // divisor * divisor
    unsigned = [int(c) % (1 << 64) for c in shares[0] + shares[1]]
    for quotient, value, c in zip(found.tolist(), (x + lift).tolist(), unsigned, strict=True):
        mask = (c - value + (1 << 63)) % (1 << 64) - (1 << 63)
        is_larger = value % divisor > (value + mask) % divisor
        assert quotient == value // divisor + is_larger - lift // divisor


@pytest.mark.parametrize("divisor", [2, 7, 1000, 65536, 1 << 20])
def test_truncation_is_never_off_by_one_or_more(group: Group, values: Any, divisor: int) -> None:
    x = values[0] // 2
    small = np.arange(-50, 250).astype(x.dtype)

    for numbers in (x, small):
        found = group.open(group.run("truncate", group.share(numbers), divisor=divisor))
        error = [abs(int(q) * divisor - int(n)) for q, n in zip(found, numbers, strict=True)]
        assert max(error) < divisor


def test_truncation_is_right_on_average() -> None:
    group = Group(3, NumpyKernels())

    found = group.open(group.run("truncate", group.share(np.full(40_000, 250)), divisor=1000))

    assert set(found.tolist()) == {0, 1}
    assert abs(found.mean() - 0.25) < 0.02


def test_signs_and_what_follows_from_them_are_right(group: Group, values: Any) -> None:
    x, y = values
    shares = group.share(x)

    assert (group.open(group.run("is_negative", shares)) == (x < 0)).all()
    positive, derivative = group.run("relu", shares, derivative=True)
    assert (group.open(positive) == np.maximum(x, 0)).all()
    assert (group.open(derivative) == (x > 0)).all()
    assert (
        group.open(group.run("maximum", group.share(x // 2), group.share(y // 2))) == np.maximum(x // 2, y // 2)
    ).all()
    assert (group.open(group.run("is_zero", group.share(x - y))) == (x == y)).all()
    for name, expected in (("is_negative", x >= 0), ("is_zero", x != 0)):
        bit, scaled = group.run(name, shares, negated=True, scale=1 << 16)
        assert (group.open(bit) == expected).all()
        assert (group.open(scaled) == expected * (1 << 16)).all()


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


def test_a_product_with_a_kept_mask_costs_what_its_declaration_says() -> None:
    group, entry = Group(2, NumpyKernels()), PROTOCOLS["spdz_mul_masked"]
    x, y = group.share(np.zeros((4, 3), "int64")), group.share(np.zeros((3, 2), "int64"))
    options = {"op": "matrices", "divisor": 1000}
    handle, mask = group.run("spdz_mask", y), group.number
    specs = (Spec((4, 3)), Spec((3, 2)))

    rounds, sent = group.measure("spdz_mul_masked", x, y, mask=mask, **options)
    del handle

    declared = [cost(*specs, mask=mask, **options) for cost in (entry.rounds, entry.sends) if not isinstance(cost, int)]
    assert [rounds, sent] == [declared[0], 2 * declared[1]] == [2, 2 * 8 * (12 + 8)]
    rehearsed = rehearse(
        NumpyKernels(), "spdz_mul_masked", specs, (("divisor", 1000), ("mask", 5), ("op", "matrices")), 2
    )
    assert (rehearsed.rounds, rehearsed.sends) == (rounds, sent // 2)


def test_a_run_cannot_be_repeated_with_the_same_randomness() -> None:
    group = Group(2, NumpyKernels())
    shares = group.share(np.arange(3))
    group.run("square", shares)
    group.number -= 1

    with pytest.raises(ProtocolError, match="cannot start run 1: a later one was started already"):
        group.run("square", shares)


def test_prepared_correlations_are_used_first() -> None:
    sent: list[Any] = []
    group = Group(2, NumpyKernels(), watch=lambda sender, receiver, payload: sent.append((sender, receiver)))
    x = np.arange(6)
    group.prepare("relu", (Spec((6,)),), 2)

    for _ in range(2):
        assert (group.open(group.run("relu", group.share(x - 3))) == np.maximum(x - 3, 0)).all()
    assert (-1, 0) not in sent
    assert (group.open(group.run("relu", group.share(x - 3))) == np.maximum(x - 3, 0)).all()
    assert (-1, 0) in sent


def test_corrections_may_arrive_after_the_run_that_uses_them_has_started_but_only_once() -> None:
    group = Group(2, NumpyKernels())
    provider, first = group.channels[-1], group.channels[0]
    late: list[Any] = []
    send, provider._post = provider._post, lambda *message: late.append(message)
    group.prepare("square", (Spec((6,)),), 2)
    provider._post = send

    results, errors = group.attempt("square", group.share(np.arange(6)))
    assert 0 not in results
    for _, number, payload in late:
        for run in first.receive(-1, number, payload):
            run.advance()

    assert not errors
    assert (group.open([results[0], results[1]]) == np.arange(6) ** 2).all()
    assert (group.open(group.run("square", group.share(np.arange(6)))) == np.arange(6) ** 2).all()
    for _, number, payload in late:
        with pytest.raises(ProtocolError, match="it was sent before"):
            first.receive(-1, number, payload)
    assert (first.held, first._stock, first._awaited) == (0, {}, set())


@pytest.mark.parametrize("framework", ["numpy", "torch"])
@pytest.mark.parametrize("dtype", ["int64", "int32"])
@pytest.mark.parametrize("terms", [90, 512, 1024, 2048])
def test_products_of_digits_are_exact_for_all_integers(framework: str, dtype: str, terms: int) -> None:
    kernels, random, info = make_kernels(framework), np.random.default_rng(3), np.iinfo(dtype)
    x, y = (random.integers(info.min, info.max, shape, dtype, endpoint=True) for shape in ((20, terms), (terms, 10)))
    x[0], y[:, 0] = info.min, info.max
    x[1:3] = y[:, 1:3] = np.array(-(1 << 21) * (1 + (1 << 22)) - (1 << 62)).astype(dtype)  # The largest digits.
    one, other = (kernels.from_bytes(bytearray(z.tobytes()), dtype, z.shape) for z in (x, y))

    assert (np.asarray(kernels.matmul(one, other)) == x @ y).all()
    assert (np.asarray(kernels.multiply_digits(one, other, kernels.xp.matmul, terms)) == x @ y).all()


@pytest.mark.parametrize("dtype", ["int64", "int32"])
@pytest.mark.parametrize("bits", [0, 1, 16, 29, 30])
def test_quotients_by_powers_of_two_are_off_by_less_than_one(dtype: str, bits: int) -> None:
    group, most = Group(3, NumpyKernels()), np.iinfo(dtype).max // 2
    divisors = [1 << bits, *([1 << 2 * bits, 1 << 2 * bits + 1] if dtype == "int64" else [])]
    x = np.array([0, 1, -1, 12345, -12345, most, -most], dtype)

    for divisor in divisors:
        found = group.open(group.run("truncate", group.share(x), divisor=divisor))
        assert all(abs(int(q) * divisor - int(value)) < divisor for q, value in zip(found, x, strict=True))


@pytest.mark.parametrize("divisor", [0, -3, 1 << 63, "2", None])
def test_a_divisor_that_is_not_a_positive_integer_is_refused(divisor: Any) -> None:
    group = Group(2, NumpyKernels())
    x = np.arange(3)

    for name, operands in (("truncate", [x]), ("spdz_mul", [x, x]), ("square", [x])):
        with pytest.raises(ProtocolError, match="the divisor is not an integer from 1 to"):
            rehearse(NumpyKernels(), name, (Spec((3,)),) * len(operands), (("divisor", divisor),), 2)
    assert (group.open(group.run("square", group.share(x))) == x * x).all()


@pytest.mark.parametrize("framework", ["numpy", "torch"])
@pytest.mark.parametrize("terms", [1, 90, 512, 513, 1100])
def test_products_of_large_matrices_are_exact_for_all_integers(
    framework: str, terms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SYFT_PRODUCTS", "digits")
    kernels, random, info = make_kernels(framework), np.random.default_rng(3), np.iinfo("int64")
    x, y = (random.integers(info.min, info.max, shape, endpoint=True) for shape in ((2000, terms), (40, terms)))
    x[0], y[0] = info.min, info.max
    x[1:3] = y[1:3] = -(1 << 21) * (1 + (1 << 22)) - (1 << 62)  # The largest digits.

    one, other = kernels.from_array(x), kernels.from_array(y.T)

    assert (np.asarray(kernels.matmul(one, other)) == x @ y.T).all()
    batches = kernels.matmul(kernels.reshape(one, (2, 1000, terms)), other)
    assert (np.asarray(batches).reshape(2000, 40) == x @ y.T).all()


@pytest.mark.parametrize("framework", ["numpy", "torch"])
@pytest.mark.parametrize(("stride", "padding", "dilation"), [(1, 0, 1), (2, 1, 1), (1, 2, 2), (3, 2, 2)])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_convolutions_and_their_gradients_are_those_of_torch(
    framework: str, stride: int, padding: int, dilation: int, groups: int
) -> None:
    torch = pytest.importorskip("torch")
    kernels, random = make_kernels(framework), np.random.default_rng(3)
    x, weight = random.integers(-9, 9, (3, 4, 9, 8)), random.integers(-9, 9, (8, 4 // groups, 3, 2))
    inputs, filters = (torch.from_numpy(part).double().requires_grad_() for part in (x, weight))
    result = torch.conv2d(inputs, filters, None, stride, padding, dilation, groups)
    gradient = random.integers(-9, 9, tuple(result.shape))
    result.backward(torch.from_numpy(gradient).double())
    pairs = {"stride": stride, "padding": padding, "dilation": dilation}
    options = {"groups": groups, **{name: (number, number) for name, number in pairs.items()}}
    x, weight, gradient = map(kernels.from_array, (x, weight, gradient))

    assert np.asarray(kernels.conv2d(x, weight, **options)).tolist() == result.tolist()
    found = kernels.conv2d_input(gradient, weight, shape=(3, 4, 9, 8), **options)
    assert np.asarray(found).tolist() == inputs.grad.tolist()
    found = kernels.conv2d_weight(x, gradient, shape=tuple(filters.shape), **options)
    assert np.asarray(found).tolist() == filters.grad.tolist()
