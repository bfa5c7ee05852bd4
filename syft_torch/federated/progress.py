"""Progress: one line about a run, in a terminal or a notebook."""

from __future__ import annotations

from math import isnan

from syft_core.display import Display, Nowhere, Terminal, find_display
from syft_torch.federated.history import Row, write_number


class RunLine:
    """Shows one line about a run, in place of the one before."""

    def __init__(self, last: int, is_wanted: bool | None) -> None:
        self._last = last
        self._display = _choose_display(is_wanted)

    def update(self, row: Row) -> None:
        """Show a round."""
        found = "".join([f"  {name} {write_number(value)}" for name, value in row.evaluation.items()])
        found += f"  ({row.privacy})" if row.privacy else ""
        loss = "-" if isnan(row.loss) else f"{row.loss:.4f}"
        out = f", {len(row.left_out)} left out" if row.left_out else ""
        text = f"round {row.round}/{self._last}  loss {loss}{f'  evaluated:{found}' if found else ''}"
        self._display.show(f"{text}  {len(row.workers)} workers{out}  {row.seconds:.1f} s")

    def end(self) -> None:
        """End the line."""
        self._display.end()


def _choose_display(is_wanted: bool | None) -> Display:
    """Return where to show progress: nowhere if it is not wanted, or by default if there is no such place."""
    if is_wanted is False:
        return Nowhere()
    return find_display() or (Terminal() if is_wanted else Nowhere())
