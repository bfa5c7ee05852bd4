"""Values shared with ``protocol="authenticated"``: results are right, and a party that cheats is named."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

from syft_core.exceptions import GetNotPermittedError, MixedLayersError, OperationNotAllowedError  # noqa: E402
from syft_core.plugins.manager import load_backend  # noqa: E402
from syft_core.workers.party.virtual import VirtualWorker  # noqa: E402
from syft_mpc.authenticated import auth_random  # noqa: E402
from syft_mpc.authenticated_tensor import AuthenticatedTensor  # noqa: E402
from syft_mpc.channel import Channels  # noqa: E402
from syft_mpc.errors import CheatingError, PrecisionError, ProtocolError  # noqa: E402
from syft_mpc.group import find_group  # noqa: E402
from syft_mpc.protocol import PROVIDER  # noqa: E402
from syft_worker.allowances import Allowance  # noqa: E402
from syft_worker.quotas import QuotaGuard  # noqa: E402

from .conftest import NAMES, Parties  # noqa: E402


def make_workers(hook: Any, stack: ExitStack, serialize: bool) -> dict[str, Any]:
    workers = {}
    for name in NAMES:
        workers[name] = VirtualWorker(hook, id=name, serialize=serialize)
        stack.callback(hook.local_worker.remove_worker_from_registry, name)
    return workers


@pytest.fixture(params=[False, True], ids=["in this process", "by wire"])
def workers(request: pytest.FixtureRequest, hook: Any) -> Iterator[dict[str, Any]]:
    with ExitStack() as stack:
        yield make_workers(hook, stack, request.param)


@pytest.fixture(params=[("bob", "alice"), ("bob", "alice", "dora")], ids=len)
def holders(request: pytest.FixtureRequest, workers: dict[str, Any]) -> list[Any]:
    return [workers[name] for name in request.param]


Share = Callable[[Any], Any]


@pytest.fixture
def share(holders: list[Any], workers: dict[str, Any]) -> Share:
    return lambda x: x.share(*holders, crypto_provider=workers["carol"], protocol="authenticated")


X, Y = torch.arange(-6, 6).reshape(3, 4), torch.arange(12).reshape(3, 4) * 5 - 30
IMAGES = torch.arange(24).reshape(2, 3, 4)
OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "nothing": lambda x, _y: x,
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "add with a factor": lambda x, y: torch.add(x, y, alpha=3),
    "negate": lambda x, _y: -x,
    "numbers": lambda x, y: 3 * x - 1 + (5 - y) * 2,
    "multiply": lambda x, y: x * y,
    "multiply twice": lambda x, y: x * y * x,
    "square": lambda x, _y: torch.square(x),
    "power": lambda x, _y: x**5,
    "multiply a row": lambda x, y: x[0] * y,
    "add a row": lambda x, y: x + y[2],
    "multiply matrices": lambda x, y: x @ y.T,
    "multiply a matrix and a vector": lambda x, y: x @ y[1],
    "multiply vectors": lambda x, y: x[1] @ y[0],
    "sum": lambda x, _y: x.sum(),
    "sum of an axis": lambda x, _y: x.sum(0),
    "sum of the last axis": lambda x, _y: x.sum(-1, keepdim=True),
    "sum of axes": lambda x, _y: x.reshape(3, 2, 2).sum((0, 2)),
    "sum of a number": lambda x, _y: x[1, 1].sum(),
    "an element": lambda x, _y: x[1, 2],
    "a row": lambda x, _y: x[-1],
    "a slice": lambda x, _y: x[:, 1:3],
    "indices": lambda x, _y: x[torch.tensor([2, 0, 2])],
    "a mask": lambda x, _y: x[torch.tensor([True, False, True])],
    "reshape": lambda x, _y: x.reshape(2, -1),
    "flatten": lambda x, _y: x.flatten(),
    "unsqueeze": lambda x, _y: x.unsqueeze(1),
    "transpose": lambda x, _y: x.T,
    "permute": lambda x, _y: x.reshape(3, 2, 2).permute(2, 0, 1),
    "expand": lambda x, _y: x[:, :1].expand(3, 5),
    "flip": lambda x, _y: x.flip(0),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_results_are_those_of_plain_integers(share: Share, name: str) -> None:
    operation = OPERATIONS[name]

    found = operation(share(X), share(Y))

    assert tuple(found.shape) == tuple(operation(X, Y).shape)
    assert found.dtype == torch.int64
    assert torch.equal(found.get(), operation(X, Y))


@pytest.mark.parametrize("name", [name for name in OPERATIONS if name.startswith(("add", "sub", "mul"))])
def test_one_operand_may_be_public(share: Share, name: str) -> None:
    operation = OPERATIONS[name]

    assert torch.equal(operation(share(X), Y).get(), operation(X, Y))
    assert torch.equal(operation(X, share(Y)).get(), operation(X, Y))


def test_batches_of_matrices_may_be_public(share: Share) -> None:
    matrix, vector = torch.arange(8).reshape(4, 2), torch.tensor([1, -2, 3])

    assert torch.equal((share(IMAGES) @ matrix).get(), IMAGES @ matrix)
    assert torch.equal((IMAGES @ share(matrix)).get(), IMAGES @ matrix)
    assert torch.equal((share(vector) @ IMAGES).get(), vector @ IMAGES)
    assert torch.equal((vector @ share(IMAGES)).get(), vector @ IMAGES)


def test_extreme_values_come_back(share: Share) -> None:
    edges = torch.tensor([0, 1, -1, (1 << 31) - 1, 1 - (1 << 31)])

    assert torch.equal(share(edges).get(), edges)
    assert share(torch.tensor(7)).get() == 7


def test_a_value_shows_its_shares_and_where_they_are(share: Share, holders: list[Any]) -> None:
    x = share(X)

    assert type(x.child) is AuthenticatedTensor
    assert [location.id for location in x.child.locations] == [worker.id for worker in holders]
    assert "[AuthenticatedTensor]" in str(x)
    assert "*crypto provider: carol*" in str(x)


# --- fixed precision

P, Q = torch.tensor([[0.5, -1.25, 3.0], [2.0, 0.0, -7.5]]), torch.tensor([[2.0, 4.0, -0.5], [1.5, 9.0, 0.25]])
STEP = 1 / 256
REAL: dict[str, tuple[Callable[[Any, Any], Any], float]] = {
    "add": (lambda x, y: x + y, 0),
    "subtract": (lambda x, y: 1.5 - x - y, 0),
    "multiply": (lambda x, y: x * y, STEP),
    "multiply by an integer": (lambda x, _y: 3 * x, 0),
    "multiply by a fraction": (lambda x, _y: x * 0.3, 0.02),
    "divide by a number": (lambda x, _y: x / 4, STEP),
    "multiply matrices": (lambda x, y: x @ y.T, STEP),
    "power": (lambda x, _y: x**3, 0.1),
    "sum": (lambda x, _y: x.sum(1), 0),
    "mean": (lambda x, _y: x.mean(), STEP),
    "a row": (lambda x, _y: x[1], 0),
    "a column": (lambda x, _y: x[:, 0], 0),
    "a slice": (lambda x, _y: x[:, 1:3], 0),
    "every other column": (lambda x, _y: x[..., ::2], 0),
    "chosen columns": (lambda x, _y: x[:, [2, 0]], 0),
    "narrow": (lambda x, _y: x.narrow(1, 0, 2), 0),
    "transpose": (lambda x, _y: x.T.reshape(-1), 0),
    "linear": (lambda x, y: torch.nn.functional.linear(x, y, y[:, 0]), STEP),
}


def fix(x: Any) -> Any:
    return x.fix_precision(base=2, precision_fractional=8)


@pytest.mark.parametrize("name", REAL)
def test_real_numbers_are_computed_with_fixed_precision(share: Share, name: str) -> None:
    operation, error = REAL[name]

    found = operation(share(fix(P)), share(fix(Q)))

    assert torch.allclose(found.get().float_precision(), operation(P, Q), rtol=0, atol=error)


def test_a_public_tensor_of_real_numbers_may_be_an_operand(share: Share) -> None:
    x = share(fix(P))

    assert torch.allclose((x * Q).get().float_precision(), P * Q, rtol=0, atol=STEP)
    assert torch.allclose((share(fix(P)) / (Q + 10)).get().float_precision(), P / (Q + 10), rtol=0, atol=0.05)
    assert torch.allclose((Q.T @ share(fix(P))).get().float_precision(), Q.T @ P, rtol=0, atol=STEP)
    assert torch.equal((Q - share(fix(P))).get().float_precision(), Q - P)


def test_shared_real_numbers_must_be_fetched_before_they_are_decoded(share: Share) -> None:
    with pytest.raises(PrecisionError, match="cannot convert a shared number"):
        share(fix(P)).float_precision()


def test_arrays_of_numpy_are_shared_too() -> None:
    with load_backend("numpy")(np) as arrays, ExitStack() as stack:
        workers = make_workers(arrays, stack, serialize=False)
        a, b = np.arange(6).reshape(2, 3), np.arange(6).reshape(3, 2) - 2
        parties: dict[str, Any] = {"crypto_provider": workers["carol"], "protocol": "authenticated"}
        x, y = (arrays.array(v).share(workers["bob"], workers["alice"], **parties) for v in (a, b))

        assert ((x @ y).sum(axis=0).get() == (a @ b).sum(axis=0)).all()
        assert ((x.T * y + 1)[1:, ::-1].get() == (a.T * b + 1)[1:, ::-1]).all()


# --- who sees what


def test_only_the_client_learns_where_the_provider_keeps_the_mask(holders: list[Any], workers: dict[str, Any]) -> None:
    hook = holders[0].hook
    group = find_group(hook.local_worker, holders, workers["carol"], hook.attributes)

    (masks,) = group.run(auth_random, shape=(3,))

    own = masks.pop("carol")
    assert own.id_at_location not in {pointer.id_at_location for pointer in masks.values()}
    assert own.get().shape == (3,)


def test_the_provider_keeps_nothing(share: Share, workers: dict[str, Any]) -> None:
    x = share(X)
    y = x * x + share(Y)

    assert len(workers["carol"].object_store) == 0
    assert torch.equal(y.get(), X * X + Y)


def test_every_party_records_that_a_value_was_opened(share: Share, holders: list[Any]) -> None:
    share(X).get(reason="table 1")

    for worker in holders:
        assert [entry.reason for entry in worker.ledger][-2:] == ["opened at all parties", "table 1"]


def test_a_party_that_refuses_keeps_the_value_secret_and_is_not_accused(share: Share, holders: list[Any]) -> None:
    x, refused = share(X), holders[-1]
    refused.trust(*NAMES)
    refused.policy = "nothing"

    with pytest.raises(GetNotPermittedError, match="this worker lets nothing leave"):
        x.get()

    refused.policy = "unless_private"
    y = share(Y)
    assert torch.equal((x * y).get(), X * Y)
    assert torch.equal(x.get(), X)


# --- cheating


def change_share(value: Any, cheater: Any, row: int = 0) -> None:
    """Let a worker change what it stores."""
    pointer = value.child.child[cheater.id]
    cheater.object_store.entry(pointer.id_at_location).value[row] += 1


def change_messages(cheater: Any) -> None:
    """Let a worker change what it sends to other parties."""

    def alter(post: Any) -> Any:
        def send(rank: int, number: int, payload: Any) -> None:
            if rank != PROVIDER and type(payload) is tuple:
                payload = (payload[0] + 1, *payload[1:])
            post(rank, number, payload)

        return send

    for channels in cheater.part(Channels)._channels.values():
        for channel in channels.values():
            channel._post = alter(channel._post)


NEXT: dict[str, Callable[[Any, Any], Any]] = {
    "get": lambda x, _y: x.get(),
    "get a sum": lambda x, y: (x.sum(0) + 3 * y[0] - 1).get(),
    "multiply": lambda x, y: x * y,
    "multiply matrices": lambda x, y: y @ x.T,
}


@pytest.mark.parametrize("name", NEXT)
@pytest.mark.parametrize("place", [0, -1])
def test_a_worker_that_changes_its_share_is_named(share: Share, holders: list[Any], name: str, place: int) -> None:
    x, y, cheater = share(X), share(Y), holders[place]
    change_share(x, cheater)

    with pytest.raises(CheatingError, match=f"worker '{cheater.id}' sent values that fail authentication"):
        NEXT[name](x, y)


@pytest.mark.parametrize("name", NEXT)
@pytest.mark.parametrize("place", [0, -1])
def test_a_worker_that_changes_its_messages_is_named(share: Share, holders: list[Any], name: str, place: int) -> None:
    x, y, cheater = share(X), share(Y), holders[place]
    change_messages(cheater)

    with pytest.raises(CheatingError, match=f"worker '{cheater.id}' sent values that fail authentication"):
        NEXT[name](x, y)


def test_a_change_before_a_division_is_found_too(share: Share, holders: list[Any]) -> None:
    x = share(fix(P))
    change_share(x.child, holders[0])

    with pytest.raises(CheatingError, match="worker 'bob'"):
        x / 3


def test_a_worker_that_returns_something_else_than_was_opened_is_noticed(share: Share, holders: list[Any]) -> None:
    x = share(torch.tensor([1, 2, 3]))

    def lie(verb: str, _stored: Any, _peer: Any, value: Any) -> None:
        if verb == "read" and value.ndim == 1:
            value[0] = 99

    holders[0].policy = lie

    with pytest.raises(CheatingError, match="cannot get the value: the workers bob, alice.* returned different ones"):
        x.get()


def test_after_cheating_values_can_be_shared_again_but_old_ones_cannot_be_used(
    share: Share, holders: list[Any]
) -> None:
    x, y = share(X), share(Y)
    change_share(x, holders[0])
    with pytest.raises(CheatingError):
        x.get()

    for use in (x.get, y.get, lambda: y * y):
        with pytest.raises(ProtocolError, match="cannot use these authenticated shares"):
            use()
    assert torch.equal(share(X).get(), X)


# --- bad input

REFUSED: dict[str, Callable[[Any, Any], Any]] = {
    "compare": lambda x, y: x < y,
    "compare with a number": lambda x, _y: x > 0,
    "equal": lambda x, y: x == y,
    "relu": lambda x, _y: torch.relu(x),
    "max": lambda x, _y: x.max(),
    "abs": lambda x, _y: x.abs(),
    "divide": lambda x, y: x / y,
    "negative power": lambda x, _y: x**-1,
    "in place": lambda x, y: x.add_(y),
    "assign": lambda x, _y: x.__setitem__(0, 1),
    "fill": lambda x, _y: x.zero_(),
    "lower triangle": lambda x, _y: torch.tril(x),
    "concatenate": lambda x, y: torch.cat([x, y]),
    "concatenate with a public tensor": lambda x, _y: torch.cat([x, torch.ones_like(X)]),
    "item": lambda x, _y: x[0, 0].item(),
}


@pytest.mark.parametrize("name", REFUSED)
def test_operations_without_a_rule_are_refused_and_the_values_stay(share: Share, name: str) -> None:
    x, y = share(X), share(Y)

    with pytest.raises(OperationNotAllowedError):
        REFUSED[name](x, y)

    assert torch.equal((x * y).get(), X * Y)


REAL_REFUSED: dict[str, Callable[[Any, Any], Any]] = {
    **{name: REFUSED[name] for name in REFUSED if name != "item"},
    "exp": lambda x, _y: x.exp(),
    "sigmoid": lambda x, _y: x.sigmoid(),
    "softmax": lambda x, _y: torch.softmax(x, 0),
    "argmax": lambda x, _y: x.argmax(),
    "sign": lambda x, _y: x.sign(),
    "sqrt": lambda x, _y: x.sqrt(),
    "clamp": lambda x, _y: x.clamp(0, 1),
    "max_pool2d": lambda x, _y: torch.nn.functional.max_pool2d(x.reshape(1, 1, 2, 3), 2),
}


@pytest.mark.parametrize("name", REAL_REFUSED)
def test_operations_on_real_numbers_without_a_rule_are_refused_and_the_values_stay(share: Share, name: str) -> None:
    x, y = share(fix(P)), share(fix(Q))

    with pytest.raises((OperationNotAllowedError, ProtocolError), match="cannot (compute this on authenticated|run)"):
        REAL_REFUSED[name](x, y)

    assert torch.equal((x + y).get().float_precision(), P + Q)


@pytest.mark.parametrize("value", [torch.tensor([1 << 31]), torch.tensor([0, -(1 << 40)])])
def test_integers_of_more_than_32_bits_are_refused(share: Share, value: Any) -> None:
    x = share(X)

    for use in (lambda: share(value), lambda: x * value, lambda: x + value, lambda: x * (1 << 31)):
        with pytest.raises(ProtocolError, match=r"cannot use integers of 2,147,483,648 or more .* values have 32 bits"):
            use()
    with pytest.raises(ProtocolError, match=r"products that are divided by a scale must be smaller than 2\^30"):
        share(fix(torch.tensor([1e8])))

    assert torch.equal(x.get(), X)


def test_other_types_of_numbers_are_refused(share: Share) -> None:
    x = share(X)

    with pytest.raises(ProtocolError, match="with float32 numbers: expected int64"):
        share(torch.tensor([1.5]))
    with pytest.raises(ProtocolError, match="with int32 numbers: expected int64"):
        share(torch.tensor([1.5]).fix_precision(field="int"))
    with pytest.raises(ProtocolError, match="with float numbers: expected int64"):
        x * 0.5
    with pytest.raises(ProtocolError, match="with float32 numbers: expected int64"):
        x + torch.tensor(0.5)
    assert torch.equal(x.get(), X)


def test_shapes_that_do_not_fit_are_refused_and_the_values_stay(share: Share) -> None:
    x, y = share(X), share(torch.arange(5))

    for use in (lambda: x * y, lambda: x + y, lambda: x + torch.arange(5), lambda: x @ X, lambda: x @ y):
        with pytest.raises((ValueError, RuntimeError)):
            use()

    assert torch.equal((x * x).get(), X * X)


def test_values_of_other_groups_and_other_protocols_are_refused(share: Share, workers: dict[str, Any]) -> None:
    x, bob, alice, dora, carol = share(X), *[workers[name] for name in ("bob", "alice", "dora", "carol")]
    other = Y.share(alice, dora, crypto_provider=carol, protocol="authenticated")

    with pytest.raises(MixedLayersError, match="cannot compute on values shared among"):
        x + other
    with pytest.raises(MixedLayersError, match="cannot compute on values shared among"):
        x * other
    with pytest.raises(MixedLayersError):
        x + Y.share(bob, alice, crypto_provider=carol)
    with pytest.raises(ProtocolError, match="cannot share with the protocol 'tagged'"):
        X.share(bob, alice, crypto_provider=carol, protocol="tagged")
    with pytest.raises(ProtocolError, match="cannot share among 1 workers"):
        X.share(bob, crypto_provider=carol, protocol="authenticated")
    with pytest.raises(ProtocolError, match="cannot share what a pointer points to with protocol='authenticated'"):
        X.send(bob).share(bob, alice, crypto_provider=carol, protocol="authenticated")
    with pytest.raises(ProtocolError, match="shared already"):
        share(x)


# --- mistakes that are not cheating


def refuse_to_open(x: Any, worker: Any) -> None:
    worker.trust(*NAMES)
    worker.policy = "nothing"
    try:
        x.get()
    finally:
        worker.policy = "unless_private"


def exceed_a_quota(x: Any, worker: Any) -> None:
    worker.guard = QuotaGuard(worker, {"default": Allowance(bytes=100)})
    try:
        (x * x).get()
    finally:
        worker.guard = None


def lose_a_share(x: Any, worker: Any) -> None:
    worker.object_store.remove(x.child.child[worker.id].id_at_location, "for the test")
    (x * x).get()


def fail_at_a_party(_x: Any, worker: Any) -> None:
    torch.ones(2, 2).send(worker).reshape(3).get()


def divide_by_zero(x: Any, _worker: Any) -> None:
    x / 0


def read_a_value(x: Any, _worker: Any) -> None:
    bool(x[0, 0])


MISTAKES = [refuse_to_open, exceed_a_quota, lose_a_share, fail_at_a_party, divide_by_zero, read_a_value]


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("place", [0, -1])
def test_a_mistake_leaves_other_values_usable(
    share: Share, holders: list[Any], mistake: Callable[[Any, Any], None], place: int
) -> None:
    x, y, z = share(X), share(Y), share(X)

    with pytest.raises(Exception, match="cannot|shape|zero"):
        mistake(z, holders[place])

    assert torch.equal((x * y + 1).get(), X * Y + 1)
    assert torch.equal((share(Y) - x).get(), Y - X)


def test_a_party_that_cheats_is_named_after_a_mistake_too(share: Share, holders: list[Any]) -> None:
    x, y = share(X), share(Y)
    with pytest.raises(GetNotPermittedError):
        refuse_to_open(y, holders[-1])
    change_share(x, holders[0])

    with pytest.raises(CheatingError, match="worker 'bob'"):
        x.get()


@pytest.mark.parametrize("who", ["bob", "carol"])
def test_values_cannot_be_used_after_a_worker_has_lost_its_keys(
    share: Share, workers: dict[str, Any], who: str
) -> None:
    x, y = share(X), share(Y)
    workers[who].part(Channels).forget(workers[who].hook.local_worker.id)

    with pytest.raises(ProtocolError, match="cannot find channel"):
        (x * y).get()
    with pytest.raises(ProtocolError, match="a worker has lost its keys, and the parties have new ones") as error:
        x.get()
    assert type(error.value) is ProtocolError
    assert torch.equal(share(X).get(), X)


# --- on the network; last, because its workers have the same names


@pytest.mark.slow
def test_parties_in_processes_of_their_own_compute_and_name_the_one_that_cheats(parties: Parties) -> None:
    bob, alice, dora, carol = (parties.connect(name) for name in NAMES)
    x, y = (v.share(bob, alice, dora, crypto_provider=carol, protocol="authenticated") for v in (X, Y))
    z = x * y + 1
    assert torch.equal((z @ y.T - X[0, 0]).sum(0).get(), ((X * Y + 1) @ Y.T - X[0, 0]).sum(0))

    lost = x.sum(0)
    pointer = lost.child.child["dora"]
    pointer.drop("for the test")
    pointer.gone = None
    dora.flush()
    with pytest.raises(Exception, match="cannot find object"):
        (lost * lost).get()
    assert torch.equal((z - y).get(), X * Y + 1 - Y)
    z = x * y
    z.child.child["alice"][0].add_(1)
    with pytest.raises(CheatingError, match="worker 'alice' sent values that fail authentication"):
        z.get()

    with pytest.raises(ProtocolError, match="cannot use these authenticated shares"):
        x.get()
    assert torch.equal(X.share(bob, dora, crypto_provider=carol, protocol="authenticated").get(), X)
