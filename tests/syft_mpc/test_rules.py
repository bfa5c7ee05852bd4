"""Every rule of fixed-precision numbers computes what torch and numpy compute, in both rings, shared and not."""

from __future__ import annotations

import os
from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

import syft_mpc.torch.rules  # noqa: E402, F401  # they register rules
from syft_core.exceptions import OperationNotAllowedError  # noqa: E402
from syft_core.hook.chain import end_of  # noqa: E402
from syft_core.hook.dispatch import forget_answers  # noqa: E402
from syft_mpc.checking import checking  # noqa: E402
from syft_mpc.errors import PrecisionError  # noqa: E402
from syft_mpc.fixed_precision import FixedPrecisionTensor  # noqa: E402

from .settings import Setting, assert_close, attach  # noqa: E402

F = torch.nn.functional
EXAMPLES = int(os.environ.get("SYFT_EXAMPLES", "40"))
RINGS: dict[str, dict[str, Any]] = {
    "int64": {"base": 2, "precision_fractional": 16},
    "int32": {"base": 2, "precision_fractional": 9, "field": "int"},
}
_numbers = np.random.default_rng(0)


def make(*shape: int, low: float = -3, high: float = 3) -> np.ndarray:
    """Return random multiples of 1/16, which every precision here represents."""
    return np.asarray(np.round(_numbers.uniform(low, high, shape) * 16) / 16)


OPERANDS = (make(3, 4), make(3, 4), make(3, 4, low=0.5), make(4), make(4, 3), make(2, 3, 4), make())
"""x and y, p, which is positive, a vector, a matrix that fits x, a tensor, and a single number."""
MASK = torch.tensor(OPERANDS[0] > 0.5)
INDEX, COLUMN = torch.tensor([2, 0, 1]), torch.tensor([[0], [3], [1]])
Program = Callable[..., list[Any]]

