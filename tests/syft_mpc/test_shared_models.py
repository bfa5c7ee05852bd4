"""Layers and models on shared numbers have the results and gradients of plain ones, or are refused with advice."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402
from torch.nn.utils import parametrizations  # noqa: E402
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence  # noqa: E402

from syft_core.exceptions import SyftError  # noqa: E402

from .settings import BASE, DIGITS, Setting, assert_close  # noqa: E402

INF = float("inf")
SEED = torch.Generator().manual_seed(5)
ROWS, IMAGES, WORDS = (torch.randn(*shape, generator=SEED) for shape in ((4, 6), (2, 3, 8, 8), (2, 5, 8)))
FUTURE = torch.ones(5, 5, dtype=torch.bool).triu(1)
ADDED = torch.zeros(5, 5).masked_fill(FUTURE, -INF)
PADDED = torch.tensor([[False, False, False, True, True], [False] * 5])
Call = Callable[..., Any]


class Residual(nn.Module):
    """A block of a ResNet."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = (nn.Conv2d(3, 3, 3, padding=1, bias=False) for _ in range(2))
        self.norms = nn.ModuleList([nn.BatchNorm2d(3), nn.BatchNorm2d(3)])
        self.activate = nn.ReLU(inplace=True)

    def forward(self, x: Any) -> Any:
        y = self.norms[1](self.second(self.activate(self.norms[0](self.first(x)))))
        y += x
        return self.activate(y)


def attend(**options: Any) -> tuple[Call, Any, Call]:
    return lambda: nn.MultiheadAttention(8, 2, batch_first=True), WORDS, lambda m, q: m(q, q, q, **options)[0]


def encode(**options: Any) -> tuple[Call, Any, Call]:
    def make() -> nn.Module:
        return nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dropout=0, batch_first=True), 1)

    return make, WORDS, lambda m, q: m(q, **options)


def recurrent(layer: Any, **options: Any) -> tuple[Call, Any, Call]:
    return lambda: layer(8, 6, batch_first=True, **options), WORDS, lambda m, x: m(x)[0]


def packed(m: Any, x: Any) -> Any:
    steps, _ = m(pack_padded_sequence(x, torch.tensor([5, 3]), batch_first=True))
    return pad_packed_sequence(steps, batch_first=True)[0]


def scores(m: Any, x: Any) -> Any:
    return m(x) @ m(x).transpose(1, 2)


def plain(m: Any, x: Any) -> Any:
    return m(x)


MODELS: dict[str, tuple[Call, Any, Call]] = {
    "MLP": (lambda: nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3), nn.LogSoftmax(-1)), ROWS, plain),
    "LeNet": (
        lambda: nn.Sequential(
            *(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, 2, ceil_mode=True), nn.Conv2d(4, 4, 3)),
            *(nn.ReLU(), nn.AvgPool2d(2, ceil_mode=True), nn.Flatten(), nn.Linear(4, 3)),
        ),
        IMAGES,
        plain,
    ),
    "ResNet block": (Residual, IMAGES, plain),
    "BatchNorm1d": (lambda: nn.BatchNorm1d(6, momentum=None), ROWS, plain),
    "GroupNorm": (lambda: nn.Sequential(nn.GroupNorm(3, 3), nn.Mish(), nn.AdaptiveMaxPool2d(2)), IMAGES, plain),
    "LSTM": recurrent(nn.LSTM),
    "GRU": recurrent(nn.GRU, bidirectional=True),
    "RNN": recurrent(nn.RNN, nonlinearity="relu"),
    "packed LSTM": (lambda: nn.LSTM(8, 6, batch_first=True), WORDS, packed),
    "LSTMCell": (lambda: nn.LSTMCell(8, 6), WORDS[:, 0], lambda m, x: m(x)[0]),
    "GRUCell": (lambda: nn.GRUCell(8, 6), WORDS[:, 0], plain),
    "attention": attend(),
    "attention, boolean mask": attend(attn_mask=FUTURE),
    "attention, mask of floats": attend(attn_mask=ADDED, need_weights=False),
    "attention, causal": attend(attn_mask=FUTURE, is_causal=True, need_weights=False),
    "attention, padding": attend(key_padding_mask=PADDED),
    "attention, mask and padding": attend(attn_mask=FUTURE, key_padding_mask=PADDED),
    "encoder": encode(),
    "encoder, causal": encode(mask=ADDED, is_causal=True),
    "encoder, padding": encode(src_key_padding_mask=PADDED),
    "dot products, causal": (
        lambda: nn.Linear(8, 8),
        WORDS,
        lambda m, x: functional.scaled_dot_product_attention(m(x), m(x), m(x), is_causal=True),
    ),
    "dot products, boolean mask": (
        lambda: nn.Linear(8, 8),
        WORDS,
        lambda m, x: functional.scaled_dot_product_attention(m(x), m(x), m(x), attn_mask=~FUTURE),
    ),
    "attention by hand, masked before scaling": (
        lambda: nn.Linear(8, 8),
        WORDS,
        lambda m, x: (scores(m, x).masked_fill(FUTURE, -INF) / 8**0.5).softmax(-1) @ m(x),
    ),
    "attention by hand, smallest float": (
        lambda: nn.Linear(8, 8),
        WORDS,
        lambda m, x: (scores(m, x) + FUTURE * torch.finfo(torch.float32).min).softmax(-1) @ m(x),
    ),
    "autoencoder": (
        lambda: nn.Sequential(
            nn.Conv2d(3, 4, 3, 2, 1), nn.ReLU(), nn.ConvTranspose2d(4, 3, 3, 2, 1, output_padding=1), nn.Sigmoid()
        ),
        IMAGES,
        plain,
    ),
    "upsampling": (lambda: nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(3, 2, 3, groups=1)), IMAGES, plain),
    "constant padding": (lambda: nn.Sequential(nn.ConstantPad2d(1, 2.5), nn.Conv2d(3, 2, 3)), IMAGES, plain),
    "same padding": (lambda: nn.Conv2d(3, 2, 3, padding="same"), IMAGES, plain),
    "Bilinear": (lambda: nn.Bilinear(6, 6, 3), ROWS, lambda m, x: m(x, x + 1)),
    "weight norm": (lambda: parametrizations.weight_norm(nn.Linear(6, 3)), ROWS, plain),
}


