"""All kinds of tensors: how to make one out of a plain tensor, how to write into it, and what it shows."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from syft_torch.attributes import _PARTS


def _quantize_channels(x: Any) -> Any:
    scales, zeros = torch.full((len(x),), 0.1, dtype=torch.float64), torch.zeros(len(x), dtype=torch.int64)
    return torch.quantize_per_channel(x.detach().float(), scales, zeros, 0, torch.qint8)


OF_TORCH: dict[str, Callable[[Any], Any]] = {
    "plain": lambda x: x.detach().clone(),
    "with a gradient": lambda x: x.detach().clone().requires_grad_(),
    "in a graph": lambda x: x.detach().clone().requires_grad_() * 1,
    "part": lambda x: torch.cat([x.detach(), x.detach()])[: len(x)],
    "strided": lambda x: torch.stack([x.detach(), x.detach()], -1)[..., 0],
    "transposed": lambda x: x.detach().transpose(0, -1).contiguous().transpose(0, -1),
    "expanded": lambda x: x.detach()[:1].clone().expand(x.shape),
    "conjugated": lambda x: torch.complex(x.detach().float(), x.detach().float()).conj(),
    "negated": lambda x: torch.complex(x.detach().float(), x.detach().float()).conj().imag,
    "inference": lambda x: torch.inference_mode()(lambda: x.detach() + 0)(),
    "meta": lambda x: x.detach().to("meta"),
    "coo": lambda x: x.detach().to_sparse(),
    "coalesced": lambda x: x.detach().to_sparse().coalesce(),
    "csr": lambda x: x.detach().to_sparse_csr(),
    "csc": lambda x: x.detach().to_sparse_csc(),
    "bsr": lambda x: x.detach().to_sparse_bsr((1, 1)),
    "bsc": lambda x: x.detach().to_sparse_bsc((1, 1)),
    "quantized": lambda x: torch.quantize_per_tensor(x.detach().float(), 0.1, 0, torch.qint8),
    "quantized per channel": _quantize_channels,
    "mkldnn": lambda x: x.detach().to_mkldnn(),
    "nested": lambda x: torch.nested.nested_tensor(list(x.detach().unbind())),
    "parameter": lambda x: torch.nn.Parameter(x.detach().clone(), x.is_floating_point()),
}
RECORD = np.dtype([("number", "f8"), ("rest", "i4", (2,))])
OF_NUMPY: dict[str, Callable[[Any], Any]] = {
    "plain": lambda x: np.array(x),
    "part": lambda x: np.concatenate([x, x])[: len(x)],
    "strided": lambda x: np.stack([x, x], -1)[..., 0],
    "backwards": lambda x: np.array(x)[::-1],
    "transposed": lambda x: np.array(x).T.copy().T,
    "expanded": lambda x: np.broadcast_to(np.array(x[:1]), x.shape),
    "read-only": lambda x: _lock(np.array(x)),
    "of bytes": lambda x: np.ndarray(x.shape, x.dtype, bytearray(x.tobytes())),
    "structured": lambda x: np.zeros(x.shape, RECORD),
    "field": lambda x: np.zeros(x.shape, RECORD)["number"],
    "record": lambda _x: np.zeros(2, RECORD)[0],
    "objects": lambda x: np.array(x, dtype=object),
    "masked": lambda x: np.ma.array(x, mask=np.zeros(x.shape, bool)),
    "matrix": lambda x: np.asmatrix(np.array(x)),
    "text": lambda x: x.astype("U8"),
    "scalar": lambda x: x.reshape(-1)[0],
}


def _lock(array: Any) -> Any:
    array.flags.writeable = False
    return array


def write(tensor: Any) -> bool:
    """Change the elements of a tensor; return whether that is possible."""
    for way in _OF_ARRAYS if isinstance(tensor, np.ndarray | np.generic) else _OF_TENSORS:
        with contextlib.suppress(Exception), torch.no_grad(), np.errstate(all="ignore"):
            before = show(tensor)
            way(tensor)
            if show(tensor) != before:
                return True
    return False


def _other(values: Any) -> Any:
    """Return other values of the same form."""
    if values.dtype in (torch.bool, np.dtype(bool)):
        return ~values
    return values + 1 if isinstance(values, np.ndarray) else values.detach() + 1


def _write_first(tensor: Any) -> None:
    """Write into one element of an expanded tensor."""
    part = tensor
    while part.dim():
        part = part[0]
    part.fill_(7)


def _write_record(array: Any) -> None:
    for name in array.dtype.names:
        array[name] = array[name] + 1


_OF_TENSORS: list[Callable[[Any], Any]] = [
    lambda x: x.detach().copy_(_other(x)),
    lambda x: x.copy_(_other(x.dequantize())),
    lambda x: x._values().add_(1),
    lambda x: x.values().add_(1),
    lambda x: x.detach().add_(x),
    lambda x: x.detach().zero_(),
    _write_first,
]
_OF_ARRAYS: list[Callable[[Any], Any]] = [
    lambda x: x.__setitem__(..., _other(x)),
    lambda x: x.__setitem__(..., "other"),
    _write_record,
]


def show(tensor: Any) -> Any:
    """Return everything that a tensor shows: its elements, whatever its kind, and what it makes of them."""
    if isinstance(tensor, np.ndarray | np.generic):
        return np.asarray(tensor).tolist().__repr__()
    return "; ".join(_show_parts(tensor.detach()))


def _show_parts(x: Any) -> Iterator[str]:
    if x.is_nested:
        yield from [repr(part.tolist()) for part in x.unbind()]
    elif x.layout in _PARTS:  # Not as a dense tensor: torch does not check indices that were written.
        yield from [show(getattr(x, part)()) for part in _PARTS[x.layout]]
    elif x.layout is torch.strided and x.is_quantized:
        yield repr((x.int_repr().tolist(), x.dequantize().tolist()))
    elif x.layout is torch.strided and not x.is_meta:  # What MKL-DNN keeps shares memory with everything.
        yield repr(x.resolve_conj().resolve_neg().tolist())
