"""Consent to implicit reads of remote values: its scope, its duration and its limits."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

import syft_core as sy
from syft_core.exceptions import GetNotPermittedError, ValueRefusedError
from syft_core.pointers.callable_pointer import ObjectWrapper
from syft_core.pointers.multi_pointer import combine_pointers
from syft_core.tensors.logging import LoggingTensor
from syft_core.tensors.plus_is_minus import PlusIsMinusTensor
from syft_core.workers.seeing import permissions


@pytest.fixture
def p(bob: Any) -> Any:
    return torch.tensor([1.0, 2.0]).send(bob)


def reasons(worker: Any) -> list[str]:
    return [line.reason for line in worker.ledger]


def has_consent(p: Any) -> bool:
    """Return whether a value of ``p`` is answered."""
    try:
        return bool(p.sum() == 3)
    except ValueRefusedError:
        return False


@pytest.mark.parametrize(
    ("ask", "answer"),
    [
        (lambda p: p.sum().item(), 3.0),
        (lambda p: float(p[0]), 1.0),
        (lambda p: int(p[1]), 2),
        (lambda p: bool(p.sum() > 2), True),
        (lambda p: p.tolist(), [1.0, 2.0]),
        (lambda p: 2.0 in p, True),
        (lambda p: [7, 8, 9][p.long()[1]], 9),
        (lambda p: min(p.sum(), 5.0).get().item(), 3.0),
    ],
)
def test_every_value_read_is_recorded_in_the_ledger(p: Any, bob: Any, ask: Any, answer: Any) -> None:
    with sy.revealing("a look"):
        assert ask(p) == answer
    assert bob.ledger[0].reason == "a look"
    assert bob.ledger[0].user == "me"
    assert p.get().tolist() == [1.0, 2.0]


@pytest.mark.parametrize("compare", [torch.equal, torch.allclose, lambda p, q: p.allclose(other=q)])
def test_every_operand_is_recorded_separately(p: Any, bob: Any, compare: Any) -> None:
    q = p + 0

    with sy.revealing("a comparison"):
        assert compare(p, q)

    assert [line.id for line in bob.ledger] == [p.id_at_location, q.id_at_location]
    assert bob.objects_count == 2


def test_outside_the_block_everything_is_refused(p: Any, bob: Any) -> None:
    with sy.revealing("a look"):
        pass

    with pytest.raises(ValueRefusedError, match=r'fetch it first: .* or allow it: `with sy.revealing\("why"\):`'):
        bool(p.sum())
    assert reasons(bob) == []


@pytest.mark.parametrize("reason", ["", "  ", None, 3])
def test_a_reason_is_required(hook: Any, reason: Any) -> None:
    with pytest.raises(ValueRefusedError, match="and none was given"), sy.revealing(reason):
        pass


@pytest.mark.parametrize(
    "ask", [lambda p: p.numpy(), lambda p: p.data_ptr(), lambda p: p.is_set_to(p), lambda p: p.register_hook(print)]
)
def test_operations_that_need_the_data_itself_stay_refused(p: Any, bob: Any, ask: Any) -> None:
    with sy.revealing("a look"), pytest.raises(ValueRefusedError, match="fetch (it|the tensor) first: `p"):
        ask(p)
    assert reasons(bob) == []


def test_a_gradient_is_read_too(bob: Any) -> None:
    p = torch.tensor([1.0, 2.0], requires_grad=True).send(bob)
    (p * p).sum().backward()

    with sy.revealing("gradients"):
        assert p.grad.tolist() == [2.0, 4.0]
    assert reasons(bob) == ["gradients"]


# --- the worker decides


def test_private_data_is_refused_with_the_error_of_the_policy(bob: Any, me: Any) -> None:
    me.user = "alice"
    secret = torch.tensor([1.0, 2.0]).private_tensor(["alice"]).send(bob)
    with sy.revealing("my own"):
        assert secret.sum().item() == 3.0
    assert reasons(bob) == ["my own"]

    me.user = "eve"
    with sy.revealing("a look"):
        for ask in (lambda: secret.tolist(), lambda: bool(secret.sum() > 0), lambda: torch.equal(secret, secret)):
            with pytest.raises(GetNotPermittedError, match="it is private, or was computed from something private"):
                ask()
    assert reasons(bob) == ["my own"]


def test_a_worker_that_lets_nothing_leave_lets_nothing_be_read(p: Any, bob: Any) -> None:
    bob.policy = permissions.nothing

    with sy.revealing("a look"), pytest.raises(GetNotPermittedError, match="this worker lets nothing leave"):
        bool(p.sum())
    assert reasons(bob) == []


def test_the_consent_is_not_that_of_a_worker_which_computes_for_us(bob: Any, alice: Any) -> None:
    bob.load_data([ObjectWrapper(lambda q: bool(q.sum() > 0), id="peek")])
    (peek,) = bob.search("peek")
    at_bob = torch.tensor([1.0]).send(alice).send(bob)

    with sy.revealing("a look"):
        with pytest.raises(ValueRefusedError):
            peek(at_bob)
        assert reasons(alice) == []
        assert at_bob.tolist() == [1.0]
    assert (reasons(bob)[-1], reasons(alice)) == ("a look", ["a look"])


# --- how long it holds


def test_the_innermost_reason_applies(p: Any, bob: Any) -> None:
    with sy.revealing("outer"):
        with sy.revealing("inner"):
            assert has_consent(p)
        assert has_consent(p)
    assert not has_consent(p)
    assert reasons(bob) == ["inner", "outer"]


def test_an_error_ends_it(p: Any) -> None:
    with pytest.raises(KeyError), sy.revealing("a look"):
        raise KeyError
    assert not has_consent(p)


def test_it_does_not_hold_in_another_thread(p: Any) -> None:
    with sy.revealing("a look"), ThreadPoolExecutor(1) as pool:
        assert has_consent(p)
        assert not pool.submit(has_consent, p).result(60)


def test_a_task_that_was_started_within_it_does_not_keep_it(p: Any) -> None:
    async def later(left: asyncio.Event) -> bool:
        await asyncio.wait_for(left.wait(), 60)
        return has_consent(p)

    async def main() -> bool:
        left = asyncio.Event()
        with sy.revealing("a look"):
            task = asyncio.create_task(later(left))
        left.set()
        return await task

    assert not asyncio.run(main())


def test_generators_that_end_in_any_order_leave_nothing_open(p: Any, bob: Any) -> None:
    def read(reason: str) -> Iterator[bool]:
        with sy.revealing(reason):
            yield has_consent(p)

    first, second = read("first"), read("second")
    assert next(first)
    assert next(second)
    first.close()
    assert has_consent(p)
    second.close()

    assert not has_consent(p)
    assert reasons(bob) == ["first", "second", "second"]


def test_a_generator_that_is_closed_in_another_context_leaves_nothing_open(p: Any) -> None:
    def read() -> Iterator[bool]:
        with sy.revealing("a look"):
            yield has_consent(p)

    generator = read()
    assert next(generator)
    contextvars.Context().run(generator.close)  # type: ignore[attr-defined]  # a generator

    assert not has_consent(p)


# --- whatever lies over the pointer, and whatever it points to


@pytest.mark.parametrize("layer", [LoggingTensor, PlusIsMinusTensor])
def test_layers_over_a_pointer_change_nothing(p: Any, bob: Any, layer: Any, capsys: Any) -> None:
    chain = layer().on(p)

    with pytest.raises(ValueRefusedError):
        chain.tolist()
    with sy.revealing("a look"):
        assert chain.tolist() == [1.0, 2.0]
    assert reasons(bob) == ["a look"]


def test_layers_on_the_worker_are_fetched_too(bob: Any) -> None:
    p = PlusIsMinusTensor().on(torch.tensor([1.0, 2.0])).send(bob)

    with sy.revealing("a look"):
        assert (p + p).tolist() == [0.0, 0.0]


def test_tensors_on_several_workers_answer_when_they_agree(bob: Any, alice: Any) -> None:
    same = torch.tensor([1.0, 2.0]).send(bob, alice)
    others = combine_pointers(torch.tensor(1.0).send(bob), torch.tensor(2.0).send(alice))

    with sy.revealing("a look"):
        assert same.tolist() == [1.0, 2.0]
        with pytest.raises(ValueError, match="they differ; run it on one at a time"):
            others.item()
    assert reasons(bob) == reasons(alice) == ["a look"] * 2
    with pytest.raises(ValueRefusedError):
        same.tolist()


def test_arrays_of_numpy_are_read_in_the_same_way(numpy_hook: Any, carol: Any) -> None:
    np = numpy_hook.framework
    p = numpy_hook.ones(3).send(carol)

    with pytest.raises(ValueRefusedError):
        bool(p.sum() > 2)
    with sy.revealing("a look"):
        assert p.sum() > 2
        assert p.tolist() == [1.0, 1.0, 1.0]
        assert np.allclose(p, p)
        with pytest.raises(sy.exceptions.WrapperLeakError):
            np.asarray(p)
    assert reasons(carol) == ["a look"] * 4
