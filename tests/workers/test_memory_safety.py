"""Attacks on the memory of a worker: an operation reads and writes only its operands, and does not end the process."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

import syft_core as sy  # noqa: E402
from syft_core.exceptions import OperationNotAllowedError  # noqa: E402
from syft_numpy.attributes import NumpyAttributes  # noqa: E402
from syft_torch.attributes import TorchAttributes  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")

SMALLEST = {dtype: torch.iinfo(dtype).min for dtype in (torch.int64, torch.int32, torch.int16, torch.int8)}


def test_an_array_with_views_cannot_be_freed(carol: Any, numpy_hook: Any) -> None:
    victim = numpy_hook.array(np.zeros(30_000)).send(carol)
    view = victim[10:]

    with pytest.raises(OperationNotAllowedError, match="it is not memory-safe for all arguments"):
        victim.resize(1, refcheck=False)

    assert view.get().shape == (29_990,)
    assert np.resize(victim, 3).get().tolist() == [0.0, 0.0, 0.0]


def test_a_gradient_without_memory_is_fetched_as_zeros(bob: Any) -> None:
    x, ones = torch.ones(200, 20, requires_grad=True).send(bob), torch.ones(200, 20).send(bob)

    (gradient,) = torch.autograd.grad(x.sgn(), x, ones)

    assert bob.get_obj(gradient.id_at_location)._is_zerotensor()
    assert gradient.get().equal(torch.zeros(200, 20))


@pytest.mark.parametrize(
    "name",
    [
        "torch.grid_sampler",
        "torch.grid_sampler_2d",
        "torch.native_group_norm",
        "torch.Tensor.sparse_resize_",
        "torch.Tensor.unsafe_chunk",
        "torch.segment_reduce",
        "torch.special.laguerre_polynomial_l",
    ],
)
def test_what_is_not_memory_safe_for_all_arguments_is_off_in_every_tier(name: str) -> None:
    assert TorchAttributes(torch).ops.look_up(name).tier == "off"


def test_an_operation_in_no_list_is_off() -> None:
    for attributes in (TorchAttributes(torch), NumpyAttributes(np)):
        assert {op.tier for op in attributes.ops} == {"reviewed", "public", "off"}
        known = next(op for op in attributes.ops if op.tier == "public" and op.spelling == "function")
        unknown = type(known)("numpy.new_one", abs, "function", "new_one", abs, describe=known.describe)
        assert unknown.tier == "off"


def test_bags_with_offsets_in_wrong_order_do_not_read_beyond_the_indices(bob: Any) -> None:
    weights, indices = torch.ones(3, 2).send(bob), torch.tensor([0, 1, 2]).send(bob)
    for offsets in ([0, 10**9, 2], [0, -(10**9), 2], [2, 1], [0, 4]):
        for mode in ("sum", "mean", "max"):
            with pytest.raises(ValueError, match="offsets are not in ascending order or exceed the input"):
                torch.nn.functional.embedding_bag(indices, weights, torch.tensor(offsets).send(bob), mode=mode).shape  # noqa: B018

    found = torch.nn.functional.embedding_bag(indices, weights, torch.tensor([0, 2]).send(bob), mode="sum")
    assert found.get().tolist() == [[2.0, 2.0], [1.0, 1.0]]


@pytest.mark.parametrize("offset", [2**63 - 1, 2**62, 2**62 - 1, 2**61 + 3, 2**60, -1, 7])
def test_no_offset_leads_outside_of_a_tensor(bob: Any, offset: int) -> None:
    """Torch multiplies an offset by the size of an element without a check, so a large one wraps around."""
    x, part = torch.zeros(6).send(bob), torch.ones(1).send(bob)
    calls = [
        lambda: x.as_strided((1,), (1,), offset),
        lambda: x.as_strided((1,), (1,), storage_offset=torch.tensor(offset)),
        lambda: x.clone().as_strided_((1,), (1,), offset),
        lambda: torch.as_strided_copy(x, (1,), (1,), offset),
        lambda: torch.as_strided_scatter(x, part, (1,), (1,), offset),
        lambda: torch.slice_inverse(x[:1].clone(), x, 0, offset, offset + 1 if offset < 2**62 else offset, 1),
    ]
    for call in calls[: -1 if offset in (-1, 7) else None]:
        with pytest.raises((OverflowError, RuntimeError, TypeError)):
            call().copy().get()


@pytest.mark.parametrize(("v", "g", "dim"), [((2, 3), (1, 1), 0), ((2, 3), (2, 1), 1), ((40_000, 2), (1, 1), 0)])
def test_weights_are_not_scaled_with_what_lies_behind_their_lengths(bob: Any, v: Any, g: Any, dim: int) -> None:
    matrix, lengths = torch.ones(v).send(bob), torch.ones(g).send(bob)

    for call in (
        lambda: torch._weight_norm(matrix, lengths, dim),
        lambda: torch._weight_norm(g=lengths, v=matrix, dim=dim),
    ):
        with pytest.raises(ValueError, match="and v has another number along dim"):
            call().shape  # noqa: B018
    fitting = torch.norm_except_dim(matrix, 2, dim)
    assert torch.allclose(torch._weight_norm(matrix, fitting, dim).get(), torch.ones(v))


@pytest.mark.parametrize("name", ["median", "nanmedian"])
def test_the_median_of_an_expanded_tensor_shows_no_other_memory(bob: Any, name: str) -> None:
    there = torch.full((1,), 105.0).send(bob)

    assert getattr(torch, name)(there.expand(7), -1).values.get().tolist() == 105.0
    assert getattr(there.expand(3, 7), name)(dim=0).values.get().tolist() == [105.0] * 7


# --- integer division

DIVISIONS = """
import torch, warnings
from syft_torch.attributes import TorchAttributes
warnings.simplefilter("ignore")
count = 0
for op in TorchAttributes(torch).ops:
    if op.tier == "off" or op.spelling not in ("function", "method"):
        continue
    for dtype in (torch.int64, torch.int32, torch.int16, torch.int8):
        smallest = torch.iinfo(dtype).min
        for shape in ((), (9,), (3, 3), (2, 3, 4, 4)):
            low, one = torch.full(shape, smallest, dtype=dtype), torch.full(shape, -1, dtype=dtype)
            wrapping = 2 ** torch.iinfo(dtype).bits if dtype is not torch.int64 else 0
            for args in (
                (low, one), (one, low), (low, -1), (smallest, one), (one, smallest), (low, one.long()),
                (low, wrapping - 1), (low, torch.tensor(wrapping - 1)), (smallest + wrapping, one),
                (torch.tensor(smallest + wrapping), one),
            ):
                for options in ({}, {"rounding_mode": "trunc"}, {"rounding_mode": "floor"}):
                    named = {"input": args[0], "other": args[1]}
                    for given, extra in (
                        (args, {}), ((), named), (args[:1], {"other": args[1]}), (args[:1], {"x2": args[1]}),
                        *[((), {name: args[0], "x2": args[1]}) for name in ("x", "a", "x1")],
                    ):
                        given = [x.clone() if isinstance(x, torch.Tensor) else x for x in given]
                        try:
                            op.run(*given, **extra, **options)
                            count += 1
                        except Exception:
                            pass
            for divisor in (-1, 0, smallest):
                for options in ({}, {"divisor_override": divisor}):
                    try:
                        op.run(low.clone(), 1, **options)
                    except Exception:
                        pass
