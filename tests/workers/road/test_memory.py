from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch")
import numpy as np
import torch

from syft_core.exceptions import (
    GetNotPermittedError,
    OperationNotAllowedError,
    ValueRefusedError,
    WriteNotPermittedError,
)
from syft_core.messages import Call, Fetch, Run, Tag
from syft_core.pointers.callable_pointer import ObjectWrapper
from syft_core.pointers.object_pointer import new_id

from ..secrets_of_others import store

# Quantized and nested tensors are deprecated, or prototypes.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture
def secret(bob: Any) -> Any:
    """A pointer to data on bob that only alice may have."""
    return store(bob, ["alice"], [1.0, 2.0, 3.0])


@pytest.fixture
def public(bob: Any) -> Any:
    return torch.tensor([10.0, 20.0, 30.0]).send(bob)


def test_uninitialized_memory_is_not_shown(bob: Any) -> None:
    secret = store(bob, ["alice"], [7.0] * 3000)
    public = torch.zeros(3000).send(bob)

    for _ in range(20):
        secret * 1  # made and dropped: its memory is free
        sparse = public.new_empty_strided((2,), (2999,))
        for unset in (
            torch.empty_like(public),
            public.new_empty(3000),
            public.new_empty_strided((3000,), (1,)),
            sparse,
        ):
            assert unset.copy().get().eq(0).all()
            assert bob.get_obj(unset.id_at_location).untyped_storage().tolist() == [0] * 12000
        assert public.clone().resize_(6000).get().eq(0).all()


@pytest.mark.parametrize(
    "look",
    [
        lambda v: v.as_strided((5,), (1,), 10),
        lambda v: torch.as_strided(v, (5,), (1,), 10),
        lambda v: torch.as_strided_copy(v, (5,), (1,), 10),
        lambda v: v.resize_(100),
        lambda v: v.resize_as_(v.new_zeros(100)),
        lambda v: v.detach().as_strided((5,), (1,), 10),
    ],
)
def test_memory_outside_a_view_is_not_shown(bob: Any, look: Callable[[Any], Any]) -> None:
    whole = torch.arange(1000.0)
    bob.load_data([whole[:3].tag("#part")])
    (part,) = bob.search("#part")

    with pytest.raises((ValueRefusedError, WriteNotPermittedError), match="is part of a larger one|it is published"):
        look(part)
    assert part.clone().as_strided((2,), (2,)).get().tolist() == [0.0, 2.0]


# --- memory that a tensor holds besides its elements


def quantize(bob: Any) -> tuple[Any, Any]:
    """Return a tensor quantized per channel, and the scales given to it."""
    scales, zeros = torch.ones(3, dtype=torch.float64).send(bob), torch.zeros(3, dtype=torch.int64).send(bob)
    return torch.quantize_per_channel(torch.ones(3).send(bob), scales, zeros, 0, torch.quint8), scales


def take_scales(bob: Any) -> tuple[Any, Any]:
    quantized, _ = quantize(bob)
    return quantized, quantized.q_per_channel_scales()


def take_scales_of_alias(bob: Any) -> tuple[Any, Any]:
    quantized, _ = quantize(bob)
    return quantized[:], quantized.detach().q_per_channel_scales()[:]


def take_scales_of_clone(bob: Any) -> tuple[Any, Any]:
    quantized, scales = quantize(bob)
    return quantized.clone(), scales


def take_scales_after_copy(bob: Any) -> tuple[Any, Any]:
    """``copy_`` gives a quantized tensor the scales of the other one."""
    quantized, scales = quantize(bob)
    other, _ = quantize(bob)
    other.copy_(quantized)
    return other, scales


def take_part_of_nested(bob: Any) -> tuple[Any, Any]:
    nested = torch._nested_tensor_from_mask(torch.ones(1, 3, 1).send(bob), torch.ones(1, 3, dtype=torch.bool).send(bob))
    return nested, nested.unbind()[0].reshape(3)


PARTS = {
    "scales that were given": quantize,
    "scales": take_scales,
    "scales of an alias": take_scales_of_alias,
    "scales of a clone": take_scales_of_clone,
    "scales after copy_": take_scales_after_copy,
    "part of a nested tensor": take_part_of_nested,
}


@pytest.mark.parametrize("name", PARTS)
def test_private_values_in_a_part_of_a_tensor_make_it_private(bob: Any, secret: Any, name: str) -> None:
    whole, part = PARTS[name](bob)

    part.copy_(secret)

    for show in (torch.dequantize, lambda x: x.unbind()[0], lambda x: x.detach()):
        with pytest.raises((ValueRefusedError, GetNotPermittedError)):
            show(whole).get()


