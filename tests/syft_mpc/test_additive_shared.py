"""Shared values: creating and opening them, and every operation that runs on shares."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from syft_core.exceptions import AlreadyRetrievedError, GetNotPermittedError, MixedLayersError, OperationNotAllowedError
from syft_core.hook.chain import end_of
from syft_core.pointers.multi_pointer import MultiPointerTensor
from syft_core.pointers.pointer_tensor import PointerTensor
from syft_mpc.additive_shared import AdditiveSharingTensor, generate_shares
from syft_mpc.errors import PrecisionError, ProtocolError

from .settings import Setting, assert_close, attach

A = np.array([[1.5, -2.0, 3.25], [0.5, 4.0, -1.0]])
B = np.array([2.0, 0.5, -3.0])

# --- creating and opening


def test_shares_add_up_and_each_looks_random(shared: Setting) -> None:
    secret = np.array([5, -7, 2**62, -(2**63)])
    x = shared.share(shared.plain(secret))
    pointers = end_of(x).child
    assert list(pointers) == [worker.id for worker in shared.workers]
    assert all(isinstance(pointer, PointerTensor) for pointer in pointers.values())
    shares = [np.asarray(worker.get_obj(pointers[worker.id].id_at_location)) for worker in shared.workers]
    with np.errstate(over="ignore"):
        assert np.add.reduce(shares).tolist() == secret.tolist()
    for share in shares:
        assert not set(share.tolist()) & set(secret.tolist())
    assert np.asarray(x.get()).tolist() == secret.tolist()


def test_get_uses_up_the_shares(shared: Setting) -> None:
    before = shared.count()
    x = shared.share(shared.plain(np.array([1, 2])))
    x.get()
    assert shared.count() == before
    with pytest.raises(AlreadyRetrievedError, match="it was fetched by 'me'"):
        x.get()


def test_the_same_value_is_shared_differently_each_time(shared: Setting) -> None:
    plain = shared.plain(np.array([1, 2, 3]))
    seen = set()
    for _ in range(5):
        x = shared.share(plain)
        seen.add(tuple(np.asarray(end_of(x).pointer.get()).tolist()))
    assert len(seen) == 5


def test_refresh_changes_all_shares_but_not_the_value(shared: Setting) -> None:
    x = shared.put(B)
    fresh = x.refresh()
    for id, pointer in end_of(x).child.items():
        other = end_of(fresh).child[id]
        assert np.asarray(pointer.copy().get()).tolist() != np.asarray(other.copy().get()).tolist()
    assert_close(shared.read(fresh), B)
    assert_close(shared.read(x), B)


@pytest.mark.parametrize("compare", [operator.lt, operator.le, operator.gt, operator.ge])
def test_a_comparison_is_one_message_to_each_worker(shared: Setting, compare: Callable[[Any, Any], Any]) -> None:
    x, y = shared.put(A), shared.put(-A)
    before = {worker: worker.stats.messages for worker in (*shared.workers, shared.carol)}

    result = compare(x, y)

    assert [worker.stats.messages - count for worker, count in before.items()] == [1] * len(before)
    assert_close(shared.read(result), compare(A, -A))


def test_zero_shares_zeros(shared: Setting) -> None:
    zeros = end_of(shared.put(A)).zero()
    assert np.asarray(zeros.pointer.copy().get()).any()
    assert not np.asarray(zeros.get()).any()


def test_reconstruct_opens_the_value_at_every_party(shared: Setting) -> None:
    opened = shared.share(shared.plain(np.array([4, -5]))).reconstruct()
    assert isinstance(end_of(opened), MultiPointerTensor)
    assert [np.asarray(value).tolist() for value in opened.get()] == [[4, -5]] * len(shared.workers)


def test_encrypt_and_decrypt_are_short_forms(shared: Setting) -> None:
    x = shared.plain(B).encrypt(workers=shared.workers, crypto_provider=shared.carol)
    assert_close(np.asarray(x.decrypt()), B)


def test_workers_may_be_given_by_their_ids(shared: Setting) -> None:
    x = shared.plain(np.array([1])).share(*[worker.id for worker in shared.workers], crypto_provider="carol")
    assert np.asarray(x.get()).tolist() == [1]


def test_a_shared_tensor_names_its_workers(shared: Setting) -> None:
    end = end_of(shared.put(B))
    assert end.locations == shared.workers
    assert end.location == shared.workers
    assert end.crypto_provider is shared.carol
    assert end.virtual_get().tolist() == [int(number * 2**16) for number in B]


def test_methods_in_place_keep_the_tensor_object(torch_hook: Any) -> None:
    setting = Setting(torch_hook)
    x = torch_hook.torch.tensor([1, 2])
    assert x.share_(*setting.workers, crypto_provider=setting.carol) is x
    assert isinstance(x.child, AdditiveSharingTensor)
    assert x.get_() is x
    assert x.tolist() == [1, 2]


def test_no_wrap_returns_the_layer(shared: Setting) -> None:
    layer = shared.plain(np.array([1])).share(*shared.workers, crypto_provider=shared.carol, no_wrap=True)
    assert isinstance(layer, AdditiveSharingTensor)


def test_shares_are_not_made_with_the_generator_of_a_framework(torch_hook: Any) -> None:
    torch = torch_hook.torch
    kernels = torch_hook.attributes.kernels
    results = []
    for _ in range(2):
        torch.manual_seed(0)
        np.random.seed(0)  # the generator that must not be used
        results.append([share.tolist() for share in generate_shares(torch.arange(4), 3, kernels)])
        assert torch.initial_seed() == 0
        torch.manual_seed(0)
        expected = torch.rand(1).item()
        torch.manual_seed(0)
        generate_shares(torch.arange(4), 3, kernels)
        assert torch.rand(1).item() == expected
    assert results[0][0] != results[1][0]
    assert results[0][1] != results[1][1]


def test_one_party_that_refuses_keeps_all_shares(shared: Setting) -> None:
    x = shared.put(B)
    last = shared.workers[-1]
    last.policy = lambda verb, _stored, _peer, _value: "not today" if verb == "read" else None
    with pytest.raises(GetNotPermittedError, match="not today"):
        x.get()
    last.policy = None if last.policy is None else (lambda *_call: None)
    assert_close(np.asarray(x.get().float_precision()), B)


def test_every_party_records_what_was_opened(shared: Setting) -> None:
    shared.put(B).get(reason="for the report")
    for worker in shared.workers:
        assert "for the report" in str(worker.ledger)


# --- integers without fixed precision

INTEGERS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "neg": lambda x, _y: -x,
    "matmul": lambda x, y: x @ y,
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y,
    "number": lambda x, _y: 2 * x - 3,
    "power": lambda x, _y: x**2,
    "sum": lambda x, _y: x.sum(),
    "max": lambda x, _y: x.max(),
    "argmax": lambda x, _y: x.argmax(),
    "exact_quotient": lambda x, _y: x * 6 / 3,
    "row": lambda x, _y: x[0],
    "transpose": lambda x, _y: x.T,
}


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_are_shared_and_computed_exactly(shared: Setting, name: str) -> None:
    one, other = np.array([[3, -1], [7, 7]]), np.array([[2, 2], [7, -5]])
    compute = INTEGERS[name]
    expected = compute(one, other)
    x = shared.share(shared.plain(one))
    for y in (shared.share(shared.plain(other)), shared.plain(other)):
        found = np.asarray(compute(x, y).get())
        assert (found.shape, found.tolist()) == (expected.shape, expected.tolist())


def test_integers_larger_than_floats_can_represent_are_exact(shared: Setting) -> None:
    large = 2**53 + 1
    x = shared.share(shared.plain(np.array([large])))
    assert np.asarray((x + shared.plain(np.array([large]))).get()).tolist() == [2 * large]


@pytest.mark.parametrize("other", [0.5, np.array([0.5]), np.array([1.0])], ids=["number", "fraction", "float"])
def test_integers_and_floats_are_not_mixed(shared: Setting, other: Any) -> None:
    x = shared.share(shared.plain(np.array([4])))
    y = other if isinstance(other, float) else shared.plain(other)
    for compute in (lambda: x + y, lambda: x * y, lambda: x < y):
        with pytest.raises(ProtocolError, match="shares are integers; write `x.fix_precision"):
            compute()
    assert np.asarray(x.get()).tolist() == [4]


@pytest.mark.parametrize("compute", [lambda x: x / x, lambda x: 6 / x, lambda x: x**-1])
def test_integers_have_no_reciprocal(shared: Setting, compute: Callable[[Any], Any]) -> None:
    x = shared.share(shared.plain(np.array([4])))
    with pytest.raises((PrecisionError, OperationNotAllowedError), match="reciprocal|quotient"):
        compute(x)
    assert np.asarray(x.get()).tolist() == [4]


def test_integers_change_in_place(shared: Setting) -> None:
    x = shared.share(shared.plain(np.array([1, 2, 3])))
    y = x + 1
    x += 10
    x[0] = 7
    y *= 2
    assert np.asarray(x.get()).tolist() == [7, 12, 13]
    assert np.asarray(y.get()).tolist() == [4, 6, 8]


# --- ties


@pytest.mark.parametrize(
    "values", [[7, 7, 3], [3, 7, 7], [7, 7, 7], [-1, -1, -2, -1], [0, 0], [5]], ids=lambda values: str(values)
)
def test_the_first_of_equal_numbers_is_the_largest(shared: Setting, values: list[float]) -> None:
    numbers = np.array(values, dtype=float)
    x = shared.put(numbers)
    assert shared.read(x.max()) == numbers.max()
    assert shared.read(x.min()) == numbers.min()
    assert shared.read(x.argmax()) == numbers.argmax()
    assert shared.read(x.argmin()) == numbers.argmin()


def test_ties_along_an_axis(torch_hook: Any) -> None:
    torch, setting = torch_hook.torch, Setting(torch_hook)
    plain = torch.tensor([[1.0, 5.0, 5.0], [2.0, 2.0, 2.0]])
    x = setting.put(plain.numpy())
    for keepdim in (False, True):
        for name in ("max", "min"):
            values, indices = getattr(x, name)(1, keepdim)
            expected = getattr(plain, name)(1, keepdim)
            assert_close(setting.read(values), expected.values)
            first = plain == expected.values.reshape(2, 1)
            assert_close(setting.read(indices).reshape(2), first.int().argmax(1))


# --- neural networks

Layer = Callable[[Any, Any], Any]
LAYERS: dict[str, tuple[Layer, list[tuple[int, ...]]]] = {
    "relu": (lambda f, x: f.relu(x), [(3, 4)]),
    "leaky_relu": (lambda f, x: f.leaky_relu(x), [(3, 4)]),
    "linear": (lambda f, x, w, b: f.linear(x, w, b), [(3, 4), (5, 4), (5,)]),
    "bilinear_matmul": (lambda _f, x, w: x @ w, [(2, 3, 4), (2, 4, 5)]),
    "broadcast_matmul": (lambda _f, x, w: x @ w, [(2, 3, 4), (4, 5)]),
    "matrix_vector": (lambda _f, x, w: x @ w, [(3, 4), (4,)]),
    "conv2d": (lambda f, x, w, b: f.conv2d(x, w, b), [(2, 3, 6, 6), (4, 3, 3, 3), (4,)]),
    "conv2d_options": (
        lambda f, x, w: f.conv2d(x, w, stride=2, padding=(1, 2), dilation=(2, 1)),
        [(2, 3, 7, 7), (4, 3, 3, 2)],
    ),
    "conv2d_groups": (lambda f, x, w: f.conv2d(x, w, groups=2), [(1, 4, 5, 5), (6, 2, 3, 3)]),
    "conv2d_same": (lambda f, x, w: f.conv2d(x, w, padding="same"), [(1, 2, 5, 5), (3, 2, 3, 3)]),
    "conv1d": (lambda f, x, w, b: f.conv1d(x, w, b, stride=2, padding=1), [(2, 3, 8), (4, 3, 3), (4,)]),
    "max_pool2d": (lambda f, x: f.max_pool2d(x, 2), [(2, 2, 6, 6)]),
    "max_pool2d_options": (lambda f, x: f.max_pool2d(x, 3, 2, 1), [(1, 2, 7, 7)]),
    "max_pool2d_dilation": (lambda f, x: f.max_pool2d(x, 2, 1, dilation=2), [(1, 1, 6, 6)]),
    "avg_pool2d": (lambda f, x: f.avg_pool2d(x, 2), [(2, 2, 6, 6)]),
    "avg_pool2d_options": (lambda f, x: f.avg_pool2d(x, 3, 2, 1), [(1, 2, 7, 7)]),
    "layer_norm": (lambda f, x, w, b: f.layer_norm(x, (4,), w, b), [(3, 4), (4,), (4,)]),
    "layer_norm_axes": (lambda f, x: f.layer_norm(x, (3, 4)), [(2, 3, 4)]),
    "batch_norm_train": (lambda f, x, w, b: f.batch_norm(x, None, None, w, b, True), [(6, 3), (3,), (3,)]),
    "batch_norm_images": (lambda f, x, w: f.batch_norm(x, None, None, w, None, True), [(3, 2, 4, 4), (2,)]),
    "group_norm": (lambda f, x: f.group_norm(x, 2), [(2, 4, 3)]),
    "softmax": (lambda f, x: f.softmax(x, -1), [(3, 5)]),
    "log_softmax": (lambda f, x: f.log_softmax(x, 0), [(3, 5)]),
    "sigmoid": (lambda f, x: f.sigmoid(x), [(3, 5)]),
    "gelu": (lambda f, x: f.gelu(x), [(3, 5)]),
    "dropout_off": (lambda f, x: f.dropout(x, 0.5, False), [(3, 5)]),
    "pad": (lambda f, x: f.pad(x, (1, 2)), [(3, 5)]),
    "mse": (lambda f, x, y: f.mse_loss(x, y), [(3, 5), (3, 5)]),
    "l1": (lambda f, x, y: f.l1_loss(x, y), [(3, 5), (3, 5)]),
}


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_computes_what_torch_computes(torch_anywhere: Setting, name: str) -> None:
    torch = torch_anywhere.hook.torch
    functions = torch.nn.functional
    layer, shapes = LAYERS[name]
    torch.manual_seed(0)
    operands = [torch.randn(shape) * (0.5 if place else 1.0) for place, shape in enumerate(shapes)]
    expected = layer(functions, *operands)
    private = [torch_anywhere.put(operand.numpy()) for operand in operands]

    assert_close(torch_anywhere.read(layer(functions, *private)), expected, 5e-3)
    if len(operands) > 1:  # one of them is public
        assert_close(torch_anywhere.read(layer(functions, private[0], *operands[1:])), expected, 5e-3)
        assert_close(torch_anywhere.read(layer(functions, operands[0], *private[1:])), expected, 5e-3)


def test_batch_norm_uses_running_statistics_and_updates_them(torch_anywhere: Setting) -> None:
    torch = torch_anywhere.hook.torch
    torch.manual_seed(0)
    plain, images = torch.nn.BatchNorm2d(2), torch.randn(4, 2, 3, 3) * 2 + 1
    model = torch.nn.BatchNorm2d(2).fix_precision(base=2, precision_fractional=16)
    if torch_anywhere.workers:
        model.share(*torch_anywhere.workers, crypto_provider=torch_anywhere.carol)
    x = torch_anywhere.put(images.numpy())
    for _ in range(2):
        assert_close(torch_anywhere.read(model(x)), plain(images).detach(), 5e-3)
    assert_close(torch_anywhere.read(model.running_mean), plain.running_mean)
    assert_close(torch_anywhere.read(model.running_var), plain.running_var, 5e-3)
    assert model.num_batches_tracked == 2
    assert_close(torch_anywhere.read(model.eval()(x)), plain.eval()(images).detach(), 5e-3)


def test_an_embedding_is_looked_up_by_public_indices(torch_anywhere: Setting) -> None:
    torch = torch_anywhere.hook.torch
    table, rows = torch.randn(6, 3), torch.tensor([[1, 5], [1, 0]])
    found = torch.nn.functional.embedding(rows, torch_anywhere.put(table.numpy()))
    assert_close(torch_anywhere.read(found), table[rows])


def test_dropout_drops_and_rescales(torch_anywhere: Setting) -> None:
    torch = torch_anywhere.hook.torch
    dropped = torch_anywhere.read(torch.nn.functional.dropout(torch_anywhere.put(np.ones(400)), 0.25))
    kept = dropped != 0
    assert 200 < kept.sum() < 400
    np.testing.assert_allclose(dropped[kept], 4 / 3, rtol=1e-3)
    assert not torch_anywhere.read(torch.nn.functional.dropout(torch_anywhere.put(np.ones(4)), 1.0)).any()


def test_tensors_are_joined_split_and_rearranged(torch_anywhere: Setting) -> None:
    torch = torch_anywhere.hook.torch
    plain = torch.randn(2, 4, 3)
    x = torch_anywhere.put(plain.numpy())
    moves: list[Callable[[Any], Any]] = [
        lambda x: torch.cat([x, x], 2),
        lambda x: torch.stack([x, x], 1),
        lambda x: torch.vstack([x, x]),
        lambda x: x.split([1, 3], 1)[1],
        lambda x: x.chunk(2, 1)[0],
        lambda x: x.unbind(1)[2],
        lambda x: torch.unbind(x)[1],
        lambda x: x.permute(2, 0, 1),
        lambda x: x.transpose(0, 2).contiguous().view(-1),
        lambda x: x.unsqueeze(0).squeeze(0),
        lambda x: x.flatten(1),
        lambda x: x.expand(5, 2, 4, 3),
        lambda x: x.repeat(2, 1, 1),
        lambda x: x.flip(0),
        lambda x: x.roll(1, 1),
        lambda x: x.index_select(1, torch.tensor([3, 0])),
        lambda x: x.gather(2, torch.zeros(2, 4, 1, dtype=torch.long)),
        lambda x: x[:, torch.tensor([True, False, True, False])],
        lambda x: x[torch.tensor([1, 0]), torch.tensor([2, 3])],
        lambda x: x.diagonal(0, 1, 2),
        lambda x: x.movedim(0, 2),
        lambda x: x.narrow(1, 1, 2),
        lambda x: x.select(1, 2),
        lambda x: x.triu(),
        lambda x: torch.nn.functional.pad(x, (1, 0)),
        lambda x: torch.einsum("bij,bkj->bik", x, x),
        lambda x: x.index_add(1, torch.tensor([0]), torch.ones(2, 1, 3)),
        lambda x: x.scatter(1, torch.zeros(2, 1, 3, dtype=torch.long), torch.ones(2, 1, 3)),
        lambda x: x.masked_fill(plain > 0, 2.0),
        lambda x: x.norm(),
    ]
    for move in moves:
        assert_close(torch_anywhere.read(move(x)), move(plain))


# --- several groups


def test_values_of_different_parties_are_not_mixed(torch_hook: Any) -> None:
    setting = Setting(torch_hook)
    bob, alice, dave = setting.everybody
    x = setting.put(B)
    for parties, provider in (((bob, dave), setting.carol), ((alice, bob), setting.carol), ((bob, alice), dave)):
        y = setting.encode(B).share(*parties, crypto_provider=provider)
        for compute in (lambda: x + y, lambda: x * y, lambda: x < y, lambda: torch_hook.torch.cat([x, y])):  # noqa: B023
            with pytest.raises(MixedLayersError, match="cannot compute on values shared among bob, alice and among"):
                compute()
        assert_close(setting.read(y), B)
    assert_close(setting.read(x), B)


def test_a_worker_takes_part_in_several_groups(torch_hook: Any) -> None:
    setting = Setting(torch_hook)
    bob, alice, dave = setting.everybody
    x = setting.encode(B).share(bob, alice, crypto_provider=setting.carol)
    y = setting.encode(B).share(dave, bob, crypto_provider=alice)
    for _ in range(3):
        x, y = x * 0.5 * x, y * y * 0.5
        assert_close(setting.read(x), setting.read(y))


# --- memory and modes


def test_no_objects_are_left_on_any_worker(two: Setting) -> None:
    torch = two.hook.torch
    two.put(A)
    before = two.count()

    def compute() -> None:
        x, w = two.put(A), two.put(A)
        torch.relu(x * w).sum().get()
        y = (x > w) * x
        y += 1
        y[0] = 3
        torch.cat([y, y]).argmax(0)
        torch.nn.functional.softmax(x @ w.T, 1)
        images = two.put(np.ones((1, 1, 4, 4)))
        torch.nn.functional.max_pool2d(images, 2)
        leaf = two.put(A).requires_grad_()
        (leaf * leaf).mean().backward()
        with pytest.raises(ValueError, match="cannot multiply matrices"):
            x @ w

    compute()
    assert two.count() == before


def test_both_modes_compute_the_same(two: Setting) -> None:
    torch = two.hook.torch
    torch.manual_seed(1)
    images, filters = torch.randn(2, 1, 6, 6), torch.randn(3, 1, 3, 3)

    def network(x: Any, w: Any) -> Any:
        return torch.nn.functional.max_pool2d(torch.relu(torch.conv2d(x, w)), 2).flatten(1).softmax(1)

    assert_close(two.read(network(two.put(images.numpy()), two.put(filters.numpy()))), network(images, filters), 5e-3)


def test_a_group_survives_an_operation_that_failed(two: Setting) -> None:
    x = two.put(A)
    for _ in range(3):
        with pytest.raises(ValueError, match="cannot broadcast shapes"):
            x * two.put(np.ones(2))
        assert_close(two.read(x * x), A * A)


def test_the_ring_of_32_bits_is_shared_too(shared: Setting) -> None:
    x = shared.share(shared.plain(np.array([5, -6], dtype=np.int32)))
    found = np.asarray((x * x - 1).get())
    assert (found.dtype, found.tolist()) == (np.int32, [24, 35])
    assert np.asarray((x > 0).get()).tolist() == [1, 0]


def test_tensors_without_elements_and_without_axes(shared: Setting) -> None:
    empty = shared.put(np.zeros((0, 3)))
    assert shared.read(empty * empty + 1).shape == (0, 3)
    assert shared.read(empty.sum(0)).tolist() == [0, 0, 0]
    number = shared.put(2.5)
    assert shared.read(number * number - 1) == pytest.approx(5.25, abs=1e-3)


def test_numpy_and_torch_share_among_the_same_workers() -> None:
    with attach("torch") as torch_hook, attach("numpy") as numpy_hook:
        setting = Setting(torch_hook)
        other = setting.__class__.__new__(Setting)
        other.__dict__.update(setting.__dict__, hook=numpy_hook, name="numpy", xp=np)
        x, y = setting.put(B), other.put(B)
        assert_close(setting.read(x * x), B * B)
        assert_close(other.read(y * y), B * B)


def test_without_a_provider_values_are_added_moved_and_fetched(shared: Setting) -> None:
    def share(values: Any) -> Any:
        return shared.plain(np.array(values)).share(*shared.workers)

    x, y = share([[1, 2], [3, 4]]), share([10, 20])

    assert np.asarray((2 * x - y + 1)[0].get()).tolist() == [-7, -15]
    assert np.asarray(x.refresh().get()).tolist() == [[1, 2], [3, 4]]
    assert np.asarray((shared.plain(np.array([[1, 1]])) @ x).get()).tolist() == [[4, 6]]
    assert end_of(x).crypto_provider is None
    assert "*crypto provider: None*" in str(x)
    for use in (lambda: x * y, lambda: x < y, lambda: x / 2, lambda: x.max()):
        with pytest.raises(ProtocolError, match="cannot compute this without a crypto_provider"):
            use()
    with pytest.raises(ProtocolError, match="cannot compute this without a crypto_provider"):
        shared.plain(np.array([1])).share(*shared.workers, protocol="authenticated")
    with pytest.raises(MixedLayersError, match="cannot compute on values shared among"):
        x + shared.share(shared.plain(np.array([[1, 2], [3, 4]])))
    assert np.asarray(x.get()).tolist() == [[1, 2], [3, 4]]


def test_the_shape_of_shared_numbers_changes_in_place(two: Setting) -> None:
    torch = two.hook.torch
    plain, x = torch.arange(6.0).reshape(2, 3), two.put([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])
    row = x[0]
    for change in (
        lambda t: t.t_(),
        lambda t: t.unsqueeze_(1),
        lambda t: t.transpose_(0, 2),
        lambda t: t.swapaxes_(0, 1),
        lambda t: t.squeeze_(),
        lambda t: t.squeeze_(-1),
    ):
        change(plain)
        assert change(x) is x
        assert (x.shape, x.stride()) == (plain.shape, plain.stride())
        assert_close(two.read(x), plain)
    x += 1
    assert_close(two.read(row), [1, 2, 3])  # It is still a view.


def test_gradients_pass_a_change_of_shape_in_place(two: Setting) -> None:
    x = two.put([1.0, 2.0]).requires_grad_()

    (x * 2).unsqueeze_(0).matmul(two.hook.torch.ones(2, 3)).sum().backward()

    assert_close(two.read(x.grad.detach()), [6, 6])
