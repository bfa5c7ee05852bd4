"""Metrics: counters of a served worker in the text format of Prometheus; no names of users or objects."""

from __future__ import annotations

import os
import resource
import sys
from dataclasses import dataclass
from importlib.metadata import version
from itertools import accumulate
from pathlib import Path

from syft_core.ledgers.journal import Journal
from syft_core.network.server import Latencies, Server
from syft_sums.studies import studies_of
from syft_worker.certificates import read_validity
from syft_worker.desk.releases import releases_of
from syft_worker.desk.requests import STATES
from syft_worker.tokens import TokenFile

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True)
class Files:
    """The files of a worker whose expiry and disk its metrics show."""

    cert: Path | None = None
    token_file: TokenFile | None = None
    store: Path | None = None


def render_metrics(server: Server, restarts: int, counts_objects: bool, files: Files) -> str:
    """Return the metrics of a worker; the object count only for readers who may see all objects."""
    worker, stats = server.worker, server.worker.stats
    connected = sum(client.connection is not None for client in server.sessions)
    releases, studies = releases_of(worker), studies_of(worker)
    states = [request.state for request in releases.requests]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    lines: list[str] = []
    for name, kind, text, values in (
        ("messages_total", "counter", "Messages handled.", {"": stats.messages}),
        ("operations_total", "counter", "Operations run.", {"": stats.operations}),
        ("received_bytes_total", "counter", "Bytes received.", {"": stats.bytes_in}),
        ("sent_bytes_total", "counter", "Bytes sent.", {"": stats.bytes_out}),
        ("sessions_total", "counter", "Sessions opened.", {"": server.admission.sessions_opened}),
        ("connections", "gauge", "Clients connected.", {"": connected}),
        (
            "refusals_total",
            "counter",
            "Refused connections and commands.",
            {'{what="connection"}': server.connections_refused, '{what="command"}': stats.refusals},
        ),
        ("restarts_total", "counter", "Restarts by the supervisor.", {"": restarts}),
        ("requests", "gauge", "Release requests by state.", {f'{{state="{s}"}}': states.count(s) for s in STATES}),
        ("departures_total", "counter", "Objects that left.", {"": worker.ledger.departures}),
        ("rule_uses", "gauge", "Uses of rules.", {"": sum(a.uses.total for a in releases.approvals)}),
        ("sums_total", "counter", "Lists of workers for which a result was masked.", {"": studies.history.masked}),
        ("sum_rounds", "gauge", "Rounds of sums in progress.", {"": len(studies.rounds)}),
        ("memory_peak_bytes", "gauge", "The most memory that the process has used.", {"": memory}),
        *_describe_ledger(worker.ledger.file),
        ("disk_free_bytes", "gauge", "What is free on the disk of a file.", _measure_disks(worker.ledger.file, files)),
        *_describe_expiry(files),
        ("batch_seconds", "histogram", "Seconds from a batch of messages to its reply.", _count(server.latencies)),
        ("info", "gauge", "The release.", {f'{{version="{version("syft-core")}"}}': 1}),
        ("objects", "gauge", "Objects stored.", {"": len(worker.object_store)} if counts_objects else {}),
    ):
        lines += [f"# HELP syft_{name} {text}", f"# TYPE syft_{name} {kind}"]
        lines += [f"syft_{name}{label} {value}" for label, value in values.items()]
    return "\n".join(lines) + "\n"


def _describe_ledger(file: Journal | None) -> list[tuple[str, str, str, dict[str, int]]]:
    if file is None:
        return []
    return [("ledger_bytes", "gauge", "The size of the ledger, with all its files.", {"": file.total_size})]


def _measure_disks(ledger: Journal | None, files: Files) -> dict[str, int]:
    folders = {"ledger": None if ledger is None else ledger.path.parent, "store": files.store}
    disks = {name: os.statvfs(folder) for name, folder in folders.items() if folder is not None and folder.exists()}
    return {f'{{of="{name}"}}': disk.f_bavail * disk.f_frsize for name, disk in disks.items()}


def _describe_expiry(files: Files) -> list[tuple[str, str, str, dict[str, int]]]:
    described = []
    if files.cert is not None and files.cert.exists() and (validity := read_validity(files.cert)) is not None:
        end = {"": int(validity[1].timestamp())}
        described.append(("certificate_expiry_seconds", "gauge", "When the certificate expires.", end))
    tokens = [] if files.token_file is None else [token for token in files.token_file if token.state == "valid"]
    ends = [token.expires for token in tokens if token.expires is not None]
    if ends:
        described.append(("token_expiry_seconds", "gauge", "When the next token expires.", {"": int(min(ends))}))
    return described


def _count(latencies: Latencies) -> dict[str, float]:
    """Return the parts of a histogram as Prometheus wants them: each counts the smaller ones too."""
    totals = list(accumulate(latencies.counts))
    bounds = [*map(str, latencies.BOUNDS), "+Inf"]
    parts = {f'_bucket{{le="{bound}"}}': total for bound, total in zip(bounds, totals, strict=True)}
    return {**parts, "_sum": round(latencies.seconds, 6), "_count": totals[-1]}
