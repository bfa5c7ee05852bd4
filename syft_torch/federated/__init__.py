"""Federated data and training: everything a user needs, as ``from syft_torch import federated as fl``.

Each name is loaded when it is first used, because the hook imports this package.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from syft_core.values import Nested

if TYPE_CHECKING:
    from syft_torch.federated.aggregation import SecureAggregation, release_only_aggregates
    from syft_torch.federated.averages import WeightedMean
    from syft_torch.federated.dataloader import FederatedDataLoader, default_collate
    from syft_torch.federated.dataset import BaseDataset, FederatedDataset, PointerDataset, dataset_federate, find
    from syft_torch.federated.errors import FederatedError
    from syft_torch.federated.evaluation import Evaluation
    from syft_torch.federated.history import History, Row
    from syft_torch.federated.metrics import AUC, ConfusionMatrix, Metric
    from syft_torch.federated.options import Options
    from syft_torch.federated.population import Population
    from syft_torch.federated.private_steps.sample_dp import SampleDP
    from syft_torch.federated.scaling import Scaling, train_test_split
    from syft_torch.federated.statistics import histogram, mean, sum, var
    from syft_torch.federated.stopping import EarlyStopping
    from syft_torch.federated.strategies import (
        FedAdagrad,
        FedAdam,
        FedAvg,
        FedProx,
        FedYogi,
        Krum,
        Median,
        Scaffold,
        Strategy,
        TrimmedMean,
        Update,
    )
    from syft_torch.federated.trainer import FederatedTrainer
    from syft_torch.federated.utils import (
        accuracy,
        add_model,
        create_gaussian_mixture_toy_data,
        extract_batches_per_worker,
        federated_avg,
        iris_data_partial,
        scale_model,
    )

_PLACES = {
    "aggregation": "SecureAggregation release_only_aggregates",
    "averages": "WeightedMean",
    "dataloader": "FederatedDataLoader default_collate",
    "dataset": "BaseDataset FederatedDataset PointerDataset dataset_federate find",
    "errors": "FederatedError",
    "evaluation": "Evaluation",
    "history": "History Row",
    "metrics": "AUC ConfusionMatrix Metric",
    "options": "Options",
    "population": "Population",
    "private_steps.sample_dp": "SampleDP",
    "scaling": "Scaling train_test_split",
    "statistics": "histogram mean sum var",
    "stopping": "EarlyStopping",
    "strategies": "FedAdagrad FedAdam FedAvg FedProx FedYogi Krum Median Scaffold Strategy TrimmedMean Update",
    "trainer": "FederatedTrainer",
    "utils": "accuracy add_model create_gaussian_mixture_toy_data extract_batches_per_worker federated_avg "
    "iris_data_partial scale_model",
}
_NAMES = {name: place for place, names in _PLACES.items() for name in names.split()}

__all__ = [
    "AUC",
    "BaseDataset",
    "ConfusionMatrix",
    "EarlyStopping",
    "Evaluation",
    "FedAdagrad",
    "FedAdam",
    "FedAvg",
    "FedProx",
    "FedYogi",
    "FederatedDataLoader",
    "FederatedDataset",
    "FederatedError",
    "FederatedTrainer",
    "History",
    "Krum",
    "Median",
    "Metric",
    "Options",
    "PointerDataset",
    "Population",
    "Row",
    "SampleDP",
    "Scaffold",
    "Scaling",
    "SecureAggregation",
    "Strategy",
    "TrimmedMean",
    "Update",
    "WeightedMean",
    "accuracy",
    "add_model",
    "create_gaussian_mixture_toy_data",
    "dataset_federate",
    "default_collate",
    "extract_batches_per_worker",
    "federated_avg",
    "find",
    "histogram",
    "iris_data_partial",
    "mean",
    "release_only_aggregates",
    "scale_model",
    "sum",
    "train_test_split",
    "var",
]


def __getattr__(name: str) -> Nested:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, getattr(import_module(f"{__name__}.{_NAMES[name]}"), name))


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES})
