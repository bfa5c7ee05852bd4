"""The plugin of workers on Ray."""

from __future__ import annotations

from syft_core.features import Feature
from syft_core.plugins.hookspecs import RegisterFeature, hookimpl

RAY = Feature(
    name="ray",
    module="syft_ray.feature",
    names={"RayWorkers": "syft_ray.workers:RayWorkers", "ray": "syft_ray"},
    errors=("syft_ray.errors.ActorLostError", "syft_ray.errors.RayStartError"),
    packages=("syft_ray",),
)


@hookimpl
def register_features(register: RegisterFeature) -> None:
    """Offer workers on Ray."""
    register(RAY)
