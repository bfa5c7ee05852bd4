"""SecureNN computes the right values over its whole range, at the cost that it declares."""

from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy")

from syft_core.hook.chain import below_wrapper  # noqa: E402
from syft_mpc import securenn  # noqa: E402
from syft_mpc.errors import ProtocolError  # noqa: E402
from syft_mpc.numpy.kernels import NumpyKernels  # noqa: E402
from syft_mpc.protocol import PROTOCOLS, PROVIDER, Common, Spec, Steps, rehearse  # noqa: E402

from .groups import (  # noqa: E402
    Group,
    make_kernels,
)

BITS = {"int64": 64, "int32": 32}
P = securenn.P


@pytest.fixture(params=["numpy", "torch"])
def group(request: pytest.FixtureRequest) -> Group:
    return Group(2, make_kernels(request.param))


@pytest.fixture(params=["int64", "int32"])
def dtype(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def numbers(dtype: str, size: int, low: int, high: int) -> Any:
    """Random numbers of all magnitudes in [low, high), and those at the edges."""
    random = np.random.default_rng(5)
    magnitudes = random.integers(0, high, size) >> random.integers(0, BITS[dtype] - 2, size)
    x = np.where(random.integers(0, 2, size) == 1, magnitudes, -1 - magnitudes) if low else magnitudes
    edges = [edge for edge in (0, 1, -1, 2, -2, low, low + 1, high - 1) if low <= edge < high]
    x[: len(edges)] = edges
    return x.astype(dtype)


def to_shares(group: Group, values: list[int], modulus: int, dtype: str, shape: Any = None) -> list[Any]:
    """Share numbers modulo something else than a power of two."""
    random = np.random.default_rng(6)
    masks = [int(word) % modulus for word in random.integers(0, 1 << 63, len(values))]
    unsigned = f"u{dtype}".replace("uu", "u")
    return [
        group.kernels.from_bytes(bytearray(np.array(share, unsigned).tobytes()), dtype, shape or (len(values),))
        for share in (masks, [(value - mask) % modulus for value, mask in zip(values, masks, strict=True)])
    ]


def open_modulo(shares: list[Any], modulus: int) -> list[int]:
    parts = [np.asarray(share).view(f"u{np.asarray(share).dtype}").ravel().tolist() for share in shares]
    return [(one + other) % modulus for one, other in zip(*parts, strict=True)]


def test_the_sign_is_right_over_the_whole_range(group: Group, dtype: str) -> None:
    limit = 1 << (BITS[dtype] - 2)
    x = numbers(dtype, 3000, -limit, limit)

    assert (group.open(group.run("snn_relu_deriv", group.share(x))) == (x >= 0)).all()
    assert (group.open(group.run("snn_relu", group.share(x))) == np.maximum(x, 0)).all()


def test_the_values_of_the_ancestor_are_right(group: Group, dtype: str) -> None:
    def share(values: Any) -> list[Any]:
        return group.share(np.array(values, dtype))

    assert group.open(group.run("snn_relu_deriv", share([10, 0, -3]))).tolist() == [1, 1, 0]
    quotients = group.run("snn_division", share([[25, 9], [10, 30]]), share([[5, 12], [2, 7]]))
    assert group.open(quotients).tolist() == [[5, 0], [5, 4]]
    value, index = group.run("snn_maxpool", share([[10, 0], [15, 7]]))
    assert (group.open(value).tolist(), group.open(index).tolist()) == ([15], [2])


def test_digits_are_the_bits_of_numbers_modulo_the_ring(group: Group, dtype: str) -> None:
    x = group.kernels.from_bytes(bytearray(np.array([[5, -1], [0, -2]], dtype).tobytes()), dtype, (2, 2))

    bits = np.asarray(securenn.decompose(group.kernels, x))

    assert bits.shape == (2, 2, BITS[dtype])
    assert bits[0, 0, :4].tolist() == [1, 0, 1, 0]
    assert (bits[0, 1] == 1).all()
    assert bits[1, 1, :2].tolist() == [0, 1]
    assert np.asarray(securenn.flip(group.kernels, x, 1)).tolist() == [[-1, 5], [-2, 0]]


def test_numbers_of_all_magnitudes_are_compared_with_shared_bits(group: Group, dtype: str) -> None:
    length, top = BITS[dtype], (1 << BITS[dtype]) - 1
    edges = [0, 1, 2, top, top - 1, 1 << (length - 1), (1 << (length - 1)) - 1]
    pairs = [(x, r, beta) for x in edges for r in edges for beta in (0, 1)]
    digits = [x >> bit & 1 for x, _, _ in pairs for bit in range(length)]
    bits = to_shares(group, digits, P, "uint8", (len(pairs), length))
    r = group.kernels.from_bytes(
        bytearray(np.array([r for _, r, _ in pairs], f"u{dtype}").tobytes()), dtype, (len(pairs),)
    )
    beta = group.kernels.from_bytes(bytearray(beta for _, _, beta in pairs), "uint8", (len(pairs),))

    found = group.open(group.run("snn_private_compare", bits, [r, r], [beta, beta]))

    assert found.tolist() == [beta ^ (x > r) for x, r, beta in pairs]


def test_shares_are_converted_exactly(group: Group, dtype: str) -> None:
    modulus = (1 << BITS[dtype]) - 1
    x = numbers(dtype, 2000, -(1 << (BITS[dtype] - 1)), (1 << (BITS[dtype] - 1)))
    x = x[x != -1]

    converted = group.run("snn_share_convert", group.share(x))

    assert open_modulo(converted, modulus) == x.view(f"u{dtype}").tolist()
    minus_one = group.run("snn_share_convert", group.share(np.full(3, -1, dtype)))
    assert open_modulo(minus_one, modulus) == [0] * 3  # The one number that the smaller ring does not have.


@pytest.mark.parametrize("bit", [0, 1])
def test_shares_are_converted_where_the_mask_is_zero(dtype: str, bit: int) -> None:
    group = Group(2, NumpyKernels())
    x = np.array([0, 1, -2, 77, 1 << (BITS[dtype] - 2)], dtype)
    results: dict[int, Any] = {}

    def run(rank: int, operand: Any) -> None:
        channel = group.channels[rank]
        steps = securenn.share_convert(channel.party, operand)
        channel.start(1, choose_masks(steps), lambda result, _error: results.update({rank: result}))

    def choose_masks(steps: Steps) -> Steps:
        answer = None
        try:
            while True:
                request = steps.send(answer)
                answer = yield request
                if isinstance(request, Common) and request.ranks == (0, 1) and len(request.specs) == 4:
                    r_0, _r_1, bits, u = answer
                    answer = [r_0, -r_0, bits * 0 + bit, u]
        except StopIteration as end:
            return end.value

    shares = group.share(x)
    run(PROVIDER, Spec(x.shape, dtype))
    for rank in (0, 1):
        run(rank, shares[rank])

    assert open_modulo([results[0], results[1]], (1 << BITS[dtype]) - 1) == x.view(f"u{dtype}").tolist()


def test_the_highest_bit_is_right_in_the_odd_ring(group: Group, dtype: str) -> None:
    length = BITS[dtype]
    half, modulus = 1 << (length - 1), (1 << length) - 1
    values = [0, 1, half - 1, half, half + 1, modulus - 1, 12345, *(pow(3, k, modulus) for k in range(200))]

    found = group.open(group.run("snn_msb", to_shares(group, values, modulus, dtype)))

    assert found.tolist() == [int(value >= half) for value in values]


def test_a_bit_selects_one_of_two_values(group: Group, dtype: str) -> None:
    alpha = np.array([0, 1, 1, 0], dtype)
    x, y = np.array([1, 2, -3, 4], dtype), np.array([50, 60, 70, -80], dtype)

    found = group.run("snn_select_share", group.share(alpha), group.share(x), group.share(y))

    assert group.open(found).tolist() == [1, 60, 70, 4]


def test_quotients_are_rounded_towards_zero_for_all_signs(group: Group, dtype: str) -> None:
    bits = BITS[dtype] // 2
    largest, dividend = 1 << (bits - 1), (1 << (BITS[dtype] - 2)) - 1
    x = [0, 7, -7, 7, -7, 1, -1, largest, -largest, dividend, -dividend]
    y = [5, 2, 2, -2, -2, largest, -largest, 1, -1, largest, -largest]

    found = group.open(group.run("snn_division", group.share(np.array(x, dtype)), group.share(np.array(y, dtype))))

    assert found.tolist() == [abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) for a, b in zip(x, y, strict=True)]


