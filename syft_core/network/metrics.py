"""Metrics: counters of a served worker in the text format of Prometheus; no names of users or objects."""

from __future__ import annotations

from syft_core.network.server import Server

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def render_metrics(server: Server, restarts: int) -> str:
    """Return all metrics of a worker."""
    worker, stats = server.worker, server.worker.stats
    connected = sum(client.connection is not None for client in server.sessions)
    states = [request.state for request in worker.requests]
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
            {f'{{state="{s}"}}': states.count(s) for s in ("open", "approved", "denied", "released")},
        ),
        ("departures_total", "counter", "Objects that left.", {"": worker.ledger.departures}),
        ("objects", "gauge", "Objects stored.", {"": len(worker.object_store)}),
    ):
        lines += [f"# HELP syft_{name} {text}", f"# TYPE syft_{name} {kind}"]
        lines += [f"syft_{name}{label} {value}" for label, value in values.items()]
    return "\n".join(lines) + "\n"
