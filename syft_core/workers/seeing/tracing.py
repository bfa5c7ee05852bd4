"""The active traces; the code that records is loaded when there is one, or a log that needs it."""

from __future__ import annotations

from syft_core.features import Later
from syft_core.values import Nested

traces: list[Nested] = []
record = Later("syft_core.workers.seeing.trace:record")
summary = Later("syft_core.workers.seeing.trace:summary")
redact = Later("syft_core.workers.seeing.trace:redact")
