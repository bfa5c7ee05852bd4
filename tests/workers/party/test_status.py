"""The status of objects and workers chooses the stages of an operation, and never the result."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import syft_core as sy
from syft_core.exceptions import RegistryError
from syft_core.workers.party import status
from syft_core.workers.party.store import Stored
from syft_core.workers.seeing.ledger import Ledger
from syft_worker.allowances import Allowance
from syft_worker.quotas import QuotaGuard

torch = pytest.importorskip("torch")


# --- one road for every status


def train(p: Any, q: Any) -> Any:
    p.requires_grad_()
    (p * q).sum().backward()
    torch.optim.SGD([p], lr=0.5).step()
    result = p.detach() + p.grad
    p.grad = None
    return result


PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda p, q: p + q,
    "number": lambda p, q: p * 2,
    "keyword": lambda p, q: torch.add(p, q, alpha=3),
    "in place": lambda p, q: p.mul_(q),
    "lists": lambda p, q: torch._foreach_add_([p, q], [q, p], alpha=2)[0],
    "tuple": lambda p, q: (p + q).max(0).values,
    "split": lambda p, q: p.split(1)[1],
    "view": lambda p, q: p[1:].add_(q[:1]),
    "training": train,
}


class Worlds:
    """Workers with each status, as functions that return one."""

    def __init__(self, hook: Any, folder: Path) -> None:
        self.hook, self.folder, self.made = hook, folder, 0

    def make(self, **options: Any) -> Any:
        self.made += 1
        return sy.VirtualWorker(self.hook, id=f"carol {self.made}", **{"serialize": False, **options})

    def bare(self) -> Any:
        return self.make()

    def by_wire(self) -> Any:
        return self.make(serialize=True)

    def logged(self) -> Any:
        return self.make(log_msgs=True, verbose=True, message_pending_time=1e-6)

    def policy(self) -> Any:
        return self.make(policy=lambda verb, stored, peer, value: None)

    def quota(self) -> Any:
        worker = self.make()
        worker.guard = QuotaGuard(worker, {"default": Allowance(bytes=1 << 20)})
        return worker

    def served(self) -> Any:
        worker = self.make(serialize=True, ledger=Ledger("carol", path=self.folder / "ledger"))
        worker.guard = QuotaGuard(worker, {"default": Allowance(bytes=1 << 20)})
        worker.save = lambda: None
        return worker


WORLDS = ["bare", "by_wire", "logged", "policy", "quota", "served"]


@pytest.fixture
def worlds(hook: Any, tmp_path: Path) -> Worlds:
    return Worlds(hook, tmp_path)


@pytest.mark.parametrize("traced", [False, True], ids=["", "traced"])
@pytest.mark.parametrize("private", [False, True], ids=["public", "private"])
@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_result_and_the_operations_do_not_depend_on_the_status(
    hook: Any, worlds: Worlds, program: str, world: str, private: bool, traced: bool
) -> None:
    expected = PROGRAMS[program](torch.tensor([1.0, -2.0]), torch.tensor([3.0, 5.0])).tolist()
    hook.local_worker.user = "ada"
    counts = []
    for carol in (worlds.bare(), getattr(worlds, world)()):
        p, q = (torch.tensor(values) for values in ([1.0, -2.0], [3.0, 5.0]))
        if private:
            q = q.private_tensor(["ada"])
        p, q = p.send(carol), q.send(carol)
        before = carol.stats.operations
        with sy.trace() if traced else contextlib.nullcontext():
            result = PROGRAMS[program](p, q)
        result.shape  # noqa: B018  # waits for the worker
        counts.append(carol.stats.operations - before)
        plain = result.copy().get()
        while hasattr(plain, "child"):
            plain = plain.child
        assert plain.tolist() == expected
    assert counts[0] == counts[1]


# --- status


def recompute(entry: Stored) -> int:
    """Return the status that an entry should have."""
    twin = Stored(entry.value, entry.holder, (entry.access, entry.sources, 0))
    twin.published, twin.guard, twin.origin, twin.lent = entry.published, entry.guard, entry.origin, entry.lent
    twin.refresh_status()
    return twin.status


STEPS: list[Callable[[Any, list[Any]], Any]] = [
    lambda bob, xs: torch.rand(2).send(bob),
    lambda bob, xs: torch.rand(2).private_tensor(["ada", "me"]).send(bob),
    lambda bob, xs: sy.LoggingTensor().on(torch.rand(2)).send(bob),
    lambda bob, xs: torch.rand(2).tag("#t").publish(bob),
    lambda bob, xs: xs[0] + xs[-1],
    lambda bob, xs: xs[0].mul_(xs[-1]),
    lambda bob, xs: xs[-1][:1],
    lambda bob, xs: torch.bernoulli(xs[0] - 5),  # fails because of values
    lambda bob, xs: xs[-1].detach().requires_grad_(),
    lambda bob, xs: xs[0].copy(),
    lambda bob, xs: bob.search("#t")[0],
    lambda bob, xs: xs[0].child.child.move("dave", requires_grad=True) and None,
]


@settings(max_examples=40, deadline=None)
@given(program=st.lists(st.tuples(st.integers(0, len(STEPS) - 1), st.integers(0, 7), st.integers(0, 7)), max_size=25))
def test_the_store_keeps_the_status_of_every_object(program: list[tuple[int, int, int]]) -> None:
    hook = sy.TorchHook(torch)
    try:
        bob = sy.VirtualWorker(hook, id="bob", serialize=False)
        sy.VirtualWorker(hook, id="dave", serialize=False)
        objects = [torch.rand(2).send(bob)]
        for number, first, second in program:
            chosen = [objects[first % len(objects)], objects[second % len(objects)]]
            with contextlib.suppress(Exception):
                made = STEPS[number](bob, chosen)
                objects += [made] if made is not None else []
            for entry in bob.object_store.entries():
                assert entry.status == recompute(entry)
    finally:
        hook.unhook()


def test_the_status_of_a_worker_follows_its_options(hook: Any, tmp_path: Path) -> None:
    bob = sy.VirtualWorker(hook, id="bob")
    assert bob.status == 0
    options: list[tuple[str, Any, Any, int]] = [
        ("policy", "nothing", "unless_private", status.POLICY),
        ("guard", QuotaGuard(bob, {}), None, status.QUOTA),
        ("save", lambda: None, None, status.STORAGE),
        ("ledger", Ledger("bob", path=tmp_path / "ledger"), Ledger("bob"), status.JOURNAL),
        ("log_msgs", True, False, status.LOGGED),
        ("verbose", True, False, status.VERBOSE),
        ("message_pending_time", 0.5, 0, status.DELAYED),
    ]
    for name, on, off, bit in options:
        setattr(bob, name, on)
        assert bob.status == bit
        setattr(bob, name, off)
        assert bob.status == 0


def test_a_restriction_is_set_on_everything_that_shares_the_memory_of_an_object(hook: Any) -> None:
    bit = status.add_bit("tests: shared")
    bob = sy.VirtualWorker(hook, id="bob")
    x = torch.ones(3).send(bob)
    part, other = x[1:], x + 1

    bob.object_store.mark(x.id_at_location, bit)

    marked = [bool(bob.object_store.entry(each.id_at_location).status & bit) for each in (x, part, other)]
    assert marked == [True, True, False]
    assert status.name_restrictions(bit) == ["tests: shared"]


def test_a_restriction_has_one_bit_whoever_asks_for_it() -> None:
    assert status.add_bit("tests: shared") == status.add_bit("tests: shared")
    with pytest.raises(RegistryError, match="it is registered already"):
        status.add_bit("tests: shared", inherited=True)


def test_the_number_of_restrictions_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(status._places, False, iter([32]))

    with pytest.raises(RegistryError, match="cannot add the restriction 'one more': there are already eight"):
        status.add_bit("one more")
