"""The plugin for owners: the desk, where peers ask and the owner decides, and the commands of operators."""

from __future__ import annotations

from syft_core.features import Feature
from syft_core.plugins.hookspecs import Commands, RegisterFeature, hookimpl

DESK = Feature(
    name="worker",
    module="syft_worker.feature",
    names={
        "RequestHandle": "syft_worker.desk.handle:RequestHandle",
        "WorkerDesk": "syft_worker.desk.owner:WorkerDesk",
        "desk": "syft_worker.desk",
        "operating": "syft_worker",
    },
    codes=(320, 370, 371, 372, 373, 374, 375, 376, 377, 378),
    errors=(
        "syft_worker.desk.errors.ApprovalError",
        "syft_worker.desk.errors.ReleaseDeniedError",
        "syft_worker.desk.errors.ReleaseError",
        "syft_worker.desk.errors.ReleasePendingError",
        "syft_worker.errors.QuotaExceededError",
    ),
    packages=("syft_worker",),
    rules=("owner approves",),
)


@hookimpl
def register_features(register: RegisterFeature) -> None:
    """Offer the desk, and what an operator needs."""
    register(DESK)


@hookimpl
def register_commands(commands: Commands) -> None:
    """Add the commands of a worker's operator."""
    # Slow to import, and needed by the command line alone.
    from syft_worker import certificates, command, ledger, member_key, requests, tokens  # noqa: PLC0415

    for module in (command, requests, ledger, tokens, certificates, member_key):
        module.add_parser(commands)
