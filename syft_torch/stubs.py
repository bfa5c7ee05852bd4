"""Type stubs of torch with the names that a hook adds: ``python -m syft_torch.stubs`` writes them for this environment.

A hook adds methods to ``torch.Tensor``, ``nn.Module``, optimizers and datasets when it is created, so type checkers do
not know them. mypy and pyright read the partial stub package ``torch-stubs`` before torch itself. It has torch's own
stubs, copied from the installed version, with the declarations that this package has of the names: nothing is written
twice. Everything else comes from torch.
"""

from __future__ import annotations

import re
import shutil
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from syft_core.exceptions import BackendError
from syft_torch.federated.dataset import dataset_federate
from syft_torch.module import ADDED_TO_MODULES
from syft_torch.native import TorchTensor
from syft_torch.optim import ADDED_TO_OPTIMIZERS
from syft_torch.sharing import ADDED_FOR_SHARING, SHARING_OPTIMIZERS

PACKAGE = "torch-stubs"
MARK = "# Torch's own declarations, with names that syft-core adds; written by `python -m syft_torch.stubs`.\n"
ADDED: dict[str, tuple[str, Mapping[str, Any]]] = {
    "nn/modules/module.py": ("Module", {**ADDED_TO_MODULES, **ADDED_FOR_SHARING}),
    "optim/optimizer.py": ("Optimizer", {**ADDED_TO_OPTIMIZERS, **SHARING_OPTIMIZERS}),
    "utils/data/dataset.py": ("Dataset", {"federate": dataset_federate}),
}
"""The names that a hook adds to classes of torch, with the file of each class."""
TENSOR = "_C/__init__.pyi"
"""The stub of the class from which all tensors inherit."""


def write_stubs(folder: Path) -> Path:
    """Write the stub package to a folder in which type checkers look for packages, and return its path."""
    package, source = folder / PACKAGE, Path(torch.__file__).parent
    texts = {
        # pyright finds none of torch's own stubs once there is a partial package.
        **{path.relative_to(source): path.read_text(encoding="utf-8") for path in source.rglob("*.pyi")},
        **{Path(name).with_suffix(".pyi"): _add_names(source / name, *added) for name, added in ADDED.items()},
        Path(TENSOR): _add_base(source / TENSOR),
        Path("py.typed"): "partial\n",
    }
    if package.exists():
        tensor = package / TENSOR
        if not tensor.exists() or not tensor.read_text(encoding="utf-8").startswith(MARK):
            raise BackendError(f"cannot write type stubs: {package} belongs to another package; uninstall it first")
        shutil.rmtree(package)
    for name, text in texts.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return package


def _add_base(path: Path) -> str:
    """Return the stub of torch's tensors with another base class, which has the methods of hooked tensors."""
    before, head, after = _split_at_class(path, "TensorBase")
    name = TorchTensor.__name__
    head = f"from {TorchTensor.__module__} import {name} as _{name}\n\n{head.replace('(', f'(_{name}, ', 1)}"
    return MARK + before + head + after


def _add_names(path: Path, owner: str, added: Mapping[str, Any]) -> str:
    before, head, after = _split_at_class(path, owner)
    functions = {name: getattr(given, "function", given) for name, given in added.items() if not name.startswith("_")}
    imports = {f"from {f.__module__} import {f.__name__} as _syft_{f.__name__}\n" for f in functions.values()}
    imports.add("from syft_core.values import Tensor as _syft_Tensor\n")
    names = [
        f"    @property\n    def {name}(self) -> _syft_Tensor: ...\n"
        if getattr(added[name], "is_attribute", False)
        else f"    {name} = _syft_{function.__name__}\n"
        for name, function in functions.items()
    ]
    return MARK + before + "".join([*sorted(imports), "\n", head, *names]) + after


def _split_at_class(path: Path, owner: str) -> tuple[str, str, str]:
    text = path.read_text(encoding="utf-8")
    found = re.search(rf"^class {owner}\b.*:\n", text, re.MULTILINE)
    if found is None:
        raise BackendError(
            f"cannot write type stubs: torch {torch.__version__} does not declare {owner!r} in {path}; "
            f"use another torch"
        )
    return text[: found.start()], found.group(), text[found.end() :]


if __name__ == "__main__":
    written = write_stubs(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(sysconfig.get_path("purelib")))
    sys.stdout.write(f"wrote {written}; write it again when you install another torch, and delete it to be rid of it\n")
