from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")
import syft_core as sy  # noqa: E402
from syft_mpc.errors import PrecisionError  # noqa: E402
from syft_mpc.functions import ACTIVATIONS, lowest  # noqa: E402
from syft_mpc.numpy.kernels import NumpyKernels  # noqa: E402

from .encrypted import read, share  # noqa: E402
from .groups import Group  # noqa: E402


@pytest.fixture(scope="module")
def workers() -> Iterator[list[Any]]:
    """Four workers; the last one is the provider."""
    with sy.TorchHook(torch) as hook:
        yield [sy.VirtualWorker(hook, id=name) for name in ("bob", "alice", "dan", "carol")]


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
