"""Metrics: counters of a served worker in the text format of Prometheus; no names of users or objects."""

from __future__ import annotations

import os
import resource
import sys
from importlib.metadata import version

from syft_core.desk.releases import releases_of
from syft_core.desk.requests import STATES
from syft_core.network.server import Server
from syft_core.workers.seeing.journal import Journal

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def render_metrics(server: Server, restarts: int, counts_objects: bool) -> str:
    """Return the metrics of a worker; how many objects it has is for those only who may know of all of them."""
    worker, stats = server.worker, server.worker.stats
    connected = sum(client.connection is not None for client in server.sessions)
    releases = releases_of(worker)
    states = [request.state for request in releases.requests]
    lines: list[str] = []
    for name, kind, text, values in (
        ("messages_total", "counter", "Messages handled.", {"": stats.messages}),
        ("operations_total", "counter", "Operations run.", {"": stats.operations}),
        ("received_bytes_total", "counter", "Bytes received.", {"": stats.bytes_in}),
        ("sent_bytes_total", "counter", "Bytes sent.", {"": stats.bytes_out}),
        ("sessions_total", "counter", "Sessions opened.", {"": server.sessions_opened}),
        ("connections", "gauge", "Clients connected.", {"": connected}),
        (
            "refusals_total",
            "counter",
            "Refused connections and commands.",
            {'{what="connection"}': server.connections_refused, '{what="command"}': stats.refusals},
        ),
        ("restarts_total", "counter", "Restarts by the supervisor.", {"": restarts}),
        (
            "requests",
            "gauge",
            "Release requests by state.",
            {f'{{state="{s}"}}': states.count(s) for s in STATES},
        ),
        ("departures_total", "counter", "Objects that left.", {"": worker.ledger.departures}),
        (
            "rule_uses",
            "gauge",
            "Uses of standing approvals.",
            {"": sum(a.uses.total for a in releases.approvals)},
        ),
        ("memory_peak_bytes", "gauge", "The most memory that the process has used.", {"": _measure_memory()}),
        *_describe_ledger(worker.ledger.file),
        ("info", "gauge", "The release.", {f'{{version="{version("syft-core")}"}}': 1}),
        ("objects", "gauge", "Objects stored.", {"": len(worker.object_store)} if counts_objects else {}),
    ):
        lines += [f"# HELP syft_{name} {text}", f"# TYPE syft_{name} {kind}"]
        lines += [f"syft_{name}{label} {value}" for label, value in values.items()]
    return "\n".join(lines) + "\n"


def _measure_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _describe_ledger(file: Journal | None) -> list[tuple[str, str, str, dict[str, int]]]:
    if file is None:
        return []
    disk = os.statvfs(file.path.parent)
    return [
        ("ledger_bytes", "gauge", "The size of the ledger file.", {"": file.size}),
        ("disk_free_bytes", "gauge", "What is free on its disk.", {"": disk.f_bavail * disk.f_frsize}),
    ]
