"""Tracebacks in notebooks: without the frames of this library by default."""

from __future__ import annotations

from types import TracebackType
from typing import Literal

from syft_core.packages import PACKAGES

_shown: Literal["short", "full"] = "short"


def tracebacks(kind: Literal["short", "full"]) -> None:
    """Choose how notebooks show our errors: only your own frames ("short", the default), or all ("full")."""
    global _shown  # noqa: PLW0603  # one setting for the process, as notebooks have one display
    if kind not in ("short", "full"):
        raise ValueError(f"cannot show {kind!r} tracebacks: the choices are 'short' and 'full'")
    _shown = kind


def hide_library_frames(traceback: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the frames of this library; the original if no others are left."""
    return (_hide(traceback) or traceback) if _shown == "short" else traceback


def _hide(traceback: TracebackType | None) -> TracebackType | None:
    if traceback is None:
        return None
    rest, frame = _hide(traceback.tb_next), traceback.tb_frame
    if str(frame.f_globals.get("__name__")).partition(".")[0] in PACKAGES:
        return rest
    return TracebackType(rest, frame, traceback.tb_lasti, traceback.tb_lineno)


def render_in_notebook(error: BaseException) -> list[str]:
    """Return the lines that IPython shows for an error; IPython calls it through ``_render_traceback_``."""
    from IPython import get_ipython  # noqa: PLC0415  # only a notebook gets here

    shown = hide_library_frames(error.__traceback__)
    lines: list[str] = get_ipython().InteractiveTB.structured_traceback(type(error), error, shown, tb_offset=1)
    return lines
