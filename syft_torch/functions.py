"""Functions on several tensors at once, under the names that the published interface gives them."""

from __future__ import annotations

from syft_core.pointers.multi_pointer import combine_pointers

__all__ = ["combine_pointers"]
