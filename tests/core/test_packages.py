from __future__ import annotations

from pathlib import Path

import tomllib

from syft_core.packages import BACKENDS, FEATURES, PACKAGES


def test_all_packages_of_the_distribution_are_known() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))

    assert sorted(project["tool"]["mypy"]["packages"]) == sorted(PACKAGES)
    assert {*BACKENDS, *FEATURES} == set(PACKAGES)