TORCH: dict[str, Program] = {
    "add": lambda x, y, p, v, m, z, s: [
        x + y,
        x + 1.5,
        torch.add(x, y, alpha=2),
        x + v,
        s + x,
        x + torch.tensor(2),
        x + True,
    ],
    "sub": lambda x, y, p, v, m, z, s: [x - y, 2 - x, torch.sub(x, y, alpha=0.5), torch.rsub(x, 2.0, alpha=0.5), s - x],
    "neg": lambda x, y, p, v, m, z, s: [-x],
    "mul": lambda x, y, p, v, m, z, s: [x * y, x * 0.3, x * -2, x * v, s * x, x * torch.arange(4), z * x, (x > 0) * y],
    "div": lambda x, y, p, v, m, z, s: [
        x / p,
        x / 4,
        x / 0.3,
        1 / p,
        3 / p,
        x / p[0],
        s / p,
        x / torch.arange(1, 5),
        torch.ones(4) / p,
    ],
    "square": lambda x, y, p, v, m, z, s: [x.square()],
    "pow": lambda x, y, p, v, m, z, s: [x**2, x**0, x**1, x**3, p**-1, p**0.5, p**-1.5, 2**x, torch.pow(2.0, x)],
    "matmul mm mv dot": lambda x, y, p, v, m, z, s: [
        x @ m,
        x @ v,
        v @ v,
        v @ m,
        z @ m,
        z @ v,
        torch.ones(2, 3, dtype=torch.float64) @ x,
    ],
    "bmm": lambda x, y, p, v, m, z, s: [torch.bmm(z, z.transpose(1, 2)), torch.einsum("ij,kj->ik", x, y)],
    "addmm": lambda x, y, p, v, m, z, s: [torch.addmm(torch.ones(3, 3, dtype=torch.float64), x, m, beta=0.5, alpha=2)],
    "outer": lambda x, y, p, v, m, z, s: [torch.outer(v, v)],
    "sum": lambda x, y, p, v, m, z, s: [
        x.sum(),
        x.sum(0),
        x.sum(1, keepdim=True),
        z.sum((0, -1)),
        s.sum(),
        s.sum(0),
        x.sum(()),
    ],
    "mean": lambda x, y, p, v, m, z, s: [
        x.mean(),
        x.mean(-1),
        x.mean(1, keepdim=True),
        z.mean((0, 2)),
        s.mean(0),
        x.mean(()),
    ],
    "var": lambda x, y, p, v, m, z, s: [
        x.var(),
        x.var(0),
        x.var(1, False, True),
        z.var((0, 2)),
        x.var(1, correction=0),
    ],
    "std": lambda x, y, p, v, m, z, s: [x.std(), x.std(0, False), x.std((0, 1), keepdim=True)],
    "prod": lambda x, y, p, v, m, z, s: [v.prod(), x.prod(0), x.prod(-1, keepdim=True), s.prod()],
    "lt gt le ge": lambda x, y, p, v, m, z, s: [x < y, x > y, x <= y, x >= y, x < 0, x > 1, x >= v, s > x],
    "eq ne": lambda x, y, p, v, m, z, s: [x == y, x != y, x == x, x != 1, x == 0, (x > 0).sum(0)],
    "where": lambda x, y, p, v, m, z, s: [
        torch.where(x > y, x, y),
        torch.where(MASK, x, 0.0),
        torch.where(x > 0, 2.0, v),
    ],
    "masked_fill": lambda x, y, p, v, m, z, s: [
        x.masked_fill(MASK, 2.0),
        x.masked_fill(y > 0, -1),
        z.masked_fill(MASK, 1),
    ],
    "logical_and logical_or logical_xor logical_not": lambda x, y, p, v, m, z, s: [
        torch.logical_and(x > 0, y > 0),
        torch.logical_or(x, y),
        torch.logical_xor(x > 0, y),
        torch.logical_not(x),
    ],
    "bitwise_and bitwise_or bitwise_xor bitwise_not": lambda x, y, p, v, m, z, s: [
        (x > 0) & (y > 0),
        (x > 0) | MASK,
        MASK ^ (y > 0),
        ~(x > 0),
        (x > 0) & True,
    ],
    "any all": lambda x, y, p, v, m, z, s: [
        x.any(),
        x.all(),
        (x > 0).any(0),
        (x > 0).all(1, True),
        (z > 0).any((0, 1)),
        s.all(),
    ],
    "maximum minimum": lambda x, y, p, v, m, z, s: [torch.maximum(x, y), torch.minimum(x, v), torch.fmax(x, y)],
    "max min amax amin": lambda x, y, p, v, m, z, s: [
        x.max(),
        x.min(),
        x.amax(0),
        x.amin(1, True),
        z.amax((0, 2)),
        z.amax(()),
    ],
    "max_dim min_dim": lambda x, y, p, v, m, z, s: [
        *x.max(0),
        *x.max(1, keepdim=True),
        *x.min(-1),
        *z.max(-3),
        *s.max(0),
        *s.min(0, True),
    ],
    "argmax argmin": lambda x, y, p, v, m, z, s: [
        x.argmax(),
        x.argmin(),
        x.argmax(0),
        x.argmax(-1),
        x.argmin(1, keepdim=True),
        z.argmax(1),
        z.argmin(0),
        s.argmax(),
        s.argmin(0),
        x.argmax(keepdim=True),
        x.argmin(None, True),
    ],
    "clamp clamp_min clamp_max clip": lambda x, y, p, v, m, z, s: [
        x.clamp(-1, 1),
        x.clamp(min=0),
        x.clamp(max=0.5),
        x.clamp_min(0.25),
        x.clamp_max(1),
        x.clip(-1, 2),
        x.clamp(min=v),
    ],
    "abs sign sgn relu": lambda x, y, p, v, m, z, s: [x.abs(), x.sign(), x.sgn(), x.relu(), s.relu()],
    "linalg_vector_norm": lambda x, y, p, v, m, z, s: [
        x.norm(),
        x.norm(1),
        x.norm(inf, 1),
        x.norm(-inf),
        x.norm(dim=0, keepdim=True),
    ],
    "exp expm1": lambda x, y, p, v, m, z, s: [x.exp(), x.expm1()],
    "log log1p log2 log10": lambda x, y, p, v, m, z, s: [p.log(), p.log1p(), p.log2(), p.log10()],
    "sqrt rsqrt reciprocal": lambda x, y, p, v, m, z, s: [p.sqrt(), p.rsqrt(), p.reciprocal()],
    "sin cos": lambda x, y, p, v, m, z, s: [x.sin(), x.cos()],
    "sigmoid tanh erf erfc": lambda x, y, p, v, m, z, s: [x.sigmoid(), x.tanh(), x.erf(), x.erfc()],
    "gelu silu": lambda x, y, p, v, m, z, s: [F.gelu(x), F.gelu(x, approximate="tanh"), F.silu(x)],
    "softplus": lambda x, y, p, v, m, z, s: [
        F.softplus(x),
        F.softplus(x, 2.0),
        F.softplus(x, 0.5, 0.75),
        F.softplus(x, -1.0, 0.5),
    ],
    "log_sigmoid_forward": lambda x, y, p, v, m, z, s: [F.logsigmoid(x)],
    "_softmax _safe_softmax": lambda x, y, p, v, m, z, s: [x.softmax(0), z.softmax(-2), s.softmax(0)],
    "_log_softmax": lambda x, y, p, v, m, z, s: [x.log_softmax(1), s.log_softmax(-1)],
    "logsumexp": lambda x, y, p, v, m, z, s: [
        torch.logsumexp(x, 1),
        torch.logsumexp(x, 0, True),
        torch.logsumexp(s, 0),
    ],
    "sort_dim": lambda x, y, p, v, m, z, s: [*x.sort(), *x.sort(0, True), *z.sort(1), *s.sort()],
    "topk kthvalue": lambda x, y, p, v, m, z, s: [
        *x.topk(2),
        *x.topk(1, 0, False),
        *x.kthvalue(2),
        *x.kthvalue(1, 0, True),
    ],
    "median_dim lower_median": lambda x, y, p, v, m, z, s: [x.median(), *x.median(0), *x.median(1, True), s.median()],
    "floor ceil trunc frac": lambda x, y, p, v, m, z, s: [x.floor(), x.ceil(), x.trunc(), x.frac()],
    "round": lambda x, y, p, v, m, z, s: [x.round(), s.round()],
    "floor_divide remainder fmod": lambda x, y, p, v, m, z, s: [
        x // 2,
        x // -0.75,
        x % 2,
        x % -1.5,
        torch.fmod(x, 0.75),
    ],
    "inv linalg_inv_ex _linalg_check_errors": lambda x, y, p, v, m, z, s: [
        torch.linalg.inv(x[:, :3] * 0.25 + 2 * torch.eye(3))
    ],
    "zeros_like ones_like full_like": lambda x, y, p, v, m, z, s: [
        torch.zeros_like(x),
        torch.ones_like(x),
        torch.full_like(x, 1.5),
    ],
    "new_ones new_full": lambda x, y, p, v, m, z, s: [x.new_ones((2, 2)) + s, x.new_full((2,), 0.5) + s],
    "zero fill copy_": lambda x, y, p, v, m, z, s: [x.clone().zero_(), x.clone().fill_(2.5), x.clone().copy_(v)],
    "detach alias _to_copy": lambda x, y, p, v, m, z, s: [x.detach(), x.double() + 0],
    "embedding": lambda x, y, p, v, m, z, s: [F.embedding(INDEX, x), F.embedding(torch.tensor(1), x)],
    "isnan isinf": lambda x, y, p, v, m, z, s: [x.isnan(), x.isinf()],
    "moves elements": lambda x, y, p, v, m, z, s: [
        x.t(),
        z.permute(2, 0, 1),
        x.flip(0),
        x.roll(1),
        z.diagonal(0, 0, 2),
        x.tril(-1),
        x.unfold(1, 2, 1),
        x.cumsum(-1),
        x[:, -2:],
        x[INDEX],
        x[MASK],
        z[..., None, 1],
        z[:, [0, 1], 1],
        x.gather(1, COLUMN),
        x.index_add(0, INDEX, y, alpha=2),
        x.index_put((INDEX,), y, True),
        x.scatter(1, COLUMN, y[:, :1]),
        x.scatter_add(1, COLUMN, y),
        F.pad(x, (1, -1, 0, 2)),
        torch.cat([x, torch.ones(1, 4)]),
        torch.stack([x, y], -1),
        x.repeat_interleave(2, 0),
        x.unflatten(1, (2, 2)),
    ],
}
"""By the names of rules: what they compute."""
IN_LAYERS = {
    "avg_pool2d",
    "avg_pool2d_backward",
    "max_pool2d_with_indices",
    "max_pool2d_with_indices_backward",
    "convolution",
    "convolution_backward",
    "native_layer_norm",
    "native_group_norm",
    "native_batch_norm",
    "_native_batch_norm_legit",
    "aten._native_batch_norm_legit.default",
    "_native_batch_norm_legit_no_training",
    "nll_loss_forward",
    "nll_loss_backward",
    "nll_loss2d_forward",
    "nll_loss2d_backward",
    "threshold_backward",
    "sigmoid_backward",
    "tanh_backward",
    "gelu_backward",
    "silu_backward",
    "softplus_backward",
    "log_sigmoid_backward",
    "_softmax_backward_data",
    "_log_softmax_backward_data",
    "cumprod",
    "einsum",
    "isfinite",
    "isneginf",
    "isposinf",
    "nan_to_num",
    "constant_pad_nd",
    "aten.scatter.src",
    "aten.scatter.value",
    "torch.scatter",
    "torch.Tensor.scatter",
}
"""Rules that ``tests/syft_mpc/torch/test_layers.py``, ``test_training.py`` and ``test_operations.py`` cover."""
RANDOM = {"native_dropout", "bernoulli", "aten.bernoulli.default"}
NUMPY: dict[str, Program] = {
    "average mean": lambda x, y, p, v, m, z, s: [np.average(x), np.mean(x, axis=0, keepdims=True), x.mean(1)],
    "astype": lambda x, y, p, v, m, z, s: [x.astype("float32")],
    "argmax argmin": lambda x, y, p, v, m, z, s: [
        np.argmax(x),
        np.argmin(x, 0),
        np.argmax(z, axis=-1),
        np.argmin(x, axis=1, keepdims=True),
        np.argmax(x, keepdims=True),
    ],
    "sort argsort median": lambda x, y, p, v, m, z, s: [
        np.sort(x),
        np.sort(x, 0),
        np.argsort(x, 1),
        np.median(x),
        np.median(x, 1),
    ],
    "around rint fix fabs mod clip": lambda x, y, p, v, m, z, s: [
        np.around(x),
        np.rint(x),
        np.fabs(x),
        np.mod(x, 2),
        np.clip(x, -1, 1.5),
    ],
    "div": lambda x, y, p, v, m, z, s: [x / p, 3 / p, x / 4, v / p, x / np.arange(1, 5)],
    "max min sum": lambda x, y, p, v, m, z, s: [
        np.max(x, axis=0),
        np.min(z, axis=(0, 2)),
        np.sum(z, axis=(0, 1), keepdims=True),
    ],
    "var std": lambda x, y, p, v, m, z, s: [np.var(x), np.std(x, axis=0), np.var(x, axis=1, ddof=1)],
    "inv": lambda x, y, p, v, m, z, s: [np.linalg.inv(x[:, :3] * 0.25 + 2 * np.eye(3))],
    "matmul": lambda x, y, p, v, m, z, s: [x @ m, z @ m, np.outer(v, v), np.dot(v, v)],
    "where": lambda x, y, p, v, m, z, s: [np.where(x > 0, x, y), np.logical_and(x > 0, y > 0), np.maximum(x, v)],
}


