"""User mistakes: each raises a clear error and changes nothing on any worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn

from syft_core.exceptions import (
    AlreadyRetrievedError,
    NotCollocatedError,
    ObjectNotFoundError,
    WorkerError,
    WorkerNotFoundError,
)
from syft_core.workers.party.virtual import VirtualWorker

F = nn.functional
UNKNOWN = (WorkerNotFoundError, "cannot find worker 'bop': no worker here has this id; did you mean 'bob'")
APART = (
    NotCollocatedError,
    r"its arguments live on 'bob' and 'alice'; move the first one, e.g. `p = p.move\('alice'\)`",
)
APART_TOO = (NotCollocatedError, r"its arguments live on 'alice' and 'bob'; .*`p = p.move\('bob'\)`")
HERE = (
    NotCollocatedError,
    r"its arguments live on 'bob' and in this process; send the local one: `y = y.send\('bob'\)`",
)
FETCHED = (AlreadyRetrievedError, r"it was fetched by 'me'; use the result of that call, or next time fetch a copy")
GONE = (ObjectNotFoundError, r"cannot find object \d+ on worker 'bob': it was fetched by 'me' at \d\d:\d\d:\d\d")


class World:
    """Two workers with an object each that nobody should harm, and the things that a user makes mistakes with."""

    def __init__(self, bob: Any, alice: Any) -> None:
        self.bob, self.alice = bob, alice
        self.x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        self.p, self.q = self.x.send(bob), self.x.send(alice)
        self.w = torch.ones(2, 3, requires_grad=True).send(bob)
        self.model = nn.Linear(3, 1).send(bob)
        self.fetched = self.x.send(bob)
        self.second = self.fetched.child.clone().wrap(register=False)
        self.fetched.get()

    def state(self) -> list[Any]:
        """Return everything that the workers hold, and what they know of it."""
        return [
            (id, entry.value.tolist(), entry.leases, entry.tags, entry.access, entry.sources)
            for worker in (self.bob, self.alice)
            for id, entry in sorted(worker.object_store._entries.items(), key=str)
        ]


@pytest.fixture
def world(bob: Any, alice: Any) -> World:
    return World(bob, alice)


MISTAKES: dict[str, tuple[Callable[[World], Any], tuple[type[Exception] | tuple[type[Exception], ...], str]]] = {
    "an unknown worker: send": (lambda the: the.x.send("bop"), UNKNOWN),
    "an unknown worker: one of two": (lambda the: the.x.send("bob", "bop"), UNKNOWN),
    "an unknown worker: send in place": (lambda the: the.x.clone().send_("bop"), UNKNOWN),
    "an unknown worker: publish": (lambda the: the.x.publish("bop"), UNKNOWN),
    "an unknown worker: move": (lambda the: the.p.move("bop"), UNKNOWN),
    "an unknown worker: remote_send": (lambda the: the.p.remote_send("bop"), UNKNOWN),
    "an unknown worker: a module": (lambda the: nn.Linear(3, 1).send("bop"), UNKNOWN),
    "an unknown worker: a module moves": (lambda the: the.model.move("bop"), UNKNOWN),
    "an unknown worker: a worker sends": (lambda the: the.alice.send(the.x, "bop"), UNKNOWN),
    "an unknown worker: a worker requests": (lambda the: the.alice.request_obj(1, "bop"), UNKNOWN),
    "two workers: an operator": (lambda the: the.p + the.q, APART),
    "two workers: a method": (lambda the: the.p.matmul(the.q), APART),
    "two workers: a method in place": (lambda the: the.p.mul_(the.q), APART),
    "two workers: a function": (lambda the: torch.add(the.p, the.q), APART),
    "two workers: a function with keywords": (lambda the: F.mse_loss(input=the.p, target=the.q), APART),
    "two workers: a function of a list": (lambda the: torch.stack([the.p, the.q]), APART),
    "two workers: an index": (lambda the: the.p[the.q > 3], APART),
    "two workers: out": (lambda the: torch.add(the.p, the.p, out=the.q), APART),
    "two workers: a module": (lambda the: the.model(the.q), APART_TOO),
    "two workers: a loss": (lambda the: nn.MSELoss()(the.model(the.p), the.q), APART),
    "here and there: an operator": (lambda the: the.p + the.x, HERE),
    "here and there: the other way": (lambda the: the.x + the.p, HERE),
    "here and there: a function": (lambda the: torch.cat([the.p, the.x]), HERE),
    "here and there: a module here": (
        lambda the: nn.Linear(3, 1)(the.p),
        (NotCollocatedError, r"send the model: `model.send\('bob'\)`"),
    ),
    "here and there: a module there": (lambda the: the.model(the.x), HERE),
    "a second get": (lambda the: the.fetched.get(), FETCHED),
    "a second get in place": (lambda the: the.fetched.get_(), FETCHED),
    "fetched: compute": (lambda the: the.fetched + 1, FETCHED),
    "fetched: compute with another": (lambda the: torch.add(the.p, the.fetched), FETCHED),
    "fetched: its shape": (lambda the: the.fetched.shape, FETCHED),
    "fetched: move": (lambda the: the.fetched.move(the.alice), FETCHED),
    "gone: get": (lambda the: the.second.get(), GONE),
    "gone: compute": (lambda the: the.second + 1, GONE),
    "gone: compute with another": (lambda the: torch.add(the.p, the.second), GONE),
    "gone: change another": (lambda the: the.p.add_(the.second), GONE),
    "gone: move": (lambda the: the.second.move(the.alice), GONE),
    "gone: copy": (lambda the: the.second.copy(), GONE),
    "gone: its shape": (lambda the: the.second.shape, GONE),
    "gone: its gradient": (lambda the: the.second.grad, GONE),
    "gone: tag": (lambda the: the.second.tag("#x"), GONE),
    "gone: a second pointer": (lambda the: the.second.child.clone(), GONE),
    "a wrong shape: an operator": (lambda the: the.p + the.p[:, :2], (RuntimeError, "must match the size")),
    "a wrong shape: in place": (lambda the: the.p.add_(the.p[:, :2]), (RuntimeError, "must match the size")),
    "a wrong shape: a function": (lambda the: torch.cat([the.p, the.p[0]]), (RuntimeError, "dimension")),
    "a wrong shape: a module": (lambda the: the.model(the.p[:, :2]), (RuntimeError, "shapes cannot be multiplied")),
    "a wrong shape: backward": (
        lambda the: (the.w * 2).backward(the.p[0]),
        (RuntimeError, "[Mm]ismatch in shape|shape mismatch"),
    ),
    "a wrong index": (lambda the: the.p[7], (IndexError, "out of bounds")),
    "a wrong keyword": (lambda the: the.p.sum(dimension=1), (TypeError, "sum")),
    "a module that is here": (
        lambda the: nn.Linear(3, 1).get(),
        (WorkerError, "cannot get a Linear: it is in this process"),
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_raises_a_clear_error_and_changes_nothing(world: World, mistake: str) -> None:
    make, (error, text) = MISTAKES[mistake]
    world.bob.collect_garbage()
    before = world.state()

    with pytest.raises(error, match=text):
        make(world)

    for worker in (world.bob, world.alice):
        worker.collect_garbage()
    assert world.state() == before
    assert (world.p + world.p).get().equal(world.x * 2)
    assert world.model(world.p).shape == (2, 1)
    assert world.q.get().equal(world.x)


def test_a_cleared_object_raises_an_error_with_the_reason(hook: Any, bob: Any, alice: Any) -> None:
    p, kept = torch.ones(2).send(bob), torch.ones(2).send(alice)

    bob.clear_objects()

    for use in (lambda: p.get(), lambda: p + 1, lambda: p.move(alice), lambda: p.copy()):
        with pytest.raises(ObjectNotFoundError, match=r"the worker was cleared at \d\d:\d\d:\d\d; keep a pointer to"):
            use()
    assert torch.ones(2).send(bob).get().tolist() == kept.get().tolist() == [1.0, 1.0]


def test_an_error_of_the_framework_is_raised_unchanged(bob: Any) -> None:
    p, q = torch.ones(2).send(bob), torch.ones(3).send(bob)
    with pytest.raises(RuntimeError) as here:
        torch.ones(2) + torch.ones(3)

    with pytest.raises(RuntimeError) as there:
        p + q

    assert str(there.value) == str(here.value)


def test_a_worker_that_was_not_added_is_unknown(hook: Any, bob: Any, serialize: bool) -> None:
    hermit = VirtualWorker(hook, id="hermit", auto_add=False, serialize=serialize)

    p = torch.ones(2).send(hermit)

    assert (p + 1).get().tolist() == [2.0, 2.0]
    with pytest.raises(WorkerNotFoundError, match="cannot find worker 'hermit'"):
        torch.ones(2).send("hermit")
