"""HTML, SVG and text pictures of chains, workers and messages: names and forms, never remote values.

These are pure functions: they send no messages and do not depend on the rest of the library.
"""

from syft_core.pictures.boxes import chain_html, describe_form, form_of, worker_html
from syft_core.pictures.events import EventList, TraceEvent
from syft_core.pictures.tables import html_table, one_line, text_table, to_moment, to_size

__all__ = [
    "EventList",
    "TraceEvent",
    "chain_html",
    "describe_form",
    "form_of",
    "html_table",
    "one_line",
    "text_table",
    "to_moment",
    "to_size",
    "worker_html",
]
