"""Build the site from the pages of this repository: ``tox run -e site``. The build needs no network."""

from __future__ import annotations

import ast
import re
import shutil
import sys
from importlib.metadata import version as find_version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
GENERATED = ROOT / "docs" / "generated"
"""Pages that exist during a build: the interface and the gallery."""
sys.path.insert(0, str(ROOT))

project = "syft-core"
version = release = find_version(project)
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
root_doc = "README"
include_patterns = [
    *["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"],
    *["docs/*.md", "docs/**/*.md", "examples/*.md", "examples/**/*.md", "benchmarks/README.md"],
]
html_theme = "furo"
html_title = f"syft-core {release}"
html_copy_source = False
myst_heading_anchors = 6
myst_enable_extensions = ["colon_fence"]
suppress_warnings = ["misc.highlighting_failure"]  # a console's output is not a program
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True, "undoc-members": False, "member-order": "bysource"}
python_use_unqualified_type_names = True
viewcode_line_numbers = True

AUTHORS = {
    "Describe a plugin": ("syft_core.plugins.backend", "syft_core.plugins.hookspecs", "syft_core.features"),
    "Hook a framework": ("syft_core.hook.hook", "syft_core.hook.attributes", "syft_core.hook.facts"),
    "Write a layer": ("syft_core.tensors.abstract", "syft_core.hook.overload"),
    "Send values": ("syft_core.serde.codec", "syft_core.tensors.codecs"),
    "Write a transport": ("syft_core.location", "syft_core.workers.addresses.wire"),
    "Test it": ("syft_core.testing.conformance", "syft_core.testing.transport", "syft_core.testing.section"),
}
"""The modules behind the doors for authors of backends, layers, codecs and transports."""


def setup(app: Any) -> None:
    """Connect what this file does to the steps of a build."""
    app.connect("builder-inited", write_pages)
    app.connect("source-read", prepare_page)
    app.connect("autodoc-process-docstring", prepare_docstring)
    app.connect("build-finished", finish)


# --- pages that are written


def write_pages(_app: Any) -> None:
    """Write the pages of the interface and of the examples."""
    shutil.rmtree(GENERATED, ignore_errors=True)
    GENERATED.mkdir()
    names = {"api-sy": write_names("sy", "syft_core", list_core_names())}
    names["api-fl"] = write_names("fl", "syft_torch.federated", list_federated_names())
    names["api-authors"] = "# For authors\n\n" + "\n".join(
        f"## {title}\n\n" + "\n".join(automodule(module) for module in modules) for title, modules in AUTHORS.items()
    )
    for name, text in names.items():
        (GENERATED / f"{name}.md").write_text(text, encoding="utf-8")
    write_gallery()


def list_core_names() -> dict[str, str]:
    """Return the public names of ``sy.`` with their import paths."""
    import syft_core  # only for this page
    from syft_core.features import FEATURES
    from syft_core.plugins.manager import plugin_manager

    found = dict(syft_core._NAMES)
    for backend in plugin_manager().backends.values():
        found |= backend.exports
    for feature in FEATURES:
        found |= feature.names
    return found


def list_federated_names() -> dict[str, str]:
    """Return the public names of ``fl.`` with their import paths."""
    import syft_torch.federated as fl

    return {name: f"{getattr(fl, name).__module__}:{name}" for name in sorted(fl.__all__)}


def write_names(alias: str, package: str, names: dict[str, str]) -> str:
    """Return a page with one section for each public name."""
    text = f"# {alias}: the public names\n\n`import {package} as {alias}`\n"
    for name, path in sorted(names.items(), key=lambda pair: pair[0].lower()):
        module, _, attribute = path.partition(":")
        text += f"\n## {alias}.{name}\n\n" + (autoname(module, attribute) if attribute else automodule(module))
    return text


def autoname(module: str, attribute: str) -> str:
    """Return the directive that documents a class, a function or a value."""
    import importlib

    thing = getattr(importlib.import_module(module), attribute)
    kind = "class" if isinstance(thing, type) else "function" if callable(thing) else "data"
    return f"```{{eval-rst}}\n.. auto{kind}:: {module}.{attribute}\n   :no-index:\n```\n"


def automodule(module: str) -> str:
    """Return the directive that documents a module."""
    return f"### `{module}`\n\n```{{eval-rst}}\n.. automodule:: {module}\n   :no-index:\n```\n"