def test_nobody_changes_the_tensor_of_somebody_else_through_a_part(bob: Any) -> None:
    scales, zeros = torch.ones(3, dtype=torch.float64), torch.zeros(3, dtype=torch.int64)
    bob.load_data([torch.quantize_per_channel(torch.ones(3), scales, zeros, 0, torch.quint8).tag("#q")])
    (quantized,) = bob.search("#q")
    parts = [quantized.q_per_channel_scales(), quantized.detach().q_per_channel_scales()[:]]
    parts += [quantized[:].q_per_channel_zero_points(), quantized.clone().q_per_channel_scales()]

    for part in parts:
        with pytest.raises(WriteNotPermittedError, match="it, or memory that it shares, belongs to someone else"):
            part.zero_()
    assert quantized.copy().dequantize().get().tolist() == [1.0] * 3


def test_private_values_reach_no_tensor_of_unknown_memory(bob: Any, secret: Any, public: Any) -> None:
    """What MKL-DNN keeps cannot be enumerated: from any private write on, it may be private."""
    unknown = torch.ones(3, 3).send(bob).to_mkldnn()
    assert unknown.to_dense().get().sum() == 9

    public.copy_(secret)

    with pytest.raises((ValueRefusedError, GetNotPermittedError)):
        unknown.to_dense().get()


def test_a_function_of_the_owner_shares_no_memory_across_frameworks(
    bob: Any, numpy_hook: Any, secret: Any, public: Any
) -> None:
    bob.register_obj(ObjectWrapper(lambda x: x.numpy(), id="as numpy"), "as numpy")
    location, id = bob.hook.local_worker.location_of(bob), new_id()
    location.ask(Call("as numpy", (public.child,), {}, id))

    public.copy_(secret)

    assert location.ask(Fetch(id)).tolist() == [10.0, 20.0, 30.0]


def _ask_function(bob: Any, function: Any, *args: Any) -> int:
    """Call a function of bob's owner; return the id of its result."""
    bob.register_obj(ObjectWrapper(function, id="function"), "function")
    id = new_id()
    bob.hook.local_worker.location_of(bob).ask(Call("function", tuple([arg.child for arg in args]), {}, id))
    return id


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.from_numpy(x.numpy()),
        lambda x: torch.from_numpy(x.numpy()[:]),
        lambda x: torch.as_tensor(np.asarray(x)),
        torch.from_dlpack,
        lambda x: torch.frombuffer(x.numpy(), dtype=torch.float32),
        lambda x: torch.sparse_coo_tensor(torch.tensor([[0, 1, 2]]), torch.from_numpy(x.numpy()), (3,)),
    ],
)
def test_a_function_of_the_owner_shares_no_memory_through_another_library(
    bob: Any, secret: Any, public: Any, function: Any
) -> None:
    id = _ask_function(bob, function, public)

    public.copy_(secret)

    assert bob.hook.local_worker.location_of(bob).ask(Fetch(id)).to_dense().tolist() == [10.0, 20.0, 30.0]


def test_a_function_of_the_owner_returns_views_of_its_operands(bob: Any, public: Any) -> None:
    view = _ask_function(bob, lambda x: x[1:], public)

    public.add_(1)

    assert bob.hook.local_worker.location_of(bob).ask(Fetch(view)).tolist() == [21.0, 31.0]


def _write_as_numpy(target: Any, source: Any) -> None:
    target.numpy()[:] = source.numpy()


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: x.copy_(y),
        lambda x, y: x.data.copy_(y),
        _write_as_numpy,
        lambda x, y: (x.requires_grad_() * y).sum().backward(),
    ],
)
def test_a_function_of_the_owner_writes_no_private_values_into_what_others_may_have(
    bob: Any, secret: Any, public: Any, function: Any
) -> None:
    leaf, view = torch.ones(3, requires_grad=True).send(bob), public[:]
    product = leaf * public

    _ask_function(bob, function, public, secret)

    product.sum().backward()
    assert view.get().tolist() == leaf.grad.get().tolist() == [10.0, 20.0, 30.0]
    assert public.grad is None


def test_a_function_of_the_owner_writes_nothing_into_published_objects_that_the_policy_keeps(bob: Any) -> None:
    bob.policy = "only_published"
    mine, kept = torch.zeros(3).send(bob), torch.ones(3).tag("#kept")
    mine.child._location.tell(Tag(mine.id_at_location, publish=True))
    bob.register_obj(ObjectWrapper(_write_as_numpy, id="write"), "write")
    entry = bob.object_store.entry
    hidden = kept.send(bob)

    bob.hook.local_worker.location_of(bob).ask(Call("write", (mine.child, hidden.child), {}, new_id()))

    assert not entry(mine.id_at_location).value.any()


# --- memory that is replaced


def _same_tensor(bob: Any) -> tuple[Any, Any]:
    x = torch.zeros(3).send(bob)
    return x, x.flatten()


def _same_parameter(bob: Any) -> tuple[Any, Any]:
    weight = torch.nn.Linear(3, 1, bias=False).send(bob).weight
    return weight, weight.contiguous()


def _scales(bob: Any) -> tuple[Any, Any]:
    zeros = torch.zeros(3, dtype=torch.int64)
    x = torch.quantize_per_channel(torch.ones(3), torch.ones(3, dtype=torch.float64), zeros, 0, torch.quint8).send(bob)
    return x, x.q_per_channel_scales()


