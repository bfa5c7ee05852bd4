from __future__ import annotations

import contextlib
import io
import re
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_core.demo import Screen, run_demo  # noqa: E402
from syft_torch.plugin import BACKEND  # noqa: E402


@pytest.fixture(scope="module")
def told() -> tuple[str, str]:
    """Return the terminal output and the page with the pictures."""
    terminal = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(terminal):
        patch.setenv("COLUMNS", "80")
        screen = Screen(0)
        run_demo(screen, BACKEND)
    return terminal.getvalue(), screen.page.html()


def test_the_torch_demo_trains_and_releases_no_raw_data(told: tuple[str, str]) -> None:
    shown, _ = told

    assert "bit for bit: yes." in shown
    assert "Raw data: 0 of 98 departures." in shown
    assert shown.count("#ill, #patients") == 8
    right = dict(re.findall(r"^   (north alone|south alone|both, data never moved) +([\d.]+)%$", shown, re.MULTILINE))
    assert float(right["north alone"]) < 75
    assert float(right["south alone"]) < 75
    assert float(right["both, data never moved"]) > 90
    assert max(map(len, shown.splitlines())) <= 88


def test_the_torch_demo_uses_the_model_on_shares(told: tuple[str, str]) -> None:
    shown, _ = told

    assert "400 diagnoses in 12 rounds" in " ".join(shown.split())
    same = re.search(r"The same as in plain sight: ([\d.]+)%", " ".join(shown.split()))
    assert same is not None
    assert float(same[1]) > 99
    assert shown.count("diagnosis") == 2


def test_the_page_shows_a_whole_round_of_training(told: tuple[str, str]) -> None:
    _, page = told

    assert "binary_cross_entropy_with_logits" in page
    assert "data leaves a worker" in page
    assert "not shown" not in page


def test_the_demo_does_not_change_the_global_random_state(capsys: Any) -> None:
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)

    run_demo(Screen(0), BACKEND)

    assert torch.equal(torch.rand(2), expected)
