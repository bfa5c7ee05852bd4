"""Defects of the ancestor, by their number in its register: none of them is here.

Where each is tested, in addition to the tests of that number in this file:

======  ============================================  =====================================================
D       what went wrong                               also
======  ============================================  =====================================================
05      inverting counted as in place                 ``tests/core/test_defects.py``
06      ``!=`` of pointers
07      the clone of a gradient was the tensor
08      ``size()``; recurrent layers on remote data   ``tests/syft_torch/test_module.py``
09      metadata of the empty wrapper
10      printing and a second get after get           ``test_bad_input.py``
11, 12  collocation of functions and modules          ``test_bad_input.py``
13      tensors in keywords                           ``tests/core/test_defects.py``
14      results that are their argument
15      several results after a single one            ``tests/core/test_defects.py``
16-18   search and its index
19      a gradient before backward
20, 21  unknown workers, and none at all              ``test_bad_input.py``
22      where a pointer says that its object is
23      combining pointers                            ``tests/pointers/test_multi_pointer.py``
24      modes that were not sent
25      ``torch.autograd.grad``
26      values revealed implicitly                    ``test_choke_point.py``: every operation
27, 85  optimizers of parameters that travel          ``tests/syft_torch/test_optim.py``: every optimizer
28      pointers in bytes                             ``tests/serde/test_defects.py``
29      deep copies
33      ``Module.move`` and ``Module.send(a, b)``     ``tests/syft_torch/test_module.py``
50      any method of any object                      ``test_choke_point.py``
63      the storage behind a slice                    ``tests/serde/test_defects.py``
64, 65  pickles and files                             ``tests/serde/test_defects.py``, ``tests/serde/test_safety.py``
66      ways around a private tensor                  ``test_private.py``: every way and message
71      a second pointer                              ``test_garbage.py``
79      indexing with pointers
80      one object for two sends
81      more than two results                         ``test_garbage.py``: every operation
82      a failed call that deletes                    ``test_bad_input.py``
84      names that are believed, data that is taken   ``test_private.py``
87      memory that grows for ever                    ``test_garbage.py``: a hundred thousand operations
======  ============================================  =====================================================
"""

from __future__ import annotations

import copy
import os
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("numpy")

import numpy as np
import torch

import syft_core as sy
from syft_core.exceptions import (
    AlreadyRetrievedError,
    GetNotPermittedError,
    NotCollocatedError,
    ObjectNotFoundError,
    OperationNotAllowedError,
    SyftError,
    ValueRefusedError,
    WorkerError,
    WorkerNotFoundError,
)
from syft_core.messages import Fetch, Run
from syft_core.serde import Context, deserialize, serialize
from syft_core.workers.moving.transfer import attach_leases

F = torch.nn.functional


@pytest.fixture
def x(hook: Any) -> Any:
    return torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


@pytest.fixture
def p(x: Any, bob: Any) -> Any:
    return x.send(bob)


@pytest.fixture
def q(x: Any, bob: Any) -> Any:
    return (x * 2).send(bob)


@pytest.fixture
def array(numpy_hook: Any, carol: Any) -> Any:
    return numpy_hook.array([[1.0, 2.0], [3.0, 4.0]]).send(carol)


def test_d05_inverting_is_not_in_place(p: Any) -> None:
    mask = p > 3

    inverted = ~mask

    assert inverted is not mask
    assert inverted.get().tolist() == [[True, True, True], [False, False, False]]
    assert mask.get().tolist() == [[False, False, False], [True, True, True]]
    with pytest.raises(ValueRefusedError):
        int(p.sum())
    with pytest.raises(ValueRefusedError):
        range(p.sum().long())


def test_d05_inverting_an_array_is_not_in_place(array: Any) -> None:
    mask = array > 2

    assert (~mask) is not mask
    assert (~mask).get().tolist() == [[True, True], [False, False]]


@pytest.mark.parametrize("compare", ["__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"])
def test_d06_every_comparator_runs_remotely(x: Any, p: Any, q: Any, compare: str) -> None:
    assert getattr(p, compare)(q).get().equal(getattr(x, compare)(x * 2))


def test_d06_comparing_with_none_is_false(p: Any) -> None:
    assert (p == None) is False  # noqa: E711  # the operator is what is tested
    assert (p != None) is True  # noqa: E711


