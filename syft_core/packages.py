"""The packages of this distribution, and other distributions that claim one of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.metadata import Distribution, distributions
from pathlib import Path

FEATURES = ("syft_core", "syft_mpc", "syft_privacy", "syft_sums", "syft_worker", "syft_ray")
BACKENDS = ("syft_torch", "syft_numpy")
PACKAGES = (*FEATURES, *BACKENDS)
"""All of them: their lines are not those of a user's program."""
NAME = "syft-core"
_PLUGIN = ("syft_core", "mpc", "syft_mpc.plugin")
"""The group, name and value of an entry point that only this distribution has."""
_FILES = re.compile(r"^syft_core/", re.MULTILINE)


def find_namesakes() -> list[str]:
    """Return the other distributions that are called ``syft-core``; installing one damages this one."""
    return _describe(distributions(name=NAME))


def find_claimants() -> list[str]:
    """Return all other distributions that are called ``syft-core`` or list its package among their files."""
    return list(dict.fromkeys([*find_namesakes(), *_describe(filter(_contains_package, distributions()))]))


def warn_of(others: list[str]) -> str:
    """Return the text about other distributions."""
    return (
        "cannot rely on this installation: another project with a package syft_core is installed, too: "
        f"{'; '.join(others)}; uninstall both with `pip uninstall`, and install this one again as its README says"
    )


def find_page(path: str) -> str:
    """Return where an installed page of the documentation is, as `` (in PATH)``, or nothing in a clone."""
    for own in filter(_is_own, distributions(name=NAME)):
        for file in own.files or ():
            if str(file).endswith(f"share/doc/{NAME}/{path}"):
                return f" ({own.locate_file(file)})"
    return ""


def _describe(found: Iterable[Distribution]) -> list[str]:
    others = [one for one in found if not _is_own(one)]
    return list(
        dict.fromkeys(f"{one.name} {one.version} in {Path(str(one.locate_file(''))).resolve()}" for one in others)
    )


def _is_own(found: Distribution) -> bool:
    return any((point.group, point.name, point.value) == _PLUGIN for point in found.entry_points)


def _contains_package(found: Distribution) -> bool:
    return any(_FILES.search(found.read_text(name) or "") for name in ("RECORD", "SOURCES.txt"))