def names(table: dict[str, Program]) -> set[str]:
    return {name for key in table for name in key.split()}


def test_every_rule_is_computed_here_or_with_layers() -> None:
    assert set(FixedPrecisionTensor.rules) - names(TORCH) - names(NUMPY) <= IN_LAYERS | RANDOM


def test_a_rule_that_is_added_applies_to_shared_numbers_at_once(
    torch_hook: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("rules", "functions", "exact"):
        monkeypatch.setattr(FixedPrecisionTensor, name, FixedPrecisionTensor.__dict__[name].copy())
    setting = Setting(torch_hook, 2)
    x = setting.put(np.array([1.0, -2.5]))
    with pytest.raises(OperationNotAllowedError, match="atan"):
        torch.atan(x)

    FixedPrecisionTensor.add_rules({"atan": lambda numbers, x: numbers.times(x, 0.5)})

    assert_close(setting.read(torch.atan(x)), np.array([0.5, -1.25]))
    monkeypatch.undo()
    forget_answers()


def require_same(setting: Setting, ring: str, found: Any, expected: Any, name: str) -> None:
    """Assert that a result has the expected shape and numbers, in its ring."""
    if isinstance(getattr(found, "child", None), FixedPrecisionTensor):
        shared = found.copy().get() if "AdditiveSharing" in repr(found) else found
        assert str(end_of(shared).dtype).endswith(ring), name
        found = shared.float_precision()
    found, expected = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    assert found.shape == expected.shape, name
    unit = 1 / RINGS[ring]["base"] ** RINGS[ring]["precision_fractional"]
    assert (abs(found - expected) <= 8 * unit + (8 * unit + 1e-3) * abs(expected)).all(), name


@pytest.mark.parametrize("ring", RINGS)
@pytest.mark.parametrize("parties", [0, 2, 3], ids=["unshared", "two", "three"])
def test_a_rule_computes_what_torch_computes_in_both_rings(torch_hook: Any, ring: str, parties: int) -> None:
    setting = Setting(torch_hook, parties)
    plain = [torch.tensor(values) for values in OPERANDS]
    ours = [setting.put(values, **RINGS[ring]) for values in OPERANDS]

    for name, program in TORCH.items():
        for found, expected in zip(program(*ours), program(*plain), strict=True):
            require_same(setting, ring, found, expected, name)


@pytest.mark.parametrize("ring", RINGS)
@pytest.mark.parametrize("parties", [0, 2], ids=["unshared", "two"])
def test_a_rule_computes_what_numpy_computes_in_both_rings(ring: str, parties: int) -> None:
    with attach("numpy") as hook:
        setting = Setting(hook, parties)
        ours = [setting.put(values, **RINGS[ring]) for values in OPERANDS]
        for name, program in NUMPY.items():
            for found, expected in zip(program(*ours), program(*OPERANDS), strict=True):
                require_same(setting, ring, found, expected, name)


@pytest.mark.parametrize("ring", ["int64", "int32"])
def test_places_and_products_of_shared_integers_are_exact_in_both_rings(torch_hook: Any, ring: str) -> None:
    setting = Setting(torch_hook, 3)
    dtype = getattr(torch, ring)
    x, y = (torch.tensor(_numbers.integers(-9, 9, (5, 7)), dtype=dtype) for _ in range(2))
    s, t = setting.share(x), setting.share(y)

    for _ in range(5):  # Shares are random; wrong ones may be right by chance.
        for found, expected in (
            (s.argmax(1), x.argmax(1)),
            (s.argmin(0), x.argmin(0)),
            (s.max(1)[1], x.max(1)[1]),
            (s * torch.arange(7), x * torch.arange(7)),
            (s + torch.arange(7), x + torch.arange(7)),
            (torch.arange(5) @ s, torch.arange(5).to(dtype) @ x),
            (s @ t.t(), x @ y.t()),
            (s.sort(1)[0], x.sort(1)[0]),
            (torch.where(s > t, s, t), torch.where(x > y, x, y)),
        ):
            assert found.copy().get().tolist() == expected.tolist()


# --- random programs

STEPS: list[Callable[[Any, Any], Any]] = [
    lambda x, y: x + y,
    lambda x, y: x - y,
    lambda x, y: x * y,
    lambda x, y: x / (y * y + 1),
    lambda x, y: 2 / (y.abs() + 1) - x,
    lambda x, y: x * 0.75 - 1,
    lambda x, _y: x.relu() - 0.5,
    lambda x, y: torch.maximum(x, y),
    lambda x, y: torch.where(x > y, x, -y),
    lambda x, _y: x.sigmoid() * 2,
    lambda x, _y: x.tanh(),
    lambda x, _y: x - x.mean(0, keepdim=True),
    lambda x, _y: x.clamp(-2, 2).exp() - 1,
    lambda x, y: (x @ y.transpose(0, 1)) @ x * 0.125,
    lambda x, _y: x.softmax(1) * 3,
    lambda x, _y: x.flip(0).roll(1, 1),
    lambda x, _y: torch.cat([x[1:], x[:1]]),
    lambda x, _y: x.cumsum(1) * 0.5,
    lambda x, y: x.masked_fill(y > 0, 0.25),
    lambda x, _y: x - x.amax(1, keepdim=True) * 0.5,
]


@pytest.mark.filterwarnings("ignore::syft_mpc.checking.PrecisionWarning")
@pytest.mark.parametrize("ring", RINGS)
@settings(max_examples=EXAMPLES // 2, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(st.sampled_from(STEPS), min_size=1, max_size=5),
    seed=st.integers(0, 2**31),
    shape=st.tuples(st.integers(1, 3), st.integers(1, 3)),
)
def test_a_random_program_and_its_gradient_are_those_of_floats(
    torch_hook: Any, ring: str, steps: list[Any], seed: int, shape: tuple[int, int]
) -> None:
    setting, numbers = Setting(torch_hook, 2 + seed % 2), np.random.default_rng(seed)
    values = [np.round(numbers.uniform(-1.5, 1.5, shape) * 64) / 64 for _ in range(2)]
    plain = [torch.tensor(value, requires_grad=True) for value in values]
    ours = [setting.put(value, **RINGS[ring]).requires_grad_() for value in values]
    expected = run(steps, *plain)
    with checking():  # It compares every operation, also of the backward pass.
        found = run(steps, *ours)
    unit = 1 / RINGS[ring]["base"] ** RINGS[ring]["precision_fractional"]

    assert np.median(abs(setting.read(found) - expected.numpy())) <= 100 * unit * max(1.0, float(expected.abs().max()))
    assert [x.grad is None for x in ours] == [x.grad is None for x in plain]


def run(steps: list[Any], x: Any, y: Any) -> Any:
    """Return the result of some steps, after a backward pass."""
    for step in steps:
        x = step(x, y)
    x.sum().backward()
    return x.detach()


# --- cases that were wrong once


@pytest.mark.parametrize("ring", RINGS)
@pytest.mark.parametrize("parties", [0, 2, 3], ids=["unshared", "two", "three"])
def test_the_gradient_of_relu_is_zero_at_zero(torch_hook: Any, parties: int, ring: str) -> None:
    x = Setting(torch_hook, parties).put(np.array([0.0, 1.0, -1.0]), **RINGS[ring]).requires_grad_()

    torch.relu(x).sum().backward()

    assert Setting(torch_hook, parties).read(x.grad).tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize("parties", [0, 2], ids=["unshared", "two"])
def test_a_condition_is_true_unless_it_is_zero(torch_hook: Any, parties: int) -> None:
    setting = Setting(torch_hook, parties)
    condition, x, y = (setting.put(values) for values in ([2.0, 0.0, -0.5], [1.0, 2.0, 3.0], [7.0, 8.0, 9.0]))

    assert setting.read(torch.where(condition, x, y)).tolist() == [1, 8, 3]
    assert setting.read(x.masked_fill(condition, 5.0)).tolist() == [5, 2, 5]


@pytest.mark.parametrize("ring", RINGS)
@pytest.mark.parametrize("parties", [0, 2], ids=["unshared", "two"])
def test_padding_is_never_the_largest_number(torch_hook: Any, ring: str, parties: int) -> None:
    setting = Setting(torch_hook, parties)
    lowest = -0.99 * 2.0 ** (62 if ring == "int64" else 30) / 2 ** RINGS[ring]["precision_fractional"]
    x = setting.put(np.full((1, 4, 4), lowest, "float64"), **RINGS[ring])

    assert_close(setting.read(F.max_pool2d(x, 3, 2, 1)), np.full((1, 2, 2), lowest), 1e-6)


@pytest.mark.parametrize("parties", [0, 2], ids=["unshared", "two"])
def test_what_has_no_finite_result_is_refused(torch_hook: Any, parties: int) -> None:
    x = Setting(torch_hook, parties).put([1.0, 2.0, 3.0])

    for compute in (lambda: x.var(correction=4), lambda: x.std(correction=3), lambda: x / inf, lambda: x / 0.0):
        with pytest.raises(PrecisionError):
            compute()


def test_quotients_that_do_not_fit_into_the_ring_are_refused(torch_hook: Any) -> None:
    x = Setting(torch_hook, 0).put([1.0, 1e12])

    with pytest.raises(PrecisionError, match="does not fit into the ring"):
        x / torch.tensor([1.0, 1e-4])
