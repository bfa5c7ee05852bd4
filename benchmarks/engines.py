"""What the engines of ``encrypted.py`` have in common: they answer one JSON line for each line that they read.

The first line of an engine describes it. ``prepare TASK`` shares the inputs, runs the task, and answers with its error
and, where the engine can count them, the rounds, the bytes that the parties send, and those that a provider deals to
them. ``time TASK`` answers with the seconds of one run: the median of as many runs as fit into ``BLOCK`` seconds.
Inputs are shared before; the result stays shared unless the engine says otherwise.

Python 3.9 can run this file: the peers' scripts import it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from multiprocessing import get_context
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from tasks import TASKS, Task, flatten

BLOCK, MOST_RUNS = 0.3, 50
WARM_UP = 3.0
"""Seconds below which the first run only warms up."""
PATIENCE = 300
"""Seconds after which an engine that has not answered ends."""


class Unanswered(BaseException):
    """A task took too long; what the engine does afterwards cannot be trusted."""


class Engine:
    """One party of an engine, or all of its parties in one process."""

    version = "-"

    def load(self, task: Task) -> Callable[[], Any]:
        """Share the inputs of the task; return the function that computes it on shares."""
        raise NotImplementedError

    def reveal(self, result: Any) -> np.ndarray:
        """Return the plain result."""
        raise NotImplementedError

    def count(self, run: Callable[[], Any]) -> dict[str, int]:
        """Run once; return the ``rounds``, and the ``bytes`` that this party sends, if the engine can tell."""
        return {}

    def synchronize(self) -> None:
        """Wait until all parties are here."""


def serve(make: Callable[[], Engine]) -> None:
    """Answer for an engine whose parties are all in this process."""
    answers = _claim_stdout()
    _serve(answers, _Party(make()).answer_all)


def serve_parties(make: Callable[..., Engine], *args: Any, parties: int = 2) -> None:
    """Answer for parties in processes of their own, each made by ``make(rank, *args)``."""
    answers = _claim_stdout()
    context = get_context("spawn")
    pipes = []
    for rank in range(parties):
        mine, theirs = context.Pipe()
        context.Process(target=_run_party, args=(theirs, make, rank, *args), daemon=True).start()
        theirs.close()
        pipes.append(mine)

    def ask(*request: Any) -> list[Any]:
        for pipe in pipes:
            pipe.send(request)
        return [pipe.recv() for pipe in pipes]

    _serve(answers, ask)


def _run_party(pipe: Any, make: Callable[..., Engine], rank: int, *args: Any) -> None:
    party = _Party(make(rank, *args))
    while True:
        try:
            request = pipe.recv()
        except EOFError:
            os._exit(0)
        pipe.send(party.answer(*request))


class _Party:
    """Prepare and time tasks with one engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.run: Callable[[], Any] | None = None

    def answer_all(self, *request: Any) -> list[Any]:
        return [self.answer(*request)]

    def answer(self, what: str, *args: Any) -> Any:
        try:
            return getattr(self, what)(*args)
        except Exception as error:
            if not isinstance(error, NotImplementedError):
                traceback.print_exc()
            return {"failed": f"{type(error).__name__}: {error}"}

    def facts(self) -> dict[str, str]:
        return {"version": self.engine.version}

    def prepare(self, name: str) -> dict[str, Any]:
        task = TASKS[name]
        self.run = None  # frees the memory of the task before
        self.run = self.engine.load(task)
        start = perf_counter()
        result = self.run()
        seconds = perf_counter() - start
        found, answer = flatten(self.engine.reveal(result)), task.answer()
        if np.shape(found) != answer.shape:
            raise ValueError(f"the result has the shape {np.shape(found)}, expected {answer.shape}")
        error = float(np.abs(found - answer).max())
        counted = self.engine.count(self.run)
        return {"error": error, "seconds": seconds, **counted}

    def time(self, runs: int) -> list[float]:
        times = []
        for _ in range(runs):
            self.engine.synchronize()
            start = perf_counter()
            self.run()
            times.append(perf_counter() - start)
        return times


def _claim_stdout() -> Any:
    """Return a file on what was standard output; whatever a library prints goes to standard error."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


def _serve(answers: Any, ask: Callable[..., list[Any]]) -> None:
    runs: dict[str, int] = {}

    def answer(what: str, name: str) -> Any:
        if what == "time":
            per_party = ask("time", runs[name])
            return _failure(per_party) or median(map(max, zip(*per_party)))  # noqa: B905  # Python 3.9
        per_party = ask("prepare", name)
        if failed := _failure(per_party):
            return failed
        found = {key: max(party[key] for party in per_party) for key in per_party[0]}
        if "bytes" in found:
            found["bytes"] = sum(party["bytes"] for party in per_party)
        if found["seconds"] < WARM_UP:
            found["seconds"] = max(party[-1] for party in ask("time", 3))
        runs[name] = max(1, min(MOST_RUNS, int(BLOCK / found["seconds"])))
        return found

    def reply(value: Any) -> None:
        print(json.dumps(value), file=answers, flush=True)

    def give_up(*_signal: Any) -> None:
        raise Unanswered(f"no answer for {PATIENCE} seconds")

    signal.signal(signal.SIGALRM, give_up)
    reply(ask("facts")[0])
    for line in sys.stdin:
        signal.alarm(PATIENCE)
        found = answer(*line.split())
        signal.alarm(0)
        reply(found)


def _failure(per_party: list[Any]) -> dict[str, str] | None:
    """Return the first failure of a party, if any."""
    return next((party for party in per_party if isinstance(party, dict) and "failed" in party), None)
