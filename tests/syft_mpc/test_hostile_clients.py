"""A client who may use a private value, but not read it, learns nothing about it, whatever messages it sends.

All workers are honest, and the owner of the value trusts them. The client reads everything that is not private: the
shares and results of the other party, and what the provider stores for it. It has a ticket for every worker, so it can
also send deposits in the name of another one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch, np = pytest.importorskip("torch"), pytest.importorskip("numpy")

from syft_core.exceptions import GetNotPermittedError, MixedLayersError  # noqa: E402
from syft_core.messages import Fetch  # noqa: E402
from syft_core.peer import Peer  # noqa: E402
from syft_core.workers.party.virtual import VirtualWorker  # noqa: E402
from syft_mpc.authenticated import auth_mul, auth_truncate  # noqa: E402
from syft_mpc.channel import Channels  # noqa: E402
from syft_mpc.errors import ProtocolError  # noqa: E402
from syft_mpc.group import Group, find_group  # noqa: E402
from syft_mpc.messages import Deposit, OpenChannel, RunProtocol  # noqa: E402
from syft_mpc.numpy.kernels import NumpyKernels  # noqa: E402
from syft_mpc.payloads import pack  # noqa: E402
from syft_mpc.protocol import Open, Rest, Role  # noqa: E402
from syft_mpc.securenn import private_compare  # noqa: E402
from syft_mpc.spdz import spdz_mul, spdz_mul_masked  # noqa: E402
from syft_mpc.torch.kernels import TorchKernels  # noqa: E402

from .test_attacks import deliver  # noqa: E402

ME, FORM = Peer("me"), ((3,), "int64")
SECRET = [52, 48, 7]


@pytest.fixture
def workers(hook: Any) -> Iterator[dict[str, VirtualWorker]]:
    names = ("bob", "alice", "carol")
    yield {name: VirtualWorker(hook, id=name, serialize=True) for name in names}
    for name in names:
        hook.local_worker.remove_worker_from_registry(name)


@pytest.fixture
def group(hook: Any, workers: Any) -> Group:
    return find_group(hook.local_worker, [workers["bob"], workers["alice"]], workers["carol"], hook.attributes)


@pytest.fixture
def secret(workers: Any) -> Any:
    """A private tensor of bob's owner, who trusts the other workers."""
    workers["bob"].load_data([torch.tensor(SECRET).private_tensor(["the board"]).tag("#secret")])
    workers["bob"].trust("alice", "carol")
    return workers["bob"].search("#secret")[0].child


class Client:
    """Starts protocols by hand, at each worker another one if it likes."""

    def __init__(self, workers: dict[str, VirtualWorker], group: Group) -> None:
        self.workers, self.group = workers, group

    def start(self, worker: str, name: str, args: tuple[Any, ...], id: int, count: int = 1, **options: Any) -> None:
        call = (self.group._channel, self.group._number + 1, name, args, options, id, count, False)
        deliver(self.workers[worker], RunProtocol(*call), ME)

    def pose(self, sender: str, receiver: str, *arrays: Any) -> None:
        """Send a deposit in the name of another worker."""
        payload = pack(TorchKernels(), arrays)
        deliver(
            self.workers[receiver], Deposit(self.group._channel, self.group._number + 1, payload), Peer(sender), (ME,)
        )

    def send(self, worker: str, values: Any) -> Any:
        return values.send(self.workers[worker]).child

    def fetch(self, worker: str, id: int) -> Any:
        return deliver(self.workers[worker], Fetch(id), ME)


@pytest.fixture
def client(workers: Any, group: Group) -> Client:
    return Client(workers, group)


def test_the_provider_reveals_no_mask_in_another_protocol(client: Client, secret: Any) -> None:
    """Bob and alice open bob's secret under a mask; at the provider, the same run tells the client random numbers."""
    zeros = client.send("alice", torch.zeros(3).long())
    client.start("carol", "auth_random", (), 501, shape=(3,))
    client.start("bob", "spdz_mask", (secret,), 502)
    client.start("alice", "spdz_mask", (zeros,), 503)

    channel = client.workers["alice"].part(Channels).find(ME, client.group._channel)
    opened, mask = channel._masks[client.group._number + 1].opened, client.fetch("carol", 501)
    assert (opened + mask.numpy()).tolist() != SECRET
    assert client.fetch("alice", 503).tolist() == [0]


def test_a_party_does_not_use_a_mask_that_it_received(client: Client, secret: Any) -> None:
    """The client chooses the mask under which bob inputs his secret, and would read what he sends at alice."""
    proof = torch.zeros(16, dtype=torch.uint8)
    client.pose("carol", "bob", torch.zeros(1, 3).long(), proof)
    client.pose("carol", "bob", torch.zeros(3).long(), proof)

    with pytest.raises(ProtocolError, match="what came in the name of party 'carol' does not belong to this run"):
        client.start("bob", "auth_input", (secret,), 501, owner=0)

    channel = client.workers["alice"].part(Channels).find(ME, client.group._channel)
    assert not channel._inboxes


@pytest.mark.parametrize("small", [0, 1], ids=["x", "y"])
@pytest.mark.parametrize("name", ["spdz_mul", "snn_select_share"])
def test_a_number_is_not_sent_under_a_mask_of_a_smaller_ring(
    client: Client, secret: Any, name: str, small: int
) -> None:
    public = client.send("bob", torch.ones(3, dtype=torch.int32))
    operands = (public, secret) if small == 0 else (secret, public)

    with pytest.raises(ProtocolError, match="on shares of different dtypes"):
        client.start("bob", name, operands if name == "spdz_mul" else (*operands, operands[1]), 501)