def test_d06_comparing_arrays(array: Any) -> None:
    assert (array != array).get().tolist() == [[False, False], [False, False]]


def test_d07_a_clone_of_a_gradient_is_the_gradient(bob: Any) -> None:
    w = torch.ones(2, requires_grad=True).send(bob)
    (w * 3).sum().backward()

    assert w.grad.clone().get().tolist() == [3.0, 3.0]
    assert w.grad.get().tolist() == [3.0, 3.0]
    assert w.get().tolist() == [1.0, 1.0]


def test_d08_sizes_are_those_of_the_data(p: Any) -> None:
    assert (p.size(), p.size(1), p.shape, len(p), p.dim(), p.numel()) == ((2, 3), 3, (2, 3), 2, 2, 6)


def test_d08_recurrent_cells_run_on_remote_data(bob: Any) -> None:
    data, state = torch.ones(2, 3), torch.zeros(2, 4)
    weights = [torch.ones(12, 3), torch.ones(12, 4)]

    expected = torch.gru_cell(data, state, *weights)
    actual = torch.gru_cell(data.send(bob), state.send(bob), *(w.send(bob) for w in weights))

    assert actual.get().equal(expected)


@pytest.mark.parametrize("layer", [torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN])
def test_d08_recurrent_layers_run_on_remote_data(bob: Any, layer: Any) -> None:
    data, model = torch.ones(5, 2, 3), layer(3, 4)

    expected = model(data)[0].detach()
    actual, _ = model.send(bob)(data.send(bob))

    assert actual.shape == (5, 2, 4)
    assert actual.get().equal(expected)


def test_d09_metadata_is_that_of_the_data(bob: Any) -> None:
    p = torch.ones(2, 3, dtype=torch.int32).send(bob)
    w = torch.ones(2, requires_grad=True).send(bob)

    assert (p.dtype, p.device, p.requires_grad, p.is_leaf) == (torch.int32, torch.device("cpu"), False, True)
    assert (p.T.shape, p.ndim, p.stride(), p.layout) == ((3, 2), 2, (3, 1), torch.strided)
    assert (w.requires_grad, (w * 2).is_leaf) == (True, False)


def test_d09_metadata_of_arrays(array: Any) -> None:
    assert (array.dtype, array.shape, array.T.shape, array.ndim, array.size) == (np.dtype("f8"), (2, 2), (2, 2), 2, 4)


def test_d10_a_pointer_can_be_printed_after_get(p: Any) -> None:
    p.get()

    assert "it was fetched by 'me'" in str(p)
    with pytest.raises(AlreadyRetrievedError):
        p.get()


@pytest.mark.parametrize(
    "call",
    [
        lambda one, other: one + other,
        lambda one, other: torch.add(one, other),
        lambda one, other: torch.add(input=one, other=other),
        lambda one, other: torch.cat([one, other]),
        lambda one, other: F.linear(one, other),
        lambda one, other: one.add_(other),
        lambda one, other: torch.where(one > 0, one, other),
    ],
)
def test_d11_operands_in_two_places_are_refused_with_both_names(x: Any, p: Any, alice: Any, call: Any) -> None:
    with pytest.raises(NotCollocatedError, match="live on 'bob' and 'alice'.*`p = p.move"):
        call(p, x.send(alice))
    with pytest.raises(NotCollocatedError, match="live on 'bob' and in this process"):
        call(p, x)
    assert p.get().equal(x)


def test_d11_modules_and_data_in_two_places(x: Any, p: Any, alice: Any) -> None:
    with pytest.raises(NotCollocatedError, match="'bob' and in this process"):
        torch.nn.Linear(3, 1)(p)
    model = torch.nn.Linear(3, 1).send(alice)
    with pytest.raises(NotCollocatedError, match="'alice' and in this process"):
        model(x)
    with pytest.raises(NotCollocatedError, match="live on 'bob' and 'alice'"):
        model(p)


def test_d12_the_message_names_the_workers(x: Any, p: Any, alice: Any) -> None:
    with pytest.raises(NotCollocatedError) as caught:
        p + x.send(alice)

    assert "{" not in str(caught.value)


