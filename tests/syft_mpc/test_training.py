"""Training on shares: torch's own autograd and optimizers compute what they compute on plain tensors."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from syft_core.exceptions import OperationNotAllowedError
from syft_mpc.fixed_precision import FixedPrecisionTensor

from .settings import Setting, assert_close

torch = pytest.importorskip("torch")
functions = torch.nn.functional

PRECISION = {"base": 2, "precision_fractional": 16}
CLASSES = torch.tensor([1, 2, 0])
RULES: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "add_broadcast": (lambda x, y: ((x + y) ** 2).sum(), [(4, 3), (3,)]),
    "sub_broadcast": (lambda x, y: ((x - y) ** 2).sum(), [(4, 1), (4, 3)]),
    "mul_broadcast": (lambda x, y: (x * y).sum(), [(4, 3), (3,)]),
    "mul_number": (lambda x, y: (x * y * 0.3).sum(), [(4, 3), ()]),
    "div": (lambda x, y: (x / (y * y + 1)).sum(), [(4, 3), (4, 3)]),
    "div_broadcast": (lambda x, y: (x / (y * y + 1)).sum(), [(4, 3), (3,)]),
    "div_number": (lambda x: (x / 4 + 1 / (x * x + 1)).sum(), [(4, 3)]),
    "neg": (lambda x: (-x * x).sum(), [(4, 3)]),
    "power": (lambda x: (x**3).sum(), [(4, 3)]),
    "square": (lambda x: x.square().mean(), [(4, 3)]),
    "abs": (lambda x: x.abs().sum(), [(4, 3)]),
    "clamp": (lambda x: (x.clamp(-0.5, 0.5) * x).sum(), [(4, 3)]),
    "maximum": (lambda x, y: torch.maximum(x, y).square().sum(), [(4, 3), (4, 3)]),
    "where": (lambda x, y: torch.where(x.detach() > 0, x * y, y).sum(), [(4, 3), (4, 3)]),
    "matmul": (lambda x, y: (x @ y).square().sum(), [(4, 3), (3, 2)]),
    "matmul_batches": (lambda x, y: (x @ y).square().sum(), [(2, 4, 3), (2, 3, 2)]),
    "matmul_broadcast": (lambda x, y: (x @ y).square().sum(), [(2, 4, 3), (3, 2)]),
    "matrix_vector": (lambda x, y: (x @ y).square().sum(), [(4, 3), (3,)]),
    "linear": (lambda x, w, b: functions.linear(x, w, b).square().sum(), [(4, 3), (2, 3), (2,)]),
    "sum_axis": (lambda x: x.sum(0).square().sum(), [(4, 3)]),
    "sum_keepdim": (lambda x: (x * x.sum(1, keepdim=True)).sum(), [(4, 3)]),
    "mean_axis": (lambda x: x.mean(1).square().sum(), [(4, 3)]),
    "var": (lambda x: x.var(), [(4, 3)]),
    "max": (lambda x: x.max(), [(4, 3)]),
    "amax": (lambda x: x.amax(1).square().sum(), [(4, 3)]),
    "reshape": (lambda x: x.reshape(2, 6).t().square().sum(), [(4, 3)]),
    "view_permute": (lambda x: (x.view(2, 2, 3).permute(2, 0, 1) ** 2)[1:].sum(), [(4, 3)]),
    "expand": (lambda x: x.unsqueeze(0).expand(5, 4, 3).square().sum(), [(4, 3)]),
    "slice": (lambda x: x[1:3, ::2].square().sum() + x[0].sum(), [(4, 3)]),
    "index": (lambda x: x[[0, 2, 0]].square().sum(), [(4, 3)]),
    "gather": (lambda x: x.gather(1, torch.tensor([[0], [2], [1], [1]])).square().sum(), [(4, 3)]),
    "cat": (lambda x, y: torch.cat([x, y, x], 1).square().sum(), [(4, 3), (4, 2)]),
    "stack": (lambda x, y: (torch.stack([x, y]) ** 2)[0].sum(), [(4, 3), (4, 3)]),
    "split": (lambda x: (x.split([1, 2], 1)[1] ** 2).sum(), [(4, 3)]),
    "pad": (lambda x: functions.pad(x, (1, 1)).square().sum(), [(4, 3)]),
    "cumsum": (lambda x: x.cumsum(0).square().sum(), [(4, 3)]),
    "exp": (lambda x: x.exp().sum(), [(4, 3)]),
    "log": (lambda x: (x * x + 1).log().sum(), [(4, 3)]),
    "sqrt": (lambda x: (x * x + 1).sqrt().sum(), [(4, 3)]),
    "reciprocal": (lambda x: (x * x + 1).reciprocal().sum(), [(4, 3)]),
    "relu": (lambda x: (functions.relu(x) * x).sum(), [(4, 3)]),
    "leaky_relu": (lambda x: functions.leaky_relu(x).square().sum(), [(4, 3)]),
    "sigmoid": (lambda x: x.sigmoid().square().sum(), [(4, 3)]),
    "tanh": (lambda x: x.tanh().square().sum(), [(4, 3)]),
    "gelu": (lambda x: functions.gelu(x).sum(), [(4, 3)]),
    "silu": (lambda x: functions.silu(x).sum(), [(4, 3)]),
    "softplus": (lambda x: functions.softplus(x).sum(), [(4, 3)]),
    "softmax": (lambda x: functions.softmax(x, 1).square().sum(), [(4, 3)]),
    "log_softmax": (lambda x: functions.log_softmax(x, 1).square().sum(), [(4, 3)]),
    "conv2d": (
        lambda x, w, b: functions.conv2d(x, w, b, padding=1).square().mean(),
        [(2, 3, 5, 5), (4, 3, 3, 3), (4,)],
    ),
    "conv2d_options": (
        lambda x, w: functions.conv2d(x, w, stride=2, padding=1, dilation=2).square().mean(),
        [(2, 2, 7, 7), (3, 2, 2, 2)],
    ),
    "conv2d_groups": (lambda x, w: functions.conv2d(x, w, groups=2).square().mean(), [(2, 4, 5, 5), (4, 2, 3, 3)]),
    "conv1d": (lambda x, w, b: functions.conv1d(x, w, b).square().mean(), [(2, 3, 6), (4, 3, 3), (4,)]),
    "max_pool2d": (lambda x: functions.max_pool2d(x, 2).square().sum(), [(2, 2, 4, 4)]),
    "max_pool2d_options": (lambda x: functions.max_pool2d(x, 3, 2, 1).square().sum(), [(1, 2, 5, 5)]),
    "avg_pool2d": (lambda x: functions.avg_pool2d(x, 2).square().sum(), [(2, 2, 4, 4)]),
    "avg_pool2d_options": (lambda x: functions.avg_pool2d(x, 3, 2, 1).square().sum(), [(1, 2, 5, 5)]),
    "layer_norm": (lambda x, w, b: functions.layer_norm(x, (3,), w, b).exp().sum(), [(4, 3), (3,), (3,)]),
    "batch_norm": (
        lambda x, w, b: functions.batch_norm(x, None, None, w, b, True).exp().sum(),
        [(6, 3), (3,), (3,)],
    ),
    "group_norm": (lambda x, w, b: functions.group_norm(x, 2, w, b).exp().sum(), [(3, 4, 2), (4,), (4,)]),
    "embedding": (lambda w: functions.embedding(torch.tensor([1, 3, 1]), w).square().sum(), [(4, 3)]),
    "embedding_padding": (lambda w: functions.embedding(torch.tensor([1, 3]), w, 1).square().sum(), [(4, 3)]),
    "cross_entropy": (lambda x: functions.cross_entropy(x, CLASSES), [(3, 4)]),
    "cross_entropy_sum": (lambda x: functions.cross_entropy(x, CLASSES, reduction="sum"), [(3, 4)]),
    "cross_entropy_each": (lambda x: functions.cross_entropy(x, CLASSES, reduction="none").square().sum(), [(3, 4)]),
    "cross_entropy_weights": (
        lambda x: functions.cross_entropy(x, CLASSES, torch.tensor([0.5, 1.0, 2.0, 1.0])),
        [(3, 4)],
    ),
    "cross_entropy_ignore": (lambda x: functions.cross_entropy(x, CLASSES, ignore_index=2), [(3, 4)]),
    "cross_entropy_smooth": (lambda x: functions.cross_entropy(x, CLASSES, label_smoothing=0.1), [(3, 4)]),
    "cross_entropy_pixels": (
        lambda x: functions.cross_entropy(x, torch.tensor([[[0, 1], [2, 2]], [[1, 1], [0, 2]]])),
        [(2, 3, 2, 2)],
    ),
    "cross_entropy_one_row": (lambda x: functions.cross_entropy(x, torch.tensor(2)), [(4,)]),
    "cross_entropy_secret": (lambda x, y: functions.cross_entropy(x, y.softmax(1)), [(3, 4), (3, 4)]),
    "mse": (lambda x, y: functions.mse_loss(x, y), [(4, 3), (4, 3)]),
    "binary_cross_entropy": (
        lambda x: functions.binary_cross_entropy_with_logits(x, torch.tensor([[1.0, 0.0, 1.0]] * 4)),
        [(4, 3)],
    ),
    "smooth_l1": (lambda x, y: functions.smooth_l1_loss(x, y), [(4, 3), (4, 3)]),
}


def share(setting: Setting, tensor: Any) -> Any:
    encoded = tensor.detach().fix_precision(**PRECISION)
    return setting.share(encoded) if setting.workers else encoded


@pytest.mark.parametrize("parties", [0, 2, 3], ids=["unshared", "two", "three"])
@pytest.mark.parametrize("name", RULES)
def test_a_gradient_is_that_of_torch(torch_hook: Any, name: str, parties: int) -> None:
    setting = Setting(torch_hook, parties)
    compute, shapes = RULES[name]
    torch.manual_seed(3)
    plain = [torch.randn(shape).requires_grad_() for shape in shapes]
    private = [share(setting, tensor).requires_grad_() for tensor in plain]
    expected, loss = compute(*plain), compute(*private)
    expected.backward()
    loss.backward()

    assert_close(setting.read(loss.detach()), expected.detach(), 5e-3)
    for one, other in zip(private, plain, strict=True):
        assert isinstance(one.grad.child, FixedPrecisionTensor)
        assert_close(setting.read(one.grad), other.grad, 1e-2)


def test_gradients_accumulate_and_are_cleared(torch_hook: Any) -> None:
    setting = Setting(torch_hook)
    x = share(setting, torch.tensor([1.0, 2.0])).requires_grad_()
    for times in (1, 2):
        (x * x).sum().backward()
        assert_close(setting.read(x.grad), np.array([2.0, 4.0]) * times)
    torch.optim.SGD([x], lr=0.1).zero_grad(set_to_none=False)
    assert_close(setting.read(x.grad), np.zeros(2))


def test_a_value_that_was_changed_after_its_use_is_not_used_for_a_gradient(torch_hook: Any) -> None:
    setting = Setting(torch_hook)
    x = share(setting, torch.tensor([1.0, -2.0])).requires_grad_()
    y = torch.relu(x)
    z = y * y
    with torch.no_grad():
        y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1),
    "SGD_momentum": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9),
    "SGD_nesterov": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.1),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.1),
    "Adam_decay": lambda p: torch.optim.Adam(p, lr=0.1, weight_decay=0.1),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.1),
    "Adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=0.01),
}


@pytest.mark.filterwarnings("ignore::syft_mpc.checking.PrecisionWarning")
@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("parties", [2, 3], ids=["two", "three"])
def test_a_stock_optimizer_steps_as_on_plain_tensors(torch_hook: Any, name: str, parties: int) -> None:
    setting = Setting(torch_hook, parties)
    start, goal = torch.tensor([1.0, -2.0, 0.5]), torch.tensor([0.3, 1.0, -2.0])
    plain, private = start.clone().requires_grad_(), share(setting, start).requires_grad_()
    ours, theirs = OPTIMIZERS[name]([private]), OPTIMIZERS[name]([plain])
    assert ours.fix_precision() is ours
    for _ in range(4):
        for parameter, optimizer in ((private, ours), (plain, theirs)):
            optimizer.zero_grad()
            ((parameter - goal) ** 2).sum().backward()
            optimizer.step()
    assert_close(setting.read(private.detach()), plain.detach(), 2e-2)


@pytest.mark.filterwarnings("ignore::syft_mpc.checking.PrecisionWarning")
def test_adam_follows_small_gradients_if_the_loss_is_scaled(torch_hook: Any) -> None:
    setting = Setting(torch_hook)
    start, goal = torch.tensor([1.0, -2.0, 0.5]), torch.tensor([0.9, -1.95, 0.48])
    plain, private = start.clone().requires_grad_(), share(setting, start).requires_grad_()
    for parameter in (private, plain):
        optimizer = torch.optim.Adam([parameter], lr=0.01)
        for _ in range(3):
            optimizer.zero_grad()
            (((parameter - goal) ** 2).mean() * 256).backward()
            optimizer.step()
    assert_close(setting.read(private.detach()), plain.detach(), 1e-3)


def make_model() -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))


def test_a_model_is_encoded_shared_fetched_and_decoded_in_place(torch_hook: Any) -> None:
    setting = Setting(torch_hook)
    model = make_model()
    before = [parameter.detach().clone() for parameter in model.parameters()]
    parameters = list(model.parameters())
    assert model.fix_precision(**PRECISION) is model
    model.share(*setting.workers, crypto_provider=setting.carol)
    assert all(one is other for one, other in zip(model.parameters(), parameters, strict=True))
    model(share(setting, torch.randn(2, 64))).sum().backward()
    model.get().float_precision()
    for parameter, value in zip(model.parameters(), before, strict=True):
        assert isinstance(parameter, torch.nn.Parameter)
        assert_close(parameter.detach().numpy(), value, 1e-4)


def test_a_copy_of_a_shared_model_is_independent(torch_hook: Any) -> None:
    setting = Setting(torch_hook)
    model = torch.nn.Linear(2, 1).encrypt(workers=setting.workers, crypto_provider=setting.carol)
    other = copy.deepcopy(model)
    with torch.no_grad():
        other.weight.add_(1)
    difference = setting.read(other.weight.detach()) - setting.read(model.weight.detach())
    np.testing.assert_allclose(difference, 1, atol=2e-3)


def load_digits() -> tuple[Any, Any, Any, Any]:
    datasets = pytest.importorskip("sklearn.datasets", reason="the digits are those of scikit-learn")
    digits = datasets.load_digits()
    images = torch.tensor(digits.data / 16, dtype=torch.float32)
    classes = torch.tensor(digits.target)
    return images[:1200], classes[:1200], images[1200:], classes[1200:]


def make_blobs() -> tuple[Any, Any, Any, Any]:
    torch.manual_seed(0)
    centres = torch.randn(10, 64)
    classes = torch.randint(0, 10, (900,))
    images = centres[classes] + torch.randn(900, 64) * 0.7
    return images[:600], classes[:600], images[600:], classes[600:]


def train(model: Any, images: Any, classes: Any, epochs: int, loss: Callable[[Any, Any], Any], wrap: Any) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    x = wrap(images)
    for _ in range(epochs):
        for start in range(0, len(images), 100):
            optimizer.zero_grad()
            loss(model(x[start : start + 100]), classes[start : start + 100]).backward()
            optimizer.step()


def accuracy(model: Any, images: Any, classes: Any) -> float:
    with torch.no_grad():
        return float((model(images).argmax(1) == classes).float().mean())


@pytest.mark.parametrize("kind", ["logistic_regression", "mlp"])
@pytest.mark.parametrize("data", [load_digits, make_blobs], ids=["digits", "blobs"])
def test_encrypted_training_reaches_the_accuracy_of_plain_training(
    torch_hook: Any, kind: str, data: Callable[[], tuple[Any, Any, Any, Any]]
) -> None:
    setting = Setting(torch_hook)
    images, classes, held_images, held_classes = data()
    torch.manual_seed(0)
    plain = make_model() if kind == "mlp" else torch.nn.Linear(64, 10)
    private = copy.deepcopy(plain).fix_precision(**PRECISION)
    private.share(*setting.workers, crypto_provider=setting.carol)
    train(plain, images, classes, 3, functions.cross_entropy, lambda x: x)
    train(private, images, classes, 3, functions.cross_entropy, lambda x: share(setting, x))
    private.get().float_precision()

    expected = accuracy(plain, held_images, held_classes)
    assert expected > 0.8
    assert accuracy(private, held_images, held_classes) > expected - 0.02


def test_private_inference_of_a_network_with_convolutions(torch_hook: Any) -> None:
    setting = Setting(torch_hook)
    torch.manual_seed(0)
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 5), nn.Softmax(1)
    ).eval()
    images = torch.randn(3, 1, 8, 8)
    expected = model(images).detach()
    model.fix_precision(**PRECISION).share(*setting.workers, crypto_provider=setting.carol)
    with torch.no_grad():
        assert_close(setting.read(model(share(setting, images))), expected, 5e-3)
    with torch.inference_mode():
        assert_close(setting.read(model(share(setting, images))), expected, 5e-3)


def test_a_shared_class_is_refused_where_it_must_be_public(torch_hook: Any) -> None:
    setting = Setting(torch_hook)
    x = share(setting, torch.randn(3, 4))
    with pytest.raises(IndexError, match="a class is not one of 4"):
        functions.cross_entropy(x, torch.tensor([0, 4, 1]))
    with pytest.raises(OperationNotAllowedError, match="shared classes or weights"):
        functions.cross_entropy(x, CLASSES, share(setting, torch.ones(4)))


def test_a_foreach_optimizer_is_refused(torch_hook: Any) -> None:
    setting = Setting(torch_hook)
    x = share(setting, torch.ones(2)).requires_grad_()
    x.sum().backward()
    with pytest.raises(OperationNotAllowedError, match="foreach=False"):
        torch.optim.SGD([x], lr=0.1, foreach=True).step()
    assert_close(setting.read(x.detach()), np.ones(2))
