"""Type checkers know the names that a hook adds to torch, and keep torch's own types."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import syft_core as sy  # noqa: E402
from syft_core.exceptions import BackendError  # noqa: E402
from syft_torch import stubs  # noqa: E402
from syft_torch.native import TorchTensor  # noqa: E402

ROOT = Path(__file__).parents[2]
TARGETS = {
    "Tensor": torch.Tensor,
    "Module": torch.nn.Module,
    "Optimizer": torch.optim.Optimizer,
    "Dataset": torch.utils.data.Dataset,
}
PROGRAM = """
import torch
import torch.nn.functional as F
import syft_core as sy
hook = sy.TorchHook(torch)
bob = sy.VirtualWorker(hook, id="bob")
x = torch.tensor([1.0]).tag("#x").send(bob)
private = torch.tensor([1.0]).private_tensor(["ana"])
model = torch.nn.Linear(1, 1).send(bob)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
optimizer.fix_precision()
shared = torch.zeros(2).fix_prec().share(bob, crypto_provider=bob).child
for row in x:
    row.move(bob).copy().get().item()
torch.nn.Parameter(torch.zeros(2)).send(bob).request("why").wait(3).get()
torch.cat([x, x]).describe("d").publish()
torch.utils.data.TensorDataset(x, x).federate([bob])
print(x.location, x.tags, x.owner, x.id_at_location, model.copy().get().location)
reveal_type(model)
reveal_type(torch.zeros(2) + 1)
reveal_type(F.relu(torch.zeros(2)))
reveal_type(torch.zeros(2).shape)
reveal_type(torch.nn.Linear(1, 1).weight)
torch.zeros(2).sned(bob)  # wrong
torch.zeros(2).private_tensor(users=["ana"])  # wrong
torch.nn.Linear(1, 1).request()  # wrong
torch.zeros(2).relu(1, 2)  # wrong
"""
WRONG = [number for number, line in enumerate(PROGRAM.splitlines(), 1) if line.endswith("# wrong")]
REVEALED = ["Linear", "Tensor", "Tensor", "Size", "Tensor"]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of an environment that has the packages of this one, and the stubs."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    site = folder / Path(sysconfig.get_path("purelib")).relative_to(sysconfig.get_path("data"))
    (site / "installed.pth").write_text(f"{ROOT}\n{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    command = [str(python), "-m", "syft_torch.stubs"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.startswith(f"wrote {site / 'torch-stubs'};")
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
    return python


@pytest.mark.timeout(900)  # mypy reads all of torch.
@pytest.mark.slow
def test_mypy_knows_the_names_and_keeps_the_types_of_torch(python: Path) -> None:
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    folder = python.parents[1]
    (folder / "mypy.ini").write_text("[mypy]\nfollow_imports = silent\n", encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "--python-executable", str(python)]

    done = subprocess.run(
        [*command, "program.py"], cwd=folder, capture_output=True, text=True, check=False, timeout=800
    )

    errors = re.findall(r"^program.py:(\d+): error", done.stdout, re.MULTILINE)
    assert list(map(int, errors)) == WRONG, done.stdout
    assert re.findall(r'Revealed type is "[\w.]*?(\w+)"', done.stdout) == REVEALED


def test_pyright_knows_the_names_and_keeps_the_types_of_torch(python: Path) -> None:
    program = shutil.which("pyright")
    check = [str(program), "--version"]
    if program is None or subprocess.run(check, capture_output=True, check=False, timeout=120).returncode:
        pytest.skip("pyright is not installed, or has no node")
    command = [program, "--outputjson", "--pythonpath", str(python), "program.py"]

    done = subprocess.run(command, cwd=python.parents[1], capture_output=True, text=True, check=False, timeout=280)

    found = json.loads(done.stdout)["generalDiagnostics"]
    assert [each["range"]["start"]["line"] + 1 for each in found if each["severity"] == "error"] == WRONG, done.stdout
    revealed = [each["message"] for each in found if each["severity"] == "information"]
    assert [re.findall(r'is "(\w+)"', message) for message in revealed] == [[name] for name in REVEALED]


def test_the_stubs_have_the_names_that_a_hook_adds() -> None:
    before = {name: set(dir(target)) for name, target in TARGETS.items()}
    with sy.TorchHook(torch):
        added = {name: set(dir(target)) - before[name] for name, target in TARGETS.items()}

    public = {name: {each for each in found if not each.startswith(("_", "native_"))} for name, found in added.items()}
    declared: dict[str, Any] = dict(stubs.ADDED.values())
    assert {name: {each for each in found if not each.startswith("_")} for name, found in declared.items()} == {
        name: found for name, found in public.items() if name != "Tensor"
    }
    assert public["Tensor"] <= {name for base in TorchTensor.__mro__ for name in vars(base)}
    assert len(public["Tensor"]) > 40


def test_stubs_are_replaced_and_those_of_others_are_kept(tmp_path: Path) -> None:
    (stubs.write_stubs(tmp_path) / "old.pyi").touch()
    assert not (stubs.write_stubs(tmp_path) / "old.pyi").exists()
    shutil.rmtree(tmp_path / "torch-stubs")
    (tmp_path / "torch-stubs").mkdir()

    with pytest.raises(
        BackendError, match=r"^cannot write type stubs: .*torch-stubs belongs to another package; uninst"
    ):
        stubs.write_stubs(tmp_path)


def test_a_torch_that_declares_its_classes_in_another_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text("Module = None\n", encoding="utf-8")

    with pytest.raises(
        BackendError, match="^cannot write type stubs: torch .* does not declare 'Module' in .*; use anoth"
    ):
        stubs._add_names(tmp_path / "module.py", "Module", {})
