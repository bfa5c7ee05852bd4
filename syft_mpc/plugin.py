"""The plugin of encrypted computation."""

from __future__ import annotations

from syft_core.features import Feature
from syft_core.plugins.hookspecs import RegisterFeature, hookimpl

ENCRYPTED = Feature(
    name="mpc",
    module="syft_mpc.feature",
    names={
        "AdditiveSharingTensor": "syft_mpc.additive_shared:AdditiveSharingTensor",
        "AuthenticatedTensor": "syft_mpc.authenticated_tensor:AuthenticatedTensor",
        "FixedPrecisionTensor": "syft_mpc.fixed_precision:FixedPrecisionTensor",
        "PrecisionWarning": "syft_mpc.checking:PrecisionWarning",
        "checking": "syft_mpc.checking:checking",
        "crypto": "syft_mpc",
    },
    codes=(255, 350, 351, 352, 353),
    errors=tuple(f"syft_mpc.errors.{word}Error" for word in ("Cheating", "PartyFailed", "Precision", "Protocol")),
    packages=(
        "syft_mpc.additive_shared",
        "syft_mpc.authenticated_tensor",
        "syft_mpc.fixed_precision",
        "syft_mpc.messages",
        "syft_mpc.protocol",
        "syft_mpc.secret_places",
    ),
    sections=("syft_mpc.testing:EncryptedSection",),
)


@hookimpl
def register_features(register: RegisterFeature) -> None:
    """Offer computation on encoded and shared numbers."""
    register(ENCRYPTED)
