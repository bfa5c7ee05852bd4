"""The page about protocols is complete, and says what the declarations say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("numpy")

from syft_core.crypto.protocol import PROTOCOLS, Spec

from . import groups

PAGE = (Path(groups.__file__).parents[2] / "docs" / "protocols.md").read_text(encoding="utf-8")
ROWS = {
    name: [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("| `")
    for name in re.findall(r"`(\w+)`", line.split("|")[1])
    if " with " not in line.split("|")[1]
}


def test_every_protocol_has_a_row_and_a_description() -> None:
    assert ROWS.keys() == set(PROTOCOLS)
    for name in PROTOCOLS:
        assert f"**`{name}`" in PAGE, name


@pytest.mark.parametrize("name", [name for name in PROTOCOLS if isinstance(PROTOCOLS[name].rounds, int)])
def test_the_page_states_the_rounds_and_bytes_of_the_declaration(name: str) -> None:
    entry, (_, _, rounds, size, *_) = PROTOCOLS[name], ROWS[name]

    assert rounds.partition(",")[0] == str(entry.rounds)
    if size.isdecimal() and name != "snn_private_compare":
        number = 3 if name == "snn_select_share" else 2 if name == "maximum" else 1
        sends = entry.sends if isinstance(entry.sends, int) else entry.sends(*[Spec((1,))] * number, **_options(name))
        assert int(size) == sends


def _options(name: str) -> dict[str, int]:
    return {"divisor": 2} if name == "truncate" else {}


def test_the_page_states_how_many_parties_a_protocol_needs() -> None:
    for name, entry in PROTOCOLS.items():
        assert ROWS[name][-1] == ("any" if entry.parties is None else str(entry.parties)), name
