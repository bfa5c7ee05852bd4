"""Small programs as users write them: on shared numbers they compute what they compute on plain ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from syft_core.exceptions import SyftError  # noqa: E402

from .settings import Setting, assert_close  # noqa: E402

nn, F = torch.nn, torch.nn.functional
_numbers = np.random.default_rng(3)
X, Y = (torch.tensor(_numbers.normal(size=(4, 6)), dtype=torch.float32) for _ in range(2))
P = torch.tensor(_numbers.uniform(0.5, 1.5, (4, 6)), dtype=torch.float32)
IMAGES = torch.tensor(_numbers.normal(size=(2, 3, 8, 8)), dtype=torch.float32)
SEQUENCE = torch.tensor(_numbers.normal(size=(2, 3, 6)), dtype=torch.float32)
CLASSES = torch.tensor([0, 1, 5, 2])
ODD = torch.tensor([True, False] * 3)


def read(setting: Setting, value: Any) -> Any:
    """Return plain numbers, also of several tensors."""
    if isinstance(value, tuple | list):
        return [read(setting, part) for part in value]
    return value if type(value) is torch.Tensor or value is None else torch.tensor(setting.read(value.detach()))


def require_equal(found: Any, expected: Any, tolerance: float = 5e-3) -> None:
    if isinstance(expected, tuple | list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            require_equal(one, other, tolerance)
    elif expected is None:
        assert found is None
    else:
        assert_close(np.asarray(found.detach()), expected.detach(), tolerance)


# --- functions, and their gradients

Program = Callable[[Any, Any, Any], Any]
FUNCTIONS: dict[str, Program] = {
    "rows by a list": lambda x, _y, _p: x[[0, 0, 2]],
    "columns by a list": lambda x, _y, _p: x[:, [0, 0, 2]],
    "columns by a mask": lambda x, _y, _p: x[:, ODD],
    "two lists and a slice between": lambda x, _y, _p: x.reshape(2, 2, 6)[[0, 1], :, [0, 2]],
    "two lists after a slice": lambda x, _y, _p: x.reshape(2, 2, 6)[:, [0, 1, 1], [0, 2, 2]],
    "the largest along an axis": lambda x, _y, _p: x.max(1)[0],
    "the largest of columns": lambda x, _y, _p: x.max(0).values,
    "the smallest along an axis, kept": lambda x, _y, _p: x.min(1, keepdim=True)[0],
    "diag of a matrix": lambda x, _y, _p: x[:, :4].diag(),
    "diag of a vector": lambda x, _y, _p: x[0].diag(),
    "trace": lambda x, _y, _p: x[:, :4].trace(),
    "rot90": lambda x, _y, _p: x.rot90(),
    "block_diag": lambda x, y, _p: torch.block_diag(x, y),
    "index_fill": lambda x, _y, _p: x.index_fill(0, torch.tensor([1]), 3.0),
    "scatter into plain numbers": lambda x, _y, _p: torch.zeros(4, 6).scatter(1, torch.arange(6).expand(4, 6), x),
    "scatter a number": lambda x, _y, _p: x.scatter(1, torch.zeros(4, 1).long(), 1.0),
    "einsum": lambda x, y, _p: torch.einsum("ij,kj->ik", x, y),
    "einsum of batches": lambda x, y, _p: torch.einsum("bij,bjk->bik", x.reshape(2, 2, 6), y.reshape(2, 6, 2)),
    "cross product": lambda x, y, _p: torch.linalg.cross(x[:, :3], y[:, :3]),
    "distance": lambda x, y, _p: torch.dist(x, y),
    "triplet loss": lambda x, y, p: F.triplet_margin_loss(x, y, p),
    "glu": lambda x, _y, _p: F.glu(x),
    "mish": lambda x, _y, _p: F.mish(x),
    "prelu": lambda x, _y, _p: F.prelu(x, torch.tensor([0.2])),
    "where": lambda x, y, _p: torch.where(x > 0, x * 2, y),
    "means over several axes": lambda x, _y, _p: x.reshape(2, 2, 6).mean((0, 2)),
    "cosine similarity": lambda x, y, _p: F.cosine_similarity(x, y, dim=1),
    "cross entropy": lambda x, _y, _p: F.cross_entropy(x, CLASSES),
    "divergence": lambda x, _y, _p: F.kl_div(x.log_softmax(1), P, reduction="batchmean"),
    "unfold": lambda x, _y, _p: F.unfold(x.reshape(1, 1, 4, 6), 2),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("parties", [0, 2], ids=["unshared", "two"])
def test_a_function_and_its_gradient_are_those_of_torch(torch_hook: Any, name: str, parties: int) -> None:
    setting, function = Setting(torch_hook, parties), FUNCTIONS[name]
    plain = [value.clone().requires_grad_() for value in (X, Y, P)]
    ours = [setting.put(value).requires_grad_() for value in (X, Y, P)]
    expected, found = function(*plain), function(*ours)
    require_equal(read(setting, found), expected)

    expected.square().sum().backward()
    found.square().sum().backward()

    require_equal(read(setting, [value.grad for value in ours]), [value.grad for value in plain], 1e-2)


VALUES: dict[str, Program] = {
    "any": lambda x, y, _p: [(x > 9).any(), (x > 0).any(0), (x > y).any(1, keepdim=True)],
    "all": lambda x, y, _p: [(x > -9).all(), (x > 0).all(0), (x > y).all(1, keepdim=True)],
    "xor": lambda x, y, _p: (x > 0) ^ (y > 0),
    "logical_xor": lambda x, y, _p: torch.logical_xor(x > 0, y > 0),
    "masked_select": lambda x, _y, _p: x.masked_select(X > 0),
    "take": lambda x, _y, _p: x.take(torch.tensor([0, 5])),
    "logit": lambda _x, _y, p: torch.logit(p / 2),
    "softshrink": lambda x, _y, _p: F.softshrink(x),
    "hardshrink": lambda x, _y, _p: F.hardshrink(x),
    "heaviside": lambda x, _y, _p: torch.heaviside(x, torch.tensor(0.0)),
    "renorm": lambda x, _y, _p: x.renorm(2, 0, 1.0),
    "multi_margin_loss": lambda x, _y, _p: F.multi_margin_loss(x, CLASSES),
    "reflection_pad2d": lambda x, _y, _p: F.pad(x.reshape(1, 1, 4, 6), (1, 1, 1, 1), mode="reflect"),
    "replication_pad2d": lambda x, _y, _p: F.pad(x.reshape(1, 1, 4, 6), (1, 1, 1, 1), mode="replicate"),
    "nearest": lambda x, _y, _p: F.interpolate(x.reshape(1, 1, 4, 6), scale_factor=2),
    "bilinear": lambda x, _y, _p: F.interpolate(x.reshape(1, 1, 4, 6), scale_factor=2, mode="bilinear"),
    "adaptive pooling": lambda x, _y, _p: F.adaptive_avg_pool2d(x.reshape(1, 1, 4, 6), (3, 4)),
    "the largest by adaptive pooling": lambda x, _y, _p: F.adaptive_max_pool2d(x.reshape(1, 1, 4, 6), 1),
    "pixel_shuffle": lambda x, _y, _p: F.pixel_shuffle(x.reshape(1, 4, 2, 3), 2),
}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("parties", [0, 3], ids=["unshared", "three"])
def test_the_values_of_a_function_are_those_of_torch(torch_hook: Any, name: str, parties: int) -> None:
    setting = Setting(torch_hook, parties)
    with torch.no_grad():
        found = read(setting, VALUES[name](*map(setting.put, (X, Y, P))))
        expected = VALUES[name](X, Y, P)

    def to_numbers(value: Any) -> Any:
        return [part.float() for part in value] if isinstance(value, list) else value.float()

    require_equal(found, to_numbers(expected))


def test_any_and_all_work_on_shared_integers_and_with_numpy(any_hook: Any) -> None:
    setting = Setting(any_hook)
    x = setting.share(setting.plain(np.array([[0, 1], [0, 0]])))

    for found, expected in (
        (x.any(0), [0, 1]),
        (x.all(1), [0, 0]),
        (setting.xp.any(x, axis=1), [1, 0]),
        (setting.xp.all(x != 2, axis=0), [1, 1]),
        (setting.xp.logical_xor(x, x == 0), [[1, 1], [1, 1]]),
    ):
        assert np.asarray(found.get()).tolist() == expected


# --- models


class Attention(nn.Module):  # type: ignore[misc]  # torch has no types here
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.MultiheadAttention(6, 2, batch_first=True)

    def forward(self, x: Any) -> Any:
        causal = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        return self.inner(x, x, x, need_weights=False, attn_mask=causal)[0]


class Residual(nn.Module):  # type: ignore[misc]  # the same
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.norm = nn.Conv2d(3, 3, 3, padding=1, bias=False), nn.BatchNorm2d(3)

    def forward(self, x: Any) -> Any:
        return F.relu(self.norm(self.inner(x)) + x)


MODELS: dict[str, tuple[Callable[[], Any], Any]] = {
    "attention": (Attention, SEQUENCE),
    "transformer": (lambda: nn.TransformerEncoderLayer(6, 2, 8, batch_first=True, dropout=0.0), SEQUENCE),
    "lstm": (lambda: nn.LSTM(6, 4, batch_first=True), SEQUENCE),
    "two layers of lstm, both ways": (lambda: nn.LSTM(6, 2, num_layers=2, bidirectional=True), SEQUENCE),
    "gru": (lambda: nn.GRU(6, 4, batch_first=True), SEQUENCE),
    "rnn": (lambda: nn.RNN(6, 4, batch_first=True), SEQUENCE),
    "lstm cell": (lambda: nn.LSTMCell(6, 4), X),
    "residual block": (Residual, IMAGES),
    "prelu": (lambda: nn.Sequential(nn.Linear(6, 3), nn.PReLU()), X),
    "instance norm": (lambda: nn.InstanceNorm2d(3, affine=True), IMAGES),
    "circular padding": (lambda: nn.Conv2d(3, 4, 3, padding=1, padding_mode="circular"), IMAGES),
    "groups": (lambda: nn.Conv2d(3, 6, 3, groups=3, dilation=2), IMAGES),
    "pooling with padding": (lambda: nn.MaxPool2d(3, stride=2, padding=1), IMAGES),
    "bilinear sizes": (lambda: nn.AdaptiveAvgPool2d(1), IMAGES),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_torch_and_its_gradients_are_those_of_plain_numbers(torch_hook: Any, name: str) -> None:
    setting, (make, inputs) = Setting(torch_hook), MODELS[name]

    def run(put: Any, share: Any) -> Any:
        torch.manual_seed(0)
        model, x = share(make()), put(inputs).requires_grad_()
        result = model(x)
        result = result[0] if isinstance(result, tuple) else result
        result.square().sum().backward()
        return [result, x.grad, *[parameter.grad for parameter in model.parameters()]]

    parties = {"workers": setting.workers, "crypto_provider": setting.carol}
    expected = run(torch.clone, lambda model: model)
    found = run(setting.put, lambda model: model.encrypt(**parties, base=2, precision_fractional=16))
    require_equal(read(setting, found), expected, 2e-2)


def test_plain_models_still_use_the_fused_kernels(torch_hook: Any) -> None:
    model, enabled = nn.LSTM(6, 4), torch.backends.mkldnn.enabled

    model(SEQUENCE)
    model.encrypt(workers=Setting(torch_hook).workers, crypto_provider=Setting(torch_hook).carol)

    assert torch.backends.mkldnn.enabled is enabled


# --- what is refused

REFUSED: dict[str, Program] = {
    "if": lambda x, _y, _p: bool(x[0, 0] > 0),
    "item": lambda x, _y, _p: x[0, 0].item(),
    "numpy": lambda x, _y, _p: x.numpy(),
    "secret mask": lambda x, _y, _p: x[x > 0],
    "secret rows of an embedding": lambda x, y, _p: F.embedding(x, y),
    "secret rows of a plain embedding": lambda x, _y, _p: F.embedding(x, Y),
    "sort": lambda x, _y, _p: x.sort(),
    "topk": lambda x, _y, _p: x.topk(2),
    "median": lambda x, _y, _p: x.median(),
    "floor": lambda x, _y, _p: x.floor(),
    "remainder": lambda x, _y, _p: x % 2,
    "fractional power": lambda x, _y, _p: x**1.5,
    "determinant": lambda x, _y, _p: torch.det(x[:, :4]),
    "nonzero": lambda x, _y, _p: x.nonzero(),
    "to integers": lambda x, _y, _p: x.long(),
    "attention with dropout": lambda x, y, p: F.scaled_dot_product_attention(
        *[v.reshape(1, 1, 4, 6) for v in (x, y, p)], dropout_p=0.5
    ),
    "transposed convolution": lambda x, _y, _p: F.conv_transpose2d(x.reshape(1, 1, 4, 6), torch.ones(1, 1, 2, 2)),
    "write into plain numbers": lambda x, _y, _p: torch.zeros(4, 6).scatter_(1, torch.zeros(4, 6).long(), x),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("parties", [0, 2], ids=["unshared", "two"])
def test_a_refusal_gives_a_reason_and_leaves_the_operands(torch_hook: Any, name: str, parties: int) -> None:
    setting = Setting(torch_hook, parties)
    operands = [setting.put(value) for value in (X, Y, P)]

    with pytest.raises(SyftError, match=r"cannot .*[:;] "):
        REFUSED[name](*operands)

    require_equal(read(setting, operands), [X, Y, P])
