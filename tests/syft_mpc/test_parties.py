"""The same computations on shares, by parties in this process, by wire, and in processes of their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_core.exceptions import GetNotPermittedError  # noqa: E402
from syft_core.workers.party.virtual import VirtualWorker  # noqa: E402
from syft_mpc.errors import ProtocolError  # noqa: E402

from .conftest import NAMES  # noqa: E402


@pytest.fixture(scope="module", params=["in this process", "by wire", "on the network"])
def workers(request: pytest.FixtureRequest, hook: Any) -> Iterator[dict[str, Any]]:
    if request.param == "on the network":
        parties = request.getfixturevalue("parties")
        yield {name: parties.connect(name) for name in NAMES}
        return
    with ExitStack() as stack:
        workers = {}
        for name in NAMES:
            workers[name] = VirtualWorker(hook, id=name, serialize=request.param == "by wire")
            stack.callback(hook.local_worker.remove_worker_from_registry, name)
        yield workers


@pytest.fixture(params=[("bob", "alice"), ("bob", "alice", "dora")], ids=len)
def holders(request: pytest.FixtureRequest, workers: dict[str, Any]) -> list[Any]:
    return [workers[name] for name in request.param]


@pytest.fixture
def share(holders: list[Any], workers: dict[str, Any]) -> Any:
    return lambda x: x.share(*holders, crypto_provider=workers["carol"])


X, Y = torch.arange(-6, 6).reshape(3, 4), torch.arange(12).reshape(3, 4) * 5 - 30


def test_products_are_exact(share: Any) -> None:
    x, y = share(X), share(Y)

    assert torch.equal((x * y).get(), X * Y)
    assert torch.equal((x * x).get(), X * X)
    assert torch.equal((share(X) @ share(Y.T)).get(), X @ Y.T)


def test_comparisons_and_relu_are_right(share: Any) -> None:
    x, y = share(X), share(Y)

    assert torch.equal((x < y).get(), (X < Y).long())
    assert torch.equal((x == share(X)).get(), torch.ones_like(X))
    assert torch.equal(torch.relu(x).get(), torch.relu(X))


def test_a_long_computation_runs_without_a_wait_of_the_client(share: Any, workers: dict[str, Any]) -> None:
    x = share(torch.tensor([1, -1, 1]))
    waits = [getattr(worker, "waits", 0) for worker in workers.values()]
    y = x
    for _ in range(200):
        y = y * x

    assert [getattr(worker, "waits", 0) for worker in workers.values()] == waits
    assert torch.equal(y.get(), torch.tensor([1, -1, 1]))


def test_numbers_with_fixed_precision_are_multiplied_and_truncated(share: Any) -> None:
    x, y = torch.tensor([0.5, -1.25, 3.0]), torch.tensor([2.0, 4.0, -0.5])

    found = (share(x.fix_prec()) * share(y.fix_prec())).get().float_prec()

    assert torch.allclose(found, x * y, atol=0.002)


def test_images_are_convolved(share: Any) -> None:
    torch.manual_seed(0)
    image, filters = torch.rand(1, 2, 5, 5), torch.rand(3, 2, 3, 3)
    x, w = share(image.fix_prec()), share(filters.fix_prec())

    found = torch.nn.functional.conv2d(x, w, padding=1).get().float_prec()

    assert torch.allclose(found, torch.nn.functional.conv2d(image, filters, padding=1), atol=0.05)


def test_a_linear_model_is_trained_with_a_stock_optimizer(share: Any) -> None:
    torch.manual_seed(0)
    data, target = torch.rand(8, 3), torch.rand(8, 1)
    weights = torch.rand(3, 1)
    plain = weights.clone().requires_grad_()
    shared = share(weights.fix_prec())
    shared.requires_grad = True
    x, y = share(data.fix_prec()), share(target.fix_prec())
    for w, a, b in ((plain, data, target), (shared, x, y)):
        optimizer = torch.optim.SGD([w], lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            ((a @ w - b) ** 2).sum().backward()
            optimizer.step()

    assert torch.allclose(shared.get().float_prec(), plain.detach(), atol=0.05)


# --- failures


def test_shapes_that_do_not_fit_are_refused_and_the_shares_stay(share: Any) -> None:
    x, y = share(X), share(torch.arange(5))

    with pytest.raises(ValueError, match="cannot broadcast shapes"):
        x * y

    assert torch.equal((x * x).get(), X * X)
    assert torch.equal((y * y).get(), torch.arange(5) ** 2)


def test_a_run_that_fails_at_one_party_does_not_spoil_the_next(share: Any, holders: list[Any]) -> None:
    x, y = share(X), share(Y)
    last = holders[-1]
    broken = x.child.child[last.id]
    broken.drop("for the test")
    broken.gone = None
    if hasattr(last, "waits"):
        last.flush()

    with pytest.raises(Exception, match="cannot find object"):
        (x * y).get()

    assert torch.equal((y * y).get(), Y * Y)
    assert torch.equal((share(X) * y).get(), X * Y)


def test_a_share_that_a_party_withholds_costs_no_other_share(share: Any, holders: list[Any], hook: Any) -> None:
    x = share(X)
    shares = x.child.child
    refused = holders[-1]
    if hasattr(refused, "policy"):
        refused.policy = "nothing"
        try:
            with pytest.raises(GetNotPermittedError):
                x.get()
        finally:
            refused.policy = "unless_private"
        assert len(refused.ledger) == 0 or refused.ledger[-1].id != shares[refused.id].id_at_location
    assert torch.equal(x.get(), X)


def test_workers_given_twice_and_a_single_one_are_refused(workers: dict[str, Any]) -> None:
    bob, alice, carol = workers["bob"], workers["alice"], workers["carol"]

    with pytest.raises(ProtocolError, match="cannot share: a worker is given twice"):
        X.share(bob, bob, crypto_provider=carol)
    with pytest.raises(ProtocolError, match="cannot share: a worker is given twice, or is the crypto_provider too"):
        X.share(bob, alice, crypto_provider=bob)
    with pytest.raises(ProtocolError, match="cannot share among 1 workers"):
        X.share(bob, crypto_provider=carol)
