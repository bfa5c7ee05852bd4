"""In a notebook, an error shows the user's own lines and not those of the library."""

from __future__ import annotations

import subprocess
import sys
import traceback
from collections.abc import Iterator

import pytest

import syft_core as sy
from syft_core.exceptions import AlreadyRegisteredError
from syft_core.notebooks import hide_library_frames
from syft_core.registry import Registry


@pytest.fixture(autouse=True)
def short() -> Iterator[None]:
    yield
    sy.tracebacks("short")


def fail() -> AlreadyRegisteredError:
    table: Registry[str, int] = Registry("table")
    table.register("x", 1)
    with pytest.raises(AlreadyRegisteredError) as caught:
        table.register("x", 2)
    return caught.value


def modules(error: BaseException) -> set[str]:
    shown = hide_library_frames(error.__traceback__)
    return {frame.f_globals["__name__"].partition(".")[0] for frame, _line in traceback.walk_tb(shown)}


def test_a_short_traceback_has_no_frames_of_the_library() -> None:
    error = fail()

    assert "syft_core" not in modules(error)
    assert __name__.partition(".")[0] in modules(error)


def test_a_full_traceback_has_all_frames() -> None:
    sy.tracebacks("full")

    assert "syft_core" in modules(fail())


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="the choices are 'short' and 'full'"):
        sy.tracebacks("long")  # type: ignore[arg-type]


def test_ipython_shows_the_line_of_the_user() -> None:
    pytest.importorskip("IPython")
    program = "from syft_core.registry import Registry; r = Registry('t'); r.register('x', 1); r.register('x', 2)"
    for kind, shown in (("short", False), ("full", True)):
        code = f"import syft_core as sy; sy.tracebacks({kind!r})\n{program}"
        found = subprocess.run(
            [sys.executable, "-m", "IPython", "--colors=NoColor", "-c", code],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert "AlreadyRegisteredError" in found.stdout + found.stderr
        assert ("registry.py" in found.stdout + found.stderr) is shown
