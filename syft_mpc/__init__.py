"""Computation on encrypted values: additive secret shares and the protocols on them."""

from __future__ import annotations

from syft_mpc.group import count, find_group, prepare

__all__ = ["count", "find_group", "prepare"]
