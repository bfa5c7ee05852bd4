"""Files that a worker's owner may load into torch; none of them is unpickled."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from syft_core.hook.hook import Reader


def read_npy(path: Path) -> torch.Tensor:
    """Read one array."""
    return torch.from_numpy(np.load(path, allow_pickle=False))


def read_npz(path: Path) -> dict[str, torch.Tensor]:
    """Read arrays by name."""
    with np.load(path, allow_pickle=False) as arrays:
        return {name: torch.from_numpy(arrays[name]) for name in arrays.files}


def read_pt(path: Path) -> object:
    """Read a tensor, or tensors by name."""
    return torch.load(path, map_location="cpu", weights_only=True)


def read_safetensors(path: Path) -> dict[str, torch.Tensor]:
    """Read tensors by name."""
    from safetensors.torch import load_file  # noqa: PLC0415  # an extra

    return load_file(path)


_WEIGHTS = Reader(read_pt, "a tensor or a dict of tensors without other Python objects, as `torch.save` writes it")
READERS = {
    ".npy": Reader(read_npy, "an array of numbers, as `numpy.save` writes it"),
    ".npz": Reader(read_npz, "arrays of numbers, as `numpy.savez` writes them"),
    ".pt": _WEIGHTS,
    ".pth": _WEIGHTS,
    ".safetensors": Reader(read_safetensors, "a safetensors file"),
}
