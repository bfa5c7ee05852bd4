"""Modules that import one another can only be read together: such groups stay small, imports for types included."""

from __future__ import annotations

import ast
import graphlib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
LARGEST = 3
"""How many modules may import one another, for types or not."""

Imports = dict[str, set[str]]


def name_of(path: Path, root: Path) -> str:
    """Return the name of the module at a path."""
    return ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


def find_imports(root: Path) -> Imports:
    """Return what each module of the packages in a folder imports of them, anywhere in it."""
    trees = {name_of(path, root): ast.parse(path.read_text()) for path in root.glob("syft_*/**/*.py")}
    return {name: {found for found in _list_imported(tree, trees) if found != name} for name, tree in trees.items()}


def _list_imported(tree: ast.Module, known: dict[str, ast.Module]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found = whole if whole in known else str(node.module)
                if found in known:
                    yield found


def find_cycles(imports: Imports) -> list[set[str]]:
    """Return the groups of modules each of which imports all others of its group, directly or not."""
    reached = {name: _reach(imports, name) for name in imports}
    groups = {frozenset(other for other in reached[name] if name in reached[other]) for name in imports}
    return [set(group) for group in groups if len(group) > 1]


def _reach(imports: Imports, start: str) -> set[str]:
    found, ahead = set[str](), [start]
    while ahead:
        for name in imports[ahead.pop()] - found:
            found.add(name)
            ahead.append(name)
    return found


def test_groups_of_modules_that_import_one_another_are_small() -> None:
    cycles = find_cycles(find_imports(ROOT))

    assert [sorted(cycle) for cycle in cycles if len(cycle) > LARGEST] == []


def test_there_is_no_cycle_without_imports_for_types() -> None:
    imports = find_imports(ROOT)
    for name, found in imports.items():
        path = ROOT / name.replace(".", "/")
        tree = ast.parse((path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                body = ast.Module(node.body, [])
                found.difference_update(_list_imported(body, dict.fromkeys(imports, body)))

    assert list(graphlib.TopologicalSorter(imports).static_order())


def test_the_check_finds_a_cycle_with_an_import_for_types(tmp_path: Path) -> None:
    folder = tmp_path / "syft_small"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "a.py").write_text("from syft_small import b\n")
    (folder / "b.py").write_text("from syft_small.c import thing\n")
    (folder / "c.py").write_text("if TYPE_CHECKING:\n    from syft_small.a import Other\n")
    (folder / "d.py").write_text("def f():\n    import syft_small.a\n")

    assert find_cycles(find_imports(tmp_path)) == [{"syft_small.a", "syft_small.b", "syft_small.c"}]