def test_d13_tensors_in_keywords_are_found(x: Any, p: Any, q: Any) -> None:
    assert torch.add(input=p, other=q).get().equal(x * 3)
    assert p.add(other=q).get().equal(x * 3)
    assert torch.cat(tensors=[p, q], dim=0).shape == (4, 3)


@pytest.mark.parametrize(
    "same", [lambda p: p.to("cpu"), lambda p: p.cpu(), lambda p: p.contiguous(), lambda p: p.float()]
)
def test_d14_a_result_that_is_its_argument_is_an_alias(x: Any, p: Any, bob: Any, same: Any) -> None:
    alias = same(p)

    alias.add_(1)
    assert p.copy().get().equal(x + 1)
    del alias
    assert p.get().equal(x + 1)
    assert bob.objects_count == 0


def test_d15_each_signature_has_its_own_results(x: Any, p: Any) -> None:
    assert p.max().get() == 6
    values, indices = p.max(0)
    assert (values.get().tolist(), indices.get().tolist()) == ([4.0, 5.0, 6.0], [1, 1, 1])
    assert p.max().get() == 6


def test_d16_all_parts_of_a_query_must_match(p: Any, q: Any, bob: Any) -> None:
    p.tag("#a", "#b")
    q.tag("#a")

    assert bob.search(["#none", "#a"]) == []
    assert [found.id_at_location for found in bob.search(["#a", "#b"])] == [p.id_at_location]
    assert len(bob.search("#a")) == 2
    assert len(bob.search([])) == 2


def test_d17_tags_go_with_their_objects(x: Any, bob: Any) -> None:
    fetched, dropped, cleared = (x.send(bob).tag("#a", tag) for tag in ("#b", "#c", "#d"))
    index = bob.object_store._tagged

    fetched.get()
    assert ("#b" in index, len(index["#a"]), len(bob.search("#a"))) == (False, 2, 2)
    del dropped
    assert (bob.search("#c"), "#c" in index, len(index["#a"])) == ([], False, 1)

    bob.clear_objects()

    assert (bob.search("#a"), index) == ([], {})
    assert cleared.tags == {"#a", "#d"}


def test_d18_ids_and_descriptions_are_searched(p: Any, bob: Any) -> None:
    p.describe("the first pixels")

    assert bob.search(str(p.id_at_location)) == []
    for query in (p.id_at_location, "pixels"):
        assert [found.id_at_location for found in bob.search(query)] == [p.id_at_location]


def test_d19_there_is_no_gradient_before_backward(bob: Any) -> None:
    w = torch.ones(2, requires_grad=True).send(bob)

    assert w.grad is None
    w.sum().backward()
    assert w.grad is not None


def test_d20_an_unknown_worker_raises_an_error(x: Any, p: Any) -> None:
    for call in (lambda: x.send("nobody"), lambda: p.move("nobody"), lambda: p.remote_send("nobody")):
        with pytest.raises(WorkerNotFoundError, match="cannot find worker 'nobody'"):
            call()


def test_d21_sending_without_a_worker_is_an_error(x: Any) -> None:
    with pytest.raises(TypeError, match="cannot send without a worker"):
        x.send()


def test_d22_a_pointer_reports_where_the_object_is(x: Any, p: Any, bob: Any, alice: Any) -> None:
    moved = p.move(alice)

    assert (moved.location, moved.id_at_location in alice._objects, bob.objects_count) == (alice, True, 0)
    assert p.location is bob
    with pytest.raises(AlreadyRetrievedError, match="it was moved to 'alice'"):
        p + 1
    moved.remote_send(bob)
    assert (moved.location, moved.get().location) == (alice, bob)


def test_d23_nothing_is_lost_when_pointers_are_combined(x: Any, p: Any, q: Any, alice: Any) -> None:
    with pytest.raises(ValueError, match="two pointers to worker 'bob'"):
        sy.combine_pointers(p, q)
    with pytest.raises(ValueError, match="the shapes must be equal"):
        sy.combine_pointers(p, x[:1].send(alice))


class Elsewhere(sy.VirtualWorker):
    """A worker in a process with settings of its own: whatever the caller's are, it does not see them."""

    def deliver(self, received: Any, sender: Any) -> Any:
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float16)
        try:
            with torch.inference_mode(False), torch.enable_grad():
                return super().deliver(received, sender)
        finally:
            torch.set_default_dtype(before)