def test_a_quotient_has_as_many_bits_as_asked_for_and_one_divisor_serves_all(group: Group, dtype: str) -> None:
    found = group.run(
        "snn_division", group.share(np.array([9, 14, -250], dtype)), group.share(np.array([10], dtype)), bit_len_max=5
    )

    assert group.open(found).tolist() == [0, 1, -25]


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 9])
def test_the_maximum_and_its_first_position_are_right(group: Group, dtype: str, count: int) -> None:
    random = np.random.default_rng(count)
    x = random.integers(-3, 3, (count,)).astype(dtype)
    shares = group.share(x)

    value, index = group.run("snn_maxpool", shares)
    derivative = group.open(group.run("snn_maxpool_deriv", shares))

    assert (group.open(value).tolist(), group.open(index).tolist()) == ([x.max()], [x.argmax()])
    assert derivative.tolist() == np.eye(count)[x.argmax()].tolist()


@pytest.mark.parametrize(
    "options", [{"kernel_size": 2, "stride": 2}, {"kernel_size": (3, 2), "stride": (2, 1), "padding": 1}, {}], ids=str
)
@pytest.mark.torch
def test_windows_are_pooled_as_torch_does(group: Group, dtype: str, options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    limit = 1 << (BITS[dtype] - 3)
    images = numbers(dtype, 2 * 3 * 6 * 5, -limit, limit).reshape(2, 3, 6, 5)
    size, stride, padding = (
        options.get(name, default) for name, default in (("kernel_size", 1), ("stride", 1), ("padding", 0))
    )
    lowest = np.iinfo(dtype).min
    padded = np.pad(images, ((0, 0), (0, 0), (padding, padding), (padding, padding)), constant_values=lowest)
    rows, columns = (size, size) if isinstance(size, int) else size
    windows = torch.tensor(padded).unfold(2, rows, stride if isinstance(stride, int) else stride[0])
    windows = windows.unfold(3, columns, stride if isinstance(stride, int) else stride[1])

    found = group.open(group.run("snn_maxpool2d", group.share(images), **options))

    assert (found == windows.amax((-1, -2)).numpy()).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel_size": 4}, "cannot pool windows of \\(4, 4\\) in shape"),
        ({"kernel_size": 2, "padding": 2}, "cannot pad windows of \\(2, 2\\) by 2: use at most half"),
    ],
)
def test_windows_that_do_not_fit_are_refused(group: Group, options: dict[str, int], message: str) -> None:
    shares = group.share(np.zeros((1, 1, 3, 3), "int64"))

    with pytest.raises(ValueError, match=message):
        group.run("snn_maxpool2d", shares, **options)


