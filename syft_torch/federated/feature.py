"""Registers federated training: messages that arrange the data of a worker and train on it, and errors."""

from __future__ import annotations

from syft_core.plugins.hookspecs import RegisterError, RegisterMessage, hookimpl
from syft_torch.federated.arranging import Arrange, arrange
from syft_torch.federated.errors import FederatedError
from syft_torch.federated.statistics import Summarize, summarize
from syft_torch.federated.training import Evaluate, Train, evaluate, train


@hookimpl
def register_messages(register: RegisterMessage) -> None:
    """Register the messages that arrange and summarize data, train and evaluate a model."""
    register(Arrange, arrange)
    register(Summarize, summarize)
    register(Train, train)
    register(Evaluate, evaluate)


@hookimpl
def register_errors(register: RegisterError) -> None:
    """Let the errors of federated training be sent."""
    register(FederatedError)
