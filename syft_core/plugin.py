"""The plugin of the features in this package: plans, and workers on a network."""

from __future__ import annotations

from syft_core.features import Feature
from syft_core.plugins.hookspecs import RegisterFeature, hookimpl

NETWORK = Feature(
    name="network",
    module="syft_core.network.feature",
    names={
        "WebsocketClientWorker": "syft_core.network.client:WebsocketClientWorker",
        "WebsocketServerWorker": "syft_core.network.websocket_worker:WebsocketServerWorker",
        "aio": "syft_core.network.aio",
        "connect": "syft_core.network.client:connect",
    },
    errors=("syft_core.network.errors.AddressError",),
    packages=("syft_core.network",),
)
PLANS = Feature(
    name="plans",
    module="syft_core.plans.feature",
    names={
        "Plan": "syft_core.plans.plan:Plan",
        "PointerPlan": "syft_core.plans.pointer:PointerPlan",
        "func2plan": "syft_core.plans.plan:func2plan",
    },
    codes=(330, 331, 332, 333, 334, 335),
    errors=("syft_core.plans.errors.PlanError",),
    packages=("syft_core.plans",),
    kinds=("plan",),
)


@hookimpl
def register_features(register: RegisterFeature) -> None:
    """Offer plans, and workers on a network."""
    register(NETWORK, PLANS)
