"""Write the table of rooms in docs/architecture.md from docstrings: ``python -m tests.architecture.rooms``."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
MARKS = "<!-- rooms, by python -m tests.architecture.rooms -->\n", "<!-- /rooms -->\n"
PACKAGES = ("syft_core", "syft_torch", "syft_numpy", "syft_mpc", "syft_privacy", "syft_sums", "syft_worker", "syft_ray")
READ_FIRST = {
    "syft_core": "messages.py",
    "syft_core/demo": "line.py",
    "syft_core/hook": "dispatch.py",
    "syft_core/hook/contracts": "operations.py",
    "syft_core/ledgers": "entry.py",
    "syft_core/network": "server.py",
    "syft_core/pictures": "boxes.py",
    "syft_core/plans": "plan.py",
    "syft_core/plugins": "hookspecs.py",
    "syft_core/pointers": "pointer_tensor.py",
    "syft_core/serde": "message.py",
    "syft_core/tensors": "abstract.py",
    "syft_core/testing": "conformance.py",
    "syft_core/workers": "party/base.py",
    "syft_core/workers/addresses": "wire.py",
    "syft_core/workers/moving": "departure.py",
    "syft_core/workers/party": "base.py",
    "syft_core/workers/road": "procedure.py",
    "syft_core/workers/seeing": "permissions.py",
    "syft_mpc": "additive_shared.py",
    "syft_privacy": "epsilon.py",
    "syft_sums": "contribution.py",
    "syft_mpc/numpy": "kernels.py",
    "syft_mpc/torch": "kernels.py",
    "syft_numpy": "hook.py",
    "syft_numpy/serde": "array.py",
    "syft_ray": "workers.py",
    "syft_torch": "hook.py",
    "syft_torch/demo": "story.py",
    "syft_torch/differential_privacy": "pate.py",
    "syft_torch/federated": "trainer.py",
    "syft_torch/federated/private_steps": "loop.py",
    "syft_torch/serde": "tensor.py",
    "syft_worker": "serving.py",
    "syft_worker/desk": "requests.py",
}
"""The file of each room to begin with."""


def make_table() -> str:
    """Return a table of all packages: what each is for, and which of its files to read first."""
    lines = ["| room | what it is for | read first |", "|---|---|---|"]
    for package in PACKAGES:
        for path in list_rooms(package):
            room = path.parent.relative_to(ROOT).as_posix()
            first = READ_FIRST.get(room)
            if first is None or not (ROOT / room / first).exists():
                raise SystemExit(f"cannot find the file of {room} to read first; name one in READ_FIRST")
            depth = room.count("/")
            name = f"**`{room}/`**" if depth == 0 else f"`{room.partition('/')[2]}/`"
            lines.append(f"| {name} | {describe(path)} | [{first}](../{room}/{first}) |")
    return "\n".join(lines) + "\n"


def list_rooms(package: str) -> list[Path]:
    """Return the `__init__.py` of each room; the example that authors of backends start from is data."""
    return sorted(path for path in (ROOT / package).rglob("__init__.py") if "template" not in path.parts)


def describe(path: Path) -> str:
    """Return the first sentence of a package's docstring, without its page."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    sentence = re.sub(r" \(docs/\S+\)", "", docstring.partition("\n\n")[0].replace("\n", " "))
    return sentence.replace("``", "`").rstrip(".").replace("|", "\\|")


def write_table(page: str) -> str:
    """Return the page with the table between its marks."""
    before, _, rest = page.partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    return f"{before}{MARKS[0]}\n{make_table()}\n{MARKS[1]}{after}"


if __name__ == "__main__":
    PAGE.write_text(write_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
