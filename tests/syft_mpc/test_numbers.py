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
from syft_mpc.numbers import Numbers  # noqa: E402
from syft_mpc.numpy.kernels import NumpyKernels  # noqa: E402
from syft_mpc.protocol import PROTOCOLS, Spec, rehearse  # noqa: E402
from syft_mpc.torch.kernels import TorchKernels  # noqa: E402
from syft_mpc.waves import turn  # noqa: E402

from .accuracy import CASES, SCALES, Case, make_table, run  # noqa: E402
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


def test_both_frameworks_compute_the_same_public_numbers() -> None:
    angles = np.random.default_rng(0).integers(-(2**63), 2**63 - 1, 2000)
    for odd in (True, False):
        one = turn(NumpyKernels(), angles, 28, odd)
        other = turn(TorchKernels(), torch.from_numpy(angles), 28, odd).numpy()
        assert (one == other).all()
        multiples = np.arange(1, 29) * 2 - 1 if odd else np.arange(1, 29)
        exact = np.cos(2 * np.pi * (angles / 2**64) * multiples[:, None])
        assert np.abs(one[:28] - exact).max() < 1e-12


# --- the page


def test_the_page_has_the_table_of_the_command(workers: list[Any]) -> None:
    page = (DOCS / "encrypted-functions.md").read_text()

    assert "\n".join(make_table(workers[:2], workers[-1])) in page
    for name in re.findall(r"`tests/[\w/.]+`", page):
        assert (DOCS.parent / name.strip("`")).exists()
