"""Operations, fetches and modules on a worker in this process: what must hold although nothing is serialized."""

from __future__ import annotations

from typing import Any

import pytest

import syft_core as sy
from syft_core.messages import Tag
from syft_core.peer import Peer

torch = pytest.importorskip("torch")


@pytest.fixture
def carol(hook: Any) -> Any:
    return sy.VirtualWorker(hook, id="carol", serialize=False)


def step(model: Any, **options: Any) -> None:
    torch.optim.SGD(model.parameters(), lr=0.1, **options).step()


def test_an_entry_of_the_ledger_does_not_name_tags_that_a_source_got_later(carol: Any) -> None:
    p = torch.ones(2).send(carol)
    (p + 1).get()
    p.tag("#later")
    (p + 1).get()
    assert [entry.names for entry in carol.ledger] == [(), ("#later",)]


def test_a_trace_shows_every_tensor_of_a_module_that_is_sent(carol: Any) -> None:
    with sy.trace() as trace:
        torch.nn.Linear(2, 1).send(carol)
    assert [event.kind for event in trace] == ["Store", "Store"]


def test_an_optimizer_step_of_published_parameters_is_refused(hook: Any, carol: Any) -> None:
    model = torch.nn.Linear(2, 1).send(carol)
    model(torch.ones(1, 2).send(carol)).sum().backward()
    hook.local_worker.location_of("carol").ask(Tag(model.bias.id_at_location, publish=True))
    carol.object_store.entry(model.bias.id_at_location).publisher = Peer("eve")
    with pytest.raises(sy.exceptions.WriteNotPermittedError):
        step(model)


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


def test_the_ledger_names_all_sources_of_a_tensor_that_is_stored_under_two_ids(carol: Any) -> None:
    x, other = torch.ones(2).tag("#x").send(carol), torch.ones(2).tag("#other").send(carol)
    same = x.float()  # Torch returns the tensor itself.
    same.add_(other)

    for product in (x * same, same * x):
        assert product.get().tolist() == [4.0, 4.0]
        assert carol.ledger[-1].names == ("#x", "#other")


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
