"""Functions of fixed-precision numbers are as accurate as documented, shared among two or three workers or not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

import syft_core as sy  # noqa: E402
from syft_core.crypto.channel import Counted, counting  # noqa: E402
from syft_core.crypto.comparison import is_negative  # noqa: E402
from syft_core.crypto.errors import PrecisionError  # noqa: E402
from syft_core.crypto.functions import ACTIVATIONS, lowest  # noqa: E402
from syft_core.crypto.numbers import Numbers  # noqa: E402
from syft_core.crypto.protocol import PROTOCOLS, Draw, Rest, Role, Spec, rehearse, together  # noqa: E402
from syft_core.crypto.series import SERIES  # noqa: E402
from syft_core.crypto.spdz import spdz_mul  # noqa: E402
from syft_core.crypto.waves import turn  # noqa: E402
from syft_core.exceptions import OperationNotAllowedError  # noqa: E402
from syft_numpy.kernels import NumpyKernels  # noqa: E402
from syft_torch.kernels import TorchKernels  # noqa: E402

from .accuracy import CASES, SCALES, Case, make_table, run  # noqa: E402
from .fit_series import FITS  # noqa: E402
from .groups import Group  # noqa: E402

DOCS = Path(__file__).parents[2] / "docs"
NAME = attrgetter("name")
functional = torch.nn.functional


@pytest.fixture(scope="module")
def workers() -> Iterator[list[Any]]:
    """Four workers; the last one is the provider."""
    with sy.TorchHook(torch) as hook:
        yield [sy.VirtualWorker(hook, id=name) for name in ("bob", "alice", "dan", "carol")]


def share(x: Any, workers: list[Any], digits: int = 16) -> Any:
    return x.fix_prec(base=2, precision_fractional=digits).share(*workers[:2], crypto_provider=workers[-1])


def read(x: Any) -> Any:
    return x.get().float_prec()


# --- quotients of shared numbers


SIZES = st.floats(0, 1, width=32)


@settings(max_examples=30, deadline=None)
@given(
    scale=st.sampled_from([10**3, 10**5, 1 << 16, 1 << 20]),
    pairs=st.lists(st.tuples(SIZES, SIZES, st.booleans(), st.booleans()), min_size=1, max_size=20),
    count=st.sampled_from([2, 3]),
)
def test_a_quotient_is_right_to_two_units_and_a_millionth(
    scale: int, pairs: list[tuple[float, float, bool, bool]], count: int
) -> None:
    most = (62 - scale.bit_length()) - 1
    x = np.array([int(2 ** (most * size)) * (-1 if negative else 1) for size, _, negative, _ in pairs])
    y = np.array([int(2 ** (35.9 * size)) * (-1 if negative else 1) for _, size, _, negative in pairs])
    group = Group(count, NumpyKernels())
    exact = x.astype(np.longdouble) / y * scale

    found = group.open(group.run("quotient", group.share(x), group.share(y), scale=scale))

    inside = abs(exact) < 2.0**62
    assert (abs(found - exact)[inside] <= 2 + 1e-6 * abs(exact[inside])).all()


@pytest.mark.parametrize("field", ["long", "int"])
def test_quotients_of_the_ancestor_s_examples_are_right_at_the_default_precision(
    field: str, workers: list[Any]
) -> None:
    x, y = torch.tensor([[25.0, 9.0], [10.0, 30.0]]), torch.tensor([[5.0, 12.0], [2.0, 7.0]])

    for _ in range(5):
        a, b = (z.fix_prec(field=field).share(*workers[:2], crypto_provider=workers[-1]) for z in (x, y))
        assert ((a / b).get().float_prec() - x / y).abs().max() <= 0.002
        assert ((30 / b).get().float_prec() - 30 / y).abs().max() <= 0.002


def test_quotients_broadcast_and_cost_what_the_declaration_says(workers: list[Any]) -> None:
    x, y = torch.randn(4, 3), torch.rand(4, 1) + 0.5

    for one, other in ((x, y), (y, x * x + 1), (x[0], y), (y, x[0] * x[0] + 1), (torch.tensor(2.0), y)):
        assert (read(share(one, workers) / share(other, workers)) - one / other).abs().max() < 2e-4
    for shapes in (((5,), (5,)), ((4, 3), (4, 1))):
        for dtype in ("int64", "int32"):
            specs = tuple(Spec(shape, dtype) for shape in shapes)
            entry, options = PROTOCOLS["quotient"], {"scale": 1 << 8}
            found = rehearse(NumpyKernels(), "quotient", specs, tuple(options.items()), 2)
            declared = [
                cost if isinstance(cost, int) else cost(*specs, **options) for cost in (entry.rounds, entry.sends)
            ]
            assert [found.rounds, found.sends] == declared


# --- public factors and divisors


@pytest.mark.parametrize("factor", [0.3, -0.9, 0.1234567, 1 / 7**0.5, 1.234e-7, 2.5, 1234.567, -3.0, 1e-30, 0.0])
@pytest.mark.parametrize("size", [1.0, 1e4, 5e8])
def test_a_product_with_a_public_number_is_right_for_numbers_of_any_size(
    factor: float, size: float, workers: list[Any]
) -> None:
    x = torch.tensor([0.75, -0.3, 1.0], dtype=torch.float64).mul(size if abs(factor) < 1 else min(size, 1e4))

    found = read(share(x, workers) * factor)

    assert ((found - x * factor).abs() <= 2**-15 + 2**-31 * (x * factor).abs() + 2**-17 * abs(factor)).all()


def test_public_divisors_of_different_sizes_are_used_as_they_are(workers: list[Any]) -> None:
    cases = (
        ([8.0, 8.0], [1e-3, 1e4]),
        ([1.0, 1.0, -5.0], [1e-2, 1e6, 3.0]),
        ([1e9, -2e9], [1e6, 3e6]),
        ([1e9, 2e9], [1e6, 1e6]),
        ([0.004, 36.6, 52_000.0], [0.00321, 11.2, 21_034.5]),
    )
    for numbers, divisors in cases:
        x, d = (torch.tensor(values, dtype=torch.float64) for values in (numbers, divisors))
        wrong = (read(share(x, workers) / d) - x / d).abs()
        assert (wrong <= 2**-15 + 2**-17 / d.abs() + 2**-20 * (x / d).abs()).all()


# --- accuracy


@pytest.mark.parametrize(("base", "digits"), SCALES)
@pytest.mark.parametrize("case", CASES, ids=NAME)
def test_shared_numbers_are_as_accurate_as_documented(case: Case, base: int, digits: int, workers: list[Any]) -> None:
    assert run(case, workers[:2], workers[-1], base, digits).excess <= 1


@pytest.mark.parametrize("case", CASES, ids=NAME)
def test_three_parties_get_the_same_accuracy(case: Case, workers: list[Any]) -> None:
    assert run(case, workers[:3], workers[-1], 2, 16).excess <= 1


@pytest.mark.parametrize("case", [case for case in CASES if case.name not in ("var of 60", "std of 60")], ids=NAME)
def test_numbers_that_are_not_shared_are_only_rounded(case: Case, workers: list[Any]) -> None:
    assert run(case, [], workers[-1], 2, 16).error <= 2**-17 * 1.001


@pytest.mark.parametrize("name", ["sigmoid", "gelu", "softmax of 10", "log", "sin"])
def test_the_ring_of_32_bits_has_the_same_accuracy(name: str, workers: list[Any]) -> None:
    case = next(case for case in CASES if case.name == name)
    assert run(case, workers[:2], workers[-1], 10, 3, field="int").excess <= 1


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20))
def test_activations_stay_in_their_range_for_any_number(numbers: list[float]) -> None:
    x = np.rint(np.array(numbers) * 65536).astype(np.int64)
    group = Group(2, NumpyKernels())
    for name, shape in ACTIVATIONS.items():
        found = group.open(group.run("activation", group.share(x), function=name, scale=65536)) / 65536
        if not shape.linear and not name.endswith("slope"):
            assert found.min() >= shape.left - 2**-15
            assert found.max() <= shape.right + 2**-15
        far = np.abs(x / 65536) > 20
        expected = np.where(x > 0, x / 65536 if shape.linear else shape.right, shape.left)
        assert (found[far] == expected[far]).all()


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(2**-8, 2**15), min_size=1, max_size=20), st.booleans())
def test_a_number_times_its_reciprocal_is_one(numbers: list[float], negative: bool) -> None:
    x = np.rint(np.array(numbers) * 65536).astype(np.int64) * (-1 if negative else 1)
    group = Group(3, NumpyKernels())

    found = group.open(group.run("reciprocal", group.share(x), scale=65536)) / 65536

    assert np.abs(found * (x / 65536) - 1).max() <= 5e-6 + np.abs(x).max() / 65536 * 2**-15


# --- out of domain


def test_what_is_out_of_the_domain_has_a_documented_result(workers: list[Any]) -> None:
    top = torch.tensor([12.0]).exp().item()
    unit = 2**-16
    odd = torch.tensor([0.0, -1.0, -500.0])

    assert read(torch.exp(share(torch.tensor([12.5, 300.0, 1e6]), workers))).tolist() == pytest.approx(
        [top] * 3, rel=1e-6
    )
    assert read(torch.exp(share(torch.tensor([-12.0, -300.0, -1e6]), workers))).tolist() == [0, 0, 0]
    assert torch.allclose(read(torch.log(share(odd, workers))), torch.full((3,), unit).log(), atol=3e-5)
    assert read(torch.sqrt(share(odd, workers))).tolist() == [0, 0, 0]
    assert read(torch.rsqrt(share(odd, workers))).tolist() == [0, 0, 0]
    assert read(torch.reciprocal(share(torch.tensor([0.0, 2.0**21, -(2.0**21)]), workers))).tolist() == [0, 0, 0]
    large = share(torch.tensor([2.0**21]), workers)
    assert read(torch.sqrt(large)).item() == pytest.approx(2**10)
    assert read(torch.log(large)).item() == pytest.approx(20 * np.log(2), abs=3e-5)


@pytest.mark.usefixtures("workers")
def test_a_public_number_without_a_result_is_refused() -> None:
    zero = torch.tensor([0.0]).fix_prec()

    for function in (torch.log, torch.reciprocal, torch.rsqrt):
        with pytest.raises(PrecisionError, match="it is not finite"):
            function(zero)
    with pytest.raises(PrecisionError, match="does not fit into the ring"):
        torch.exp(torch.tensor([100.0]).fix_prec())
    assert zero.float_prec().item() == 0


def test_powers_below_half_a_unit_are_zero() -> None:
    for scale in (1000, 10**5, 1 << 16, 1 << 20):
        assert np.exp(lowest(scale)) < 0.5 / scale


def test_norms_without_a_rule_are_refused(workers: list[Any]) -> None:
    x = share(torch.ones(2, 3), workers)
    with pytest.raises(PrecisionError, match="cannot compute the norm 3: there is no protocol for it"):
        x.norm(p=3)
    assert read(torch.logsumexp(x, (0, 1))) == pytest.approx(2.7918, abs=1e-3)
    assert read(x).tolist() == [[1, 1, 1], [1, 1, 1]]


def test_matrices_that_are_not_square_are_refused(workers: list[Any]) -> None:
    x = share(torch.ones(2, 3), workers)
    with pytest.raises(ValueError, match="cannot invert matrices of shape"):
        torch.inverse(x)
    assert read(x).tolist() == [[1, 1, 1], [1, 1, 1]]


# --- gradients


GRADIENTS = {
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "exp": lambda x: torch.exp(x / 2),
    "sin": torch.sin,
    "cos": torch.cos,
    "erf": torch.erf,
    "erfc": torch.erfc,
    "gelu": functional.gelu,
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "silu": functional.silu,
    "softplus": lambda x: functional.softplus(x, beta=2),
    "logsigmoid": functional.logsigmoid,
    "softmax": lambda x: torch.softmax(x, -1),
    "log_softmax": lambda x: torch.log_softmax(x, 0),
    "var": lambda x: x.var(1),
    "std": lambda x: x.std(0),
    "log": lambda x: torch.log(x * x + 1),
    "log1p": lambda x: torch.log1p(x * x),
    "expm1": lambda x: torch.expm1(x / 2),
    "log2": lambda x: torch.log2(x * x + 1),
    "log10": lambda x: torch.log10(x * x + 1),
    "sqrt": lambda x: torch.sqrt(x * x + 1),
    "rsqrt": lambda x: torch.rsqrt(x * x + 1),
    "reciprocal": lambda x: torch.reciprocal(x * x + 1),
    "logsumexp": lambda x: torch.logsumexp(x, 1, keepdim=True),
    "norm": lambda x: x.norm(dim=1),
    "var_mean": lambda x: torch.var_mean(x, 1)[0],
    "var of all": lambda x: x.var(unbiased=False),
    "masked_fill": lambda x: x.masked_fill(torch.eye(5).bool()[[0, 1, 2, 3, 4, 0, 1, 2]], 0.5),
    "binary_cross_entropy": lambda x: functional.binary_cross_entropy_with_logits(x, torch.full((8, 5), 0.25)),
    "attention": lambda x: functional.scaled_dot_product_attention(x[None], x[None], x[None]),
    "inverse": lambda x: torch.inverse(x[:5] / 8 + 2 * torch.eye(5)),
}


@pytest.mark.parametrize("shared", [True, False], ids=["shared", "public"])
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_are_those_of_torch(name: str, shared: bool, workers: list[Any]) -> None:
    function = GRADIENTS[name]
    x = torch.linspace(-4, 4, 40).reshape(8, 5) + torch.tensor([0.1, -1.0, 0.7, 2.0, 0.0])
    encoded = x.fix_prec(base=2, precision_fractional=20)
    plain = encoded.float_prec().double().requires_grad_()
    if shared:
        encoded = encoded.share(*workers[:2], crypto_provider=workers[-1])
    encoded.requires_grad_()

    weights = torch.linspace(-1, 1, function(plain).numel()).reshape(function(plain).shape)
    (function(encoded) * weights).sum().backward()
    (function(plain) * weights).sum().backward()

    found = read(encoded.grad) if shared else encoded.grad.float_prec()
    assert torch.allclose(found.double(), plain.grad, atol=5e-4)


# --- methods of the ancestor


@pytest.mark.parametrize(("method", "error"), [("chebyshev", 1e-3), ("exp", 5e-5), ("maclaurin", 0.05)])
def test_sigmoid_has_the_methods_of_the_ancestor(method: str, error: float, workers: list[Any]) -> None:
    x = torch.linspace(-6, 6, 50)
    assert (read(share(x, workers).sigmoid(method=method)) - x.sigmoid()).abs().max() < error


@pytest.mark.parametrize(("method", "error"), [("chebyshev", 1e-3), ("sigmoid", 5e-5)])
def test_tanh_has_the_methods_of_the_ancestor(method: str, error: float, workers: list[Any]) -> None:
    x = torch.linspace(-10, 10, 50)
    assert (read(share(x, workers).tanh(method=method)) - x.tanh()).abs().max() < error


@pytest.mark.parametrize("method", ["NR", "newton", "log", "division"])
def test_reciprocal_has_the_methods_of_the_ancestor(method: str, workers: list[Any]) -> None:
    x = torch.linspace(0.2, 20, 50)
    x[::2] *= -1
    assert (read(share(x, workers).reciprocal(method=method)) - 1 / x).abs().max() < 1e-3


def test_a_method_is_refused_if_it_is_unknown_or_needs_a_gradient(workers: list[Any]) -> None:
    x = share(torch.ones(2), workers)
    for call in (x.sigmoid, x.tanh, x.reciprocal):
        with pytest.raises(PrecisionError, match="there is none of this name"):
            call(method="magic")
    x.requires_grad_()
    with pytest.raises(OperationNotAllowedError, match="it has no gradient"):
        x.sigmoid(method="exp")
    assert read(x.detach()).tolist() == [1, 1]


# --- numpy


def test_numpy_has_the_same_functions() -> None:
    x, matrix = np.linspace(0.5, 4, 8), np.array([[2.0, 1.0], [0.5, 3.0]])
    with sy.NumpyHook(np) as hook:
        bob, alice, carol = [sy.VirtualWorker(hook, id=name) for name in ("eve", "frank", "grace")]
        for name in ("exp", "log", "log1p", "log2", "log10", "expm1", "sqrt", "reciprocal", "tanh", "sin", "cos"):
            function = getattr(np, name)
            public = hook.array(x).fix_prec(base=2, precision_fractional=16)
            shared = public.share(bob, alice, crypto_provider=carol)
            assert np.abs(np.asarray(function(public).float_prec()) - function(x)).max() < 1e-4
            assert np.abs(np.asarray(read(function(shared))) - function(x)).max() < 1e-4
        encoded = hook.array(x).fix_prec(base=2, precision_fractional=16)
        for options in ({}, {"axis": 0}, {"ddof": 1}):
            for function in (np.var, np.std):
                assert abs(np.asarray(function(encoded, **options).float_prec()) - function(x, **options)) < 1e-4
        square = hook.array(matrix).fix_prec(base=2, precision_fractional=16)
        shared = square.share(bob, alice, crypto_provider=carol)
        assert np.abs(np.asarray(np.linalg.inv(square).float_prec()) - np.linalg.inv(matrix)).max() < 1e-4
        assert np.abs(np.asarray(read(np.linalg.inv(shared))) - np.linalg.inv(matrix)).max() < 1e-3


# --- arithmetic with public numbers


@pytest.mark.parametrize("factor", [0.5, 0.1, -0.25, 1e-4, 0.0123, 3.7, -1.5, 250.3, 12])
def test_products_with_public_numbers_are_precise(factor: float, workers: list[Any]) -> None:
    x = torch.linspace(-500, 500, 101).fix_prec(base=2, precision_fractional=16, dtype=torch.float64)
    expected = x.float_prec() * factor
    error = (read(x.share(*workers[:2], crypto_provider=workers[-1]) * factor) - expected).abs()

    assert (error <= 2 / 65536 + expected.abs() * 2**-20 + 500 * 2**-20).all()


def test_products_with_fractions_fit_into_the_ring_of_32_bits(workers: list[Any]) -> None:
    x = torch.linspace(-100, 100, 21)
    encoded = x.fix_prec(base=10, precision_fractional=3, field="int")
    shared = encoded.share(*workers[:2], crypto_provider=workers[-1])

    assert (read(shared * 0.1) - x * 0.1).abs().max() < 0.002
    assert (read(shared * 0.3) - x * 0.3).abs().max() < 0.2


def test_a_scale_encodes_python_numbers() -> None:
    assert Numbers(1000).of(1.2345) == 1234


# --- the protocols


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


def test_both_frameworks_compute_the_same_public_numbers() -> None:
    angles = np.random.default_rng(0).integers(-(2**63), 2**63 - 1, 2000)
    for odd in (True, False):
        one = turn(NumpyKernels(), angles, 28, odd)
        other = turn(TorchKernels(), torch.from_numpy(angles), 28, odd).numpy()
        assert (one == other).all()
        multiples = np.arange(1, 29) * 2 - 1 if odd else np.arange(1, 29)
        exact = np.cos(2 * np.pi * (angles / 2**64) * multiples[:, None])
        assert np.abs(one[:28] - exact).max() < 1e-12


@pytest.mark.parametrize("name", FITS)
def test_a_series_is_close_to_its_function(name: str) -> None:
    fit, series = FITS[name], SERIES[name]
    x = np.linspace(fit.low, fit.high, 5000)
    angles = 2 * np.pi / series.period * (x - series.middle)[:, None] * fit.multiples
    sums = np.full(len(x), series.constant)
    if series.cosines:
        sums = sums + np.cos(angles) @ np.array(series.cosines)
    if series.sines:
        sums = sums + np.sin(angles) @ np.array(series.sines)

    exact = fit.function(x)
    assert np.abs((sums - exact) / (np.abs(exact) if fit.relative else 1)).max() < 7e-7


# --- the page


def test_the_page_has_the_table_of_the_command(workers: list[Any]) -> None:
    page = (DOCS / "encrypted-functions.md").read_text()

    assert "\n".join(make_table(workers[:2], workers[-1])) in page
    for name in re.findall(r"`tests/[\w/.]+`", page):
        assert (DOCS.parent / name.strip("`")).exists()
