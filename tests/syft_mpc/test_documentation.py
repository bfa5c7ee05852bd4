"""The pages about protocols are complete, and say what the declarations say."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

pytest.importorskip("numpy")

from syft_mpc.protocol import PROTOCOLS, Spec

from . import groups

PAGES = {
    page.stem: page.read_text(encoding="utf-8")
    for page in (Path(groups.__file__).parents[2] / "docs" / "protocols").glob("*.md")
}
ROWS = {
    name: [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGES["README"].splitlines()
    if line.startswith("| `")
    for name in re.findall(r"`(\w+)`", line.split("|")[1])
    if " with " not in line.split("|")[1]
}


def test_every_protocol_has_a_row_and_a_description() -> None:
    assert ROWS.keys() == groups.CORE
    for name in groups.CORE:
        assert len([page for page in PAGES.values() if f"**`{name}`" in page]) == 1, name


OPTIONS = {
    "truncate": {"divisor": 2},
    "auth_truncate": {"divisor": 2},
    "activation": {"function": "sigmoid", "scale": 1 << 16},
    "wave": {"function": "sin", "scale": 1 << 16},
    "exponential": {"scale": 1 << 16},
    "reciprocal": {"scale": 1 << 16},
    "quotient": {"scale": 1 << 16},
    "root": {"function": "sqrt", "scale": 1 << 16},
    "logarithm": {"scale": 1 << 16},
}
OPERANDS = {"snn_select_share": 3, "maximum": 2, "quotient": 2, "spdz_mul_masked": 2}
"""How many operands a protocol has, if not one."""


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if re.match(r"\d+(,|$)", row[2])])
def test_the_page_states_the_rounds_and_bytes_of_the_declaration(name: str) -> None:
    entry, (_, _, rounds, size, *_), operands = PROTOCOLS[name], ROWS[name], [Spec((8,))] * OPERANDS.get(name, 1)
    options = OPTIONS.get(name, {})

    def declared(cost: int | Callable[..., int]) -> int:
        return cost if isinstance(cost, int) else cost(*operands, **options)

    assert rounds.partition(",")[0] == str(declared(entry.rounds))
    stated = re.match(r"[\d ]+(/\d+)?(?=,|$)", size)
    if stated and name != "snn_private_compare":  # Its operands are bits.
        assert sum(map(Fraction, stated[0].split())) == Fraction(declared(entry.sends), 8)


def test_the_page_states_how_many_parties_a_protocol_needs() -> None:
    for name in groups.CORE:
        needed = PROTOCOLS[name].parties
        assert ROWS[name][-1] == ("any" if needed is None else str(needed)), name