def check(setting: Setting, name: str, share_model: bool, share_input: bool) -> None:
    torch.manual_seed(1)
    make, data, call = MODELS[name]
    model = make()
    twin, x = copy.deepcopy(model), data.clone().requires_grad_()
    if share_model:
        model.fix_precision(base=BASE, precision_fractional=DIGITS)
        model.share(*setting.workers, crypto_provider=setting.carol)
    y = setting.put(data.numpy()).requires_grad_() if share_input else data.clone().requires_grad_()

    expected, found = call(twin, x), call(model, y)
    (expected * expected / 2 + expected).sum().backward()
    (found * found / 2 + found).sum().backward()

    assert_close(setting.read(found.detach()), expected.detach(), 1e-2)
    pairs = {
        f"{name} of the model": (own, dict(twin.named_parameters())[name]) for name, own in model.named_parameters()
    }
    for own, other in (*pairs.values(), (y, x)):
        assert_close(setting.read(own.grad) if hasattr(own.grad, "child") else own.grad.numpy(), other.grad, 4e-2)
    for name, buffer in model.named_buffers():
        if share_model and buffer.is_floating_point():
            assert_close(setting.read(buffer), dict(twin.named_buffers())[name], 1e-2)


@pytest.mark.parametrize("name", MODELS)
def test_a_shared_model_learns_from_shared_data(torch_hook: Any, name: str) -> None:
    check(Setting(torch_hook, 2), name, share_model=True, share_input=True)


@pytest.mark.parametrize("name", [name for name in MODELS if name not in ("ResNet block", "BatchNorm1d")])
def test_a_plain_model_learns_from_shared_data(torch_hook: Any, name: str) -> None:
    check(Setting(torch_hook, 2), name, share_model=False, share_input=True)


@pytest.mark.parametrize("name", ["LeNet", "ResNet block", "GRU", "attention, boolean mask", "encoder, padding"])
def test_a_shared_model_learns_from_plain_data(torch_hook: Any, name: str) -> None:
    check(Setting(torch_hook, 2), name, share_model=True, share_input=False)


REFUSED: dict[str, tuple[Call, Any, str]] = {
    "batch norm in training with plain statistics": (lambda: nn.BatchNorm2d(3), IMAGES, "`model.eval()`"),
    "convolution in space": (lambda: nn.Conv3d(1, 1, 2), IMAGES[None, :1], "two-dimensional convolutions"),
    "pooling in space": (lambda: nn.MaxPool3d(2), IMAGES, "two-dimensional"),
    "indices of a pool": (
        lambda: lambda x: nn.MaxPool2d(2, return_indices=True)(x)[1] * 1,
        IMAGES,
        "`return_indices`",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_layer_without_a_rule_is_refused_with_the_way_out(torch_hook: Any, name: str) -> None:
    make, data, advice = REFUSED[name]
    setting = Setting(torch_hook, 2)
    with pytest.raises(SyftError, match=re.escape(advice)):
        make()(setting.put(data.numpy()))
