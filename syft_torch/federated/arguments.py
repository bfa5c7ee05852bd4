"""Check the arguments of a ``FederatedTrainer`` before anything is recorded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from difflib import get_close_matches

from torch import nn

from syft_torch.federated.dataset import FederatedDataset, is_remote
from syft_torch.federated.errors import FederatedError, OptionError
from syft_torch.federated.options import Options, is_count
from syft_torch.federated.population import Population
from syft_torch.federated.private_steps.accounting import require_accounting
from syft_torch.federated.private_steps.sample_dp import SampleDP
from syft_torch.federated.strategies import Strategy

PARAMETERS = (
    "model", "loss", "optimizer", "data", "strategy", "epochs", "batch_size", "options", "aggregation", "privacy",
)  # fmt: skip
"""The trainer's own parameters."""


def require_options(options: object, misplaced: Iterable[str]) -> Options:
    """Return the options of a trainer; raise if some were passed to the trainer itself."""
    names = [field.name for field in fields(Options)]
    for name in misplaced:
        if name in names:
            raise OptionError.misplaced(name)
        near = get_close_matches(name, [*names, *PARAMETERS], 1)
        raise OptionError.unknown(name, near[0] if near else names[0])
    if options is not None and not isinstance(options, Options):
        advice = "pass them as `options=fl.Options(...)`"
        raise FederatedError.trainer(f"the options are a {type(options).__name__}", advice)
    return Options() if options is None else options


def require_arguments(model: object, loss: object, data: object, strategy: object) -> None:
    """Raise unless the arguments of a trainer have the right types, and the model is here."""
    if not isinstance(model, nn.Module):
        raise FederatedError.trainer(f"the model is a {type(model).__name__}", "pass a torch module")
    if any(is_remote(tensor) for tensor in (*model.parameters(), *model.buffers())):
        raise FederatedError.trainer("the model is on a worker", "fetch it first: `model.get()`")
    if not callable(loss):
        raise FederatedError.trainer(f"the loss is a {type(loss).__name__}", "pass a function")
    if not isinstance(data, FederatedDataset | Population):
        advice = "pass a FederatedDataset, e.g. `dataset.federate(workers)`"
        raise FederatedError.trainer(f"the data is a {type(data).__name__}", advice)
    if not isinstance(strategy, Strategy):
        advice = "pass an instance of a subclass of `fl.Strategy`"
        raise FederatedError.trainer(f"the strategy is a {type(strategy).__name__}", advice)


def require_privacy(privacy: object, data: object) -> None:
    """Raise unless workers can train with this privacy."""
    if privacy is None:
        return
    if not isinstance(privacy, SampleDP):
        advice = "pass e.g. `privacy=fl.SampleDP(clip=1.0, multiplier=1.1, delta=1e-5)`"
        raise FederatedError.trainer(f"the privacy is a {type(privacy).__name__}", advice)
    if isinstance(data, Population):
        raise FederatedError.privacy("clients of a population keep no account of it", "use workers")
    require_accounting()


def require_sizes(epochs: object, batch_size: object) -> None:
    """Raise unless these are positive integers; a batch may have all samples."""
    if not is_count(epochs):
        raise FederatedError.trainer(f"epochs is {epochs!r}", "pass a positive integer")
    if batch_size is not None and not is_count(batch_size):
        raise FederatedError.trainer(f"batch_size is {batch_size!r}", "pass a positive integer, or None for all")
