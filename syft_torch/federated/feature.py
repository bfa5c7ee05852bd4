"""Registers federated training: messages that train on the data of a worker, and errors."""

from __future__ import annotations

from syft_core.plugins.hookspecs import RegisterError, RegisterMessage, hookimpl
from syft_torch.federated.errors import FederatedError
from syft_torch.federated.training import Evaluate, Train, evaluate, train


@hookimpl
def register_messages(register: RegisterMessage) -> None:
    """Register the messages that train and evaluate a model."""
    register(Train, train)
    register(Evaluate, evaluate)


@hookimpl
def register_errors(register: RegisterError) -> None:
    """Let the errors of federated training be sent."""
    register(FederatedError)
