"""Type checkers know the names of the facade: they find mistakes through ``sy``, and nothing in a right program."""

from __future__ import annotations

import ast
import importlib.util
import json
import pkgutil
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import syft_core as sy
from syft_core.features import FEATURES
from syft_core.plugins.manager import plugin_manager

ROOT = Path(sy.__file__).parent.parent
STUB = ROOT / "syft_core" / "__init__.pyi"

RIGHT = """
import types
import syft_core as sy

def work(torch: types.ModuleType) -> str:
    hook = sy.TorchHook(torch)
    bob = sy.VirtualWorker(hook, id="bob", serialize=True, policy="only_published")
    with sy.revealing("the reason"), sy.trace() as messages:
        found = bob.search("#data")
    sy.get_all(*found, reason="the reason")
    bob.approve(bob.requests[0], by="the owner")
    @sy.func2plan(args_shape=[(2, 2)])
    def double(x: object) -> object:
        return x
    double.send(bob)
    first: sy.FrameworkHook = hook
    far = sy.WebsocketClientWorker(hook, "127.0.0.1", 8777, token="secret")
    far.flush()
    print(len(messages.events), first.local_worker.id, sy.local_worker.objects_count)
    try:
        bob.get_obj(3)
    except sy.exceptions.ObjectNotFoundError as error:
        return str(error)
    return sy.__version__
"""

WRONG = """
import types
import syft_core as sy

def work(torch: types.ModuleType) -> int:
    hook = sy.TorchHook(torch, verbos=True)  # call-arg
    bob = sy.VirtualWorker(hook, id=3.5)  # arg-type
    sy.VirtualWorkr(hook)  # attr-defined
    bob.serch("#data")  # attr-defined
    with sy.revealing(3):  # arg-type
        pass
    sy.NumpyHook()  # call-arg
    sy.VirtualWorker(hook, id="bob", serialise=True)  # call-arg
    sy.WebsocketClientWorker(hook, "127.0.0.1", "8777")  # arg-type
    sy.trace().evnts  # attr-defined
    for each in sy.load_backend:  # attr-defined
        pass
    return sy.__version__  # return-value
"""


def test_the_stub_has_the_names_of_the_facade() -> None:
    imports, others = {}, set()
    for node in ast.parse(STUB.read_text()).body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                imports[alias.asname or alias.name] = f"{node.module}:{alias.name}"
        elif isinstance(node, ast.Assign):  # Another name of a module.
            imports |= {ast.unparse(target): ast.unparse(node.value) for target in node.targets}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            others.add(node.target.id)
        elif isinstance(node, ast.ClassDef):  # The class of the facade, with the methods that features add to it.
            imports[node.name] = imports[f"_{node.name}"]
    modules = {name for _, name, _ in pkgutil.iter_modules(sy.__path__)} - {"__main__"}
    exported = {name: path for b in plugin_manager().backends.values() for name, path in b.exports.items()}
    own = {name: path for name, path in exported.items() if path.startswith(("syft_torch.", "syft_numpy."))}
    named = {
        name: ":".join(path.rsplit(".", 1)) if "." in path and ":" not in path else path
        for name, path in {**sy._NAMES, **{n: p for feature in FEATURES for n, p in feature.names.items()}}.items()
    }

    assert {name: path for name, path in imports.items() if not name.startswith("_")} == {
        **{name: f"syft_core:{name}" for name in modules},
        **named,
        **own,
    }
    assert others == {"__version__", *sy._CURRENT, "torch", "numpy"}


@pytest.fixture(scope="module")
def errors(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, int, str]]:
    """Return the file, the line and the code of each error that mypy finds in the two programs."""
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    folder = tmp_path_factory.mktemp("programs")
    (folder / "right.py").write_text(RIGHT)
    (folder / "wrong.py").write_text(WRONG)
    config = folder / "mypy.ini"
    # A user has the types of torch; reading them takes a minute, and the programs do not use them.
    config.write_text(
        f"[mypy]\nstrict = True\nmypy_path = {ROOT}\nfollow_imports = silent\n[mypy-torch.*]\nfollow_imports = skip\n"
    )
    command = [sys.executable, "-m", "mypy", "--config-file", str(config), "--cache-dir", str(folder / "cache")]
    done = subprocess.run(
        [*command, "right.py", "wrong.py"], cwd=folder, capture_output=True, text=True, check=False, timeout=120
    )
    found = re.findall(r"^(\w+)\.py:(\d+): error: .*\[([\w-]+)\]$", done.stdout, re.MULTILINE)
    assert found, done.stdout + done.stderr
    return [(name, int(line), code) for name, line, code in found]


def test_mypy_finds_every_mistake_made_through_the_facade(errors: list[tuple[str, int, str]]) -> None:
    expected = [
        (number, line.partition("  # ")[2]) for number, line in enumerate(WRONG.splitlines(), 1) if "  # " in line
    ]

    assert [(line, code) for name, line, code in errors if name == "wrong"] == expected


def test_mypy_finds_nothing_in_a_right_program(errors: list[tuple[str, int, str]]) -> None:
    assert [error for error in errors if error[0] == "right"] == []


def test_pyright_finds_every_mistake_and_nothing_in_a_right_program(tmp_path: Path) -> None:
    program = shutil.which("pyright")
    if (
        program is None
        or subprocess.run([program, "--version"], capture_output=True, check=False, timeout=120).returncode
    ):
        pytest.skip("pyright is not installed, or has no node")
    (tmp_path / "right.py").write_text(RIGHT)
    (tmp_path / "wrong.py").write_text(WRONG)
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"extraPaths": [str(ROOT)]}))

    command = [program, "--outputjson", "--pythonpath", sys.executable, "right.py", "wrong.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)

    found = json.loads(done.stdout)["generalDiagnostics"]
    places = {
        (Path(each["file"]).stem, each["range"]["start"]["line"]) for each in found if each["severity"] == "error"
    }
    assert places == {("wrong", number) for number, line in enumerate(WRONG.splitlines()) if "  # " in line}