def test_shared_values_of_different_rings_are_not_combined(workers: Any) -> None:
    parties = {"crypto_provider": workers["carol"]}
    x = torch.arange(3, dtype=torch.int32).share(workers["bob"], workers["alice"], **parties)
    y = torch.arange(3).share(workers["bob"], workers["alice"], **parties)

    for combine in (torch.mul, torch.add, torch.sub, torch.maximum, torch.lt):
        for one, other in ((x, y), (y, x)):
            with pytest.raises(MixedLayersError, match="cannot compute on shared int(32|64) and int(32|64) numbers"):
                combine(one, other)


@pytest.mark.parametrize("divisor", [1, 2])
def test_every_element_of_a_product_has_a_mask_of_its_own(divisor: int) -> None:
    """The client claims that the gradient of four filters has one element."""
    images, gradients = np.ones((1, 4, 1, 1), "int64"), np.ones((1, 1, 1, 1), "int64")
    options = {"stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "groups": 1, "shape": (1, 1, 1, 1)}
    steps = spdz_mul(Role(1, 2, NumpyKernels()), images, gradients, op="filters", divisor=divisor, **options)
    draw = next(steps)
    opening = steps.send([np.ones(*spec) for spec in draw.correlation.forms[0]])
    assert isinstance(opening, Open)

    def finish() -> None:
        if isinstance(steps.send(list(opening.shares)), Rest):
            steps.send([np.ones((1, 1, 1, 1), "int64")])

    with pytest.raises(ValueError, match="cannot multiply: the result has the shape|cannot reshape array"):
        finish()


def test_every_element_is_compared_under_masks_of_its_own() -> None:
    bits, numbers = np.zeros((2, 64), "uint8"), np.zeros(2, "int64")
    for x, r, beta in ((bits[0], numbers, numbers), (bits, numbers[:1], numbers), (bits, numbers, numbers[0])):
        steps = private_compare(Role(0, 2, NumpyKernels()), x, r, beta)
        with pytest.raises(ValueError, match="expected one number and one random bit for each"):
            next(steps)


def test_whether_a_value_equals_that_of_a_kept_mask_is_not_revealed(client: Client, group: Group, secret: Any) -> None:
    """The client guesses bob's share."""
    for guess in (SECRET, [1, 2, 3]):
        group.renew()
        kept = group.mask({"bob": secret, "alice": client.send("alice", torch.zeros(3).long())})
        x = {name: client.send(name, torch.ones(3).long()) for name in ("bob", "alice")}
        y = {"bob": client.send("bob", torch.tensor(guess)), "alice": client.send("alice", torch.zeros(3).long())}
        (product,) = group.run(spdz_mul_masked, x, y, mask=kept.number)
        with pytest.raises(GetNotPermittedError, match="it is private"):
            product["bob"].get()


@pytest.mark.parametrize("guess", [SECRET, [1, 2, 3]], ids=["right", "wrong"])
@pytest.mark.parametrize("protocol", [auth_mul, auth_truncate])
def test_whether_a_private_value_is_a_valid_tag_is_not_revealed(
    client: Client, group: Group, secret: Any, protocol: Any, guess: list[int]
) -> None:
    """Bob's secret is his tag for the share 0, and alice's key is what the client guesses."""
    zeros, bob, alice = torch.zeros(3).long(), client.workers["bob"], client.workers["alice"]
    blank = zeros.send(bob)
    x = {
        "bob": torch.stack([blank, bob.search("#secret")[0], blank]).child,
        "alice": torch.stack([zeros, zeros, torch.tensor(guess)]).send(alice).child,
    }
    operands, options = ((x, x), {}) if protocol is auth_mul else ((x,), {"divisor": 2})

    with pytest.raises(ProtocolError, match="cannot run 'auth_.*' on private values"):
        group.run(protocol, *operands, **options)


# --- what a client can do that works together with a party: see authenticated.md

ZEROS = torch.zeros(3, 3).long()


def read_key(client: Client) -> Any:
    """Return the key of alice: the client adds 1 to zeros, and fetches what alice has instead of a share."""
    client.start("alice", "auth_add_public", tuple(client.send("alice", x) for x in (ZEROS, ZEROS[0] + 1)), 801)
    client.group._number += 1
    return -client.fetch("alice", 801)[2, 0]


def test_a_client_and_a_party_together_can_forge_values_of_this_client(client: Client, group: Group) -> None:
    """The client is trusted: it reads a key of alice, and bob changes his share and his tag accordingly."""
    x = torch.tensor([5, 6, 7]).share(
        client.workers["bob"],
        client.workers["alice"],
        crypto_provider=client.workers["carol"],
        protocol="authenticated",
    )
    key = read_key(client)
    stored = client.workers["bob"].object_store.entry(x.child.child["bob"].id_at_location).value
    stored[0] += 1
    stored[1] += key

    assert x.get().tolist() == [6, 7, 8]


def test_the_keys_of_one_client_do_not_open_or_forge_values_of_another(client: Client, group: Group) -> None:
    eve, me = Peer("laptop@eve", "eve"), group.client.peer
    for name, rank in (("alice", 1), ("bob", 0), ("carol", -1)):
        deliver(client.workers[name], OpenChannel(77, "torch", ("bob", "alice"), "carol", rank, 77), eve)

    keys = client.workers["alice"].part(Channels)._keys
    assert not set(keys[eve][77].seeds.values()) & set(keys[me][group.keys].seeds.values())
