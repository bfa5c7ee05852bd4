"""One tensor on each of several workers."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")

import torch

import syft_core as sy
from syft_core.exceptions import MixedLayersError, NotCollocatedError, ValueRefusedError
from syft_core.pointers.multi_pointer import MultiPointerTensor
from syft_torch.functions import combine_pointers


@pytest.fixture
def x(hook: Any) -> Any:
    return torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def test_a_tensor_sent_to_several_workers_is_on_each(x: Any, bob: Any, alice: Any) -> None:
    m = x.send(bob, alice)

    assert isinstance(m.child, MultiPointerTensor)
    assert list(m.child.child) == ["bob", "alice"]
    assert (bob.objects_count, alice.objects_count) == (1, 1)
    assert m.shape == (2, 3)


def test_operations_run_on_every_worker(x: Any, bob: Any, alice: Any) -> None:
    m = x.send(bob, alice)

    one, other = (m * 2 + m).sum(0).get()

    assert one.tolist() == other.tolist() == [15.0, 21.0, 27.0]


def test_results_can_be_summed(x: Any, bob: Any, alice: Any) -> None:
    assert x.send(bob, alice).get(sum_results=True).tolist() == (x + x).tolist()


def test_several_results_come_back_as_they_are(x: Any, bob: Any, alice: Any) -> None:
    values, indices = x.send(bob, alice).max(1)

    assert [v.tolist() for v in values.get()] == [[3.0, 6.0], [3.0, 6.0]]
    assert [i.tolist() for i in indices.get()] == [[2, 2], [2, 2]]


def test_in_place_keeps_the_object(x: Any, bob: Any, alice: Any) -> None:
    m = x.send(bob, alice)

    assert m.add_(1) is m
    assert [v.tolist() for v in m.get()] == [(x + 1).tolist()] * 2


def test_pointers_can_be_combined(x: Any, bob: Any, alice: Any) -> None:
    p, q = x.send(bob), (x * 2).send(alice)

    for m in (p.combine(q), sy.combine_pointers(p, q), combine_pointers(p, q)):
        assert m.virtual_get(sum_results=True).tolist() == (x * 3).tolist()
    assert [v.tolist() for v in p.combine(q).get()] == [x.tolist(), (x * 2).tolist()]


def test_two_pointers_to_one_worker_cannot_be_combined(x: Any, bob: Any) -> None:
    with pytest.raises(ValueError, match="cannot combine two pointers to worker 'bob': one of them would be lost"):
        combine_pointers(x.send(bob), x.send(bob))


def test_two_shapes_cannot_be_combined(x: Any, bob: Any, alice: Any) -> None:
    with pytest.raises(ValueError, match=r"shape \(2, 3\) on 'bob' with one of shape \(2,\) on 'alice'"):
        combine_pointers(x.send(bob), x[:, 0].send(alice))


def test_only_pointers_can_be_combined(x: Any, bob: Any) -> None:
    with pytest.raises(ValueError, match="each must be a pointer to a tensor"):
        combine_pointers(x.send(bob), x)


def test_operands_must_be_on_the_same_workers(x: Any, bob: Any, alice: Any, hook: Any) -> None:
    other = sy.VirtualWorker(hook, id="other")

    with pytest.raises(MixedLayersError, match="differ in workers"):
        x.send(bob, alice) + x.send(bob, other)


def test_a_local_tensor_does_not_mix(x: Any, bob: Any, alice: Any) -> None:
    with pytest.raises(NotCollocatedError):
        x.send(bob, alice) + x


def test_values_are_refused(x: Any, bob: Any, alice: Any) -> None:
    with pytest.raises(ValueRefusedError):
        x.send(bob, alice).sum().item()


def test_it_names_every_worker_when_printed(x: Any, bob: Any, alice: Any) -> None:
    text = repr(x.send(bob, alice))

    assert text.startswith("(Wrapper)>MultiPointerTensor>\n\t-> [PointerTensor | me:")
    assert "-> bob:" in text
    assert "-> alice:" in text


def test_nothing_is_left_when_it_is_dropped(x: Any, bob: Any, alice: Any) -> None:
    m = x.send(bob, alice)
    n = m + m
    del m, n

    assert (bob.objects_count, alice.objects_count) == (0, 0)


def test_arrays_can_be_on_several_workers_too(numpy_hook: Any, carol: Any, dave: Any) -> None:
    m = numpy_hook.arange(3).send(carol, dave)

    assert [list(part) for part in (m + m).get()] == [[0, 2, 4], [0, 2, 4]]
