"""Operations on plain objects of a worker in this process take a shortcut; all others take the general path."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import syft_core as sy
from syft_core.peer import Peer, acting_for
from syft_core.workers.ledger import Ledger
from syft_core.workers.shortcut import UNANSWERED, compute

torch = pytest.importorskip("torch")

from syft_torch.wrapper import Wrapper  # noqa: E402


def shorten(hook: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    return compute(Wrapper, hook.attributes.method(name), args, kwargs)


def is_shortened(hook: Any, name: str, *args: Any, **kwargs: Any) -> bool:
    return shorten(hook, name, *args, **kwargs) is not UNANSWERED


@pytest.fixture
def carol(hook: Any) -> Any:
    return sy.VirtualWorker(hook, id="carol", serialize=False)


@pytest.fixture
def p(carol: Any) -> Any:
    return torch.tensor([1.0, -2.0]).send(carol)


def run_backward(p: Any, q: Any) -> Any:
    p.requires_grad_()
    (p * q).sum().backward()
    return p.grad + 0


def clear_gradient(p: Any, q: Any) -> Any:
    run_backward(p, q)
    p.grad = None
    return q * float(p.grad is None)


PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda p, q: p + q,
    "number": lambda p, q: p * 2,
    "keyword": lambda p, q: torch.add(p, q, alpha=3),
    "in place": lambda p, q: p.mul_(q),
    "lists": lambda p, q: torch._foreach_add_([p, q], [q, p], alpha=2)[0],
    "tuple": lambda p, q: (p + q).max(0).values,
    "split": lambda p, q: p.split(1)[1],
    "slice": lambda p, q: p[1:] + q[0],
    "backward": run_backward,
    "cleared gradient": clear_gradient,
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_shortcut_and_the_general_path_do_the_same(hook: Any, carol: Any, program: str) -> None:
    found = []
    for log in (False, True):
        carol.log_msgs = log
        p, q = torch.tensor([1.0, -2.0]).send(carol), torch.tensor([3.0, 5.0]).send(carol)
        before = carol.stats.messages, carol.stats.operations
        result = PROGRAMS[program](p, q)
        counted = carol.stats.messages - before[0], carol.stats.operations - before[1]
        entry = carol.object_store.entry(result.id_at_location)
        known = {p.id_at_location: "p", q.id_at_location: "q"}
        sources = sorted(known[source.id] for source in entry.sources)
        target = carol.object_store.entry(p.id_at_location)
        found.append(
            (counted, sources, entry.touched, target.touched, entry.holder, entry.leases, result.get().tolist())
        )
    assert found[0] == found[1]


def test_a_gradient_is_an_operand_of_the_shortcut(hook: Any, carol: Any) -> None:
    p = torch.tensor([2.0], requires_grad=True).send(carol)
    (p * p).sum().backward()
    assert is_shortened(hook, "__add__", p.grad, p.grad)
    assert (p.grad + p.grad).get().tolist() == [8.0]


def test_backward_passes_and_cleared_gradients_take_the_shortcut(hook: Any, carol: Any) -> None:
    p = torch.tensor([2.0], requires_grad=True).send(carol)
    loss = (p * p).sum()
    assert is_shortened(hook, "backward", loss)
    assert p.grad.get().tolist() == [4.0]
    optimizer = torch.optim.SGD([p], lr=0.1)
    with sy.trace() as trace:
        optimizer.zero_grad()
    assert len(trace) == 1
    assert p.grad is None


def test_a_backward_pass_that_others_must_hear_of_takes_the_general_path(hook: Any, carol: Any) -> None:
    loss = (torch.tensor([2.0], requires_grad=True).send(carol) * 2).sum()
    carol.session_of("eve")
    assert not is_shortened(hook, "backward", loss)


def test_an_error_of_an_operation_is_the_same(hook: Any, carol: Any, p: Any) -> None:
    texts = []
    for log in (False, True):
        carol.log_msgs = log
        with pytest.raises(RuntimeError) as error:
            p + torch.ones(3).send(carol)
        texts.append(str(error.value))
    assert texts[0] == texts[1]


@pytest.mark.parametrize("together", [False, True])
def test_fetching_by_the_shortcut_and_by_the_general_path_do_the_same(hook: Any, carol: Any, together: bool) -> None:
    found = []
    for log in (False, True):
        carol.log_msgs = log
        model = torch.nn.Linear(2, 1).send(carol)
        before, ids = carol.stats.messages, [p.id_at_location for p in model.parameters()]
        first = model.weight.child
        fetched = model.get().parameters() if together else [p.get() for p in list(model.parameters())]
        with pytest.raises(sy.exceptions.AlreadyRetrievedError):
            first.get(reason="again")
        with pytest.raises(sy.exceptions.ObjectNotFoundError) as error:
            carol.object_store.entry(ids[0])
        text = str(error.value).replace(str(ids[0]), "id").partition(" at ")[0]
        entries = [
            (
                entry.user,
                entry.form,
                entry.sources == (entry.id,),
                entry.to,
                entry.names,
                entry.peer,
                ids.index(entry.id),
            )
            for entry in list(carol.ledger)[-2:]
        ]
        owners = [p.owner is hook.local_worker for p in fetched]
        found.append((carol.stats.messages - before, carol.objects_count, text, entries, owners, len(carol.ledger) % 2))
    assert found[0] == found[1]


def test_an_entry_of_the_ledger_does_not_name_tags_that_a_source_got_later(carol: Any) -> None:
    p = torch.ones(2).send(carol)
    (p + 1).get()
    p.tag("#later")
    (p + 1).get()
    assert [entry.names for entry in carol.ledger] == [(), ("#later",)]


OPTIONS = {"log_msgs": True, "verbose": True, "message_pending_time": 1e-6, "policy": "only_published"}
NO_OPTIONS = {"log_msgs": False, "verbose": False, "message_pending_time": 0, "policy": "unless_private"}


@pytest.mark.parametrize("option", OPTIONS)
def test_a_worker_with_more_to_do_takes_the_general_path(hook: Any, carol: Any, p: Any, option: str) -> None:
    assert is_shortened(hook, "__add__", p, p)
    setattr(carol, option, OPTIONS[option])
    assert not is_shortened(hook, "__add__", p, p)
    setattr(carol, option, NO_OPTIONS[option])
    assert is_shortened(hook, "__add__", p, p)


def test_a_ledger_in_a_file_takes_the_general_path(hook: Any, tmp_path: Path) -> None:
    dave = sy.VirtualWorker(hook, id="dave", serialize=False, ledger=Ledger("dave", path=tmp_path / "ledger"))
    p = torch.ones(2).send(dave)
    assert not is_shortened(hook, "__add__", p, p)


def test_a_trace_or_a_request_for_others_takes_the_general_path(hook: Any, p: Any) -> None:
    with sy.trace():
        assert not is_shortened(hook, "__add__", p, p)
    with acting_for((Peer("eve"),)):
        assert not is_shortened(hook, "__add__", p, p)


def test_operands_that_need_a_check_take_the_general_path(hook: Any, carol: Any, p: Any) -> None:
    others = [
        torch.ones(2).private_tensor(["me"]).send(carol),
        torch.ones(2).publish(carol),
        sy.LoggingTensor().on(torch.ones(2)).send(carol),
        torch.ones(2).send(sy.VirtualWorker(hook, id="dave", serialize=False)),
        torch.tensor(1.0),
    ]
    fetched = torch.ones(2).send(carol)
    fetched.get()
    for other in (*others, fetched):
        assert not is_shortened(hook, "__add__", p, other)
        assert not is_shortened(hook, "__add__", other, p)


def test_an_object_of_another_client_takes_the_general_path(hook: Any, carol: Any, p: Any) -> None:
    carol.object_store.entry(p.id_at_location).holder = "eve"
    assert not is_shortened(hook, "__add__", p, p)


def test_operations_with_other_effects_take_the_general_path(hook: Any, p: Any) -> None:
    assert not is_shortened(hook, "requires_grad_", p)
    assert not is_shortened(hook, "item", p)
    assert not is_shortened(hook, "dim", p)
    assert not is_shortened(hook, "retain_grad", p)
    assert not is_shortened(hook, "add", p, p, out=p)
