"""DemoOptions: what a user chooses about a demo."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DemoOptions:
    """The options of ``syft-core demo``, as the part of each backend gets them."""

    seed: int = 1
    """The seed of the made-up patients and of the model."""
    in_process: bool = False
    """Whether the workers are in this process, and not in processes of their own with TLS."""
    private_dp: bool = False
    """Whether workers add noise to each step, so that the model reveals little about any one patient."""
