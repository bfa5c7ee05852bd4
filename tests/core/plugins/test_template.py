"""`syft-core new-plugin NAME` makes a package that passes its tests from the first minute."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import tomllib

from syft_core import cli
from syft_core.exceptions import ConfigurationError
from syft_core.plugins.template import TEMPLATE, make_plugin

SOURCES = [path for path in TEMPLATE.rglob("*") if path.is_file() and path.suffix != ".pyc"]


@pytest.mark.slow
def test_a_new_plugin_passes_its_tests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["new-plugin", "acme_arrays", "--folder", str(tmp_path)]) == 0

    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "SYFT_"))}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path / "syft-acme-arrays",
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=120,
    )

    assert done.returncode == 0, done.stdout
    assert re.search(r"\d{3} passed", done.stdout)
    assert f"cd {tmp_path / 'syft-acme-arrays'}" in capsys.readouterr().out


def test_the_backend_gets_its_name_and_the_framework_keeps_its_own(tmp_path: Path) -> None:
    made = make_plugin("acme_arrays", tmp_path)

    project = tomllib.loads((made / "pyproject.toml").read_text())
    assert project["project"]["name"] == "syft-acme-arrays"
    assert project["project"]["entry-points"] == {"syft_core": {"acme_arrays": "syft_acme_arrays.plugin"}}
    assert project["tool"]["setuptools"]["packages"] == ["syft_acme_arrays", "toy"]
    plugin = (made / "syft_acme_arrays" / "plugin.py").read_text()
    assert 'name="acme_arrays",\n    framework="toy",\n    hook="syft_acme_arrays.hook:AcmeArraysHook"' in plugin
    assert (made / "toy" / "__init__.py").read_text() == (TEMPLATE / "toy" / "__init__.py").read_text()
    text = "".join(path.read_text() for path in made.rglob("*") if path.is_file() and path.parent.name != "toy")
    assert re.findall(r"syft[_-]toy|\bToy|\bTestToy", text) == []


def test_a_new_plugin_has_all_files_of_the_example(tmp_path: Path) -> None:
    made = make_plugin("acme", tmp_path)

    assert len([path for path in made.rglob("*") if path.is_file()]) == len(SOURCES)
    assert (made / ".github" / "workflows" / "ci.yml").exists()


@pytest.mark.parametrize("name", ["", "Acme", "1a", "a-b", "../x", "a/b", "class", "é"])
def test_a_name_that_cannot_be_a_package_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match="use lowercase letters, digits and underscores"):
        make_plugin(name, tmp_path)

    assert list(tmp_path.iterdir()) == []


def test_the_name_of_an_installed_backend_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["new-plugin", "numpy", "--folder", str(tmp_path)]) == 1

    assert "a backend of this name is installed; choose another" in capsys.readouterr().err


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    make_plugin("acme", tmp_path)

    with pytest.raises(ConfigurationError, match="it exists; choose another name or `--folder`"):
        make_plugin("acme", tmp_path)


def test_the_example_runs_in_this_suite_from_the_same_files() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))

    paths = project["tool"]["pytest"]["ini_options"]["pythonpath"]
    assert TEMPLATE in [Path(__file__).parents[3] / path for path in paths]
