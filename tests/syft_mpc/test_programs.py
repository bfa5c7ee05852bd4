"""Small programs as users write them: on shared numbers they compute what they compute on plain ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from syft_core.exceptions import SyftError  # noqa: E402

from .settings import Setting, assert_close, attach  # noqa: E402

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
    "sorted along an axis": lambda x, _y, _p: x.sort(1)[0] * torch.arange(6.0),
    "sorted, the largest first": lambda x, _y, _p: x.sort(0, descending=True)[0] * torch.arange(4.0)[:, None],
    "the two largest": lambda x, _y, _p: x.topk(2)[0],
    "medians": lambda x, _y, _p: torch.cat([x.median(1)[0], x.median().view(1)]),
    "quantiles": lambda x, _y, _p: x.quantile(torch.tensor([0.1, 0.75]), dim=1),
    "transposed convolution": lambda x, y, _p: F.conv_transpose2d(
        x.reshape(1, 4, 2, 3), y.reshape(4, 1, 2, 3), stride=(2, 1), padding=(1, 0), output_padding=(1, 0), groups=2
    ),
    "transposed convolution of lines": lambda x, y, _p: F.conv_transpose1d(x, y.reshape(4, 3, 2), stride=2),
    "sum of sizes": lambda x, _y, _p: x.norm(1, dim=1),
    "largest size": lambda x, _y, _p: x.norm(float("inf")),
    "powers of multiples of 1/2": lambda _x, _y, p: p**1.5 + p**-0.5 + p**-1,
    "powers of a number": lambda x, _y, _p: 2**x,
    "masked": lambda x, y, _p: x.masked_fill(torch.eye(4, 6) == 1, -1e9).softmax(1) + x.masked_fill(y > 0, 0.5),
    "distances": lambda x, y, _p: torch.cdist(x, y),
    "sums of distances": lambda x, y, _p: torch.cdist(x, y, p=1),
    "average that does not count padding": lambda x, _y, _p: F.avg_pool2d(
        x.reshape(1, 1, 4, 6) * 1, 3, 2, 1, count_include_pad=False
    ),
    "soft margin": lambda x, _y, _p: F.soft_margin_loss(x, Y.sign()),
    "divergence from shared numbers": lambda x, y, _p: F.kl_div(x.log_softmax(1), y.softmax(1), reduction="sum"),
    "hyperbolic": lambda x, y, _p: torch.cosh(x) + torch.sinh(y) + torch.logaddexp(x, y),
    "shrink": lambda x, y, _p: F.hardshrink(x) + F.softshrink(y),
    "the sum of products": lambda x, y, _p: torch.addbmm(x[:2, :2], y[None, :2], x[None].mT[:, :, :2], alpha=2),
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
    "shuffled channels": lambda x, _y, _p: F.channel_shuffle(x.reshape(1, 6, 2, 2), 3),
    "the largest by adaptive pooling": lambda x, _y, _p: F.adaptive_max_pool2d(x.reshape(1, 1, 4, 6), 1),
    "the largest of windows of different lengths": lambda x, _y, _p: [
        F.adaptive_max_pool2d(x.reshape(1, 1, 4, 6), (3, 4)),
        F.adaptive_max_pool1d(x, 5),
    ],
    "sort": lambda x, _y, _p: [*x.sort(0, descending=True), x.argsort(), *x.kthvalue(2), *x.topk(2, largest=False)],
    "the order of equal numbers": lambda x, _y, _p: (x > 0).sort(dim=1, descending=True, stable=True)[1],
    "rounding": lambda x, _y, _p: [x.floor(), x.ceil(), x.trunc(), x.frac(), x.round()],
    "rounding of halves": lambda x, _y, _p: (x * 0 + torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5, 3.0])).round(),
    "remainders": lambda x, _y, _p: [x % 2, x % -1.5, x // 2, x // -0.5, torch.fmod(x, 0.7)],
    "rounded quotients": lambda x, _y, _p: [torch.div(x, -0.3, rounding_mode=mode) for mode in ("floor", "trunc")],
    "products": lambda x, _y, _p: [x.prod(), x.prod(1), x.prod(0, keepdim=True)],
    "not": lambda x, _y, _p: ~(x > 0),
    "histogram": lambda x, _y, _p: [torch.histc(x, 5, -2, 2), torch.bucketize(x, torch.linspace(-1, 1, 4))],
    "statistics": lambda x, _y, _p: [*torch.std_mean(x), *torch.aminmax(x), torch.count_nonzero(x > 0)],
    "solutions of equations": lambda x, y, _p: [
        torch.linalg.solve(x[:, :4] + 4 * torch.eye(4), y[:, :2]),
        torch.linalg.solve(x[:, :4] + 4 * torch.eye(4), y[:, 0]),
        torch.linalg.solve(x[:, :4] + 4 * torch.eye(4), y[:2, :4], left=False),
    ],
    "products of vectors": lambda x, y, _p: [torch.vdot(x[0], y[0]), torch.addr(torch.ones(6, 6), x[0], y[0])],
    "random numbers": lambda x, _y, _p: x + 0 * torch.randn_like(x) + 0 * torch.rand_like(x),
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
        return [torch.as_tensor(part).float() for part in value] if isinstance(value, list) else value.float()

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


class Sequences(nn.Module):  # type: ignore[misc]  # the same
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.GRU(6, 3, batch_first=True)

    def forward(self, x: Any) -> Any:
        packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([2, 3]), batch_first=True, enforce_sorted=False)
        return nn.utils.rnn.pad_packed_sequence(self.inner(packed)[0], batch_first=True, total_length=4)[0]


class Text(nn.Module):  # type: ignore[misc]  # the same
    def __init__(self) -> None:
        super().__init__()
        self.sums, self.means = nn.EmbeddingBag(6, 3, mode="sum"), nn.EmbeddingBag(6, 3, mode="mean", padding_idx=2)

    def forward(self, x: Any) -> Any:
        weights = torch.tensor([[0.5, 2.0], [1.0, 0.25]])
        words = self.sums(torch.tensor([[1, 2], [3, 3]]), per_sample_weights=weights)
        return words + self.means(torch.tensor([1, 2, 4, 4]), torch.tensor([0, 1])) + x[:2, :3]


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
    "sequences of different lengths": (Sequences, SEQUENCE),
    "embedding bags": (Text, X),
    "autoencoder": (
        lambda: nn.Sequential(nn.Conv2d(3, 4, 3, stride=2), nn.ReLU(), nn.ConvTranspose2d(4, 3, 3, stride=2)),
        IMAGES,
    ),
    "upsampling": (lambda: nn.Sequential(nn.MaxPool2d(2), nn.Upsample(scale_factor=2)), IMAGES),
    "adaptive pooling": (lambda: nn.Sequential(nn.AdaptiveMaxPool2d(4), nn.AdaptiveAvgPool2d(2)), IMAGES),
    "windows of different lengths": (lambda: nn.AdaptiveMaxPool2d((3, 5)), IMAGES),
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


# --- what is refused

REFUSED: dict[str, Program] = {
    "if": lambda x, _y, _p: bool(x[0, 0] > 0),
    "item": lambda x, _y, _p: x[0, 0].item(),
    "numpy": lambda x, _y, _p: x.numpy(),
    "secret mask": lambda x, _y, _p: x[x > 0],
    "secret rows of an embedding": lambda x, y, _p: F.embedding(x, y),
    "secret rows of a plain embedding": lambda x, _y, _p: F.embedding(x, Y),
    "mode": lambda x, _y, _p: x.mode(),
    "remainder of different divisors": lambda x, _y, _p: x % torch.arange(1.0, 7.0),
    "fractional power": lambda x, _y, _p: x**1.3,
    "cubic norm": lambda x, _y, _p: x.norm(3),
    "a product with infinity": lambda x, _y, _p: x * float("-inf"),
    "the largest rows of an embedding bag": lambda x, _y, _p: F.embedding_bag(CLASSES[None], x, mode="max"),
    "histogram without ends": lambda x, _y, _p: torch.histc(x),
    "determinant": lambda x, _y, _p: torch.det(x[:, :4]),
    "nonzero": lambda x, _y, _p: x.nonzero(),
    "to integers": lambda x, _y, _p: x.long(),
    "convolution in space": lambda x, _y, _p: F.conv3d(x.reshape(1, 1, 2, 2, 6), torch.ones(1, 1, 2, 2, 2)),
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


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.softmax(2),
        lambda x: x.max(2),
        lambda x: x.argmax(-3),
        lambda x: x.amax(2),
        lambda x: x.mean(2),
        lambda x: x.std(2),
        lambda x: x.sort(2),
    ],
)
def test_an_axis_that_does_not_exist_is_refused(torch_hook: Any, function: Any) -> None:
    with pytest.raises(IndexError, match=r"cannot use axis -?\d: the value has 2 dimensions; use an axis from -2 to 1"):
        function(Setting(torch_hook).put(X))


def test_windows_larger_than_an_image_are_refused(torch_hook: Any) -> None:
    x = Setting(torch_hook).put(X).reshape(1, 1, 4, 6)

    for pool in (F.max_pool2d, F.avg_pool2d):
        with pytest.raises(ValueError, match="cannot pool images of shape .*: the windows are larger; use smaller"):
            pool(x, 5)


# --- statistics of integers


def test_shared_integers_are_sorted_divided_and_multiplied_exactly(any_hook: Any) -> None:
    setting, numbers = Setting(any_hook, 3), np.array([7, -3, 12, -3, 0])
    x = setting.share(setting.plain(numbers))
    sort = x.sort()[0] if setting.name == "torch" else setting.xp.sort(x)

    for found, expected in (
        (sort, np.sort(numbers)),
        (setting.xp.argsort(x), np.argsort(numbers, kind="stable")),
        (x // 4, numbers // 4),
        (x % -4, numbers % -4),
        (setting.xp.prod(x - 1), np.prod(numbers - 1)),
        (~(x > 0), [0, 1, 0, 1, 1]),
    ):
        assert np.asarray(found.get()).tolist() == np.asarray(expected).tolist()


def test_binary_digits_of_shared_integers_are_refused(any_hook: Any) -> None:
    setting = Setting(any_hook)
    x, y = (setting.share(setting.plain(np.array([6, 5]))) for _ in range(2))

    for function in (lambda: x & y, lambda: x | y, lambda: x ^ y, lambda: ~x, lambda: x & (y > 0)):
        with pytest.raises(SyftError, match="on shared integers: their binary digits are secret; use it on results"):
            function()
    assert np.asarray(((x > 5) ^ (y > 4)).get()).tolist() == [0, 1]


def test_arrays_of_numpy_are_operands_in_either_order(torch_hook: Any) -> None:
    setting, array = Setting(torch_hook), np.linspace(1, 2, 6, dtype=np.float32)
    x, plain = setting.put(X), X.numpy()

    for found, expected in (
        (x * array, plain * array),
        (array - x, array - plain),
        (x / array, plain / array),
        (array > x, array > plain),
    ):
        assert_close(setting.read(found), expected)


def test_statistics_and_products_are_those_of_numpy() -> None:
    with attach("numpy") as hook:
        setting = Setting(hook)
        plain = X.numpy()
        x = setting.put(plain)

        for found, expected in (
            (np.median(x, axis=1), np.median(plain, axis=1)),
            (np.median(x, axis=0, keepdims=True), np.median(plain, axis=0, keepdims=True)),
            (np.median(x), np.median(plain)),
            (np.average(x, axis=1), np.average(plain, axis=1)),
            (np.outer(x[0], x[1]), np.outer(plain[0], plain[1])),
            (np.round(x), np.round(plain)),
        ):
            assert_close(setting.read(found), expected)
