"""All packages are known, and a start next to another project with the same import name says so."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import tomllib
from distributions import install, run

from syft_core.packages import BACKENDS, FEATURES, PACKAGES, find_claimants, find_namesakes, find_page

LIST = "import sys; from syft_core.cli import main; sys.exit(main(['plugins']))"
START = "from syft_core.plugins.manager import plugin_manager; print(sorted(plugin_manager().backends))"


def claim(site: Path, name: str) -> Path:
    """Install a distribution that contains files of a package ``syft_core``."""
    install(site, name, {})
    (site / f"{name.replace('-', '_')}-1.0.dist-info" / "RECORD").write_text("LICENSE,,\nsyft_core/node.py,,\n")
    return site


def start(site: Path, program: str = START) -> subprocess.CompletedProcess[str]:
    return run(site, program)


def test_this_distribution_alone_is_not_reported() -> None:
    assert find_namesakes() == []
    assert find_claimants() == []


def test_a_start_next_to_a_distribution_of_the_same_name_names_it(tmp_path: Path) -> None:
    done = start(claim(tmp_path, "syft-core"))

    assert f"another project with a package syft_core is installed, too: syft-core 1.0 in {tmp_path};" in done.stderr
    assert "install this one again as its README says" in done.stderr


@pytest.mark.parametrize("name", ["syft-core", "other-project"])
def test_the_list_of_plugins_names_every_distribution_with_this_package(tmp_path: Path, name: str) -> None:
    done = start(claim(tmp_path, name), LIST)

    assert done.returncode == 1
    assert f"installed, too: {name} 1.0 in {tmp_path};" in done.stderr


def test_a_distribution_without_the_package_is_not_reported(tmp_path: Path) -> None:
    install(tmp_path, "harmless", {})
    (tmp_path / "harmless-1.0.dist-info" / "RECORD").write_text("my_syft_core/a.py,,\nharmless/syft_core/b.py,,\n")

    done = start(tmp_path, LIST)

    assert "installed, too" not in done.stderr


def test_all_packages_of_the_distribution_are_known() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))

    assert sorted(project["tool"]["mypy"]["packages"]) == sorted(PACKAGES)
    assert {*BACKENDS, *FEATURES} == set(PACKAGES)


def test_an_installed_page_is_found(tmp_path: Path) -> None:
    install(tmp_path, "syft-core", {"mpc": "syft_mpc.plugin"})
    record = "../share/doc/syft-core/docs/backends.md,,\nsyft_core/__init__.py,,\n"
    (tmp_path / "syft_core-1.0.dist-info" / "RECORD").write_text(record)

    done = run(
        tmp_path, "from syft_core.packages import find_page; print(find_page('docs/backends.md'), find_page('x'))"
    )

    assert done.stdout.strip().endswith("share/doc/syft-core/docs/backends.md)")
    assert find_page("docs/no-such-page.md") == ""
