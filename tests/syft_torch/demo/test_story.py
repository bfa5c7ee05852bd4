from __future__ import annotations

import contextlib
import io
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_core.demo import DemoOptions, Screen, run_demo  # noqa: E402  # torch may be missing
from syft_torch.plugin import BACKEND  # noqa: E402  # the same
from tests.waiting import wait_for_result, wait_until  # noqa: E402  # the same

ROOT = Path(__file__).parents[3]
NAMES = ("north", "east", "south")


def run(**options: Any) -> tuple[str, str]:
    """Run the demo; return what the terminal shows, and the page."""
    terminal = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(terminal):
        patch.setenv("COLUMNS", "80")
        screen = Screen(0)
        run_demo(screen, BACKEND, DemoOptions(**options))
    return terminal.getvalue(), screen.page.html()


@pytest.fixture(scope="module")
def told() -> tuple[str, str]:
    return run(in_process=True)


def read_accuracy(shown: str) -> dict[str, float]:
    rows = re.findall(r"^   (\w+ alone|pooled|together)(?:,.*?)? +([\d.]+)%$", shown, re.MULTILINE)
    return {name: float(right) for name, right in rows}


def require_results(shown: str) -> None:
    """Raise unless training together is much better than alone, and about as good as in one place."""
    right = read_accuracy(shown)
    assert len(right) == 5
    assert right["together"] > max(right[f"{name} alone"] for name in NAMES) + 8
    assert abs(right["together"] - right["pooled"]) < 4
    left = " ".join(shown.partition("== 6.")[2].split())
    assert (
        "Rows of patients that left a hospital: 0. Results that were computed from patients and left outside a sum"
        in left
    )
    assert "outside a sum: 0." in left


def test_the_hospitals_train_a_model_that_none_of_them_could_train_alone(told: tuple[str, str]) -> None:
    shown, _ = told

    require_results(shown)
    assert max(map(len, shown.splitlines())) <= 110
    for text in ("GetNotPermittedError: cannot get object", "ValueRefusedError", "NotCollocatedError", "[aggregates]"):
        assert text in shown


def test_only_sums_and_shares_leave_the_hospitals(told: tuple[str, str]) -> None:
    shown, _ = told

    for name, left in zip(NAMES, shown.partition("== 6.")[2].split("   times  ")[1:], strict=True):
        rows = re.findall(r"^   (\d+) +(Tensor.*?)  +(\S.*?)  ", left, re.MULTILINE)
        shares = [] if name == "south" else [("1", "Tensor[5] int64", "nothing of this hospital")]
        assert rows == [("10", "Tensor[148], only in the sum of 3 workers", "#patients"), *shares]


def test_the_model_diagnoses_patients_on_shares(told: tuple[str, str]) -> None:
    shown, _ = told

    assert "their shares of 5 diagnoses. The same as in plain sight: 5." in " ".join(shown.split())


def test_the_page_begins_with_the_results_and_ends_with_the_diagram(told: tuple[str, str]) -> None:
    shown, page = told

    right = read_accuracy(shown)
    places = [
        page.index(text)
        for text in (
            f"<b>{right['together']}%</b>", f"<b>{right['pooled']}%</b>", "<b>0</b><span>rows that left", "<polyline",
            "Who got what", "north, the heart clinic", "[aggregates]", '<svg xmlns="http://www.w3.org/2000/svg" '
            'class="syft-trace"', "data leaves a worker",
        )
    ]  # fmt: skip
    assert places == sorted(places)
    assert page.count("<polyline") == 10  # five lines, for desks and for phones
    assert not re.search(r"https?:(?!//www\.w3\.org/2000/svg)|<script|<link|@import|url\(", page)


def test_private_training_shows_its_largest_epsilon_next_to_the_accuracy() -> None:
    pytest.importorskip("dp_accounting")

    shown, page = run(in_process=True, private_dp=True)

    spent = [float(found) for found in re.findall(r"round +\d+ .*%  ε ([\d.]+) at δ 0.0001", shown)]
    assert len(spent) == 10
    assert spent == sorted(spent)
    assert spent[-1] < 8
    assert re.search(rf"together, no patient moved +[\d.]+%  ε {spent[-1]} at δ 0.0001", shown)
    assert f"right diagnoses, trained together, with ε {spent[-1]} at δ 0.0001 (the largest of the three)" in page
    assert "noise = { multiplier = 1.0" in page.replace("&quot;", '"')
    assert "only in the sum of 3 workers, with noise: " in page


def test_the_demo_does_not_change_the_global_random_state(capsys: Any) -> None:
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)

    run_demo(Screen(0), BACKEND, DemoOptions(in_process=True))

    assert torch.equal(torch.rand(2), expected)


# --- hospitals in processes of their own


def start_demo(*options: str) -> subprocess.Popen[str]:
    program = "import sys; from syft_core.cli import main; sys.exit(main())"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}
    command = [sys.executable, "-c", program, "demo", "--fast", *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 20])
def test_three_hospitals_with_tls_train_and_stop(seed: int, tmp_path: Path) -> None:
    demo = start_demo("--seed", str(seed), "--page", str(tmp_path / "page.html"))

    shown, errors = demo.communicate(timeout=300)

    assert (demo.returncode, errors) == (0, "")
    require_results(shown)
    assert len(set(re.findall(r"wss://127\.0\.0\.1:(\d+)", shown))) == 3
    assert "rows that left" in (tmp_path / "page.html").read_text(encoding="utf-8")


def list_children(process: int) -> list[int]:
    found = [path.read_text().split() for path in Path(f"/proc/{process}/task").glob("*/children")]
    return [int(id) for ids in found for id in ids]


def is_alive(process: int) -> bool:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="this kernel does not list the children of a process")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_no_hospital_outlives_a_demo_that_is_interrupted(number: int, code: int) -> None:
    demo = start_demo()
    assert demo.stdout is not None
    try:
        while "round   1" not in wait_for_result(demo.stdout.readline, 300):
            assert demo.poll() is None
        hospitals = list_children(demo.pid)
        assert len(hospitals) == 3
        demo.send_signal(number)
        assert demo.wait(60) == code
        wait_until(lambda: not any(map(is_alive, hospitals)))
    finally:
        demo.kill()
        demo.communicate(timeout=60)
