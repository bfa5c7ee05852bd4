"""No operation on a pointer reveals a value: every operation of the op tables is tried."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("numpy")
pytest.importorskip("expecttest", reason="torch's own samples need it")

import numpy as np
import torch
from torch.overrides import get_overridable_functions

from syft_core.exceptions import GetNotPermittedError, NotCollocatedError, OperationNotAllowedError, ValueRefusedError
from syft_core.hook.attributes import describe_op
from syft_core.messages import Run
from syft_core.pointers.revealing import revealing
from syft_core.workers.party.virtual import VirtualWorker
from syft_torch.attributes import TorchAttributes

from ..surface.checks import Raised, attempt, tensors
from .remote_surface import CAME_HERE, RemoteSurface, same

# The samples use what the frameworks deprecate, and leave the domain of some functions.
pytestmark = pytest.mark.filterwarnings("ignore")

SHOWS_ITSELF = {"torch.Tensor.__repr__", "torch.Tensor.__format__"}
"""What prints the pointer, and its id, which is another each time."""


@pytest.mark.parametrize("kind", ["pointer", "private"])
@pytest.mark.slow
def test_the_answer_of_an_operation_does_not_depend_on_values(surface: Any, kind: str, serialize: bool) -> None:
    """For a private tensor, shapes of results and texts of errors do not depend on values either."""
    remote = RemoteSurface(surface, kind=kind, serialize=serialize)
    telling, came, ran, tried = {}, set(), 0, 0
    for op in surface.ops:
        for case in remote.cases(op, most=1 if serialize else 2):
            one, other = (remote.reveal(remote.call(case, change)) for change in (None, surface.other_values))
            tried += 1
            ran += not (isinstance(one[0], type) and issubclass(one[0], Exception))
            if not same(one, other) and not case.form_only and op.name not in SHOWS_ITSELF:
                telling[op.name] = (one, other)
            if CAME_HERE in one:
                came.add(op.name)

    assert telling == {}
    assert came == set()
    assert ran > 0.6 * tried  # the rest was not reviewed, and is refused next to private data


EXTREMES = ((float("nan"), 0), (3e4, 100_000), (-5.0, -77), (0.0, 0))
"""What to fill tensors with so that operations fail: with fractions, and without."""
NEVER_ENDS = {"torch.binomial"}
"""What torch does not finish for some of these values."""


@pytest.mark.slow
def test_whether_an_operation_fails_is_not_disclosed(surface: Any) -> None:
    """All tensors of a call are private, or one of them; the answer is the same for all values."""
    remote = RemoteSurface(surface, kind="private", serialize=False)
    telling: dict[Any, Any] = {}
    failed = 0
    for op in surface.ops:
        for case in remote.cases(op, most=1) if op.name not in SHOWS_ITSELF | NEVER_ENDS else ():
            given = len(remote.tensors_of(case))
            for place in (None, *range(given if given > 1 else 0)):
                usual = remote.reveal(remote.call(case, None, place))
                for values in EXTREMES if place is None else EXTREMES[:2]:
                    result = remote.call(case, lambda tensor, v=values: surface.extreme_values(tensor, *v), place)
                    if not same(usual, other := remote.reveal(result)) and not case.form_only:
                        telling[op.name, place, values] = (usual, other)
            failed += any(entry.failures for entry in remote.worker.object_store.entries())
        remote.clear()

    assert telling == {}
    assert failed > (20 if surface.name == "torch" else 5)


def test_targets_changed_with_a_private_tensor_disclose_nothing(surface: Any) -> None:
    """Each tensor of a call is private once, and the others are free: what the call changes is private afterwards."""
    remote = RemoteSurface(surface, kind="private", serialize=False)
    telling, tried = [], 0
    for op in surface.ops:
        for case in remote.cases(op, most=2):
            given = len(remote.tensors_of(case))
            for place in range(given if given > 1 else 0):
                telling += remote.call_mixed(case, place)
                tried += 1
        remote.clear()

    assert telling == []
    assert tried > 500


def test_every_function_that_torch_lets_others_override_is_in_the_table_or_refused() -> None:
    ops, left_out = TorchAttributes(torch).ops, 0
    for functions in get_overridable_functions().values():
        for function in functions:
            if function not in ops.by_func:
                with pytest.raises(OperationNotAllowedError):
                    ops.of(function)
                left_out += 1

    assert left_out < 40


def test_operations_that_reveal_values_are_refused_at_both_ends(surface: Any, serialize: bool) -> None:
    remote = RemoteSurface(surface, kind="pointer", serialize=serialize)
    revealing = [op for op in surface.ops if op.reveals or op.local]
    first, second = (remote.head(surface.copy(np.ones(2) if surface.name == "numpy" else torch.ones(2))) for _ in "ab")
    p, q = first.send(remote.worker), second.send(remote.worker)

    for op in revealing:
        with pytest.raises(ValueRefusedError):
            remote.me.location_of(remote.worker).ask(Run(surface.name, op.name, (p.child, q.child), {}, 1))
    assert len(revealing) > 10
    assert remote.count() == 2


def test_with_consent_every_value_read_is_recorded_in_the_ledger(surface: Any) -> None:
    remote = RemoteSurface(surface, kind="pointer", serialize=False)
    ledger, answered = remote.worker.ledger, set()
    for op in surface.ops:
        for case in remote.cases(op) if op.reveals else ():
            here, before = attempt(case.call, case.args, case.kwargs), len(ledger)
            with revealing(f"to read {op.name}"):
                result = remote.call(case)

            reasons = [line.reason for line in list(ledger)[before:]]
            if op.local and op.attr != "__format__":  # which reads with `item`
                assert reasons == []
                continue
            assert reasons == [f"to read {op.name}"] * len(list(tensors(surface, (case.args, case.kwargs))))
            assert repr(result) == repr(here)
            answered.add(op.attr)

    assert {"__bool__", "__float__", "__int__", "__contains__", "item", "tolist", "allclose"} <= answered


def test_consent_does_not_reveal_private_data(surface: Any) -> None:
    remote = RemoteSurface(surface, kind="private", serialize=False)
    tried = 0
    with revealing("curiosity"):
        for op in surface.ops:
            for case in remote.cases(op) if op.reveals and not op.local else ():
                result = remote.call(case)
                assert isinstance(result, Raised)
                assert result.kind is GetNotPermittedError
                tried += 1

    assert tried > 10
    assert len(remote.worker.ledger) == 0


def test_consent_is_not_visible_to_a_worker(surface: Any, serialize: bool) -> None:
    with revealing("a message of its own making"):
        test_operations_that_reveal_values_are_refused_at_both_ends(surface, serialize)


@pytest.fixture
def bob(hook: Any, serialize: bool) -> Iterator[Any]:
    yield from worker_for_one_test(hook, "bob", serialize)


@pytest.fixture
def carol(numpy_hook: Any, serialize: bool) -> Iterator[Any]:
    yield from worker_for_one_test(numpy_hook, "carol", serialize)


def worker_for_one_test(hook: Any, id: str, serialize: bool) -> Iterator[Any]:
    """Make a worker whose id is free again afterwards: the surfaces' hooks, which know it, stay on."""
    yield VirtualWorker(hook, id=id, serialize=serialize)
    hook.local_worker.remove_worker_from_registry(id)


