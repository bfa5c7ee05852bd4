from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

from syft_torch.files import READERS  # noqa: E402


def read(path: Path) -> Any:
    return READERS[path.suffix].read(path)


class Evil:
    """Creates a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def test_an_array_becomes_a_tensor(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(3, dtype="int16"))

    found = read(tmp_path / "x.npy")

    assert found.tolist() == [0, 1, 2]
    assert found.dtype is torch.int16


def test_arrays_become_tensors_by_name(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", one=np.ones(2), two=np.zeros(1))

    assert {name: tensor.tolist() for name, tensor in read(tmp_path / "x.npz").items()} == {"one": [1, 1], "two": [0]}


@pytest.mark.parametrize("suffix", [".pt", ".pth"])
def test_weights_are_loaded(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x{suffix}"
    torch.save({"weight": torch.ones(2)}, path)

    assert read(path)["weight"].tolist() == [1.0, 1.0]


def test_safetensors_are_loaded(tmp_path: Path) -> None:
    save = pytest.importorskip("safetensors.torch").save_file
    save({"weight": torch.ones(2)}, tmp_path / "x.safetensors")

    assert read(tmp_path / "x.safetensors")["weight"].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".pt", ".pth"])
def test_nothing_is_unpickled(tmp_path: Path, suffix: str) -> None:
    touched, path = tmp_path / "touched", tmp_path / f"x{suffix}"
    evil = np.array([Evil(touched)], dtype=object)
    if suffix == ".npy":
        np.save(path, evil)
    elif suffix == ".npz":
        np.savez(path, x=evil)
    else:
        torch.save(Evil(touched), path)

    with pytest.raises((ValueError, pickle.UnpicklingError)):
        read(path)
    assert not touched.exists()