@pytest.mark.parametrize("policy", [None, "of its own"])
@pytest.mark.parametrize("is_indexed", [False, True])
@pytest.mark.parametrize("make", [_same_tensor, _same_parameter, _scales])
def test_what_holds_a_tensor_whose_data_is_replaced_is_as_private(
    bob: Any, make: Callable[[Any], tuple[Any, Any]], is_indexed: bool, policy: str | None
) -> None:
    if policy is not None:
        bob.policy = lambda verb, stored, peer, value: None
    secret = store(bob, ["alice"], [7.0] * 3)
    holder, part = make(bob)
    secret = secret.to(part.dtype).reshape(part.shape)
    if is_indexed:
        bob.object_store.find_sharing(torch.zeros(1))

    part.data = secret

    with pytest.raises(GetNotPermittedError):
        holder.get()


def _private_alias(secret: Any, x: Any) -> Any:
    """Return the same tensor as an object that is private, because an operation returned it with a secret."""
    return torch.atleast_1d(secret, x)[1]


@pytest.mark.parametrize("name", ["data", "grad"])
def test_what_replaces_a_part_of_a_private_object_restricts_public_objects_of_the_same_tensor(
    bob: Any, secret: Any, name: str
) -> None:
    x = torch.zeros(3, requires_grad=True).send(bob)

    setattr(_private_alias(secret, x), name, secret)

    with pytest.raises(GetNotPermittedError):
        (x.grad if name == "grad" else x.copy()).get()


def test_scales_that_are_replaced_through_a_private_object_restrict_what_holds_them(bob: Any) -> None:
    secret = store(bob, ["alice"], [7.0] * 3).double()
    holder, part = _scales(bob)
    private = _private_alias(secret, part)
    del part

    private.data = secret

    with pytest.raises(GetNotPermittedError):
        holder.get()


@pytest.mark.parametrize("policy", [None, "of its own"])
def test_a_public_gradient_does_not_depend_on_data_that_was_replaced_through_a_private_object(
    bob: Any, policy: str | None
) -> None:
    if policy is not None:
        bob.policy = lambda verb, stored, peer, value: None
    secret = store(bob, ["alice"], [7.0] * 3)
    weight, x = torch.ones(3, requires_grad=True).send(bob), torch.zeros(3).send(bob)
    loss = (weight * x).sum()

    _private_alias(secret, x).data = secret

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
    assert weight.grad is None


# --- operands without data


COMPUTE: dict[str, Callable[[Any, Any], Any]] = {
    "isin": torch.isin,
    "convolution": lambda x, y: torch.nn.functional.conv1d(x.view(1, 1, -1), y.view(1, 1, -1)),
    "product": lambda x, y: torch.matmul(x.view(1, -1), y.view(-1, 1)),
    "masked scatter": lambda x, y: x.masked_scatter(y > 0, x),
    "out": lambda x, y: torch.add(x, y, out=torch.empty(0).send(x.location)),
}


@pytest.mark.parametrize("name", COMPUTE)
def test_a_result_is_no_memory_that_others_have_freed(bob: Any, public: Any, name: str) -> None:
    without_data = torch.ones(3, device="meta").send(bob)

    with pytest.raises(OperationNotAllowedError, match=r"an operand has a form and no data.* send tensors with data"):
        COMPUTE[name](public, without_data).get()


def test_a_tensor_without_data_in_a_message_is_no_operand_of_others(bob: Any, public: Any) -> None:
    run = Run("torch", "torch.isin", (public.child, torch.ones(3, device="meta")), {}, new_id())

    with pytest.raises(OperationNotAllowedError, match="an operand has a form and no data"):
        bob.hook.local_worker.location_of(bob).ask(run)


def test_tensors_without_data_compute_forms(bob: Any) -> None:
    x = torch.ones(3, 1, device="meta").send(bob)

    assert (x @ x.t()).shape == (3, 3)
    assert (x + 1).get().is_meta


def test_a_function_of_the_owner_gets_no_tensor_without_data(bob: Any) -> None:
    weights = torch.ones(3)
    bob.register_obj(ObjectWrapper(lambda x: torch.isin(weights, x), 5), 5)
    x = torch.ones(3, device="meta").send(bob)

    with pytest.raises(OperationNotAllowedError, match="an operand has a form and no data"):
        bob.hook.local_worker.location_of(bob).ask(Call(5, (x.child,), {}, new_id()))


@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr", "to_sparse_csc"])
def test_a_sparse_tensor_is_not_resized(bob: Any, layout: str) -> None:
    x, larger = (getattr(torch.ones(size, size, size), layout)().send(bob) for size in (2, 6))

    for resize in (lambda: x.resize_(6, 6, 6), lambda: torch.resize_as_(x, larger)):
        with pytest.raises(OperationNotAllowedError, match="would not be cleared; create a tensor of that size"):
            resize()
    assert x.get().to_dense().eq(1).all()
