"""Functions on several tensors, under the names of the ancestor's API."""

from __future__ import annotations

from syft_core.pointers.multi_pointer import combine_pointers

__all__ = ["combine_pointers"]
