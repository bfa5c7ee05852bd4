"""Read the numbers of tensors that are not dense, for owners who review a release."""

from __future__ import annotations

import torch
from torch import Tensor

MAX_DENSE = 64
"""Sparse tensors with up to this many elements are shown with their zeros."""
_COMPRESSED = frozenset({torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc})


def name_storage(tensor: Tensor) -> str:
    """Return one word for how a tensor stores its numbers, or "" if it is dense."""
    if tensor.is_quantized:
        return _name(tensor.qscheme())
    if tensor.layout is torch.strided:
        return "nested" if tensor.is_nested else ""
    return _name(tensor.layout)


def read_numbers(tensor: Tensor) -> tuple[Tensor | None, str]:
    """Return a dense tensor with the numbers that a tensor stores, and a note that explains them."""
    tensor = tensor.detach()
    if tensor.is_meta:
        return None, "it has a form, but no numbers"
    if tensor.is_nested:
        parts = [part.reshape(-1) for part in tensor.unbind()]
        return torch.cat(parts) if parts else None, f"the numbers of its {len(parts)} parts, one after the other"
    if tensor.is_quantized:
        return tensor.dequantize(), "the numbers that its quantized ones stand for"
    is_sparse = tensor.layout is torch.sparse_coo or tensor.layout in _COMPRESSED
    if is_sparse and tensor.numel() > MAX_DENSE:
        stored = tensor._values() if tensor.layout is torch.sparse_coo else tensor.values()
        return stored, f"the {stored.numel():,} numbers that it stores, of {tensor.numel():,}; the others are zero"
    return tensor if tensor.layout is torch.strided else tensor.to_dense(), ""


def _name(kind: object) -> str:
    return str(kind).rpartition(".")[2].strip("_")