print(count)
"""


@pytest.mark.slow
def test_no_integer_division_ends_the_process() -> None:
    names = "div|mod|remainder|avg_pool|unravel"
    program = DIVISIONS.replace(
        'if op.tier == "off" or', f'if op.tier == "off" or not __import__("re").search("{names}", op.name) or'
    )

    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120)

    assert found.returncode == 0, found.stderr[-500:]
    assert int(found.stdout) > 1000


def test_operands_that_are_named_as_in_numpy_or_wrap_around_do_not_end_the_process(bob: Any) -> None:
    low = SMALLEST[torch.int32]
    x, y = torch.tensor([low, 7], dtype=torch.int32), torch.tensor([-1, -1], dtype=torch.int32)
    p, q = x.send(bob), y.send(bob)
    wrapped = [low, -7]

    assert torch.div(x1=p, x2=q, rounding_mode="trunc").get().tolist() == wrapped
    assert torch.div(p, 2**32 - 1, rounding_mode="trunc").get().tolist() == wrapped
    assert torch.div(p, torch.tensor(2**32 - 1).send(bob), rounding_mode="trunc").get().tolist() == wrapped
    assert torch.div(torch.tensor(2**31).send(bob), q, rounding_mode="trunc").get().tolist() == [low, low]


@pytest.mark.parametrize("dtype", SMALLEST, ids=str)
def test_the_smallest_integer_divided_by_minus_one_wraps_around(bob: Any, dtype: Any) -> None:
    low = SMALLEST[dtype]
    x, y = torch.tensor([low, 7, -7, low], dtype=dtype), torch.tensor([-1, -1, 2, 3], dtype=dtype)
    p, q = x.send(bob), y.send(bob)
    floored = [low, -7, -4, low // 3]
    truncated = [low, -7, -3, -(-low // 3)]

    assert torch.div(p, q, rounding_mode="trunc").get().tolist() == truncated
    assert torch.div(p, q, rounding_mode="floor").get().tolist() == floored
    assert (p // q).get().tolist() == floored
    assert (p % q).get().tolist() == [0, 0, 1, low % 3]
    assert torch.fmod(p, q).get().tolist() == [0, 0, -1, -(-low % 3)]
    assert (low // q[:2]).get().tolist() == [low, low]
    assert p.clone().div_(-1, rounding_mode="trunc").get().tolist() == [low, -7, 7, low]
    assert torch.true_divide(p, q).get().tolist() == (x / y).tolist()


def test_a_division_on_private_integers_reveals_nothing_about_them(bob: Any, me: Any) -> None:
    low = SMALLEST[torch.int64]
    bob.load_data([torch.tensor([low, 3]).private_tensor(["alice"]).tag("#low")])
    (secret,) = bob.search("#low")
    me.user = "eve"

    result = torch.div(secret, torch.tensor([-1, -1]).send(bob), rounding_mode="trunc")

    assert result.shape == (2,)
    me.user = "alice"
    assert result.get().tolist() == [low, -3]


def test_a_plan_divides_the_smallest_integer(bob: Any) -> None:
    @sy.func2plan(args_shape=[(2,)])
    def divide(x: Any) -> Any:
        return torch.div(x.long(), -1, rounding_mode="trunc")

    pointer = divide.send(bob)

    assert pointer(torch.tensor([-(2.0**63), 4.0]).send(bob)).get().tolist() == [-(2**63), -4]


def test_sums_of_integers_are_not_divided_by_minus_one(bob: Any) -> None:
    x = torch.full((1, 1, 2, 2), SMALLEST[torch.int64]).send(bob)

    with pytest.raises(ValueError, match="it divides sums of integers by -1; negate the result instead"):
        torch.nn.functional.avg_pool2d(x, 1, divisor_override=-1).shape  # noqa: B018
    with pytest.raises(OverflowError, match="its divisor has more than 32 bits; use a smaller one"):
        torch.nn.functional.avg_pool2d(x, 1, divisor_override=-(2**63)).shape  # noqa: B018


# --- unreviewed operations, views


@pytest.mark.parametrize("call", ["histogram", "bincount", "polyfit", "unique", "median", "percentile", "max"])
def test_a_column_is_as_good_as_an_array(carol: Any, numpy_hook: Any, call: str) -> None:
    table = np.arange(12).reshape(4, 3) % 5
    calls = {
        "histogram": lambda x: np.histogram(x, 2)[0],
        "bincount": np.bincount,
        "polyfit": lambda x: np.polyfit(x, x * 2.0, 1),
        "percentile": lambda x: np.percentile(x, 50),
    }
    run = calls.get(call, getattr(np, call))

    found = run(numpy_hook.array(table).send(carol)[:, 1])

    assert np.allclose(found.get(), run(table[:, 1]))


@pytest.mark.parametrize("call", [torch.unique, torch.histogram, torch.linalg.lu_factor, torch.nonzero, torch.cov])
def test_an_unreviewed_operation_runs_on_public_data_next_to_private_data(bob: Any, me: Any, call: Any) -> None:
    bob.load_data([torch.tensor([1.0]).private_tensor(["alice"]).tag("#secret")])
    me.user = "eve"
    public = torch.eye(3)
    there = public.send(bob)
    columns = (there[:, :2] if call is not torch.linalg.lu_factor else there, public[:, :2])
    here = columns[1] if call is not torch.linalg.lu_factor else public
    options = {"bins": 2} if call is torch.histogram else {}

    found = call(columns[0], **options)

    expected = call(here, **options)
    part, known = (found[0], expected[0]) if isinstance(expected, tuple) else (found, expected)
    assert torch.equal(part.get(), known)
