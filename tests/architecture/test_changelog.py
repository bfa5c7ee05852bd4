"""The changelog has dated releases and short entries, and its newest release is the version of the distribution."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
GROUPS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
LONGEST = 160
SECTIONS = re.findall(r"^## (.*)$", TEXT, re.MULTILINE)


def test_what_is_not_released_yet_comes_first_and_every_release_has_a_date() -> None:
    newest, *releases = SECTIONS

    assert newest == "Unreleased"
    assert [title for title in releases if not re.fullmatch(r"\d+\.\d+\.\d+ \(\d{4}-\d\d-\d\d\)", title)] == []


def test_the_newest_release_is_the_version_of_the_distribution() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")

    assert SECTIONS[1].split()[0] == re.findall(r'^version = "(.*)"$', project, re.MULTILINE)[0]


def test_entries_are_short_and_grouped_by_what_they_mean_for_users() -> None:
    entries = re.findall(r"^- .*(?:\n(?!- |\n|#).*)*", TEXT, re.MULTILINE)
    releases = re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:]

    assert [entry for entry in entries if len(entry) > LONGEST] == []
    for release in releases:
        groups = re.findall(r"^### (.*)$", release, re.MULTILINE)
        assert groups == [group for group in GROUPS if group in groups], release.partition("\n")[0]
