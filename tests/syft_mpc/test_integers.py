"""Weights that are used again are opened under a mask once, and products with them are right whatever happens since."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import syft_core as sy  # noqa: E402  # torch may be missing
from syft_core.exceptions import GetNotPermittedError  # noqa: E402
from syft_mpc import count, limits  # noqa: E402
from syft_mpc import group as group_module  # noqa: E402
from syft_mpc.channel import Channels  # noqa: E402
from syft_mpc.errors import ProtocolError  # noqa: E402
from syft_mpc.group import find_group  # noqa: E402
from syft_mpc.spdz import spdz_mask, spdz_mul_masked  # noqa: E402

NAMES = ("bob", "alice", "carol")
X, W = torch.arange(12.0).view(3, 4) / 7, torch.arange(20.0).view(5, 4) / 3 - 2


@pytest.fixture(params=[False, True], ids=["in process", "by wire"])
def workers(hook: Any, request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    yield {name: sy.VirtualWorker(hook, id=name, serialize=request.param) for name in NAMES}
    hook.local_worker.user = None
    for name in NAMES:
        hook.local_worker.remove_worker_from_registry(name)


@pytest.fixture
def share(workers: dict[str, Any]) -> Callable[[Any], Any]:
    bob, alice, carol = (workers[name] for name in NAMES)
    return lambda x: x.fix_precision(base=2, precision_fractional=16).share(bob, alice, crypto_provider=carol)


def linear(x: Any, w: Any) -> tuple[Any, int]:
    """Return the product, and how many bytes the parties sent."""
    with torch.no_grad(), count() as counted:
        product = torch.nn.functional.linear(x, w)
    return product.get().float_precision(), counted.bytes


def require_equal(found: Any, expected: Any) -> None:
    assert torch.allclose(found, expected, atol=0.005)


def test_the_third_product_with_a_weight_does_not_open_it_again(share: Any) -> None:
    x, w = share(X), share(W)
    products = [linear(x, w) for _ in range(4)]

    for found, _ in products:
        require_equal(found, X @ W.t())
    first, second, third, fourth = (sent for _, sent in products)
    assert first == second == third + 2 * 8 * W.numel()
    assert third == fourth


def test_filters_are_kept_as_well(share: Any) -> None:
    images, filters = torch.rand(2, 1, 6, 6), torch.rand(3, 1, 3, 3)
    x, w = share(images), share(filters)
    sent = []
    for _ in range(3):
        with torch.no_grad(), count() as counted:
            found = torch.conv2d(x, w)
        require_equal(found.get().float_precision(), torch.conv2d(images, filters))
        sent.append(counted.bytes)

    assert sent == [sent[0], sent[0], sent[0] - 2 * 8 * filters.numel()]


def test_a_weight_that_changes_is_masked_anew(share: Any) -> None:
    x, w = share(X), share(W)
    for _ in range(3):
        linear(x, w)
    with torch.no_grad():
        w.add_(w)
    require_equal(linear(x, w)[0], 2 * X @ W.t())
    with torch.no_grad():
        w[0].mul_(3)
    changed = 2 * W
    changed[0] *= 3
    for _ in range(3):
        require_equal(linear(x, w)[0], X @ changed.t())


def test_training_uses_the_weights_of_each_step(share: Any) -> None:
    x, w, plain = share(X), share(W).requires_grad_(), W.clone().requires_grad_()
    optimizers = [torch.optim.SGD([parameter], lr=0.1) for parameter in (w, plain)]
    for _ in range(3):
        for data, parameter, optimizer in ((x, w, optimizers[0]), (X, plain, optimizers[1])):
            optimizer.zero_grad()
            (torch.nn.functional.linear(data, parameter) ** 2).mean().backward()
            optimizer.step()
        require_equal(linear(x, w)[0], X @ plain.detach().t())
        require_equal(linear(x, w)[0], X @ plain.detach().t())


def test_different_views_have_different_masks(share: Any) -> None:
    x, w = share(X), share(W)
    rows, columns = w[:4], w[1:]
    for _ in range(3):
        require_equal(linear(x, rows)[0], X @ W[:4].t())
        require_equal(linear(x, columns)[0], X @ W[1:].t())
        require_equal(linear(x, w)[0], X @ W.t())


def test_masks_are_forgotten_with_the_weight(workers: Any, share: Any) -> None:
    x, w = share(X), share(W)
    for _ in range(3):
        linear(x, w)
    channels = [next(iter(workers[name].part(Channels)._channels.values())) for name in NAMES]
    *kept, provider = [channel for own in channels for channel in own.values()]
    assert all(len(channel._masks) == 1 for channel in kept)
    assert len(provider._forms) == 1

    del w
    gc.collect()
    linear(x, share(W))

    assert all(not channel._masks and not channel.masked and channel.kept == 0 for channel in kept)
    assert not provider._forms
    assert not provider._values


def test_masks_take_no_more_memory_than_a_client_may_use(
    workers: Any, share: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, w, other = share(X[:1]), share(torch.ones(40, 4)), share(torch.ones(40, 4))
    for _ in range(2):
        linear(x, w)
    linear(x, other)
    monkeypatch.setattr(limits, "MAX_HELD", 5000)

    with pytest.raises(ProtocolError, match="a mask of 3,840 bytes: masks of the client take 3,840 bytes here already"):
        linear(x, other)


def test_a_client_masks_no_more_than_the_parties_should_keep(share: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x, w, other = share(X), share(W), share(W + 1)
    groups = [group for own in group_module._groups.values() for group in own.values()]
    kept = sum(masked.size for group in groups for masked in group._masked)
    monkeypatch.setattr(group_module, "MAX_MASKED", kept + 8 * W.numel())

    sent = [(linear(x, w)[1], linear(x, other)[1]) for _ in range(4)]

    assert sent[3][0] < sent[0][0]
    assert sent[3][1] == sent[0][1]


def test_after_a_failure_a_weight_is_masked_in_the_new_channel(share: Any) -> None:
    x, w = share(X), share(W)
    for _ in range(3):
        linear(x, w)
    group = w.child.child.group
    before = group._channel
    group._state = None  # As after a failed run: the next one opens a new channel.

    for _ in range(3):
        require_equal(linear(x, w)[0], X @ W.t())
    assert group._channel != before


def test_a_weight_that_somebody_else_has_changed_is_not_used_as_it_was(workers: Any, share: Any) -> None:
    x, w = share(X), share(W)
    for _ in range(3):
        linear(x, w)
    entry = workers["bob"].object_store.entry(w.child.child.child["bob"].id_at_location)
    entry.value.add_(1 << 16)

    with pytest.raises(ProtocolError, match="or it has changed since; repeat the operation"):
        linear(x, w)
    for _ in range(3):
        require_equal(linear(x, w)[0], X @ (W + 1).t())


# --- clients that send messages by hand


def test_a_client_cannot_use_a_mask_for_another_value(hook: Any, workers: Any, share: Any) -> None:
    group = find_group(hook.local_worker, [workers["bob"], workers["alice"]], workers["carol"], hook.attributes)
    x, y, z = (share(torch.arange(3.0) + k).child.child.child for k in range(3))
    kept, other = group.mask(y), group.mask(z)

    for operand, is_first in ((z, True), (y, False)):
        group.renew()
        with count() as counted, pytest.raises(ProtocolError, match="another value was masked"):
            group.run(spdz_mul_masked, x, operand, mask=(kept if is_first else other).number)
        assert counted.bytes == 0
        kept, other = group.mask(y), group.mask(z)


def test_a_client_cannot_read_or_change_what_was_opened(hook: Any, workers: Any, share: Any) -> None:
    group = find_group(hook.local_worker, [workers["bob"], workers["alice"]], workers["carol"], hook.attributes)
    x, y = (share(torch.arange(3.0) + k).child.child.child for k in (1, 2))
    kept = group.mask(y)
    assert kept.handle["bob"].shape == (1,)
    for pointer in kept.handle.values():
        pointer.add_(1)

    (product,) = group.run(spdz_mul_masked, x, y, mask=kept.number)

    found = product["bob"].get() + product["alice"].get()
    assert found.tolist() == [2 << 32, 6 << 32, 12 << 32]


def test_the_same_value_is_opened_under_a_new_mask_each_time(hook: Any, workers: Any, share: Any) -> None:
    group = find_group(hook.local_worker, [workers["bob"], workers["alice"]], workers["carol"], hook.attributes)
    y = share(torch.arange(50.0)).child.child.child
    kept = [group.mask(y) for _ in range(3)]

    (channel,) = next(iter(workers["bob"].part(Channels)._channels.values())).values()
    opened = [channel._masks[masked.number].opened for masked in kept]
    assert not (opened[0] == opened[1]).any()
    assert not (opened[1] == opened[2]).any()


def find_secret(bob: Any) -> Any:
    bob.load_data([torch.arange(3).private_tensor(["the board"]).tag("#secret")])
    (found,) = bob.search("#secret")
    return found


def test_neither_what_was_opened_nor_a_product_is_less_private_than_the_weight(hook: Any, workers: Any) -> None:
    bob, alice = workers["bob"], workers["alice"]
    group = find_group(hook.local_worker, [bob, alice], workers["carol"], hook.attributes)
    bob.trust("alice", "carol")
    secret = find_secret(bob)
    y = {"bob": secret.child, "alice": torch.zeros(3).long().send(alice).child}
    x = {"bob": torch.ones(3).long().send(bob).child, "alice": torch.zeros(3).long().send(alice).child}
    kept = group.mask(y)
    (product,) = group.run(spdz_mul_masked, x, y, mask=kept.number)

    for shares in (kept.handle, product):
        with pytest.raises(GetNotPermittedError, match="it is private"):
            shares["bob"].get()
    hook.local_worker.user = "the board"
    assert (product["bob"].get() + product["alice"].get()).tolist() == [0, 1, 2]


def test_masking_needs_the_trust_of_the_owner(hook: Any, workers: Any) -> None:
    bob, alice = workers["bob"], workers["alice"]
    group = find_group(hook.local_worker, [bob, alice], workers["carol"], hook.attributes)
    secret = find_secret(bob)

    with pytest.raises(ProtocolError, match="its owner does not trust them"):
        group.run(spdz_mask, {"bob": secret.child, "alice": torch.zeros(3).long().send(alice).child})


def test_transposed_weights_are_views_that_are_created_once(share: Any) -> None:
    w, x = share(W), share(X)
    with torch.no_grad():
        one, other = w.t(), w.t()
        assert [p.id_at_location for p in one.child.child.child.values()] == [
            p.id_at_location for p in other.child.child.child.values()
        ]
        require_equal(linear(x, w)[0], X @ W.t())
        w.mul_(2)
        require_equal(x.matmul(other).get().float_precision(), 2 * X @ W.t())
        one.add_(1)
        require_equal(linear(x, w)[0], X @ (2 * W + 1).t())
        require_equal(one.get().float_precision(), (2 * W + 1).t())
        require_equal(w.t().get().float_precision(), (2 * W + 1).t())
        require_equal(w.get().float_precision(), 2 * W + 1)
