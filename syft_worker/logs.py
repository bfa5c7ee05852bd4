"""Logs of a served worker: one line for each event, as text or as JSON."""

from __future__ import annotations

import json
import logging
import sys
from datetime import datetime, timezone

from syft_core.pictures.tables import one_line


def configure_logs(kind: str, level: str = "info") -> None:
    """Write the events of this process to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonFormatter() if kind == "json" else _TextFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.getLogger("websockets").setLevel(logging.WARNING)


def log_event(log: logging.Logger, level: int, text: str, **fields: object) -> None:
    """Log an event with fields that programs can read."""
    log.log(level, "%s", text, extra={"fields": fields})


class _TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields = "".join(f" {name}={one_line(str(value))}" for name, value in getattr(record, "fields", {}).items())
        return f"{_time(record)} {record.levelname} {one_line(_text(record))}{fields}"


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {"time": _time(record), "level": record.levelname, "logger": record.name, "event": _text(record)}
        return json.dumps({**line, **getattr(record, "fields", {})}, default=str)


def _text(record: logging.LogRecord) -> str:
    """Return the message; of an exception its type and place, because its text may quote values."""
    error = record.exc_info[1] if record.exc_info else None
    if error is None:
        return record.getMessage()
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = "" if trace is None else f" at {trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
    return f"{record.getMessage()}: {type(error).__name__}{place}"


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds")
