"""Make the package of a new backend: a copy of the example, with its tests and CI, under a name of its own."""

from __future__ import annotations

import keyword
import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path

from syft_core.exceptions import ConfigurationError

TEMPLATE = Path(__file__).parents[1] / "testing" / "template"
"""The example: the framework ``toy``, and ``syft_toy``, the backend for it."""
_FRAMEWORK = "toy"


def make_plugin(name: str, folder: Path, taken: Collection[str] = ()) -> Path:
    """Create the folder ``syft-NAME`` with a backend called ``name`` that passes its tests, and return it."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise ConfigurationError(
            f"cannot make a plugin called {name!r}: it becomes part of the name of a Python package; "
            "use lowercase letters, digits and underscores, beginning with a letter"
        )
    if name in taken:
        raise ConfigurationError(
            f"cannot make a plugin called {name!r}: a backend of this name is installed; choose another"
        )
    target = folder / f"syft-{name.replace('_', '-')}"
    if target.exists():
        raise ConfigurationError(f"cannot make {target}: it exists; choose another name or `--folder`")
    for source in _list_files():
        place = target / _rename(str(source.relative_to(TEMPLATE)), name)
        place.parent.mkdir(parents=True, exist_ok=True)
        text = source.read_text(encoding="utf-8")
        place.write_text(text if _is_framework(source) else _rename(text, name), encoding="utf-8")
    return target


def _list_files() -> Iterator[Path]:
    for folder, folders, files in os.walk(TEMPLATE):
        folders[:] = [name for name in folders if name != "__pycache__"]
        yield from (Path(folder, name) for name in files)


def _is_framework(source: Path) -> bool:
    return source.relative_to(TEMPLATE).parts[0] == _FRAMEWORK


def _rename(text: str, name: str) -> str:
    """Give the backend another name; the framework keeps its own until the author replaces it."""
    title = "".join(word.capitalize() for word in name.split("_"))
    changes = {
        r"\bsyft_toy\b": f"syft_{name}",
        r"\bsyft-toy\b": f"syft-{name.replace('_', '-')}",
        r"(?<=--check )toy\b": name,
        r'(?<=^    name=")toy(?=",$)': name,
        r'^toy(?= = "syft_)': name,
        r"\bToy(?=Hook|Attributes|Conformance)": title,
        r"\bTestToy\b": f"Test{title}",
    }
    for pattern, new in changes.items():
        text = re.sub(pattern, new, text, flags=re.MULTILINE)
    return text
