"""The documentation keeps up with the code: links lead somewhere, tests that it names exist, nothing is left out."""

from __future__ import annotations

import configparser
import re
from pathlib import Path

import pytest

from syft_core.messages import Batch
from syft_core.workers.seeing import permissions
from tests.messages import list_commands

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "examples/README.md", ROOT / "benchmarks/README.md"]
)
SECURITY = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")


def anchors(page: Path) -> set[str]:
    """Return the names under which the headings of a page can be linked to."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if link.startswith("http"):
            continue
        place, _, anchor = link.partition("#")
        target = (page.parent / place).resolve() if place else page
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target), link


def test_every_page_is_in_the_reading_order() -> None:
    missing = []
    for index in (ROOT / "docs").rglob("README.md"):
        text = index.read_text(encoding="utf-8")
        missing += [page for page in index.parent.glob("*.md") if page != index and f"({page.name})" not in text]

    assert missing == []


def test_the_tests_that_the_documentation_names_exist() -> None:
    tests = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    named = {name for page in PAGES for name in re.findall(r"`(test_\w+)`", page.read_text(encoding="utf-8"))}

    assert len(named) > 8
    assert [name for name in named if f"def {name}(" not in tests] == []


def test_the_security_page_has_a_line_for_every_message_and_policy() -> None:
    rows = "\n".join(line.split("|")[1] for line in SECURITY.splitlines() if line.startswith("|"))

    ours = [*list_commands(), Batch]
    assert [message.__name__ for message in ours if f"`{message.__name__}`" not in rows] == []
    for policy in (permissions.unless_private, permissions.only_published, permissions.nothing):
        assert f"`{policy.__name__}`" in rows


def test_a_reviewer_finds_the_messages_the_op_tables_and_the_ledger_on_one_page() -> None:
    linked = set(re.findall(r"\]\(\.\./((?:syft_\w+|tests)/[^)#]+)\)", SECURITY))

    assert {
        "syft_core/messages.py",
        "syft_core/workers/party/handlers.py",
        "syft_core/workers/seeing/ledger.py",
    } <= linked
    assert {"syft_torch/attributes.py", "syft_numpy/attributes.py", "syft_core/ids.py"} <= linked


INSTALLS = re.compile(r"\b(?:pip3?|pipx|uv)\b[^\n`&;|]*\b(?:install|add)\b[^\n`&;|]*(?<![\w/.-])syft[-_]core\b")


def test_nobody_is_advised_to_install_the_project_that_has_this_name_on_the_public_index() -> None:
    folders = [*ROOT.glob("syft_*"), *[ROOT / name for name in ("deploy", "examples", ".ci")]]
    places = [*PAGES, *[path for folder in folders for path in folder.rglob("*")], ROOT / "tox.ini"]
    advice = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in places
        if path.suffix not in (".pyc", ".png") and path.is_file()
        for line in path.read_text(encoding="utf-8").splitlines()
        if INSTALLS.search(line) and "Do not `pip install syft-core`" not in line
    ]

    assert advice == []


@pytest.mark.parametrize("advice", ["pip install syft-core", "pip install -U 'syft-core[ray]'", "uv add syft_core"])
def test_such_advice_is_found(advice: str) -> None:
    assert INSTALLS.search(f"run `{advice}` first")


def test_the_readme_installs_the_library_before_it_uses_it() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```(?:sh|python)\n(.*?)```", text, re.DOTALL)

    assert "pip install" in blocks[0]
    assert ". .venv/bin/activate" in blocks[0]
    assert any("syft-core worker" in block for block in blocks[1:])


def test_one_line_of_the_readme_runs_the_demo_and_one_the_tests_from_nothing_but_a_clone() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = re.findall(r"^python3\.11 -m venv .*$", text.partition("## Try it")[2], re.MULTILINE)

    installs = "python3.11 -m venv .venv && . .venv/bin/activate && pip install -q -c constraints.txt "
    assert lines == [f"{installs}'.[demo]' && syft-core demo", f"{installs}'.[torch,test-all]' && pytest -n 2"]
    assert (ROOT / "constraints.txt").exists()


def test_the_line_of_the_readme_runs_the_tests_as_ci_does() -> None:
    """With the same packages and options; CI runs the slow ones, too, and splits them among its environments."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini", encoding="utf-8")
    environment = tox["testenv:torch"]
    found = re.search(r"pip install -q -c constraints\.txt '\.\[([\w,-]+)\]' && (pytest .*)$", text, re.MULTILINE)

    assert found is not None
    extras, command = found.groups()
    assert set(extras.split(",")) == set(re.split(r",\s*", environment["extras"]))
    assert "-c{toxinidir}/constraints.txt" in environment["deps"]
    assert environment["commands"].startswith(f'{command} -m "slow or not slow"')
    assert re.search(r"tox\" run -e core,numpy,torch\b", (ROOT / ".ci/run").read_text(encoding="utf-8"))
