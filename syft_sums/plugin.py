"""The plugin of sums of several workers."""

from __future__ import annotations

from syft_core.features import Feature
from syft_core.plugins.hookspecs import Commands, RegisterFeature, hookimpl

SUMS = Feature(
    name="sums",
    module="syft_sums.feature",
    names={"WorkerStudies": "syft_sums.studies:Studies"},
    codes=(382, 383, 384, 385),
    errors=tuple(f"syft_sums.errors.{name}" for name in ("SumError", "SumRefusedError", "SumRuleError")),
    packages=("syft_sums",),
    rules=("aggregates",),
)


@hookimpl
def register_features(register: RegisterFeature) -> None:
    """Offer sums of several workers."""
    register(SUMS)


@hookimpl
def register_commands(commands: Commands) -> None:
    """Add the command that verifies evidence."""
    from syft_sums import verification  # noqa: PLC0415  # only the command line needs it

    verification.add_parser(commands)
