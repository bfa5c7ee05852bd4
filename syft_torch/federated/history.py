"""History: what happened in each round, as a table or a picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import isnan
from pathlib import Path

import torch

from syft_core.display import Notebook, find_display
from syft_core.files import write_file
from syft_core.peer import Id
from syft_core.pictures.lines import draw_lines
from syft_core.pictures.tables import html_table, one_line, text_table, truncate
from syft_core.values import Kwargs, Nested
from syft_torch.federated.private_steps.accounting import write_epsilon


@dataclass
class Row:
    """One round: who took part, who was left out and why."""

    round: int
    loss: float
    """The mean loss in training, over all samples; not a number with ``SampleDP``, which does not reveal it."""
    workers: list[Id]
    left_out: dict[Id, str] = field(default_factory=dict)
    """Why the update of a worker is missing."""
    samples: int = 0
    seconds: float = 0.0
    evaluation: dict[str, Nested] = field(default_factory=dict)
    """Each metric by name, if the model was evaluated after this round; tensors as lists."""
    not_evaluated: dict[Id, str] = field(default_factory=dict)
    """Why a worker is missing in the evaluation."""
    epsilon: float | None = None
    """The largest ε of all workers after this round, with ``SampleDP``."""
    delta: float | None = None
    """The δ for which it holds."""

    @property
    def privacy(self) -> str:
        """The promise after this round, as text; empty without ``SampleDP``."""
        return "" if self.epsilon is None else write_epsilon(self.epsilon, self.delta or 0.0)

    def cells(self, metrics: Sequence[str] = (), has_privacy: bool = False) -> tuple[str, ...]:
        """Return the cells of a table row, with those of these metrics, and of ε."""
        missing = [f"{worker}: {why}" for worker, why in self.left_out.items()]
        missing += [f"{worker}, in the evaluation: {why}" for worker, why in self.not_evaluated.items()]
        text = (truncate(", ".join(map(str, self.workers)), 60), truncate("; ".join(missing), 160))
        found = [write_number(self.evaluation[name]) if name in self.evaluation else "" for name in metrics]
        found += [self.privacy] if has_privacy else []
        numbers = write_number(self.loss), *found, str(self.samples), f"{self.seconds:.2f}"
        return str(self.round), *numbers, *map(one_line, text)


@dataclass
class History:
    """The rounds of a run. It prints as a table and renders in a notebook."""

    rows: list[Row] = field(default_factory=list)

    @property
    def header(self) -> tuple[str, ...]:
        """The names of the columns; the metrics of evaluations are among them."""
        metrics = [f"evaluated {name}" for name in self.metrics]
        metrics += ["largest ε"] if self.has_privacy else []
        return "round", "loss", *metrics, "samples", "seconds", "took part", "left out"

    @property
    def metrics(self) -> list[str]:
        """The names of the metrics that were evaluated after rounds."""
        return list(dict.fromkeys([name for row in self.rows for name in row.evaluation]))

    @property
    def has_privacy(self) -> bool:
        """Whether rounds were trained with ``SampleDP``."""
        return any(row.epsilon is not None for row in self.rows)

    @property
    def losses(self) -> list[float]:
        """The loss of each round."""
        return [row.loss for row in self.rows]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __getitem__(self, index: int) -> Row:
        return self.rows[index]

    def __str__(self) -> str:
        return text_table(self.header, self._cells()) if self.rows else "no rounds yet"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table("rounds", self.header, self._cells(), limit=1000)

    def _cells(self) -> list[tuple[str, ...]]:
        metrics = self.metrics
        return [row.cells(metrics, self.has_privacy) for row in self.rows]

    def trace(self, metric: str) -> list[tuple[int, float]]:
        """Return a metric of the evaluations, if it is a number, with the round of each."""
        found = [(row.round, row.evaluation.get(metric)) for row in self.rows]
        return [(round, float(value)) for round, value in found if isinstance(value, int | float)]

    def plot(self, path: str | Path | None = None) -> Nested:
        """Draw the loss by round, with matplotlib if installed, otherwise as SVG; write it to ``path`` if given."""
        try:
            from matplotlib import pyplot  # noqa: PLC0415  # optional
        except ImportError:
            picture = self.draw()
            if path is not None:
                write_file(Path(path), picture.encode(), mode=0o644)
            return Svg(picture)
        figure, axes = pyplot.subplots()
        for name, points in self._lines().items():
            axes.plot([x for x, _ in points], [y for _, y in points], marker=".", label=name)
        axes.set_xlabel("round")
        axes.set_ylabel("loss")
        axes.legend()
        if path is not None:
            figure.savefig(path)
        if isinstance(find_display(), Notebook):
            pyplot.close(figure)  # A notebook shows what a cell returns, and would show an open figure a second time.
        return figure

    def draw(self, width: int = 640, height: int = 320) -> str:
        """Return the loss by round as SVG."""
        return draw_lines(self._lines(), width, height)

    def _lines(self) -> dict[str, list[tuple[int, float]]]:
        losses = [(row.round, row.loss) for row in self.rows if not isnan(row.loss)]
        lines = {"training": losses, "evaluation": self.trace("loss")}
        return {name: points for name, points in lines.items() if points}

    # --- checkpoints

    def dump(self) -> list[Kwargs]:
        """Return the rows as plain data."""
        dicts = [{name: list(getattr(row, name).items()) for name in _BY_WORKER} for row in self.rows]
        return [{**asdict(row), **found} for row, found in zip(self.rows, dicts, strict=True)]

    @classmethod
    def load(cls, rows: Sequence[Mapping[str, Nested]]) -> History:
        """Invert ``dump``."""
        return cls([Row(**{**row, **{name: dict(row.get(name, ())) for name in _BY_WORKER}}) for row in rows])


_BY_WORKER = ("left_out", "not_evaluated")
"""The fields of a row that JSON cannot express: their keys are ids, which may be numbers."""


class Svg(str):
    """A picture that renders in a notebook."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)


def to_plain(value: Nested) -> Nested:
    """Return a metric as JSON can express it."""
    return value.tolist() if isinstance(value, torch.Tensor) else value


def write_number(value: Nested) -> str:
    """Return a metric as text, with four digits if it is a number; "-" if it is not known."""
    if isinstance(value, float) and isnan(value):
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(to_plain(value))
