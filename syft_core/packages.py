"""The packages of this distribution: their lines are not those of a user's program."""

FEATURES = ("syft_core", "syft_mpc", "syft_privacy", "syft_sums", "syft_worker", "syft_ray")
BACKENDS = ("syft_torch", "syft_numpy")
PACKAGES = (*FEATURES, *BACKENDS)
