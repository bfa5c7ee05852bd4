"""Models and losses as papers have them, which do more than compute a result from a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import distributions, nn, optim  # noqa: E402  # torch may be missing
from torch.nn.functional import cross_entropy, mse_loss  # noqa: E402  # the same
from torch.nn.utils import parametrizations  # noqa: E402  # the same
from torch.utils.checkpoint import checkpoint  # noqa: E402  # the same


class Custom(nn.Module):
    """A model with two layers and a function of them."""

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = nn.Linear(4, 8), nn.Linear(8, 3)
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(self, x)


class Sign(torch.autograd.Function):
    """The sign, with the gradient of the identity near zero."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x.sign()

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        (x,) = ctx.saved_tensors
        return gradient * (x.abs() < 1)


class Reverse(torch.autograd.Function):
    """The identity with a negative gradient, which saves a number only."""

    @staticmethod
    def forward(ctx: Any, x: Any, factor: float) -> Any:
        ctx.factor = factor
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return -ctx.factor * gradient, None


class Clipped(torch.autograd.Function):
    """The identity with a backward that is not linear."""

    @staticmethod
    def forward(x: Any) -> Any:
        return x.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.shape = inputs[0].shape

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient.clamp(-0.01, 0.01).reshape(ctx.shape)


def penalize(model: Any, x: Any) -> Any:
    x = x.clone().requires_grad_()
    output = model.last(torch.tanh(model.first(x)))
    (gradient,) = torch.autograd.grad(output.sum(), x, create_graph=True)
    return output + (gradient.norm(dim=1, keepdim=True) - 1) ** 2


def solve(model: Any, x: Any) -> Any:
    x = x.detach()
    x.requires_grad = True
    u = model.last(torch.tanh(model.first(x)))
    (first,) = torch.autograd.grad(u, x, torch.ones_like(u), create_graph=True)
    (second,) = torch.autograd.grad(first, x, torch.ones_like(first), create_graph=True)
    return u + second.sum(1, keepdim=True)


def adapt(model: Any, x: Any) -> Any:
    weight = model.first.weight
    (gradient,) = torch.autograd.grad((x @ weight.t()).square().mean(), weight, create_graph=True)
    return model.last(torch.tanh(x @ (weight - 0.1 * gradient).t()))


def attack(model: Any, x: Any) -> Any:
    moved = torch.zeros_like(x, requires_grad=True)
    (gradient,) = torch.autograd.grad(model.last(model.first(x + moved)).square().sum(), moved)
    return model.last(model.first(x + 0.1 * gradient.sign()))


def fill(model: Any, x: Any) -> Any:
    made = torch.empty(x.shape[0], 8).copy_(model.first(x))
    return model.last(made * x.new_empty((x.shape[0], 1)).fill_(0.5) + torch.empty_like(made).zero_())


def run_checkpoint(model: Any, x: Any) -> Any:
    return model.last(checkpoint(lambda z: torch.tanh(model.first(z)), x, use_reentrant=False))