def test_d24_modes_are_sent(hook: Any) -> None:
    zoe = Elsewhere(hook, id="zoe", serialize=True)
    w, whole = torch.ones(2, requires_grad=True).send(zoe), torch.tensor([1, 2]).send(zoe)

    with torch.no_grad():
        free = w * 2
    with torch.inference_mode():
        inferred = w * 2

    assert (free.requires_grad, inferred.is_inference(), (w * 2).requires_grad) == (False, True, True)
    torch.set_default_dtype(torch.float64)
    try:  # torch has one default for all threads of a process: another one is refused where it would matter
        for call in (lambda: whole / 2, lambda: zoe.remote.torch.zeros(2)):
            with pytest.raises(OperationNotAllowedError, match="cannot run with the default dtype torch.float64"):
                call()
        assert (w * 2).dtype == torch.float32
    finally:
        torch.set_default_dtype(torch.float32)


def test_d24_modes_hold_in_process_too(bob: Any) -> None:
    w = torch.ones(2, requires_grad=True).send(bob)

    with torch.no_grad():
        free = w * 2
    with torch.inference_mode():
        inferred = w * 2

    assert (free.requires_grad, inferred.is_inference(), (w * 2).requires_grad) == (False, True, True)


def test_d25_autograd_grad_works(bob: Any) -> None:
    w = torch.tensor([1.0, 2.0], requires_grad=True).send(bob)

    (gradient,) = torch.autograd.grad((w * w).sum(), w)

    assert gradient.get().tolist() == [2.0, 4.0]
    assert w.grad is None


@pytest.mark.parametrize(
    "ask", [lambda p: p.tolist(), lambda p: p.numpy(), lambda p: bool(p.sum()), lambda p: float(p.sum())]
)
def test_d26_values_are_refused_with_advice(p: Any, ask: Any) -> None:
    with pytest.raises(ValueRefusedError, match=r"fetch it first: `p.get\(\)`"):
        ask(p)


OPTIMIZERS = [
    lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    lambda parameters: torch.optim.Adam(parameters, lr=0.1),
    lambda parameters: torch.optim.Adagrad(parameters, lr=0.1),
    lambda parameters: torch.optim.Adamax(parameters, lr=0.1),
    lambda parameters: torch.optim.RMSprop(parameters, lr=0.1, momentum=0.5),
]


def step(model: Any, data: Any, optimizer: Any) -> None:
    optimizer.zero_grad()
    (model(data) ** 2).mean().backward()
    optimizer.step()


@pytest.mark.parametrize("make", OPTIMIZERS)
def test_d27_the_state_of_an_optimizer_is_where_its_parameters_are(x: Any, bob: Any, alice: Any, make: Any) -> None:
    model, twin = torch.nn.Linear(3, 1), torch.nn.Linear(3, 1)
    twin.load_state_dict(model.state_dict())
    optimizer, at_home = make(model.parameters()), make(twin.parameters())

    for worker in (bob, alice, bob, alice):
        step(model.send(worker), x.send(worker), optimizer)
        state = [leaf for kept in optimizer.state.values() for leaf in kept.values() if getattr(leaf, "ndim", 0)]
        assert {leaf.location for leaf in state} == {worker}
        model.get()
        step(twin, x, at_home)

    assert model.weight.equal(twin.weight)


@pytest.mark.parametrize("make", OPTIMIZERS)
def test_d85_an_optimizer_goes_on_when_the_model_moves(x: Any, bob: Any, alice: Any, make: Any) -> None:
    model, twin = torch.nn.Linear(3, 1), torch.nn.Linear(3, 1)
    twin.load_state_dict(model.state_dict())
    optimizer, at_home = make(model.parameters()), make(twin.parameters())

    step(model.send(bob), x.send(bob), optimizer)
    step(model.move(alice), x.send(alice), optimizer)
    for _ in range(2):
        step(twin, x, at_home)

    assert model.get().weight.equal(twin.weight)


def test_d28_a_pointer_that_was_serialized_with_its_lease_holds_the_object(x: Any, bob: Any, alice: Any) -> None:
    p = x.send(bob)
    sent = serialize(attach_leases(p, p.owner.location_of(alice)))
    del p
    assert bob.objects_count == 1

    received = deserialize(sent, Context(worker=alice))

    assert received.child.owner is alice
    assert received.get().equal(x)
    assert bob.objects_count == 0


