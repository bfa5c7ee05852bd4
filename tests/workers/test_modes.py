"""Messages handed over as they are, or through the wire format: what workers do, count and write down is the same."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import syft_core as sy  # noqa: E402
from syft_core.hook.rules import leaves  # noqa: E402
from syft_core.messages import Placed, Run  # noqa: E402
from syft_core.pointers.callable_pointer import ObjectWrapper  # noqa: E402
from syft_core.workers.party.virtual import VirtualWorker  # noqa: E402

SECRET = 8675309.5

ASK = """
import numpy, syft_core as sy
hook = sy.NumpyHook(numpy)
workers = [hook.local_worker, sy.VirtualWorker(hook, id="a"), sy.VirtualWorker(hook, id="b", serialize=True),
           sy.VirtualWorker(hook, id="c", serialize=False)]
print(*[worker.serialize for worker in workers])
"""


@pytest.mark.parametrize(
    ("variable", "said"),
    [(None, "False False"), ("0", "False False"), ("", "False False"), ("1", "True True")],
)
def test_the_environment_sets_the_default(variable: str | None, said: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "SYFT_SERIALIZE"}
    if variable is not None:
        environment["SYFT_SERIALIZE"] = variable

    done = subprocess.run(
        [sys.executable, "-c", ASK], capture_output=True, text=True, timeout=120, check=True, env=environment
    )

    assert done.stdout.strip() == f"{said} True False"


def test_both_modes_count_log_and_trace_the_same(hook: Any) -> None:
    seen = {serialize: journey(hook, serialize) for serialize in (False, True)}

    assert seen[False] == seen[True]


def journey(hook: Any, serialize: bool) -> Any:
    """Do some of everything on two workers; return all that was written down about it, but for ids and bytes."""
    names = ("bob", "alice")
    bob, alice = workers = [
        VirtualWorker(hook, id=f"{name} {serialize}", serialize=serialize, log_msgs=True) for name in names
    ]
    bob.load_data([ObjectWrapper(lambda x: (x * 2, x.shape[0]), id="double", tags={"#double"})])
    hook.local_worker.serialize = serialize
    with sy.trace() as trace:
        x = torch.tensor([1.0, 2.0], requires_grad=True).send(bob)
        y = (x * 3).sum()
        y.backward()
        x.grad.get()
        values, _places = torch.max(x, 0)
        values.copy().get()
        x.child.clone()
        x.tag("#x").describe("two numbers")
        bob.search("#x")
        doubled, _length = bob.search("#double")[0](x)
        doubled.move(alice).get()
        with pytest.raises(RuntimeError):
            x.view(7)
        p = torch.ones(2).send(bob).remote_send(alice).remote_get()
        p += 1
        both = torch.ones(3).send(bob, alice)
        (both + 1).get(sum_results=True)
        torch.ones(1).publish(bob)
    assert all((event.bytes is not None) == serialize for event in trace)
    assert all(bool(worker.stats.bytes_in) == bool(worker.stats.bytes_out) == serialize for worker in workers)
    events = [
        (event.kind, event.operation, event.form, event.departs, event.error, len(event.objects), len(event.results))
        for event in trace
    ]
    counted = [(worker.stats.messages, worker.stats.operations, len(worker.ledger)) for worker in workers]
    logs = [[type(message).__name__ for message in worker.msg_history] for worker in workers]
    assert [len(log) for log in logs] == [worker.stats.messages for worker in workers]
    assert trace.summary().startswith(f"{len(events)} messages")
    return [tuple(map(_plain, event)) for event in events], counted, logs


def _plain(part: Any) -> Any:
    return part.replace(" True", "").replace(" False", "") if isinstance(part, str) else part


def test_the_bytes_of_the_events_are_the_bytes_that_workers_count(hook: Any) -> None:
    bob = VirtualWorker(hook, id="bob", serialize=True)

    with sy.trace() as trace:
        (torch.ones(100).send(bob) + 1).get()

    assert sum(event.bytes or 0 for event in trace) == bob.stats.bytes_in + bob.stats.bytes_out
    assert bob.stats.bytes_in > 400
    assert bob.stats.bytes_out > 400


def test_the_log_keeps_no_object_alive(bob: Any) -> None:
    bob.log_msgs = True
    p = torch.ones(2).send(bob)
    q = p + p
    stored = weakref.ref(bob.get_obj(p.id_at_location))

    del p, q
    gc.collect()

    assert bob.objects_count == 0
    assert stored() is None
    assert [type(message).__name__ for message in bob.msg_history] == ["Store", "Run"]


def test_the_log_shows_names_and_forms_but_no_value(bob: Any) -> None:
    bob.log_msgs = True

    p = torch.full((2, 3), SECRET).private_tensor(["me"]).send(bob)
    _sum = p.sum()

    shown = repr(bob.msg_history)
    assert "PrivateTensor>Tensor[2, 3]" in shown
    assert "torch.Tensor.sum" in shown
    assert str(SECRET) not in shown


def test_a_trace_names_the_results_of_a_call(bob: Any) -> None:
    bob.load_data([ObjectWrapper(lambda x: [x + 1, x.shape[0]], tags={"#more"})])
    p = torch.ones(2).send(bob)

    with sy.trace() as trace:
        more, _length = bob.search("#more")[0](p)

    assert trace[-1].results == (more.id_at_location,)
    assert trace[-1].form == "Tensor[2]"


def test_results_have_placeholders_in_replies_in_both_modes(bob: Any, me: Any) -> None:
    p = torch.tensor([3.0, 1.0]).send(bob)
    run = Run("torch", "torch.max", (p.child, 0), {}, 10)

    reply = leaves(me.location_of(bob).ask(run))
    assert [leaf.id for leaf in reply if isinstance(leaf, Placed)] == [10, 11]
