"""Small functions for federated training by hand; ``FederatedTrainer`` does all of it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping

import torch
from torch import nn

from syft_core.peer import Id
from syft_core.values import Nested
from syft_torch.federated.dataloader import ByWorker
from syft_torch.federated.errors import FederatedError


def extract_batches_per_worker(federated_train_loader: Nested) -> ByWorker[list[tuple[Nested, Nested]]]:
    """Return the batches of a loader by worker: its id, or the worker itself."""
    batches: ByWorker[list[tuple[Nested, Nested]]] = ByWorker({worker: [] for worker in federated_train_loader.workers})
    for item in federated_train_loader:
        found = item if isinstance(item, ByWorker) else {_location_of(item[1]): item}
        for worker, (data, target) in found.items():
            batches[worker].append((data, target))
    return batches


def _location_of(tensor: Nested) -> Id:
    id: Id = tensor.location.id
    return id


def add_model(dst_model: nn.Module, src_model: nn.Module) -> nn.Module:
    """Add the parameters and buffers of a model to those of another, and return that one.

    Its parameters stay the same objects, in memory of their own: tensors that shared the old memory do not change.
    """
    _require_same(dst_model, src_model)
    added = src_model.state_dict()
    return _replace_values(dst_model, lambda name, value: value + added[name].to(value.dtype))


def scale_model(model: nn.Module, scale: float) -> nn.Module:
    """Multiply the parameters and buffers of a model by a number, and return the model; integers are rounded.

    Its parameters stay the same objects, in memory of their own: tensors that shared the old memory do not change.
    """

    def multiply(_name: str, value: torch.Tensor) -> torch.Tensor:
        if value.is_floating_point() or value.is_complex():
            return value * scale
        return (value.double() * scale).round().to(value.dtype)

    return _replace_values(model, multiply)


def _replace_values(model: nn.Module, compute: Callable[[str, torch.Tensor], torch.Tensor]) -> nn.Module:
    """Replace the values of a model's state by a function of their names and the old ones; tied tensors stay tied."""
    tensors = dict(model.state_dict(keep_vars=True))
    with torch.no_grad():
        replaced = {id(tensor): (tensor, compute(name, tensor.detach())) for name, tensor in tensors.items()}
        for tensor, value in replaced.values():
            tensor.data = value
    return model


def federated_avg(models: Mapping[Nested, nn.Module], weights: Mapping[Nested, float] | None = None) -> nn.Module:
    """Return a new model with the mean of the parameters and buffers of models.

    ``weights``, for instance the numbers of samples, has a weight for each key of ``models``; without it, all count
    the same.
    """
    if not isinstance(models, Mapping):
        raise FederatedError.no_dict(type(models).__name__)
    if not models:
        raise FederatedError.no_models()
    given = dict.fromkeys(models, 1.0) if weights is None else {key: float(weights[key]) for key in models}
    total = sum(given.values())
    if not total > 0 or min(given.values()) < 0:
        raise FederatedError.weights()
    first = next(iter(models.values()))
    for model in models.values():
        _require_same(first, model)
    average = copy.deepcopy(first)
    states = {key: model.state_dict() for key, model in models.items()}
    for name, value in average.state_dict().items():
        exact = torch.complex128 if value.is_complex() else torch.float64
        mean = sum([states[key][name].to(exact) * (given[key] / total) for key in models], torch.zeros((), dtype=exact))
        with torch.no_grad():
            value.copy_(mean if value.is_floating_point() or value.is_complex() else mean.round())
    return average


def accuracy(pred_softmax: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Return the fraction of samples whose largest score is that of the target, here or on a worker.

    A target is the number of a class, for each sample or in a column, or has one score for each class, e.g. 0 and 1.
    """
    scores, found = tuple(pred_softmax.shape), tuple(target.shape)
    if len(scores) < 2 or scores[1] < 2:
        raise FederatedError.scores(scores)
    if found == scores:
        target = target.argmax(dim=1)
    elif found == (scores[0], 1, *scores[2:]):
        target = target.squeeze(1)
    elif found != (scores[0], *scores[2:]):
        raise FederatedError.targets(found, scores)
    return (pred_softmax.argmax(dim=1) == target).float().mean()


def create_gaussian_mixture_toy_data(nr_samples: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return points of two overlapping normal distributions in two dimensions, and the number of the distribution."""
    target = torch.arange(nr_samples) % 2
    means, deviations = torch.tensor([[2.0, 0.0], [-2.0, 0.0]]), torch.tensor([[1.0, 2.0], [2.0, 1.0]])
    return means[target] + deviations[target] * torch.randn(nr_samples, 2), target


def iris_data_partial() -> tuple[torch.Tensor, torch.Tensor]:
    """Return 30 rows of Fisher's iris data, ten of each kind: four lengths in centimetres, and the kind."""
    return torch.tensor(_IRIS).view(30, 4) / 10, torch.arange(3).repeat_interleave(10)


_IRIS = [
    51, 35, 14, 2, 49, 30, 14, 2, 47, 32, 13, 2, 46, 31, 15, 2, 50, 36, 14, 2,
    54, 39, 17, 4, 46, 34, 14, 3, 50, 34, 15, 2, 44, 29, 14, 2, 49, 31, 15, 1,
    70, 32, 47, 14, 64, 32, 45, 15, 69, 31, 49, 15, 55, 23, 40, 13, 65, 28, 46, 15,
    57, 28, 45, 13, 63, 33, 47, 16, 49, 24, 33, 10, 66, 29, 46, 13, 52, 27, 39, 14,
    63, 33, 60, 25, 58, 27, 51, 19, 71, 30, 59, 21, 63, 29, 56, 18, 65, 30, 58, 22,
    76, 30, 66, 21, 49, 25, 45, 17, 73, 29, 63, 18, 67, 25, 58, 18, 72, 36, 61, 25,
]  # fmt: skip


def _require_same(one: nn.Module, other: nn.Module) -> None:
    found = [{name: tuple(value.shape) for name, value in model.state_dict().items()} for model in (one, other)]
    if found[0] != found[1]:
        raise FederatedError.other_model()