def test_a_quotient_without_bits_is_refused(group: Group, dtype: str) -> None:
    x = group.share(np.ones(2, dtype))

    with pytest.raises(ValueError, match="cannot compute a quotient of 0 bits: it has from 1 to"):
        group.run("snn_division", x, x, bit_len_max=0)


def test_the_largest_of_nothing_is_refused(group: Group, dtype: str) -> None:
    with pytest.raises(ValueError, match="cannot find the largest element: shape \\(0,\\) has none"):
        group.run("snn_maxpool", group.share(np.ones(0, dtype)))


def test_more_than_two_share_holders_are_refused() -> None:
    group = Group(3, NumpyKernels())

    with pytest.raises(ProtocolError, match="cannot run 'snn_relu' with 3 parties: it needs 2"):
        group.run("snn_relu", group.share(np.zeros(2, "int64")))


def test_every_element_has_a_mask_of_its_own() -> None:
    seen: list[Any] = []
    group = Group(2, NumpyKernels(), watch=lambda sender, receiver, payload: seen.append((sender, receiver, payload)))

    group.run("snn_msb", to_shares(group, [5] * 1000, (1 << 64) - 1, "int64"))

    opened = next(payload[0] for sender, receiver, payload in seen if (sender, receiver) == (0, 1))
    assert len(set(opened.tolist())) == 1000