def write_gallery() -> None:
    """Write a page for each example, with its purpose, its source and its picture, and the list of them."""
    entries = []
    for path in sorted(ROOT.glob("examples/**/*.py")):
        source = path.read_text(encoding="utf-8")
        docstring = ast.get_docstring(ast.parse(source)) or ""
        title = docstring.partition("\n")[0].rstrip(".")
        name = path.relative_to(ROOT / "examples").with_suffix("").as_posix().replace("/", "-")
        pictures = [f"![{title}](../../{found})" for found in find_pictures(path)]
        page = [f"# {title}", docstring.partition("\n")[2].strip(), *pictures, f"`python {path.relative_to(ROOT)}`"]
        page.append(f"```{{literalinclude}} ../../{path.relative_to(ROOT)}\n:language: python\n```")
        (GENERATED / f"example-{name}.md").write_text("\n\n".join(filter(None, page)) + "\n", encoding="utf-8")
        entries.append(f"| [{title}](example-{name}.md) | `{path.relative_to(ROOT)}` |")
    table = "\n".join(["# Gallery", "", "| example | file |", "|---|---|", *entries, ""])
    (GENERATED / "gallery.md").write_text(table, encoding="utf-8")


def find_pictures(example: Path) -> list[str]:
    """Return the pictures of an example: files of its name in docs/pictures."""
    return [str(path.relative_to(ROOT)) for path in sorted(ROOT.glob(f"docs/pictures/{example.stem}*"))]


# --- pages of the repository


def prepare_page(_app: Any, name: str, content: list[str]) -> None:
    """Make links work that lead to files that are not pages, and give the first page the table of contents."""
    place = (ROOT / name).parent

    def replace(link: re.Match[str]) -> str:
        text, target, anchor = link.group(1), (place / link.group(2)).resolve(), link.group(3) or ""
        if target.is_dir() and (target / "README.md").exists():
            return f"[{text}]({link.group(2).rstrip('/')}/README.md{anchor})"
        if target.suffix == ".py" and ROOT / "examples" in target.parents:
            stem = target.relative_to(ROOT / "examples").with_suffix("").as_posix().replace("/", "-")
            return f"[{text}](/docs/generated/example-{stem}.md)"
        return text if target.is_dir() or not target.exists() or not target.suffix else link.group(0)

    if not name.startswith("docs/generated/"):
        content[0] = re.sub(r"(?<!!)\[([^\]\n]+)\]\((?!http|#)([^)\s#]+)(#[^)\s]*)?\)", replace, content[0])
    if name == root_doc:
        content[0] += make_contents()


def make_contents() -> str:
    """Return the table of contents: the reading order of docs/README.md, the gallery and the interface."""
    users, _, contributors = (ROOT / "docs" / "README.md").read_text(encoding="utf-8").partition("For contributors")
    parts = {
        "Guide": ["docs/README", *list_pages(users)],
        "Examples": [*list_readmes(), "docs/generated/gallery"],
        "Interface": ["docs/generated/api-sy", "docs/generated/api-fl", "docs/generated/api-authors"],
        "For contributors": [*list_pages(contributors), "CHANGELOG", "SECURITY"],
    }
    listed = {page for pages in parts.values() for page in pages}
    others = [path.relative_to(ROOT).with_suffix("").as_posix() for path in sorted((ROOT / "docs").rglob("*.md"))]
    examples = [page for page in others if page.startswith("docs/generated/example-")]
    parts["Examples"] += examples
    parts["Guide"] += [page for page in others if page not in listed and page not in examples]
    return "".join(
        f"\n\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n" + "\n".join(dict.fromkeys(pages)) + "\n```\n"
        for caption, pages in parts.items()
    )


def list_readmes() -> list[str]:
    """Return the pages in the folder of examples."""
    return [path.relative_to(ROOT).with_suffix("").as_posix() for path in sorted(ROOT.glob("examples/**/README.md"))]


def list_pages(text: str) -> list[str]:
    """Return the pages to which a part of docs/README.md links, in its order."""
    paths = [(ROOT / "docs" / link).resolve() for link in re.findall(r"\]\(([^)#\s]+\.md)\)", text)]
    names = [path.relative_to(ROOT).with_suffix("").as_posix() for path in paths]
    return [name for name in dict.fromkeys(names) if name not in (root_doc, "examples/README", "CHANGELOG", "SECURITY")]


def prepare_docstring(_app: Any, _what: str, _name: str, _thing: Any, _options: Any, lines: list[str]) -> None:
    """Turn what docstrings write in Markdown into reStructuredText: `names` and examples without a blank line."""
    lines[:] = [re.sub(r"(?<![`:\w])`([^`\n]+)`(?![`_])", r"``\1``", line) for line in lines]


# --- after the build


def finish(app: Any, error: Exception | None) -> None:
    """Let the site start at index.html, and leave no written page among those of the repository."""
    shutil.rmtree(GENERATED, ignore_errors=True)
    if error is None and app.builder.format == "html":
        shutil.copy(Path(app.outdir, f"{root_doc}.html"), Path(app.outdir, "index.html"))
