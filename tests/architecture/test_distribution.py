"""The wheel has what authors of plugins need, and the source distribution what contributors need."""

from __future__ import annotations

import configparser
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import tomllib

from syft_core.plugins.template import TEMPLATE

from ..extras import USES

ROOT = Path(__file__).parents[2]
BUILD = """
import sys
from setuptools import build_meta
getattr(build_meta, sys.argv[1])(sys.argv[2])
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the wheel and the source distribution of these files."""
    pytest.importorskip("setuptools")
    folder = tmp_path_factory.mktemp("built")
    made = shutil.ignore_patterns(".git", ".tox", ".venv*", "build", "dist", "*.egg-info", "generated", ".*_cache")
    shutil.copytree(ROOT, folder / "clone", ignore=made)
    for kind in ("build_wheel", "build_sdist"):
        done = subprocess.run(
            [sys.executable, "-c", BUILD, kind, str(folder)],
            cwd=folder / "clone",
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
            env=dict(os.environ),
        )
        assert done.returncode == 0, done.stderr
    return folder


def test_the_wheel_has_the_example_the_types_and_the_pages(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()

    template = {f"syft_core/testing/template/{path.relative_to(TEMPLATE).as_posix()}" for path in list_template()}
    assert {name for name in names if "/testing/template/" in name} == template
    assert {f"{path.parent.name}/py.typed" for path in ROOT.glob("syft_*/py.typed")} <= set(names)
    pages = [
        path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md") if "generated" not in path.parts
    ]
    assert [page for page in pages if not any(name.endswith(f"share/doc/syft-core/{page}") for name in names)] == []
    assert [name for name in names if name.startswith("tests/")] == []


def test_the_source_distribution_has_tests_documentation_and_changelog(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}

    wanted = ["tests/conftest.py", "docs/conf.py", "docs/backends.md", "examples/01_basic_tools.py", "CHANGELOG.md"]
    assert {*wanted, "tox.ini", "constraints.txt", ".ci/run", ".importlinter"} - names == set()
    assert [name for name in names if "__pycache__" in name or name.startswith("docs/generated")] == []


def list_template() -> list[Path]:
    return [path for path in TEMPLATE.rglob("*") if path.is_file() and "__pycache__" not in path.parts]


def test_every_extra_for_users_has_an_environment_that_uses_its_feature() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    settings = configparser.ConfigParser(interpolation=None)
    settings.read(ROOT / "tox.ini")
    labels = dict(line.split(" = ") for line in settings["tox"]["labels"].strip().splitlines())

    for_users = set(project["project"]["optional-dependencies"]) - {"test", "test-all", "docs", "dev"}
    assert set(USES) == {"none", *for_users}
    assert labels["extras"].split(", ") == [f"extra-{name}" for name in USES]
