"""The plugin through which syft-core finds this backend; importing it does not import torch."""

from __future__ import annotations

from syft_core.plugins.backend import Backend
from syft_core.plugins.hookspecs import hookimpl
from syft_core.registry import Registry


@hookimpl
def register_backends(backends: Registry[str, Backend]) -> None:
    """Register the torch backend."""
    backends.register("torch", BACKEND)


BACKEND = Backend(
    name="torch",
    framework="torch",
    hook="syft_torch.hook:TorchHook",
    install="pip install torch",
    exports={
        "TorchHook": "syft_torch.hook:TorchHook",
        "BaseDataset": "syft_torch.federated.dataset:BaseDataset",
        "FederatedDataset": "syft_torch.federated.dataset:FederatedDataset",
        "FederatedDataLoader": "syft_torch.federated.dataloader:FederatedDataLoader",
    },
    agents={"federated training": "syft_torch.federated.hosted:TrainingAgent"},
    demo="syft_torch.demo:run",
)
