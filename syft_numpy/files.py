"""Files that a worker's owner may load into numpy; none of them is unpickled."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from syft_core.hook.hook import Reader
from syft_numpy.values import Array


def read_npy(path: Path) -> Array:
    """Read one array."""
    loaded: Array = np.load(path, allow_pickle=False)
    return loaded


def read_npz(path: Path) -> dict[str, Array]:
    """Read arrays by name."""
    with np.load(path, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def read_safetensors(path: Path) -> dict[str, Array]:
    """Read arrays by name."""
    from safetensors.numpy import load_file  # noqa: PLC0415  # an extra

    return load_file(path)


READERS = {
    ".npy": Reader(read_npy, "an array of numbers, as `numpy.save` writes it"),
    ".npz": Reader(read_npz, "arrays of numbers, as `numpy.savez` writes them"),
    ".safetensors": Reader(read_safetensors, "a safetensors file"),
}
