"""Results fit the quota: they are estimated before an operation runs, and compared with the estimate after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from syft_core.messages import Fetch, Release, Run, Store
from syft_core.peer import Peer
from syft_core.plans.messages import RunPlan
from syft_core.plans.program import Slot, Step
from syft_worker.allowances import Allowance
from syft_worker.errors import QuotaExceededError
from syft_worker.estimates import Estimate
from syft_worker.quotas import QuotaGuard

from .test_quotas import _at, _plan, ask

torch = pytest.importorskip("torch")
EVE = Peer("phone@eve", "eve")


@pytest.fixture
def eve(far: Any) -> Callable[..., None]:
    """Send commands as eve, who may have a megabyte."""
    far.guard = QuotaGuard(far, {"eve": Allowance(bytes=10**6)})
    return lambda *commands: ask(far, *commands, sender=EVE)


def run(op: str, *args: Any, result: int = 100, **kwargs: Any) -> Run:
    return Run("torch", op, args, kwargs or None, result)


@pytest.mark.parametrize(
    ("op", "small", "large"),
    [
        ("torch.arange", (0.0, 1.5), (0.0, 2.2e15)),  # Larger than any memory, so it is refused before it runs.
        ("torch.arange", (0.0, 1.5, 1.25), (0.0, 1.5, 1.2e-15)),
    ],
)
def test_a_result_is_refused_although_one_of_another_number_was_small(
    far: Any, eve: Any, op: str, small: Any, large: Any
) -> None:
    eve(run(op, *small))

    with pytest.raises(QuotaExceededError, match=f"cannot run '{op}'"):
        eve(run(op, *large, result=101))

    assert far.object_store.get(101) is None


def test_a_sparse_tensor_is_not_mistaken_for_another(far: Any, eve: Any) -> None:
    index = torch.zeros(2, 0, dtype=torch.int64)
    for number, size in ((1, 3), (2, 5000)):
        eve(Store(number, torch.sparse_coo_tensor(index, torch.zeros(0), (size, size), check_invariants=True)))
    eve(run("torch.Tensor.to_dense", _at(far, 1)))

    with pytest.raises(QuotaExceededError, match=r"cannot run 'torch.Tensor.to_dense': .* 100,0"):
        eve(run("torch.Tensor.to_dense", _at(far, 2), result=101))

    assert far.object_store.get(101) is None


def test_a_result_that_nobody_could_foresee_is_dropped_if_it_exceeds_the_quota(far: Any, eve: Any) -> None:
    eve(Store(1, torch.ones(60_000)), run("torch.Tensor.nonzero", _at(far, 1)))

    with pytest.raises(QuotaExceededError, match=r"cannot run 'torch.Tensor.nonzero': .* have 1,200,000 bytes"):
        eve(run("torch.Tensor.nonzero", _at(far, 1), result=101))

    assert far.object_store.get(101) is None
    (account,) = far.guard.accounts
    assert account.bytes <= 10**6


def test_an_estimate_that_was_too_small_is_corrected(far: Any, eve: Any) -> None:
    eve(Store(1, torch.ones(100_000)), run("torch.Tensor.__add__", _at(far, 1), 1), Release((100,)))
    (known,) = [
        e for m in _memos() for e in m.values() if type(e) is Estimate and "__add__(float32[100000]" in e.signature
    ]
    known.bytes, known.measured = 0, 4

    eve(run("torch.Tensor.__add__", _at(far, 1), 1))

    assert known.bytes == known.measured == 400_000
    with pytest.raises(QuotaExceededError, match="1,200,000 bytes"):
        eve(run("torch.Tensor.__add__", _at(far, 1), 1, result=101))


def _memos() -> list[Any]:
    from syft_core.hook import signatures  # noqa: PLC0415  # only for this look inside

    return list(signatures._memos.values())


def test_what_grows_in_place_gets_its_former_size_if_it_exceeds_the_quota(far: Any, eve: Any) -> None:
    eve(Store(1, torch.ones(70_000)), Store(2, torch.zeros(0, dtype=torch.int64)), Store(3, torch.ones(1)))
    eve(run("torch.Tensor.nonzero", _at(far, 3), result=99))

    with pytest.raises(QuotaExceededError, match=r"cannot run 'torch\.nonzero'"):
        eve(Store(4, torch.ones(60_000)), run("torch.nonzero", _at(far, 1), out=_at(far, 2)))

    assert far.object_store.entry(2).value.untyped_storage().nbytes() == 0


def test_a_view_needs_nothing_although_its_memory_is_large(far: Any, eve: Any) -> None:
    eve(Store(1, torch.ones(200_000)))

    for number in range(100, 120):
        eve(run("torch.Tensor.__getitem__", _at(far, 1), number, result=number))

    assert far.guard.account_of("eve").bytes < 10**6


def test_a_conjugate_that_is_resolved_counts(far: Any, eve: Any) -> None:
    eve(Store(1, torch.ones(50_000, dtype=torch.complex64)), run("torch.Tensor.conj", _at(far, 1)))
    eve(run("torch.Tensor.resolve_conj", _at(far, 1), result=101))
    eve(run("torch.Tensor.resolve_conj", _at(far, 100), result=102))

    with pytest.raises(QuotaExceededError, match="1,200,000 bytes"):
        eve(run("torch.Tensor.resolve_conj", _at(far, 100), result=103))

    assert far.object_store.get(103) is None


def test_gradients_count_before_they_exist(far: Any, eve: Any) -> None:
    eve(Store(1, torch.ones(130_000, requires_grad=True)), run("torch.Tensor.sum", _at(far, 1)))

    with pytest.raises(QuotaExceededError, match="1,040,004 bytes"):
        eve(run("torch.Tensor.backward", _at(far, 100), result=101))

    assert far.object_store.entry(1).value.grad is None


def test_what_only_a_graph_keeps_counts(far: Any, eve: Any) -> None:
    eve(Store(1, torch.full((50_000,), 0.1, requires_grad=True)))

    def compute() -> None:
        for number in range(100, 120):
            eve(run("torch.Tensor.exp", _at(far, number - 1 if number > 100 else 1), result=number))
            eve(run("torch.Tensor.add_", _at(far, number), 1, result=1000))
            if number > 100:
                eve(Release((number - 1,)))

    with pytest.raises(QuotaExceededError, match="cannot run 'torch.Tensor.exp'"):
        compute()


def test_a_plan_of_many_steps_is_refused_at_the_step_that_would_be_too_much(far: Any, eve: Any) -> None:
    steps = [Step("torch", "torch.Tensor.expand", (Slot(0), 100_000, 3), {}, 1)]
    steps += [Step("torch", "torch.Tensor.clone", (Slot(1),), {}, 1)]
    eve(Store(1, torch.ones(3)), Store(2, _plan(*steps)))

    with pytest.raises(QuotaExceededError, match="cannot run 'torch.Tensor.clone'"):
        eve(RunPlan(2, (_at(far, 1),), 100))

    eve(Fetch(1))
    assert {account.user: account.objects for account in far.guard.accounts} == {"eve": 1}
