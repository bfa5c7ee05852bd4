"""Garbage collection: objects live exactly as long as there are pointers to them."""

from __future__ import annotations

import gc
import resource
import subprocess
import sys
import textwrap
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("numpy")
pytest.importorskip("expecttest", reason="torch's own samples need it")

import torch

from syft_core.workers.party.virtual import VirtualWorker
from syft_core.workers.seeing.ledger import Ledger

from ..surface.checks import Raised
from .remote_surface import EXHAUSTIVE, KINDS, LIKE_ANOTHER_BY_WIRE, RemoteSurface


def _mode(serialize: bool) -> str:
    return "by_wire" if serialize else "in_process"


@pytest.mark.filterwarnings("ignore")  # the samples use what the frameworks deprecate
@pytest.mark.parametrize(
    ("serialize", "kind"),
    [
        pytest.param(serialize, kind, id=f"{_mode(serialize)}-{kind}")
        for serialize in (False, True)
        for kind in KINDS
        if EXHAUSTIVE or not (serialize and kind in LIKE_ANOTHER_BY_WIRE)
    ],
)
def test_no_operation_leaves_an_object_behind(surface: Any, serialize: bool, kind: str) -> None:
    remote = RemoteSurface(surface, kind=kind, serialize=serialize)
    leaking = {}
    for op in surface.ops:
        for case in remote.cases(op, most=1):
            before = remote.count()
            failed = isinstance(remote.call(case), Raised)
            # numpy itself keeps the arguments of a ufunc's method for ever when the method raises.
            if remote.count() != before and not (failed and surface.name == "numpy"):
                leaking[op.name] = remote.count() - before
            remote.clear()

    assert leaking == {}


def test_a_hundred_thousand_operations_leave_nothing(hook: Any) -> None:
    bob = VirtualWorker(hook, id="bob")
    a = torch.tensor([1.0]).send(bob)
    for _ in range(100_000):
        a = a + 0

    assert bob.objects_count <= 2
    assert a.get().tolist() == [1.0]


def work(p: Any, times: int) -> None:
    """Compute, change in place, ask, send and fetch: some ten messages each time."""
    for _ in range(times):
        q = p * 2
        q.add_(1)
        q.shape  # noqa: B018  # asking is the act
        torch.cat([q, p]).chunk(2)
        q.clone().get()
        torch.ones(1).send(p.location)
    p.location.ledger = Ledger("bob")  # which keeps its lines for good


@pytest.mark.parametrize(
    ("serialize", "private"),
    [
        pytest.param(serialize, private, id=f"{_mode(serialize)}-{'private' if private else 'free'}")
        for serialize in (False, True)
        for private in (False, True)
        if EXHAUSTIVE or serialize == private  # the shortest path of an operation, and the longest
    ],
)
@pytest.mark.slow
def test_memory_is_bounded(bob: Any, me: Any, private: bool) -> None:
    x = torch.tensor([1.0])
    p = (x.private_tensor([me.id]) if private else x).send(bob)
    tracemalloc.start()
    try:
        for _ in range(1_200):  # fills what remembers a bounded number of objects that were fetched
            p.copy().get()
        work(p, 250)  # fills the rest
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        work(p, 250)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()

    assert grown < 100_000  # some 2,000 operations; tables of what is remembered may grow once more
    assert bob.objects_count == 1


@pytest.mark.skipif(not EXHAUSTIVE, reason="takes minutes; the nightly environment runs it (SYFT_EXHAUSTIVE=1)")
@pytest.mark.parametrize("private", [False, True], ids=["free", "private"])
def test_the_process_does_not_grow_over_a_hundred_thousand_operations(bob: Any, me: Any, private: bool) -> None:
    x = torch.tensor([1.0])
    p = (x.private_tensor([me.id]) if private else x).send(bob)
    work(p, 2_000)
    before = resident()

    work(p, 20_000)

    gc.collect()
    assert bob.objects_count == 1
    assert resident() - before < 8_000_000


def resident() -> int:
    """Return how many bytes of memory the process has."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()


def test_the_intermediate_results_of_an_expression_are_dropped(bob: Any) -> None:
    p = torch.tensor([1.0, 2.0]).send(bob)

    q = ((p * 2 + 1) / p).sum()

    assert bob.objects_count == 2
    assert q.get().item() == 5.5


def test_results_in_lists_are_dropped_one_by_one(bob: Any) -> None:
    parts = list(torch.arange(6.0).send(bob).chunk(3))
    assert bob.objects_count == 3

    del parts[0]

    assert bob.objects_count == 2
    assert [part.get().tolist() for part in parts] == [[2.0, 3.0], [4.0, 5.0]]


def test_dropping_sends_no_message_by_itself(bob: Any) -> None:
    p = torch.tensor([1.0]).send(bob)
    before = bob.stats.messages

    del p

    assert bob.stats.messages == before
    assert bob.objects_count == 0


def test_a_failed_call_changes_nothing(bob: Any) -> None:
    p, q = torch.ones(2).send(bob), torch.ones(3).send(bob)
    before = bob._objects

    for call in (lambda: p + q, lambda: p.add_(q), lambda: torch.cat([p, 1]), lambda: p.view(7)):
        with pytest.raises((RuntimeError, TypeError)):
            call()

    assert bob._objects == before
    assert p.get().tolist() == [1.0, 1.0]


SILENT = """
    import numpy, torch, syft_core as sy
    hook = sy.TorchHook(torch)
    bob, alice = (sy.VirtualWorker(hook, id=name, serialize=wire) for name, wire in (("bob", False), ("alice", True)))
    p = torch.ones(3, requires_grad=True).send(bob)
    loss = (p * p).sum()
    loss.backward()
    kept = [p, p.grad, p.send(alice), p.copy().move(alice), torch.ones(1).send(bob, alice), torch.ones(2).publish(bob)]
    everywhere = {"cycle": kept}
    kept.append(everywhere)
"""


def test_nothing_is_printed_when_the_interpreter_ends() -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SILENT)], capture_output=True, text=True, timeout=120, check=False
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