def test_d28_a_serialized_pointer_without_a_lease_reports_that_the_object_is_gone(x: Any, bob: Any, alice: Any) -> None:
    p = x.send(bob)
    sent = serialize(p)
    del p

    with pytest.raises(ObjectNotFoundError, match="its last pointer was dropped"):
        deserialize(sent, Context(worker=alice)).get()


def test_d29_a_deep_copy_is_made_on_the_worker(x: Any, p: Any) -> None:
    twins = copy.deepcopy([p, p])

    assert twins[0] is twins[1]
    twins[0].add_(1)
    assert (twins[0].get().equal(x + 1), p.get().equal(x)) == (True, True)


def test_d29_a_deep_copy_of_an_array(array: Any) -> None:
    twin = copy.deepcopy(array)
    twin += 1

    assert array.get().tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_d33_send_move_and_get_return_the_same_module(bob: Any, alice: Any) -> None:
    model = torch.nn.Linear(3, 1)

    assert model.send(bob) is model
    assert model.move(alice) is model
    assert model.location is alice
    assert model.get() is model
    with pytest.raises(WorkerError, match="cannot send a Linear to 2 workers: .*send a copy to each"):
        model.send(bob, alice)
    assert model.location is None


@pytest.mark.parametrize(
    "name", ["torch.Tensor.__class__", "__import__", "torch.save", "os.system", "torch.Tensor.set_", "torch.load", ""]
)
def test_d50_only_listed_operations_run(p: Any, bob: Any, me: Any, name: str) -> None:
    with pytest.raises(OperationNotAllowedError):
        me.location_of(bob).ask(Run("torch", name, (p.child,), {}, 1))
    assert bob.objects_count == 1


def test_d50_nothing_is_read_but_gradients_and_data(p: Any, bob: Any, me: Any) -> None:
    for attribute in ("child", "child.child", "__class__", "__dict__", "grad_fn", "untyped_storage"):
        with pytest.raises(ValueRefusedError):
            me.location_of(bob).ask(Fetch(p.id_at_location, attribute, True))
        with pytest.raises(ValueRefusedError):
            p.attr(attribute) + 1


def test_d50_messages_are_a_closed_set(bob: Any, me: Any) -> None:
    class Steal(Run):
        """A message that nobody knows."""

    with pytest.raises((KeyError, SyftError)):
        me.location_of(bob).ask(Steal("torch", "torch.add", (), {}, 1))


def test_d63_a_slice_travels_without_its_storage(hook: Any) -> None:
    bob = sy.VirtualWorker(hook, id="bob", serialize=True)
    whole = torch.zeros(1000, 1000)

    p = whole[:1].send(bob)

    assert bob.stats.bytes_in < 8_000
    before = bob.stats.bytes_out
    p[:, :10].get()
    assert bob.stats.bytes_out - before < 1_000


def test_d63_a_worker_gets_no_more_of_a_storage_than_the_slice(bob: Any) -> None:
    p = torch.zeros(1000, 1000)[:1].send(bob)

    assert bob.get_obj(p.id_at_location).untyped_storage().nbytes() == 4000
    assert p[:, :10].get().untyped_storage().nbytes() == 40


def test_d64_nothing_is_unpickled(p: Any, bob: Any) -> None:
    class Bomb:
        def __reduce__(self) -> Any:
            return os.abort, ()

    with pytest.raises((SyftError, TypeError)):
        p + Bomb()
    with pytest.raises((SyftError, TypeError, AttributeError)):
        torch.add(p, 1, alpha=Bomb())


def test_d65_no_operation_touches_files(hook: Any, p: Any, bob: Any, me: Any, tmp_path: Path) -> None:
    listed = hook.attributes.allowed_commands
    assert not {name for name in listed if name.rsplit(".", 1)[-1] in ("save", "load", "from_file", "tofile", "open")}

    with pytest.raises(OperationNotAllowedError):
        me.location_of(bob).ask(Run("torch", "torch.save", (p.child, str(tmp_path / "file")), {}, 1))
    assert list(tmp_path.iterdir()) == []


