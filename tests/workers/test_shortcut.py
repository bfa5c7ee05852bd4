"""Operations on plain objects of a worker in this process take a shortcut; all others take the general path."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import syft_core as sy
from syft_core.messages import Tag
from syft_core.peer import Peer, acting_for
from syft_core.workers.ledger import Ledger
from syft_core.workers.shortcut import UNANSWERED, compute
from syft_core.workers.transfer import give_away

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


def test_sending_a_module_by_the_shortcut_and_by_the_general_path_do_the_same(hook: Any, carol: Any) -> None:
    found = []
    for log in (False, True):
        carol.log_msgs = log
        model = torch.nn.Linear(2, 1)
        model(torch.ones(1, 2)).sum().backward()
        before, values = carol.stats.messages, [p.tolist() for p in model.parameters()]
        model.send(carol)
        entries = [carol.object_store.entry(p.id_at_location) for p in model.parameters()]
        found.append(
            (
                carol.stats.messages - before,
                [entry.value.tolist() for entry in entries] == values,
                [entry.value.grad.tolist() for entry in entries],
                [(entry.holder, entry.giver, entry.leases, entry.is_plain, entry.access) for entry in entries],
                [(entry.value.id == entry.id, entry.value.owner is carol) for entry in entries],
                [[source.id for source in entry.sources] == [entry.id] for entry in entries],
            )
        )
    assert found[0] == found[1]


def test_a_trace_shows_every_tensor_of_a_module_that_is_sent(carol: Any) -> None:
    with sy.trace() as trace:
        torch.nn.Linear(2, 1).send(carol)
    assert [event.kind for event in trace] == ["Store", "Store"]


def test_objects_that_cannot_be_given_away_are_still_there(hook: Any, carol: Any) -> None:
    values = [torch.ones(2), lambda: None, torch.zeros(2)]
    with pytest.raises(sy.exceptions.SerdeError):
        give_away(values, carol)
    assert [type(value).__name__ for value in values] == ["Tensor", "function", "Tensor"]
    assert values[0].tolist() == [1.0, 1.0]


def step(model: Any, **options: Any) -> None:
    torch.optim.SGD(model.parameters(), lr=0.1, **options).step()


@pytest.mark.parametrize("options", [{}, {"weight_decay": 0.5}, {"maximize": True}, {"momentum": 0.9}], ids=str)
def test_an_optimizer_step_by_the_shortcut_and_by_the_general_path_do_the_same(
    hook: Any, carol: Any, options: Any
) -> None:
    found = []
    for log in (False, True):
        torch.manual_seed(0)
        model = torch.nn.Linear(2, 1).send(carol)
        x = torch.ones(1, 2).send(carol)
        model(x).sum().backward()
        carol.log_msgs = log
        step(model, **options)
        names = {x.id_at_location: "x", **{p.id_at_location: name for name, p in model.named_parameters()}}
        entries = [carol.object_store.entry(p.id_at_location) for p in model.parameters()]
        found.append(
            (
                [sorted(names[source.id] for source in entry.sources) for entry in entries],
                [(entry.touched, entry.value.grad.tolist()) for entry in entries],
                [p.tolist() for p in model.get().parameters()],
            )
        )
        carol.log_msgs = False
    assert found[0] == found[1]


def test_an_optimizer_step_is_one_message(carol: Any) -> None:
    model = torch.nn.Linear(2, 1).send(carol)
    model(torch.ones(1, 2).send(carol)).sum().backward()
    before = carol.stats.messages, carol.stats.operations
    step(model)
    assert (carol.stats.messages, carol.stats.operations) == (before[0] + 1, before[1] + 1)


def test_an_optimizer_step_of_published_parameters_is_refused(hook: Any, carol: Any) -> None:
    model = torch.nn.Linear(2, 1).send(carol)
    model(torch.ones(1, 2).send(carol)).sum().backward()
    hook.local_worker.location_of("carol").ask(Tag(model.bias.id_at_location, publish=True))
    carol.object_store.entry(model.bias.id_at_location).publisher = Peer("eve")
    with pytest.raises(sy.exceptions.WriteNotPermittedError):
        step(model)


def test_a_fetched_number_does_not_bring_the_memory_that_it_was_taken_from(carol: Any) -> None:
    p = torch.arange(1000.0, requires_grad=True).send(carol)
    number = (p * 1)[3].get()
    assert number.item() == 3.0
    assert number.untyped_storage().nbytes() == number.element_size()


def test_a_fetched_number_shares_no_memory_with_a_graph(carol: Any) -> None:
    p = torch.tensor(2.0, requires_grad=True).send(carol)
    result = p.exp()  # The graph needs the result.
    doubled = result * 2
    fetched = result.get()
    fetched.zero_()
    doubled.backward()
    assert p.grad.get().item() == pytest.approx(2 * 7.389056, rel=1e-6)
    assert fetched.owner is not carol


def test_the_gradient_of_a_fetched_object_cannot_be_read_although_another_client_needs_the_object(carol: Any) -> None:
    p = torch.ones(2, requires_grad=True).send(carol)
    p.sum().backward()
    entry = carol.object_store.entry(p.id_at_location)
    entry.lease("eve")
    p.get()
    assert carol.object_store.get(p.id_at_location) is entry
    with pytest.raises(sy.exceptions.AlreadyRetrievedError):
        p.grad  # noqa: B018  # reading it raises


def test_a_policy_that_is_set_after_a_module_was_sent_applies_to_it(carol: Any) -> None:
    model = torch.nn.Linear(2, 1).send(carol)
    carol.policy = "nothing"
    with pytest.raises(sy.exceptions.GetNotPermittedError):
        model.get()
    assert model.location is carol
    carol.policy = "unless_private"
    assert model.get().location is None


def test_a_tensor_that_shares_memory_with_a_sent_module_does_not_change(carol: Any) -> None:
    model = torch.nn.Linear(2, 1)
    before, alias = model.weight.detach().clone(), model.weight.detach()
    for _ in range(2):
        model.send(carol)
        model(torch.ones(1, 2).send(carol)).sum().backward()
        step(model)
        model.get()
    assert torch.equal(alias, before)
    assert not torch.equal(model.weight, before)


def test_the_ledger_names_all_sources_of_a_tensor_that_is_stored_under_two_ids(carol: Any) -> None:
    x, other = torch.ones(2).tag("#x").send(carol), torch.ones(2).tag("#other").send(carol)
    same = x.float()  # Torch returns the tensor itself.
    same.add_(other)

    for product in (x * same, same * x):
        assert product.get().tolist() == [4.0, 4.0]
        assert carol.ledger[-1].names == ("#x", "#other")


def test_nothing_takes_the_shortcut_after_unhooking(hook: Any, p: Any) -> None:
    hook.unhook()
    assert not is_shortened(hook, "__add__", p, p)


def run_twice(w: Any) -> None:
    loss = (w * w).sum()
    loss.backward()
    loss.backward()


FAILING = {
    "from a vector": lambda w: (w * 2).backward(),
    "from a number outside of a graph": lambda w: w.detach().sum().backward(),
    "from a complex number": lambda w: torch.complex(w, w).sum().backward(),
    "through a freed graph": run_twice,
}


@pytest.mark.parametrize("program", FAILING)
def test_a_backward_pass_fails_with_the_error_of_torch(carol: Any, program: str) -> None:
    texts = []
    for w in (torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True).send(carol)):
        with pytest.raises(RuntimeError) as error:
            FAILING[program](w)
        texts.append(str(error.value))
    assert texts[0] == texts[1]


def test_a_backward_pass_with_options_has_the_effect_of_a_local_one(carol: Any) -> None:
    found = []
    for w in (torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True).send(carol)):
        loss = (w * w).sum()
        loss.backward(retain_graph=True)
        loss.backward(torch.tensor(3.0), inputs=[w])
        found.append(w.grad.tolist() if w.location is None else w.grad.get().tolist())
    assert found[0] == found[1] == [8.0, 8.0]
