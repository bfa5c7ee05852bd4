"""What a run shows of itself: a line while it trains, and a page."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from syft_torch.federated.evaluation import Evaluation
from syft_torch.federated.history import History, Row, write_report
from syft_torch.federated.loops import Settings


class ProgressLine:
    """Shows one line about the run."""

    def __init__(self, last: int, is_shown: bool) -> None:
        self._last, self._is_shown, self._is_begun = last, is_shown, False

    def update(self, row: Row) -> None:
        """Show a round."""
        if self._is_shown:
            out = f", {len(row.left_out)} left out" if row.left_out else ""
            text = f"round {row.round}/{self._last}  loss {row.loss:.4f}  {len(row.workers)} workers{out}"
            text += f"  {row.seconds:.1f} s"
            sys.stderr.write(f"\r{text:<78}")
            sys.stderr.flush()
            self._is_begun = True

    def end(self) -> None:
        """End the line."""
        if self._is_begun:
            sys.stderr.write("\n")


def write_run(
    path: str | Path, facts: Mapping[str, object], settings: Settings, history: History, evaluation: Evaluation | None
) -> None:
    """Write a page about a run: its settings, the loss by round, who took part, and the last evaluation."""
    shown = {
        **facts,
        "optimizer": f"{settings.optimizer} {settings.groups[0][0]}",
        "epochs, batch size": f"{settings.epochs}, {settings.batch_size}",
        "last batch": "left out if not full" if settings.drop_last else "of one sample: joins the one before",
        "rounds": len(history),
    }
    more = "" if evaluation is None else f"<h2>Evaluation</h2>{evaluation._repr_html_()}"
    write_report(path, "Federated training", [(name, str(value)) for name, value in shown.items()], history, more)