def test_d66_attributes_do_not_bypass_a_private_tensor(bob: Any) -> None:
    bob.load_data([torch.ones(2).private_tensor(["bob"]).tag("#x")])
    (secret,) = bob.search("#x")

    for way in (
        lambda: secret.child.attr("child.child").copy().get(),
        lambda: secret.data.copy().get(),
        lambda: secret.data.get(),
    ):
        with pytest.raises((GetNotPermittedError, ValueRefusedError)):
            way()


def test_d71_a_second_pointer_stays_valid(x: Any, bob: Any) -> None:
    p = x.send(bob).tag("#x")
    (found,) = bob.search("#x")
    clone = p.child.clone()

    del p
    assert found.shape == (2, 3)
    del found
    assert clone.get().equal(x)


def test_d79_indexing_with_pointers(x: Any, p: Any, bob: Any) -> None:
    rows = torch.tensor([1, 0]).send(bob)

    assert p[p > 3].get().equal(x[x > 3])
    assert p[rows].get().equal(x[[1, 0]])
    assert p[rows, 1:].get().equal(x[[1, 0], 1:])
    assert p[None, ..., 0].get().equal(x[None, ..., 0])
    p[p > 3] = 0.0
    p[0:1] = torch.tensor([[7.0, 8.0, 9.0]]).send(bob)
    p[0, 0] = torch.tensor(5.0)
    assert p.get().tolist() == [[5.0, 8.0, 9.0], [0.0, 0.0, 0.0]]
    with pytest.raises(NotCollocatedError, match="send the local one"):
        x.send(bob)[0:1] = x[:1]


def test_d79_indexing_arrays_with_pointers(array: Any) -> None:
    assert array[array > 2].get().tolist() == [3.0, 4.0]
    array[array > 2] = 0
    assert array.get().tolist() == [[1.0, 2.0], [0.0, 0.0]]


def test_d80_each_send_is_its_own_object(x: Any, bob: Any) -> None:
    one, other = x.send(bob), x.send(bob)

    one.add_(1)

    assert other.get().equal(x)


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.chunk(3, 1),
        lambda t: t.split([1, 2], 1),
        lambda t: t.unbind(1),
        lambda t: torch.svd(t)[1:2],
        lambda t: torch.meshgrid(t[0], t[1], t[0], indexing="ij"),
        lambda t: torch.linalg.lstsq(t, t)[:1],
    ],
)
def test_d81_any_number_of_results(x: Any, p: Any, call: Any) -> None:
    expected, results = call(x), call(p)

    assert type(results) is type(expected)
    assert len(results) == len(expected)
    for result, value in zip(results, expected, strict=True):
        torch.testing.assert_close(result.get(), value)


def test_d82_a_failed_call_deletes_nothing(p: Any, bob: Any) -> None:
    wrong = torch.ones(5).send(bob)

    with pytest.raises((RuntimeError, ValueError)):
        F.cross_entropy(input=p, target=wrong)
    with pytest.raises((RuntimeError, TypeError)):
        F.mse_loss(input=p, targets=wrong)

    assert (p.shape, wrong.shape) == ((2, 3), (5,))
    assert F.mse_loss(input=p, target=p).get() == 0
    assert bob.objects_count == 2


def test_d84_a_claimed_name_is_not_authentication(p: Any, bob: Any, alice: Any) -> None:
    bob.load_data([torch.ones(2).private_tensor(["alice"]).tag("#x")])
    (secret,) = bob.search("#x")

    with pytest.raises(GetNotPermittedError, match="a claimed user name is not authentication"):
        secret.get(user="alice")
    with pytest.raises(GetNotPermittedError, match="a claimed user name is not authentication"):
        p.get(user="somebody else")


def test_d84_objects_that_a_worker_owns_cannot_be_taken(bob: Any) -> None:
    bob.load_data([torch.ones(2).tag("#x")])

    for _ in range(2):
        (found,) = bob.search("#x")
        assert found.get().tolist() == [1.0, 1.0]
        (found,) = bob.search("#x")
        found.move("me")
    assert bob.objects_count == 1


def test_d87_nothing_is_remembered_forever(p: Any, bob: Any) -> None:
    for _ in range(3000):
        (p + 1).get()

    store = bob.object_store
    assert len(store._ended) + len(store._released) <= 2048
    assert bob.objects_count == 1
    assert len(bob.dropped) == 0
