"""Layers on one image, row or sequence, and on a batch of them: as torch computes them, or refused."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from syft_core.exceptions import OperationNotAllowedError  # noqa: E402

from ..settings import Setting, assert_close  # noqa: E402

nn, F = torch.nn, torch.nn.functional
Layer = Callable[..., Any]
LINE, IMAGE, ROW = (3, 6), (3, 6, 6), (6,)
C = torch.tensor([0.5, -1.0, 2.0])
FILTERS = [torch.randn(shape, generator=torch.Generator().manual_seed(1)) for shape in ((4, 3, 2), (4, 3, 2, 2))]
CLASS, CLASSES = torch.tensor(2), torch.tensor([0, 2])
REDUCTIONS = ("none", "sum", "mean")


def classes(x: Any) -> Any:
    """Return public classes for rows, or for one row."""
    return CLASSES if x.ndim > 1 else CLASS


LAYERS: dict[str, tuple[Layer, list[tuple[int, ...]]]] = {
    "conv1d": (lambda x, w: F.conv1d(x, w, torch.ones(4), padding=1), [LINE, (4, 3, 2)]),
    "conv1d, plain filters": (lambda x: F.conv1d(x, FILTERS[0], stride=2), [LINE]),
    "conv1d, same": (lambda x: F.conv1d(x, FILTERS[0], padding="same"), [LINE]),
    "conv2d": (lambda x, w: F.conv2d(x, w, torch.ones(4), padding=1, dilation=2), [IMAGE, (4, 3, 2, 2)]),
    "conv2d, plain filters": (lambda x: F.conv2d(x, FILTERS[1], stride=(2, 1)), [IMAGE]),
    "conv_transpose1d": (lambda x, w: F.conv_transpose1d(x, w, stride=2), [LINE, (3, 2, 2)]),
    "conv_transpose2d": (lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1), [IMAGE, (3, 2, 2, 2)]),
    "max_pool1d": (lambda x: F.max_pool1d(x, 3, 2, 1), [LINE]),
    "max_pool2d": (lambda x: F.max_pool2d(x, 2), [IMAGE]),
    "max_pool2d, options": (lambda x: F.max_pool2d(x, (2, 3), 1, 1, 2), [IMAGE]),
    "avg_pool1d": (lambda x: F.avg_pool1d(x, 2), [LINE]),
    "avg_pool1d, padded": (lambda x: F.avg_pool1d(x, 3, 2, 1, count_include_pad=False), [LINE]),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 2), [IMAGE]),
    "avg_pool2d, padded": (lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), [IMAGE]),
    "avg_pool2d, divisor": (lambda x: F.avg_pool2d(x, (2, 3), (1, 2), divisor_override=5), [IMAGE]),
    "lp_pool2d": (lambda x: F.lp_pool2d(x * x + 0.5, 2, 2), [IMAGE]),
    "adaptive_avg_pool1d": (lambda x: F.adaptive_avg_pool1d(x, 3), [LINE]),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, (2, 3)), [IMAGE]),
    "adaptive_avg_pool2d of all": (lambda x: F.adaptive_avg_pool2d(x, 1), [IMAGE]),
    "adaptive_max_pool1d": (lambda x: F.adaptive_max_pool1d(x, 2), [LINE]),
    "adaptive_max_pool2d": (lambda x: F.adaptive_max_pool2d(x, 3), [IMAGE]),
    "batch_norm": (lambda x: F.batch_norm(x, C, C.abs(), C, C), [LINE]),
    "batch_norm in training": (lambda x: F.batch_norm(x, None, None, C, C, training=True), [LINE]),
    "instance_norm": (lambda x: F.instance_norm(x, weight=C, bias=C), [LINE]),
    "instance_norm of images": (lambda x: F.instance_norm(x), [IMAGE]),
    "layer_norm": (lambda x: F.layer_norm(x, (6,)), [LINE]),
    "layer_norm of two axes": (lambda x, w: F.layer_norm(x, LINE, w, w), [LINE, LINE]),
    "rms_norm": (lambda x: F.rms_norm(x, (6,)), [LINE]),
    "group_norm": (lambda x: F.group_norm(x, 3, C, C), [LINE]),
    "linear": (lambda x, w: F.linear(x, w, C), [ROW, (3, 6)]),
    "bilinear": (lambda x, y, w: F.bilinear(x, y, w, C), [ROW, ROW, (3, 6, 6)]),
    "glu": (lambda x: F.glu(x), [ROW]),
    "prelu": (lambda x: F.prelu(x, C), [LINE]),
    "softmax": (lambda x: F.softmax(x, -1), [ROW]),
    "log_softmax": (lambda x: F.log_softmax(x, -1), [ROW]),
    "normalize": (lambda x: F.normalize(x, dim=-1), [ROW]),
    "attention": (lambda x: F.scaled_dot_product_attention(x, x, x), [LINE]),
    "pad": (lambda x: F.pad(x, (1, 2, 0, 1)), [LINE]),
    "reflect": (lambda x: F.pad(x, (1, 2), mode="reflect"), [LINE]),
    "reflect images": (lambda x: F.pad(x, (1, 2, 0, 1), mode="reflect"), [IMAGE]),
    "replicate": (lambda x: F.pad(x, (1, 2), mode="replicate"), [LINE]),
    "circular": (lambda x: F.pad(x, (1, 2), mode="circular"), [LINE]),
    "pixel_shuffle": (lambda x: F.pixel_shuffle(x, 2), [(4, 3, 3)]),
    "pixel_unshuffle": (lambda x: F.pixel_unshuffle(x, 2), [IMAGE]),
    "channel_shuffle": (lambda x: F.channel_shuffle(x, 3), [IMAGE]),
    "unfold": (lambda x: F.unfold(x, 2), [IMAGE]),
    "fold": (lambda x: F.fold(x, (4, 4), 2), [(12, 9)]),
    "nearest": (lambda x: F.interpolate(x, scale_factor=2), [LINE]),
    "nearest of images": (lambda x: F.interpolate(x, scale_factor=2), [IMAGE]),
    "linear interpolation": (lambda x: F.interpolate(x, size=4, mode="linear"), [LINE]),
    "bilinear interpolation": (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), [IMAGE]),
    "area": (lambda x: F.interpolate(x, size=(3, 2), mode="area"), [IMAGE]),
    **{
        f"{name}, {reduction}": (lambda x, y, n=name, r=reduction: getattr(F, n)(x, y, reduction=r), [ROW, ROW])
        for name in (
            "mse_loss l1_loss smooth_l1_loss huber_loss soft_margin_loss binary_cross_entropy_with_logits".split()
        )
        for reduction in REDUCTIONS
    },
    **{
        f"{name}, {reduction}{', weights' if weight is not None else ''}{', ignored' if ignored == 2 else ''}": (
            lambda x, n=name, r=reduction, w=weight, i=ignored: getattr(F, n)(
                x.log_softmax(-1) if n == "nll_loss" else x, classes(x), w, reduction=r, ignore_index=i
            ),
            [(3,)],
        )
        for name in ("nll_loss", "cross_entropy")
        for reduction in REDUCTIONS
        for weight in (None, C.abs())
        for ignored in ((-100, 2) if reduction != "mean" else (-100,))
    },
    "cross_entropy, smooth": (lambda x: F.cross_entropy(x, classes(x), label_smoothing=0.1), [(3,)]),
    "cross_entropy, probabilities": (lambda x, y: F.cross_entropy(x, y.softmax(-1)), [(3,), (3,)]),
    **{
        f"multi_margin_loss, {reduction}": (
            lambda x, r=reduction: F.multi_margin_loss(x, classes(x), reduction=r),
            [(3,)],
        )
        for reduction in REDUCTIONS
    },
}
"""By name: a function, and the shapes of its operands without a batch; the first one may have a batch."""
BATCHED_TOO = {"bilinear", *(name for name in LAYERS if "_loss" in name or "probabilities" in name)} - {
    name for name in LAYERS if name.startswith(("nll", "multi"))
}
"""Layers whose second operand has a batch if the first one has."""
NO_GRADIENT = {"reflect", "reflect images", "replicate", "linear interpolation", "bilinear interpolation"} | {
    name for name in LAYERS if name.startswith("multi_margin")
}
"""Layers whose gradient is refused."""
VERSION = tuple(map(int, torch.__version__.split(".")[:2]))
if VERSION < (2, 9):
    NO_GRADIENT.add("channel_shuffle")  # Torch itself has none.


def run(function: Layer, operands: list[Any], gradient: bool) -> tuple[Any, list[Any]]:
    """Return the result, and the gradients of a weighted sum of it."""
    found = function(*operands)
    if gradient:
        (found * torch.linspace(0.5, 1.5, max(found.numel(), 1)).reshape(found.shape)).sum().backward()
    return found.detach(), [operand.grad for operand in operands]


@pytest.mark.parametrize("batch", [(), (2,)], ids=["one", "batch"])
@pytest.mark.parametrize("parties", [0, 2], ids=["unshared", "two"])
def test_a_layer_gives_the_same_as_torch_with_and_without_a_batch(
    torch_hook: Any, batch: tuple[int, ...], parties: int
) -> None:
    setting = Setting(torch_hook, parties)
    for name, (function, shapes) in LAYERS.items():
        torch.manual_seed(0)
        plain = [
            torch.randn((*batch, *shape) if place == 0 or (place == 1 and name in BATCHED_TOO) else shape)
            for place, shape in enumerate(shapes)
        ]
        ours = [setting.put(value).requires_grad_() for value in plain]
        plain = [setting.encode(value).float_precision().requires_grad_() for value in plain]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Torch warns of some shapes.
            try:
                expected, gradients = run(function, plain, name not in NO_GRADIENT)
            except (RuntimeError, ValueError, NotImplementedError):
                with pytest.raises((RuntimeError, ValueError, NotImplementedError, OperationNotAllowedError)):
                    function(*ours)
                continue
            found, own = run(function, ours, name not in NO_GRADIENT)
        try:
            assert_close(setting.read(found), expected, 3e-3)
            for one, other in zip(own, gradients, strict=True):
                assert (one is None) == (other is None)
                if one is not None:
                    assert_close(setting.read(one), other, 1e-2)
        except AssertionError as error:
            raise AssertionError(name) from error


MODULES: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "RNN": (lambda: nn.RNN(3, 4), (5, 3)),
    "LSTM": (lambda: nn.LSTM(3, 4, 2, batch_first=True), (5, 3)),
    "GRU": (lambda: nn.GRU(3, 4, bidirectional=True), (5, 3)),
    "RNNCell": (lambda: nn.RNNCell(3, 4), (3,)),
    "LSTMCell": (lambda: nn.LSTMCell(3, 4), (3,)),
    "GRUCell": (lambda: nn.GRUCell(3, 4), (3,)),
    "TransformerEncoderLayer": (lambda: nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True), (3, 4)),
    "Embedding": (lambda: nn.Embedding(5, 3), ()),
}


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("parties", [0, 2], ids=["unshared", "two"])
def test_a_module_gives_the_same_as_torch_with_and_without_a_batch(torch_hook: Any, name: str, parties: int) -> None:
    setting, (make, shape) = Setting(torch_hook, parties), MODULES[name]
    torch.manual_seed(0)
    model = make()
    inputs = [torch.randn(shape), torch.randn((2, *shape))]
    if name == "Embedding":
        inputs = [torch.tensor(1), torch.tensor([1, 4])]
    expected = [first(model(x)).detach() for x in inputs]
    precision = {"base": 2, "precision_fractional": 16}
    model.fix_precision(**precision)
    if parties:
        model.share(*setting.workers, crypto_provider=setting.carol)

    for x, wanted in zip(inputs, expected, strict=True):
        found = first(model(x if name == "Embedding" else setting.put(x)))
        assert_close(setting.read(found.detach()), wanted, 3e-3)


def first(result: Any) -> Any:
    return result[0] if isinstance(result, tuple) else result


@pytest.mark.parametrize("parties", [0, 2], ids=["unshared", "two"])
@pytest.mark.parametrize("shape", [(6,), (6, 6), (2, 2, 3, 6, 6)], ids=["one", "two", "five"])
def test_images_of_another_rank_are_refused(torch_hook: Any, parties: int, shape: tuple[int, ...]) -> None:
    setting = Setting(torch_hook, parties)
    x = setting.put(np.ones(shape))

    for pool in (F.avg_pool2d, F.max_pool2d, lambda x, size: F.lp_pool2d(x, 2, size)):
        with pytest.raises(
            (ValueError, RuntimeError), match=r"images are \(channels, height, width\)|Expected 3D or 4D"
        ):
            pool(x, 2)
    with pytest.raises((ValueError, RuntimeError)):
        F.conv2d(x, torch.ones(1, 3, 2, 2))


@pytest.mark.parametrize("parties", [0, 2], ids=["unshared", "two"])
def test_the_places_of_the_largest_numbers_are_secret(torch_hook: Any, parties: int) -> None:
    x = Setting(torch_hook, parties).put(np.ones((1, 3, 4, 4)))

    values, indices = F.max_pool2d(x, 2, return_indices=True)

    assert tuple(indices.shape) == (1, 3, 2, 2)
    with pytest.raises(OperationNotAllowedError, match="the largest numbers are secret"):
        indices + 1
    with pytest.raises(OperationNotAllowedError, match="use `max_pool2d`"):
        F.max_unpool2d(values, indices, 2)


@pytest.mark.parametrize("parties", [0, 2], ids=["unshared", "two"])
@pytest.mark.parametrize("index", [-1, 4])
def test_rows_that_do_not_exist_are_not_looked_up(torch_hook: Any, parties: int, index: int) -> None:
    rows = Setting(torch_hook, parties).put(np.ones((4, 2)))

    with pytest.raises(IndexError):
        F.embedding(torch.tensor([0, index]), rows)