class Momentum(nn.Module):
    """A model with a slowly changing copy of a layer, as of a teacher, and a queue of what it computed."""

    def __init__(self, update: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer, self.slow, self.update = nn.Linear(4, 3), nn.Linear(4, 3).requires_grad_(False), update
        self.register_buffer("queue", torch.zeros(2, 3))

    def forward(self, x: Any) -> Any:
        for slow, parameter in zip(self.slow.parameters(), self.layer.parameters(), strict=True):
            self.update(slow, parameter)
        answer = self.slow(x).detach()
        self.queue[1].copy_(answer.mean(0))
        return self.layer(x) + answer + self.queue.detach().clone().sum(0)


def update_without_graph(slow: Any, parameter: Any) -> None:
    with torch.no_grad():
        slow.lerp_(parameter, 0.1)


def with_layer(layer: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(4, 8), layer(), nn.Linear(8, 3))

    return make


def with_hook() -> nn.Module:
    model = with_layer(nn.ReLU)()
    model[1].register_full_backward_hook(lambda _layer, gradients, _arrived: (gradients[0] * 0.5,))
    return model


def track_instances() -> nn.Module:
    norm = nn.InstanceNorm2d(2, affine=True, track_running_stats=True)
    return with_layer(lambda: nn.Sequential(nn.Unflatten(1, (2, 2, 2)), nn.Conv2d(2, 2, 1), norm, nn.Flatten()))()


def normal(output: Any, target: Any) -> Any:
    scale = output.exp() + 1
    known = distributions.Normal(output, scale)
    return (
        -known.log_prob(target[:, None].float()).mean()
        + distributions.kl_divergence(known, distributions.Normal(0.0, 1.0)).mean()
    )


def categorical(output: Any, target: Any) -> Any:
    known = distributions.Categorical(logits=output)
    return -known.log_prob(target).mean() - 0.1 * known.entropy().mean()


def penalize_loss(output: Any, target: Any) -> Any:
    loss = cross_entropy(output, target)
    return loss + torch.autograd.grad(loss, output, create_graph=True)[0].square().sum()


def whiten(output: Any, target: Any) -> Any:
    return cross_entropy(output @ torch.linalg.inv(output.t() @ output), target)


def pinball(output: Any, target: Any) -> Any:
    quantiles = torch.tensor([0.1, 0.5, 0.9])
    error = target[:, None] - output
    return torch.max(quantiles * error, (quantiles - 1) * error).mean()


def align(output: Any, target: Any) -> Any:
    scores = torch.stack([output, output.flip(1), output * 2]).log_softmax(2)
    ones = torch.ones_like(target)
    return nn.CTCLoss()(scores, target.clamp(min=1)[:, None], 2 + ones, ones)


def align_by_lengths(output: Any, target: Any) -> Any:
    scores, count = torch.stack([output, output * 2]).log_softmax(2), len(target)
    return nn.functional.ctc_loss(scores, target.clamp(min=1), (2,) * count, (1,) * count, zero_infinity=True)


def select(output: Any, target: Any) -> Any:
    mask = target > 0
    return torch.where(mask, cross_entropy(output, target, reduction="none"), 0).sum() / mask.sum()


def sgd(parameters: Any) -> Any:
    return optim.SGD(parameters, lr=0.1)


Practice = tuple[Callable[[], nn.Module], Callable[[Any, Any], Any], Callable[[Any], Any]]


def of(function: Callable[[Any, Any], Any]) -> Practice:
    return lambda: Custom(function), cross_entropy, sgd


PRACTICE: dict[str, Practice] = {
    "gradient penalty": of(penalize),
    "physics": of(solve),
    "inner step": of(adapt),
    "attack": of(attack),
    "uninitialized": of(fill),
    "checkpoint": of(run_checkpoint),
    "momentum": (lambda: Momentum(update_without_graph), cross_entropy, sgd),
    "momentum below autograd": (
        lambda: Momentum(lambda slow, parameter: slow.data.mul_(0.9).add_(parameter.data, alpha=0.1)),
        cross_entropy,
        sgd,
    ),
    "function with saved tensors": of(lambda model, x: model.last(Sign.apply(model.first(x)))),
    "function with a number": of(lambda model, x: model.last(Reverse.apply(model.first(x), 0.5))),
    "function with a context": of(lambda model, x: model.last(Clipped.apply(model.first(x)))),
    "two functions": of(lambda model, x: model.last(Reverse.apply(Sign.apply(model.first(x)), 2.0))),
    "backward hook": (with_hook, cross_entropy, sgd),
    "instance norm with statistics": (track_instances, cross_entropy, sgd),
    "spectral norm": (with_layer(lambda: parametrizations.spectral_norm(nn.Linear(8, 8))), cross_entropy, sgd),
    "gradient of the loss": (with_layer(nn.Tanh), penalize_loss, sgd),
    "normal distribution": (with_layer(nn.Tanh), normal, sgd),
    "categorical distribution": (with_layer(nn.Tanh), categorical, sgd),
    "inverse of a matrix that is singular for zeros": (with_layer(nn.Tanh), whiten, sgd),
    "quantiles": (with_layer(nn.Tanh), pinball, sgd),
    "CTC": (with_layer(nn.Tanh), align, sgd),
    "CTC of lengths": (with_layer(nn.Tanh), align_by_lengths, sgd),
    "a loss of the samples that a mask selects": (with_layer(nn.Tanh), select, sgd),
    "mean squares": (with_layer(nn.Tanh), lambda o, t: mse_loss(o, nn.functional.one_hot(t, 3).float()), sgd),
    "parts of the parameters": (
        with_layer(nn.Tanh),
        cross_entropy,
        lambda p: optim.SGD([{"params": list(p)[:2], "lr": 0.3}, {"params": list(p)[2:]}], lr=0.1),
    ),
}
for name, options in {
    "LBFGS": {"max_iter": 4},
    "line search": {"line_search_fn": "strong_wolfe", "max_iter": 3},
}.items():
    PRACTICE[name] = with_layer(nn.Tanh), cross_entropy, lambda p, options=options: optim.LBFGS(p, lr=0.5, **options)
PRACTICE["LBFGS of a model that changes its batch"] = (
    lambda: Custom(lambda model, x: model.last(torch.tanh(model.first(x.mul_(2))))),
    cross_entropy,
    lambda p: optim.LBFGS(p, lr=0.1, max_iter=3),
)
if hasattr(optim, "Adafactor"):
    PRACTICE["Adafactor"] = with_layer(nn.Tanh), cross_entropy, lambda p: optim.Adafactor(p, lr=0.05)