@pytest.mark.parametrize(
    "ask",
    [
        lambda p: p.item(),
        lambda p: p.tolist(),
        lambda p: p.numpy(),
        lambda p: bool(p),
        lambda p: float(p),
        lambda p: int(p),
        lambda p: complex(p),
        lambda p: [1, 2, 3][p.long()],
        lambda p: 1.0 in p,
        lambda p: p.equal(p),
        lambda p: torch.allclose(p, p),
        lambda p: p.is_nonzero(),
        lambda p: p.data_ptr(),
        lambda p: p.storage(),
        lambda p: p.untyped_storage().tolist(),
        lambda p: p.untyped_storage().data_ptr(),
        lambda p: np.asarray(p),
        lambda p: p.apply_(lambda x: x),
        lambda p: p.register_hook(print),
        lambda p: torch.tensor(p),
        lambda p: __import__("pickle").dumps(p),
    ],
)
def test_implicit_reads_are_refused(bob: Any, ask: Any) -> None:
    p = torch.tensor(7.0).send(bob)

    with pytest.raises((ValueRefusedError, RuntimeError)) as caught:
        ask(p)
    assert "7" not in str(caught.value).replace(str(p.id_at_location), "").replace(str(p.child.id), "")


def test_printing_and_formatting_show_the_pointer(bob: Any) -> None:
    p = torch.tensor(7.5).send(bob)

    for text in (f"{p}", str(p), repr(p), format(p, ">80"), f"{[p]}"):
        assert "PointerTensor" in text
        assert "7.5" not in text


def test_a_new_operation_that_answers_with_a_number_is_refused_by_the_worker(hook: Any, bob: Any) -> None:
    telling = describe_op("torch.tell", lambda x: float(x.sum()), "function")
    hook.attributes.ops.add(telling)
    try:
        p = torch.ones(2).send(bob)
        with pytest.raises(ValueRefusedError):
            hook.local_worker.location_of(bob).ask(Run("torch", "torch.tell", (p.child,), {}, 1))
    finally:
        del hook.attributes.ops.by_name["torch.tell"], hook.attributes.ops.by_func[telling.func]


# --- a plain tensor is never changed with what is elsewhere


@pytest.mark.parametrize("shape", [(), (3,)], ids=["a number", "a vector"])
@pytest.mark.parametrize(
    "change",
    [
        lambda plain, p: plain.add_(p),
        lambda plain, p: plain.__setitem__(..., p),
        lambda plain, p: plain.copy_(p),
        lambda plain, p: torch.add(p, p, out=plain),
        lambda plain, p: torch.max(p, 0, out=(plain, plain.long())),
        lambda plain, p: torch._foreach_add_([plain], [p]),
        lambda plain, p: plain.lerp_(p, 0.5),
        lambda plain, p: plain.masked_fill_(p > 0, 1.0),
    ],
)
def test_a_local_tensor_is_not_changed_with_a_remote_one(bob: Any, shape: tuple[int, ...], change: Any) -> None:
    plain, p = torch.zeros(shape), torch.ones(shape).send(bob)

    with pytest.raises(NotCollocatedError, match="it would implicitly reveal a value from 'bob' by writing it"):
        change(plain, p)
    assert plain.eq(0).all()


def test_an_in_place_operator_on_a_number_returns_a_new_pointer(bob: Any) -> None:
    plain, p = torch.tensor(1.0), torch.tensor(2.0).send(bob)

    result = plain
    result += p

    assert plain.item() == 1.0
    assert result.get().item() == 3.0


@pytest.mark.parametrize("shape", [(), (3,)], ids=["a number", "a vector"])
@pytest.mark.parametrize(
    "change",
    [
        lambda plain, p: np.add(p, p, out=plain),
        lambda plain, p: np.copyto(plain, p),
        lambda plain, p: np.put(plain, 0, p),
    ],
)
def test_a_local_array_is_not_changed_with_a_remote_one(
    numpy_hook: Any, carol: Any, shape: tuple[int, ...], change: Any
) -> None:
    plain, p = np.zeros(shape), numpy_hook.ones(shape).send(carol)

    with pytest.raises(NotCollocatedError):
        change(plain, p)
    assert (plain == 0).all()
