"""Measure encrypted computation: ``python benchmarks/encrypted.py [--tasks A,B] [--engines A,B] [--rounds N]``.

Every engine runs in processes of its own and computes the same tasks (``tasks.py``) on inputs that are already shared;
triples are made while it computes. In each round all engines take turns, forwards and then backwards, and each runs the
task for 0.3 seconds. Times are medians over the rounds, and a ratio is the median of the rounds' ratios, so load that
comes and goes changes both sides of it. A peer that is not installed (``make_peers.sh``) leaves its column empty.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

from measure import Process, machine, table, update_readme, verdict
from tasks import TASKS

HERE = Path(__file__).resolve().parent
PEERS = Path(os.environ.get("PEERS", HERE / ".venvs"))
"""Where the environments of the peers are."""
ROUNDS, BUDGET = 7, 60.0
"""The rounds of a task, and after how many seconds an engine has measured enough of them."""
FLOOR_LIMIT = 3.0
FEWER_MESSAGES = ("lt", "relu", "max_pool2d", "cnn")
"""The kinds of task in which ours must need fewer rounds and bytes than the better peer."""


class Place(NamedTuple):
    """An engine in the table: its title, script, arguments, and the environment it needs."""

    title: str
    script: str
    arguments: tuple[str, ...] = ()
    environment: str = ""

    def command(self) -> list[str]:
        python = PEERS / self.environment / "bin" / "python" if self.environment else Path(sys.executable)
        if not python.exists():
            raise FileNotFoundError(f"{python} does not exist: run benchmarks/make_peers.sh {self.environment}")
        return [str(python), str(HERE / self.script), *self.arguments]


ENGINES = {
    "two_processes": Place("ours, two processes", "engine_ours.py"),
    "crypten": Place("CrypTen", "engine_crypten.py", environment="crypten"),
    "spu": Place("SPU", "engine_spu.py", environment="spu"),
    "floor": Place("floor", "floor.py"),
    "in_process": Place("ours, in process", "engine_ours.py", ("--in-process",)),
    "spu_one": Place("SPU, one process", "engine_spu.py", ("--one-process",), "spu"),
    "tf_encrypted": Place("tf-encrypted, one process", "engine_tf_encrypted.py", environment="tf_encrypted"),
}
SETTINGS = {"two_processes": ("crypten", "spu"), "in_process": ("spu_one", "tf_encrypted")}
"""Our settings, and the peers that each is compared with."""


class Measured:
    """What was measured of one engine in one task."""

    def __init__(self, prepared: dict[str, Any]) -> None:
        self.error: float | None = prepared.get("error")
        self.rounds: int | None = prepared.get("rounds")
        self.bytes: int | None = prepared.get("bytes")
        self.dealt: int = prepared.get("dealt", 0)
        self.times: list[float] = []

    @property
    def seconds(self) -> float | None:
        return median(self.times) if self.times else None


Results = dict[str, dict[str, Measured]]
"""By task, then by engine."""


def main() -> None:
    options = parse()
    with Engines(options.engines) as engines:
        results = {task: measure(engines, task, options.rounds) for task in options.tasks}
        facts = engines.facts
    text = "\n\n".join(report(results, facts))
    print(text)
    if options.update:
        update_readme("encrypted", text)


def parse() -> argparse.Namespace:
    def names(known: dict[str, Any]) -> Any:
        def read(text: str) -> list[str]:
            for name in text.split(","):
                if name not in known:
                    raise argparse.ArgumentTypeError(f"{name!r} is not one of {', '.join(known)}")
            return text.split(",")

        return read

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=names(TASKS), default=list(TASKS), help=f"some of {', '.join(TASKS)}")
    parser.add_argument("--engines", type=names(ENGINES), default=list(ENGINES), help=f"some of {', '.join(ENGINES)}")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"rounds per task ({ROUNDS})")
    parser.add_argument("--update", action="store_true", help="write the tables into benchmarks/README.md")
    return parser.parse_args()


class Engines:
    """The processes of the engines; one that ends is started again for the next task."""

    def __init__(self, names: list[str]) -> None:
        self.running: dict[str, Process] = {}
        self.facts: dict[str, dict[str, Any]] = {}
        self.names = [name for name in names if self._start(name)]

    def _start(self, name: str) -> bool:
        try:
            self.running[name] = Process(*ENGINES[name].command())
        except (OSError, RuntimeError) as error:
            note(f"{ENGINES[name].title} is left out: {error}")
            return False
        self.facts[name] = self.running[name].facts
        return True

    def ask(self, name: str, request: str) -> Any:
        """Return the answer of an engine, or ``None`` if it failed."""
        if name not in self.running and not self._start(name):
            return None
        try:
            answer = self.running[name].clock(request)()
        except (OSError, RuntimeError) as error:
            del self.running[name]
            answer = {"failed": str(error)}
        if isinstance(answer, dict) and "failed" in answer:
            note(f"{ENGINES[name].title}: {request} failed: {answer['failed'].splitlines()[0]}")
            return None
        return answer

    def __enter__(self) -> Engines:
        return self

    def __exit__(self, *error: Any) -> None:
        for process in self.running.values():
            process.__exit__(*error)


def measure(engines: Engines, task: str, rounds: int) -> dict[str, Measured]:
    """Let all engines take turns with one task."""
    note(task)
    prepared = {name: engines.ask(name, f"prepare {task}") for name in engines.names}
    found = {name: Measured(answer) for name, answer in prepared.items() if answer is not None}
    spent = dict.fromkeys(found, 0.0)
    for number in range(rounds):
        for name in list(found)[:: 1 if number % 2 == 0 else -1]:
            start = perf_counter()
            if spent[name] < BUDGET and (seconds := engines.ask(name, f"time {task}")) is not None:
                found[name].times.append(seconds)
            spent[name] += perf_counter() - start
    note(", ".join(f"{ENGINES[name].title} {milli(measured.seconds)} ms" for name, measured in found.items()))
    return found


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# --- tables


def report(results: Results, facts: dict[str, dict[str, Any]]) -> Iterator[str]:
    present = [name for name in ENGINES if name in facts]
    yield f"Measured on {machine()}"
    yield "**Times** in ms; the inputs are shared before, the results stay shared (tf-encrypted: revealed)"
    yield table(["", *(ENGINES[name].title for name in present)], time_rows(results, present))
    ours = [name for name in SETTINGS if name in facts]
    if ours:
        yield "**Ours compared**: the median of the rounds' ratios; below 1 is faster, or less"
        yield table(comparison_heads(ours), comparison_rows(results, ours))
    yield "**Rounds · kB** that the parties send, + kB from a provider, where the engine can tell"
    counting = [name for name in present if any(measured_rounds(results, task, name) for task in results)]
    yield table(["", *(ENGINES[name].title for name in counting)], traffic_rows(results, counting))
    yield "**Greatest error** compared with float64"
    yield table(["", *(ENGINES[name].title for name in present)], error_rows(results, present))
    versions = ", ".join(
        f"{ENGINES[name].title} {facts[name]['version']}" for name in present if ENGINES[name].environment
    )
    yield f"{versions}."


def time_rows(results: Results, engines: list[str]) -> Iterator[list[str]]:
    for task, found in results.items():
        yield [task_title(task), *(milli(found[name].seconds) if name in found else "-" for name in engines)]


def comparison_heads(ours: list[str]) -> list[str]:
    heads = [""]
    for name in ours:
        heads += [f"{ENGINES[name].title} / faster peer", "target", ""]
        if name == "two_processes":
            heads += ["/ floor", "target", "", "rounds / peer", "kB / peer", "target", ""]
    return heads


def comparison_rows(results: Results, ours: list[str]) -> Iterator[list[str]]:
    for task, found in results.items():
        row = [task_title(task)]
        for name in ours:
            peers = [peer for peer in SETTINGS[name] if peer in found and found[peer].times]
            fastest = min(peers, key=lambda peer: found[peer].seconds, default=None)
            row += judge(ratio(found, name, fastest), 1.0)
            if name == "two_processes":
                row += judge(ratio(found, name, "floor"), FLOOR_LIMIT)
                row += judge_traffic(task, found, name, peers)
        yield row


def judge(value: float | None, limit: float) -> list[str]:
    return ["-", "-", "-"] if value is None else [f"**{value:.2f}**", f"≤ {limit:g}", verdict(value, limit)]


def judge_traffic(task: str, found: dict[str, Measured], name: str, peers: list[str]) -> list[str]:
    """Compare rounds and bytes, including those of our provider, each with the peer that needs fewer."""
    mine = found.get(name)
    if mine is None or not mine.rounds or not peers:
        return ["-", "-", "-", "-"]
    rounds = mine.rounds / min(found[peer].rounds for peer in peers)
    traffic = (mine.bytes + mine.dealt) / min(found[peer].bytes for peer in peers)
    has_target = TASKS[task].kind in FEWER_MESSAGES
    target = ["< 1", "met" if max(rounds, traffic) < 1 else "**not met**"] if has_target else ["-", "-"]
    return [f"{rounds:.2f}", f"{traffic:.2f}", *target]


def ratio(found: dict[str, Measured], name: str, base: str | None) -> float | None:
    """Return the median of the ratios of the rounds that both have."""
    if name not in found or base not in found:
        return None
    pairs = list(zip(found[name].times, found[base].times, strict=False))
    return median(mine / other for mine, other in pairs) if pairs else None


def traffic_rows(results: Results, engines: list[str]) -> Iterator[list[str]]:
    for task in results:
        yield [task_title(task), *(traffic(results[task].get(name)) for name in engines)]


def traffic(measured: Measured | None) -> str:
    if measured is None or measured.rounds is None:
        return "-"
    dealt = f" + {measured.dealt / 1e3:,.0f}" if measured.dealt else ""
    return f"{measured.rounds} · {measured.bytes / 1e3:,.0f}{dealt}"


def measured_rounds(results: Results, task: str, name: str) -> bool:
    return name in results[task] and results[task][name].rounds is not None


def error_rows(results: Results, engines: list[str]) -> Iterator[list[str]]:
    for task, found in results.items():
        yield [task_title(task), *(f"{found[name].error:.1e}" if name in found else "-" for name in engines)]


def task_title(task: str) -> str:
    kind, _, size = task.rpartition("_")
    names = {
        "train": "MLP training step",
        "mlp": "MLP 784-128-10",
        "cnn": "LeNet",
        "regression": "logistic regression training step",
        "encoder": "encoder layer d 128",
        "resnet": "ResNet-18 32 x 32",
    }
    units = {"b": "batch {}", "t": "{} tokens"}
    return f"{names.get(kind, kind)} {units[size[0]].format(size[1:]) if size[0] in units else size}"


def milli(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    digits = 2 if seconds < 0.01 else 1 if seconds < 1 else 0
    return f"{seconds * 1e3:,.{digits}f}"


if __name__ == "__main__":
    main()
