"""The report: a page about a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path

from syft_core.files import write_file
from syft_core.pictures.lines import draw_lines
from syft_core.pictures.tables import html_table
from syft_torch.federated.departures import Departures
from syft_torch.federated.evaluation import Evaluation
from syft_torch.federated.history import History
from syft_torch.federated.loops import Settings

NOT_EVALUATED = "<p>not evaluated yet: call `evaluate`, or `fit(..., evaluate_every=1)`</p>"


def write_report(
    path: str | Path,
    facts: Mapping[str, object],
    settings: Settings,
    history: History,
    evaluation: Evaluation | None,
    departures: Departures,
) -> None:
    """Write a page: settings, losses and metrics by round, who took part, the last evaluation, and what left."""
    shown = {
        **facts,
        "optimizer": f"{settings.optimizer} {settings.groups[0][0]}",
        "epochs, batch size": f"{settings.epochs}, {settings.batch_size}",
        "last batch": "left out if not full" if settings.drop_last else "of one sample: joins the one before",
        "rounds": len(history),
    }
    rows = [(name, str(value)) for name, value in shown.items()]
    sections = [
        ("Loss", history.draw()),
        *_draw_metrics(history),
        ("Last evaluation", NOT_EVALUATED if evaluation is None else evaluation._repr_html_()),
        ("What has left each worker", departures.to_html()),
        ("Rounds", history._repr_html_()),
    ]
    page = (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Federated training</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<style>body{font-family:sans-serif;max-width:960px;margin:2em auto;padding:0 1em}"
        "svg{max-width:100%;height:auto}</style></head><body>"
        f"<h1>Federated training</h1>{html_table('settings', ('name', 'value'), rows)}"
        f"{''.join([f'<h2>{escape(name)}</h2>{content}' for name, content in sections])}</body></html>"
    )
    write_file(Path(path), page.encode(), mode=0o644)


def _draw_metrics(history: History) -> Iterator[tuple[str, str]]:
    for name in history.metrics:
        if name != "loss" and (points := history.trace(name)):
            yield name, draw_lines({"evaluation": points})
