"""The hospitals of the demo: workers in processes of their own, with TLS, which end with the demo; or here."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from syft_core.exceptions import SyftError, WorkerError
from syft_core.hook.hook import FrameworkHook
from syft_core.ledgers.entry import DEPARTURES, Entry
from syft_core.network.client import WebsocketClientWorker
from syft_core.values import Json, Table
from syft_core.workers.party.virtual import VirtualWorker
from syft_core.workers.seeing.ledger import Ledger, read_ledger
from syft_sums.keys import MemberKey
from syft_sums.studies import studies_of
from syft_torch.demo.patients import OUTCOMES, Rows, write_patients
from syft_worker.certificates import make_certificates
from syft_worker.config import PeerConfig, WorkerConfig, read_config
from syft_worker.data import load
from syft_worker.supervisor import Supervisor
from syft_worker.tokens import TokenFile

HOST = "127.0.0.1"
USER = "dana"
"""The data scientist."""
START_SECONDS, STOP_SECONDS = 120.0, 20.0
"""How long a hospital may take to start, and to stop."""


HospitalWorker: TypeAlias = "VirtualWorker | WebsocketClientWorker"
"""A worker in this process, or the location of one in another."""


@dataclass(frozen=True)
class Hospital:
    """A worker with private patients, as the data scientist reaches it."""

    name: str
    clinic: str
    location: HospitalWorker
    ledger: Path
    config: Path

    def read_departures(self) -> list[Entry]:
        """Return what has left the hospital, as its ledger file says."""
        return [entry for entry in read_ledger(self.ledger) if entry.event in DEPARTURES]


@contextmanager
def start_hospitals(
    hook: FrameworkHook, folder: Path, clinics: Mapping[str, tuple[str, Rows]], rule: Table, in_process: bool
) -> Iterator[list[Hospital]]:
    """Start a hospital for each clinic, and stop all of them at the end, whatever happens.

    The owners know each other's keys, and all have the same rule for sums.
    """
    keys = {name: _write_hospital(folder / name, patients) for name, (_, patients) in clinics.items()}
    files = {name: _write_config(folder / name, name, keys, rule) for name in clinics}
    with ExitStack() as stack:
        places: Sequence[HospitalWorker]
        if in_process:
            places = [_build_worker(hook, config, stack) for config in files.values()]
        else:
            places = _serve(hook, files, stack)
        yield [
            Hospital(name, clinics[name][0], place, config.with_name("ledger.jsonl"), config)
            for place, (name, config) in zip(places, files.items(), strict=True)
        ]


def _write_hospital(folder: Path, patients: Rows) -> str:
    """Write what the owner of a hospital has: patients, a certificate and a key; return the fingerprint of the key."""
    make_certificates(folder / "certs", [HOST], [])
    write_patients(folder / "patients.csv", patients)
    (folder / "store").mkdir(mode=0o700)
    return MemberKey.load(folder / "store" / "key").fingerprint


def _write_config(folder: Path, name: str, keys: Table, rule: Table) -> Path:
    lines = [
        f'id = "{name}"', "port = 0", "threads = 1", 'log_level = "error"',
        'cert = "certs/server.pem"', 'key = "certs/server.key"', 'token_file = "tokens.json"',
        'ledger = "ledger.jsonl"', 'store = "store"', "",
        "[[data]]", 'file = "patients.csv"', 'tags = ["#patients"]', "private = []",
        f"schema.outcome.categories = {json.dumps(OUTCOMES)}",
    ]  # fmt: skip
    for title, table in (("members", keys), ("aggregates", rule)):
        lines += ["", f"[{title}]", *[f"{key} = {_write_value(value)}" for key, value in table.items()]]
    file = folder / "worker.toml"
    file.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return file


def _write_value(value: Json) -> str:
    """Return a value as TOML writes it: as JSON does, except for tables."""
    if isinstance(value, dict):
        return f"{{ {', '.join([f'{key} = {json.dumps(each)}' for key, each in value.items()])} }}"
    return json.dumps(value)


# --- in this process


def _build_worker(hook: FrameworkHook, file: Path, stack: ExitStack) -> HospitalWorker:
    config = read_config(file)
    ledger = Ledger(config.id, file.with_name("ledger.jsonl"))
    stack.callback(ledger.close)
    worker = VirtualWorker(hook, id=config.id, ledger=ledger, serialize=True)
    worker.load_data(load(config.data, hook))
    studies = studies_of(worker)
    studies.key_file = file.parent / "store" / "key"
    studies.configure(config.members, config.aggregates)
    return worker


# --- in processes of their own


def _serve(hook: FrameworkHook, files: Mapping[str, Path], stack: ExitStack) -> list[HospitalWorker]:
    tokens = {name: TokenFile.create(file.with_name("tokens.json")) for name, file in files.items()}
    secrets = {name: file.add(USER, lifetime=None)[1] for name, file in tokens.items()}
    served = [Served(read_config(file)) for file in files.values()]
    stack.callback(_stop, served)
    for each in served:
        each.start([other for other in served if other is not each])
    return [stack.enter_context(each.connect(hook, secrets[each.id])) for each in served]


def _stop(served: Sequence[Served]) -> None:
    for each in served:
        each.supervisor.stop()
    for each in served:
        each.thread.join(STOP_SECONDS)


class Served:
    """A worker in a process of its own, which the supervisor in a thread of this process never leaves behind."""

    def __init__(self, config: WorkerConfig) -> None:
        self.id, self.ca = config.id, (config.cert or Path()).with_name("ca.pem")
        self.supervisor = Supervisor(config)
        self.error = ""
        self.thread = threading.Thread(target=self._run, name=f"hospital {config.id}", daemon=True)

    def start(self, others: Sequence[Served]) -> None:
        """Start the process, which reaches the others."""
        peers = {other.id: PeerConfig(f"wss://{HOST}:{other.supervisor.port}", other.ca) for other in others}
        self.supervisor.config = replace(self.supervisor.config, peers=peers)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.supervisor.run()
        except SyftError as error:
            self.error = str(error)

    @contextmanager
    def connect(self, hook: FrameworkHook, token: str) -> Iterator[HospitalWorker]:
        """Connect to the process as soon as it is ready."""
        deadline = time.monotonic() + START_SECONDS
        while not self.supervisor.ready.wait(0.05):
            if not self.thread.is_alive() or time.monotonic() > deadline:
                why = self.error or "its process is not ready; see the lines above"
                raise WorkerError(f"cannot start the hospital {self.id!r}: {why}")
        location = WebsocketClientWorker(hook, HOST, self.supervisor.port, id=self.id, token=token, ca=self.ca)
        try:
            yield location
        finally:
            location.close()