COSTS: list[tuple[str, tuple[Spec, ...], dict[str, Any]]] = [
    ("snn_select_share", (Spec((5,)), Spec((5,)), Spec((5,))), {}),
    ("snn_private_compare", (Spec((4, 64), "uint8"), Spec((4,)), Spec((4,), "uint8")), {}),
    ("snn_share_convert", (Spec((5,), "int32"),), {}),
    ("snn_msb", (Spec((5, 2)),), {}),
    ("snn_relu_deriv", (Spec((5,)),), {}),
    ("snn_relu", (Spec((5,), "int32"),), {}),
    ("snn_division", (Spec((3,)), Spec((1,))), {"bit_len_max": 4}),
    ("snn_division", (Spec((2, 2), "int32"), Spec((2, 2), "int32")), {}),
    ("snn_maxpool", (Spec((5, 2)),), {}),
    ("snn_maxpool_deriv", (Spec((6,), "int32"),), {}),
    ("snn_maxpool2d", (Spec((2, 1, 6, 6)),), {"kernel_size": 3, "stride": 2, "padding": 1}),
]


@pytest.mark.parametrize(("name", "specs", "options"), COSTS, ids=lambda part: str(part)[:30])
def test_a_protocol_with_roles_costs_what_its_declaration_says(
    group: Group, name: str, specs: Any, options: Any
) -> None:
    entry = PROTOCOLS[name]
    zeros = [group.kernels.zeros(*spec) for spec in specs]

    measured = group.measure(name, *([zero, zero] for zero in zeros), **options)

    declared = tuple(cost if isinstance(cost, int) else cost(*specs, **options) for cost in (entry.rounds, entry.sends))
    assert measured == declared
    rehearsed = rehearse(group.kernels, name, specs, tuple(sorted(options.items())), 2)
    assert (rehearsed.rounds, rehearsed.sends) == declared
    results = group.run(name, *([zero, zero] for zero in zeros), **options)
    several = len(rehearsed.results) > 1
    assert [spec.shape for spec in rehearsed.results] == [
        tuple(x[0].shape) for x in (results if several else [results])
    ]


def test_every_protocol_of_securenn_has_its_costs_tested() -> None:
    assert {name for name in PROTOCOLS if name.startswith("snn_")} == {name for name, _, _ in COSTS}


def test_a_malformed_message_ends_the_run_and_names_its_sender() -> None:
    group = Group(2, NumpyKernels())
    group.alter = lambda sender, receiver, payload: (
        (payload[0][:-1],) if (sender, receiver) == (1, PROVIDER) else payload
    )

    _, errors = group.attempt("snn_relu", group.share(np.arange(4)))

    for rank in (0, 1, PROVIDER):
        assert "party 'party 1' sent arrays of another form" in str(errors[rank])


def test_workers_run_securenn_for_a_client(hook: Any) -> None:
    torch, sy = pytest.importorskip("torch"), pytest.importorskip("syft_core")
    bob, alice, carol = (sy.VirtualWorker(hook, id=f"{name} of securenn") for name in ("bob", "alice", "carol"))
    shares = below_wrapper(torch.tensor([10, 0, -3]).share(bob, alice, crypto_provider=carol))

    assert shares.run(securenn.relu_deriv).get().tolist() == [1, 1, 0]
    assert shares.run(securenn.relu).get().tolist() == [10, 0, 0]
