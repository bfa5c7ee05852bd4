"""The plugin through which syft-core finds this backend; importing it does not import torch."""

from __future__ import annotations

from syft_core.features import Feature
from syft_core.plugins.backend import Backend
from syft_core.plugins.hookspecs import RegisterFeature, hookimpl
from syft_core.registry import Registry

CODECS = Feature(
    name="torch's codecs",
    module="syft_torch.serde",
    codes=range(150, 170),
    packages=("syft_torch.serde",),
    encodes=("torch",),
    requires="syft_torch.hook",
)
FEDERATED = Feature(
    name="federated training",
    module="syft_torch.federated.feature",
    codes=(380, 381, 386, 387),
    errors=("syft_torch.federated.errors.FederatedError",),
    packages=("syft_torch.federated",),
    requires="syft_torch.hook",
)
VOTES = Feature(
    name="private votes",
    module="syft_torch.differential_privacy.noisy_max",
    packages=("syft_torch.differential_privacy",),
    protocols=("noisy_max",),
    requires="syft_torch.hook",
)


@hookimpl
def register_features(register: RegisterFeature) -> None:
    """Offer the features that are loaded on first use with torch."""
    register(CODECS, FEDERATED, VOTES)


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
    extends={"mpc": "syft_mpc.torch.rules"},
    agents={"federated training": "syft_torch.federated.hosted:TrainingAgent"},
    demo="syft_torch.demo.story:run",
    suite="syft_torch.testing:TorchConformance",
)
