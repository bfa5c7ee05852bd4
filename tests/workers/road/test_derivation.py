"""A worker notes how everything that depends on private data is computed, whatever way the numbers take."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any
from weakref import ref

import pytest

import syft_core as sy
from syft_core.workers.party.derivations import MAX_NODES, Derivation
from syft_core.workers.road.derivation import derivation_of

torch = pytest.importorskip("torch")


@pytest.fixture
def bob(hook: Any, serialize: bool) -> Any:
    hook.local_worker.user = "dana"
    bob = sy.VirtualWorker(hook, id="bob", serialize=serialize)
    rows = torch.arange(20.0).reshape(10, 2)
    bob.load_data([rows.private_tensor([]).tag("#scans"), (rows + 1).private_tensor([]).tag("#other")])
    return bob


@pytest.fixture
def scans(bob: Any) -> Any:
    return bob.search("#scans")[0]


@pytest.fixture
def other(bob: Any) -> Any:
    return bob.search("#other")[0]


def find(bob: Any, pointer: Any) -> Derivation:
    pointer.child._location.flush()
    return derivation_of(bob.object_store.entry(pointer.id_at_location))


def program(bob: Any, pointer: Any, *free: str) -> str | None:
    return find(bob, pointer).find_program(free)


def ones(bob: Any) -> Any:
    return torch.ones(10, 2).send(bob)


def test_a_derivation_reads_like_the_program_that_the_user_wrote(bob: Any, scans: Any, other: Any) -> None:
    texts: dict[str, Callable[[], Any]] = {
        "#scans": lambda: scans,
        "mean(dim=0) of #scans[:, 1]": lambda: scans[:, 1].mean(dim=0),
        "(#scans + #other) * 2.0": lambda: (scans + other) * 2.0,
        "1.0 - #scans": lambda: 1.0 - scans,
        "mean of cat of (#scans, #other)": lambda: torch.cat([scans, other]).mean(),
        "part 1 of max(0) of #scans": lambda: scans.max(0)[1],
    }

    found = [str(find(bob, compute())) for compute in texts.values()]

    assert found == list(texts)


def test_what_a_user_supplies_is_named_as_theirs_with_form_and_digest(bob: Any, scans: Any) -> None:
    found = find(bob, (scans * ones(bob)).sum())

    (mask,) = found.list_inputs().values()
    assert str(found) == f"sum of (#scans * their input 1 (Tensor[10, 2] {mask.hex[:12]}))"


def test_equal_programs_have_equal_digests(bob: Any, scans: Any) -> None:
    one, other = (program(bob, (scans[2:, 0] * 3.0).mean()) for _ in range(2))

    assert one == other


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda bob, x, y: (x * 3.5 - y).sum(0), id="another constant"),
        pytest.param(lambda bob, x, y: (x * 3 - y).sum(0), id="a constant of another type"),
        pytest.param(lambda bob, x, y: (x * -3.0 - y).sum(0), id="another sign"),
        pytest.param(lambda bob, x, y: (y - x * 3.0).sum(0), id="another order"),
        pytest.param(lambda bob, x, y: (x * 3.0 - x).sum(0), id="other data"),
        pytest.param(lambda bob, x, y: (x * 3.0 - y).sum(1), id="another dimension"),
        pytest.param(lambda bob, x, y: (x * 3.0 - y)[1:].sum(0), id="another step"),
        pytest.param(lambda bob, x, y: (x * (ones(bob) * 3.0) - y).sum(0), id="a constant that is supplied"),
    ],
)
def test_another_program_has_another_digest(bob: Any, scans: Any, other: Any, change: Callable[..., Any]) -> None:
    approved = program(bob, (scans * 3.0 - other).sum(0))

    assert program(bob, change(bob, scans, other)) != approved


def test_a_supplied_mask_is_part_of_the_program_unless_it_is_named_free(bob: Any, scans: Any) -> None:
    row = torch.zeros(10, 2)
    row[3] = 1.0

    everything, one_row = ((scans * mask.send(bob)).sum(0) for mask in (torch.ones(10, 2), row))

    assert program(bob, everything) != program(bob, one_row)
    assert program(bob, everything, "input 1") == program(bob, one_row, "input 1")
    assert program(bob, everything, "input 2") is None


def test_a_free_input_must_have_its_form(bob: Any, scans: Any) -> None:
    small = (scans * torch.ones(2).send(bob)).sum(0)

    assert program(bob, small, "input 1") != program(bob, (scans * ones(bob)).sum(0), "input 1")


MASK_CHANGES: dict[str, Callable[[Any], Any]] = {
    "in place": lambda mask: mask.mul_(0.0),
    "by index": lambda mask: mask[4:].zero_(),
    "through a view": lambda mask: mask.view(-1).zero_(),
    "through its data": lambda mask: mask.data.zero_(),
    "through out": lambda mask: torch.mul(mask, 0.0, out=mask),
    "detached": lambda mask: mask.detach().zero_(),
}


@pytest.mark.parametrize("change", MASK_CHANGES.values(), ids=MASK_CHANGES)
def test_a_mask_that_is_changed_after_its_first_use_is_another_mask(bob: Any, scans: Any, change: Any) -> None:
    mask = ones(bob)
    approved = program(bob, (scans * mask).sum(0))

    change(mask)

    assert program(bob, (scans * mask).sum(0)) != approved


@pytest.mark.parametrize("change", MASK_CHANGES.values(), ids=MASK_CHANGES)
def test_a_mask_that_is_changed_after_a_request_for_it_is_another_mask(bob: Any, scans: Any, change: Any) -> None:
    mask = ones(bob)
    mask.request("my own")

    change(mask)

    assert program(bob, (scans * mask).sum(0)) != program(bob, (scans * ones(bob)).sum(0))


def test_the_gradient_of_a_supplied_tensor_counts_with_its_bytes(bob: Any, scans: Any) -> None:
    found = []
    for factor in (1.0, 2.0):
        weights = torch.ones(10, 2, requires_grad=True).send(bob)
        (weights * factor).sum().backward()
        found.append(program(bob, (scans * weights.grad).sum(0)))

    assert found[0] != found[1]


def write_in_place(x: Any, y: Any) -> Any:
    target = torch.zeros(10, 2).send(x.location)
    target.add_(x)
    return target


def write_with_out(x: Any, y: Any) -> Any:
    target = torch.zeros(10, 2).send(x.location)
    torch.add(x, 0.0, out=target)
    return target


def write_behind_a_view(x: Any, y: Any) -> Any:
    target = torch.zeros(10, 2).send(x.location)
    view = target.view(20)
    target.copy_(x)
    return view


def change_a_view(x: Any, y: Any) -> Any:
    base = x * 1.0
    base.view(20).add_(1.0)
    return base


def change_a_base(x: Any, y: Any) -> Any:
    base = x * 1.0
    view = base.view(20)
    base.add_(1.0)
    return view


def add_another_row(x: Any, y: Any) -> Any:
    base = x * 1.0
    base[:1].add_(y[:1])
    return base


LAUNDERED: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "a write in place": (write_in_place, lambda x, y: torch.zeros(10, 2).send(x.location)),
    "a write with out": (write_with_out, lambda x, y: torch.zeros(10, 2).send(x.location)),
    "a write behind a view": (write_behind_a_view, lambda x, y: torch.zeros(10, 2).send(x.location).view(20)),
    "a change through a view": (change_a_view, lambda x, y: x * 1.0),
    "a change of what is viewed": (change_a_base, lambda x, y: (x * 1.0).view(20)),
    "a change of a part": (add_another_row, lambda x, y: x * 1.0),
}


@pytest.mark.parametrize(("launder", "honest"), LAUNDERED.values(), ids=LAUNDERED)
def test_what_was_written_into_memory_changes_the_derivation(
    bob: Any, scans: Any, other: Any, launder: Any, honest: Any
) -> None:
    found = find(bob, launder(scans, other))

    assert found.find_program() != program(bob, honest(scans, other))
    assert "#scans" in str(found)


def test_two_places_of_one_memory_have_different_derivations(bob: Any, scans: Any) -> None:
    target = torch.zeros(10, 2).send(bob)
    first, last = target[:1], target[9:]

    target.copy_(scans)

    assert program(bob, first) != program(bob, last)


def test_gradients_follow_from_the_loss_and_from_the_weights(bob: Any, scans: Any) -> None:
    def train(rows: Any) -> Any:
        weights = torch.ones(2, requires_grad=True).send(bob)
        (rows @ weights).sum().backward()
        return weights.grad * 1.0

    everything, again, one_row = train(scans), train(scans), train(scans[3:4])

    assert "#scans" in str(find(bob, everything))
    assert program(bob, everything) == program(bob, again) != program(bob, one_row)


def test_the_steps_of_a_plan_are_those_of_the_same_operations(bob: Any, scans: Any) -> None:
    @sy.func2plan(args_shape=[(10, 2)])
    def average(rows: Any) -> Any:
        return (rows[:, 1] * 2.0).mean()

    planned = average.send(bob)(scans)

    assert str(find(bob, planned)) == "mean of (#scans[:, 1] * 2.0)"
    assert program(bob, planned) == program(bob, (scans[:, 1] * 2.0).mean())


def test_a_copy_on_the_worker_has_the_derivation_of_the_original(bob: Any, scans: Any) -> None:
    picked = scans[3:4] * 1.0

    assert program(bob, picked.child.copy().wrap()) == program(bob, picked)


def test_an_object_that_went_to_another_worker_and_back_is_not_what_it_was(hook: Any, bob: Any) -> None:
    alice = sy.VirtualWorker(hook, id="alice")
    rows = torch.ones(10, 2).private_tensor(["dana"]).tag("#moved").send(bob)
    before = program(bob, (rows * 2.0).sum(0))

    there = rows.move(alice)
    there.add_(1.0)
    back = there.move(bob)

    assert program(bob, (back * 2.0).sum(0)) != before
    assert not find(bob, back).data


def test_a_long_computation_keeps_only_its_digest_and_its_length(bob: Any, scans: Any, other: Any) -> None:
    total, again = scans, scans
    for _ in range(MAX_NODES):
        total, again = total + other, again + other

    found = find(bob, total)

    assert (found.operands, found.count) == (None, 2 * MAX_NODES + 1)
    assert str(found) == f"add after up to {2 * MAX_NODES:,} operations"
    assert found.find_program() == program(bob, again) != program(bob, total + 0.0)
    assert found.find_program(["input 1"]) is None


def test_derivations_keep_no_tensors_alive(bob: Any, scans: Any) -> None:
    mask = ones(bob)
    kept = ref(bob.object_store.entry(mask.id_at_location).value)
    result = (scans * mask).sum()

    del mask
    gc.collect()
    find(bob, scans + 1.0)  # Dropped pointers are reported with the next message.

    assert kept() is None
    assert "their input 1" in str(find(bob, result))


def test_plain_objects_have_no_derivation(bob: Any) -> None:
    plain = ones(bob) + ones(bob)
    plain.child._location.flush()

    assert bob.object_store.entry(plain.id_at_location).derivation is None
