"""Whoever sends messages by hand learns no private value from a protocol, and disturbs no other client."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syft_core.exceptions import GetNotPermittedError, IdNotUniqueError, ObjectNotFoundError, TicketError  # noqa: E402
from syft_core.messages import Batch, Fetch, GetTicket, Run  # noqa: E402
from syft_core.network.address import Address  # noqa: E402
from syft_core.network.connection import Purpose  # noqa: E402
from syft_core.network.links import TicketLink  # noqa: E402
from syft_core.network.server import Server  # noqa: E402
from syft_core.peer import Peer  # noqa: E402
from syft_core.serde import Context, frames, from_frames  # noqa: E402
from syft_core.workers.addresses.tickets import Mandate  # noqa: E402
from syft_core.workers.party.virtual import VirtualWorker  # noqa: E402
from syft_mpc import channel as channel_module  # noqa: E402
from syft_mpc import limits, protocol  # noqa: E402
from syft_mpc.channel import SETUP, Channel, Channels  # noqa: E402
from syft_mpc.errors import CheatingError, ProtocolError  # noqa: E402
from syft_mpc.group import Group, find_group  # noqa: E402
from syft_mpc.messages import Deposit, OpenChannel, Prepare, RunProtocol  # noqa: E402
from syft_mpc.payloads import pack, split, unpack  # noqa: E402
from syft_mpc.protocol import PROVIDER, Open, Spec  # noqa: E402
from syft_mpc.spdz import Square, reconstruct, spdz_mul, zero  # noqa: E402
from syft_mpc.torch.kernels import TorchKernels  # noqa: E402
from syft_worker.allowances import Allowance  # noqa: E402
from syft_worker.errors import QuotaExceededError  # noqa: E402
from syft_worker.quotas import QuotaGuard  # noqa: E402
from tests.waiting import wait_for_end  # noqa: E402

from ..network.processes import authenticate  # noqa: E402
from . import groups  # noqa: E402

EVE, ANA = Peer("laptop@eve", "eve"), Peer("laptop@ana", "ana")
KERNELS = TorchKernels()


@pytest.fixture
def workers(hook: Any) -> Iterator[dict[str, VirtualWorker]]:
    """Two parties and a provider, by wire, so that every message is a frame."""
    names = ("bob", "alice", "carol")
    yield {name: VirtualWorker(hook, id=name, serialize=True) for name in names}
    hook.local_worker.user = None
    for name in names:
        hook.local_worker.remove_worker_from_registry(name)


@pytest.fixture
def group(hook: Any, workers: dict[str, VirtualWorker]) -> Group:
    return find_group(hook.local_worker, [workers["bob"], workers["alice"]], workers["carol"], hook.attributes)


def deliver(worker: VirtualWorker, command: Any, sender: Peer, behalf: tuple[Peer, ...] = ()) -> Any:
    """Send a message by hand, and return the reply; raise its failure."""
    context = Context(worker=worker.hook.local_worker, receiver=worker.id)
    sent = [bytes(frame) for frame in frames(Batch(1, (command,), True, behalf), context)]
    reply = from_frames(worker.deliver(sent, sender, delegates=lambda _peer: True), Context(worker=worker))
    if reply.failure is not None:
        raise reply.failure.error
    return reply.value


def channel_of(worker: VirtualWorker, group: Group) -> Channel:
    return worker.part(Channels).find(group.client.peer, group._channel)


def require_intact(hook: Any, workers: dict[str, VirtualWorker], group: Group) -> None:
    """Show that the group still computes, over the same channel."""
    before = group._channel
    x = torch.arange(3).share(workers["bob"], workers["alice"], crypto_provider=workers["carol"])
    assert torch.equal((x * x).get(), torch.arange(3) ** 2)
    assert group._channel == before
    assert all(channel_of(worker, group).held == 0 for worker in workers.values())


PAYLOAD = pack(KERNELS, (torch.zeros(3, dtype=torch.int64),))

# --- who may deposit


@pytest.mark.parametrize("behalf", [(), (Peer("me"),), (ANA,)], ids=["nobody", "the client", "somebody else"])
@pytest.mark.parametrize("sender", [EVE, Peer("bob@eve", "eve"), Peer("dora")], ids=str)
def test_a_stranger_cannot_deposit(hook: Any, workers: Any, group: Group, sender: Peer, behalf: Any) -> None:
    with pytest.raises(ProtocolError, match="cannot find channel|it is not a party of channel"):
        deliver(workers["alice"], Deposit(group._channel, 1, PAYLOAD), sender, behalf)

    require_intact(hook, workers, group)


def test_a_party_that_acts_for_another_client_cannot_deposit(hook: Any, workers: Any, group: Group) -> None:
    with pytest.raises(ProtocolError, match="cannot find channel"):
        deliver(workers["alice"], Deposit(group._channel, 1, PAYLOAD), Peer("bob"), (EVE,))

    require_intact(hook, workers, group)


def test_a_ticket_of_another_client_opens_no_channel(hook: Any, workers: Any, group: Group) -> None:
    alice = workers["alice"]
    ticket = deliver(alice, GetTicket("bob", (group._channel,)), EVE)
    mandate = Mandate(alice.tickets.redeem(ticket, "bob"))
    deposit = Deposit(group._channel, 1, PAYLOAD)

    refused = from_frames(alice.deliver_note(deposit.to_frames(), Peer("bob"), mandate), Context(worker=alice))
    assert "cannot find channel" in str(refused.failure.error)
    claimed = [bytes(frame) for frame in frames(Batch(1, (deposit,), True, (Peer("me"),)))]
    refused = from_frames(alice.deliver(claimed, Peer("bob"), mandate), Context(worker=alice))
    assert "cannot find channel" in str(refused.failure.error)
    require_intact(hook, workers, group)


def test_a_ticket_is_valid_for_one_channel(hook: Any, workers: Any, group: Group) -> None:
    alice = workers["alice"]
    mandate = Mandate(alice.tickets.redeem(deliver(alice, GetTicket("bob", (5,)), Peer("me")), "bob"))

    reply = alice.deliver_note(Deposit(group._channel, 1, PAYLOAD).to_frames(), Peer("bob"), mandate)

    assert isinstance(from_frames(reply, Context(worker=alice)).failure.error, TicketError)
    require_intact(hook, workers, group)


@pytest.mark.parametrize("sender", [Peer("me"), Peer("alice")], ids=str)
def test_neither_the_client_nor_the_worker_itself_deposits(hook: Any, workers: Any, group: Group, sender: Peer) -> None:
    for behalf in ((), (Peer("me"),)):
        with pytest.raises(ProtocolError, match="it is not a party|cannot find channel"):
            deliver(workers["alice"], Deposit(group._channel, 1, PAYLOAD), sender, behalf)

    require_intact(hook, workers, group)


def test_a_number_of_a_run_is_used_once(hook: Any, workers: Any, group: Group) -> None:
    require_intact(hook, workers, group)
    x = torch.arange(3).send(workers["bob"])
    number = group._number
    call = RunProtocol(group._channel, number, zero.__name__, (x.child,), {}, 999, 1, False)

    with pytest.raises(ProtocolError, match=f"cannot start run {number}: a later one was started already"):
        deliver(workers["bob"], call, Peer("me"))

    require_intact(hook, workers, group)


def test_only_a_worker_of_the_group_joins_it(workers: Any) -> None:
    bob = workers["bob"]

    for names, rank in ((("bob",), 0), (("bob", "bob"), 0), (("bob", "alice"), 7), (("alice", "carol"), 0)):
        with pytest.raises(ProtocolError, match="cannot open channel"):
            deliver(bob, OpenChannel(77, "torch", names, "dora", rank, 77), EVE)
    with pytest.raises(ProtocolError, match="cannot find channel 77"):
        deliver(bob, Prepare(77, 1, "relu", (((3,), "int64"),), {}, 1), EVE)


# --- what may be deposited


MALFORMED = [
    5,
    "text",
    [1],
    b"sixteen bytes !!",
    torch.zeros(3),
    (torch.zeros(3),),
    bytearray(b""),
    bytearray(b"\xff\xff\xff\xff"),
    bytearray(b"\x01\0\0\0\xc1"),
    bytearray(random.Random(0).randbytes(100)),
    bytearray(b"\x05\0\0\0\xdd\xff\xff\xff\xff" + bytes(7)),
    PAYLOAD[:-1],
    PAYLOAD + b"x",
]


@pytest.mark.parametrize("number", [SETUP, 4000], ids=["seed", "later run"])
@pytest.mark.parametrize("payload", [*MALFORMED, ValueError("no")], ids=lambda payload: repr(payload)[:20])
def test_a_malformed_deposit_is_refused_and_changes_nothing_else(
    hook: Any, workers: Any, group: Group, payload: Any, number: int
) -> None:
    with pytest.raises(Exception, match="cannot (read|accept|execute)"):
        deliver(workers["alice"], Deposit(group._channel, number, payload), Peer("bob"), (Peer("me"),))

    require_intact(hook, workers, group)


@pytest.mark.parametrize("payload", MALFORMED, ids=lambda payload: repr(payload)[:20])
def test_a_malformed_deposit_ends_the_run_that_waits_for_it_with_the_name_of_the_sender(
    hook: Any, workers: Any, group: Group, payload: Any
) -> None:
    alice, x = workers["alice"], torch.arange(3).send(workers["alice"])
    ended: list[Any] = []
    channel_of(alice, group).start(
        group._number + 1, reconstruct(channel_of(alice, group).party, x.get().numpy()), lambda *end: ended.append(end)
    )

    with pytest.raises(ProtocolError, match="cannot (read|accept)"):
        deliver(alice, Deposit(group._channel, group._number + 1, payload), Peer("bob"), (Peer("me"),))

    ((_, error),) = ended
    assert "what party 'bob' sent was refused" in str(error)


@pytest.mark.parametrize(
    "head",
    [("int64", (1 << 40,)), ("object", (1,)), ("int64", (-1,)), ("int64", 3), ("int64", (True,)), ((((("x",),),),),)],
    ids=str,
)
def test_an_array_is_not_larger_than_what_was_sent(head: Any) -> None:
    import msgpack  # noqa: PLC0415  # only here

    described = msgpack.packb((head,))
    data = bytearray(len(described).to_bytes(4, "little") + described + bytes(64))

    with pytest.raises(ProtocolError, match="cannot read a deposit: .* \\(malformed message\\)"):
        unpack(KERNELS, data)


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays: (arrays[0][:1], *arrays[1:]),
        lambda arrays: (arrays[0].astype("int32"), *arrays[1:]),
        lambda arrays: arrays[:-1],
        lambda arrays: (*arrays, *arrays),
        lambda arrays: (arrays,),
    ],
    ids=["shape", "dtype", "fewer", "more", "nested"],
)
@pytest.mark.parametrize("sender", [1, PROVIDER])
def test_arrays_of_another_form_end_the_run_with_the_name_of_the_sender(
    sender: int, change: Callable[[Any], Any]
) -> None:
    group = groups.Group(2, KERNELS)
    x = group.share(torch.arange(4).numpy())
    group.alter = lambda by, _to, arrays: (
        arrays if by != sender else change(arrays) if by != PROVIDER else (change(arrays[0]),)
    )

    with pytest.raises(ProtocolError, match="party '(party 1|provider)' sent arrays of another form"):
        group.run("spdz_mul", x, x)


def test_a_seed_is_accepted_once_and_only_if_it_has_the_right_length(hook: Any, workers: Any, group: Group) -> None:
    for seed in (bytes(16), bytes(5), bytes(1000)):
        with pytest.raises(ProtocolError, match="cannot accept a seed"):
            deliver(workers["alice"], Deposit(group._channel, SETUP, seed), Peer("bob"), (Peer("me"),))

    require_intact(hook, workers, group)


def test_nobody_chooses_a_seed_alone() -> None:
    sent: list[tuple[int, bytes]] = []
    alice = join_group(["bob", "alice"], "carol", 1, sent)

    alice.receive(PROVIDER, SETUP, b"chosen by a liar")

    # The other half goes to the address of the provider, not to whoever sent the first.
    ((rank, half),) = sent
    assert rank == PROVIDER
    assert half not in (b"chosen by a liar", alice._seeds[PROVIDER])
    with pytest.raises(ProtocolError, match="cannot accept a seed"):
        alice.receive(PROVIDER, SETUP, b"chosen by a liar")


def join_group(parties: list[str], provider: str, rank: int, sent: list[tuple[int, bytes]]) -> Channel:
    return Channel(parties, provider, rank, KERNELS, lambda to, _number, half: sent.append((to, half)))


@pytest.mark.parametrize(
    ("parties", "provider", "rank", "agree"),
    [
        (["bob", "alice"], "carol", 1, True),
        (["bob", "alice"], "dora", 1, False),
        (["dora", "alice"], "carol", 1, False),
        (["alice", "bob"], "carol", 0, False),
        (["bob", "alice", "dora"], "carol", 1, False),
    ],
    ids=str,
)
def test_workers_to_which_a_client_describes_another_group_have_no_seed_in_common(
    parties: list[str], provider: str, rank: int, agree: bool
) -> None:
    sent: list[tuple[int, bytes]] = []
    carol, alice = join_group(["bob", "alice"], "carol", PROVIDER, sent), join_group(parties, provider, rank, sent)
    with pytest.raises(ProtocolError, match="has sent nothing"):  # Bob does not exist.
        carol.share_seeds()
    alice.receive(PROVIDER, SETUP, dict(sent)[1])
    carol.receive(1, SETUP, dict(sent)[PROVIDER])

    assert (alice._seeds[PROVIDER] == carol._seeds[1]) == agree


def test_what_waits_for_runs_is_bounded(hook: Any, workers: Any, group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_HELD", 10_000)
    alice, large = workers["alice"], pack(KERNELS, (torch.zeros(500, dtype=torch.int64),))
    deliver(alice, Deposit(group._channel, group._number + 2, large), Peer("bob"), (Peer("me"),))

    def flood(payload: Any, times: int) -> None:
        for number in range(times):
            deliver(alice, Deposit(group._channel, group._number + 3 + number % 9, payload), Peer("bob"), (Peer("me"),))

    with pytest.raises(ProtocolError, match=r"cannot accept a deposit of 4,0\d\d bytes: .* the limit is 10,000"):
        flood(large, 6)
    with pytest.raises(ProtocolError, match="it is too far ahead"):
        deliver(alice, Deposit(group._channel, 10**9, None), Peer("bob"), (Peer("me"),))
    with pytest.raises(ProtocolError, match="the limit is 10,000"):
        flood(pack(KERNELS, ()), 100)


def test_a_deposit_may_arrive_in_pieces(hook: Any, workers: Any, group: Group) -> None:
    alice, number = workers["alice"], group._number + 1
    buffer = pack(KERNELS, (torch.arange(40),))
    pieces = list(split(buffer, 100))
    assert [left for _, left in pieces] == [len(buffer) - 100, len(buffer) - 200, len(buffer) - 300, 0]

    for piece, left in pieces:
        deliver(alice, Deposit(group._channel, number, piece, left), Peer("bob"), (Peer("me"),))

    channel = channel_of(alice, group)
    assert channel.joining == 0
    (numbers,) = channel.take(number, 0)
    assert numbers.tolist() == list(range(40))
    require_intact(hook, workers, group)


@pytest.mark.parametrize(
    "deposits",
    [
        [(b"12345678", 8), (b"12345678", 8)],
        [(b"12345678", 8), (b"1234", 0)],
        [(b"12345678", -8)],
        [(b"", 8)],
        [(b"12345678", 8), (b"", 8)],
    ],
    ids=["repeated", "short", "negative", "empty", "nothing new"],
)
def test_pieces_that_do_not_fit_together_are_refused(
    hook: Any, workers: Any, group: Group, deposits: list[tuple[bytes, int]]
) -> None:
    *first, last = [Deposit(group._channel, group._number + 20, bytearray(piece), left) for piece, left in deposits]
    for deposit in first:
        deliver(workers["alice"], deposit, Peer("bob"), (Peer("me"),))

    with pytest.raises(ProtocolError, match="its pieces do not fit together"):
        deliver(workers["alice"], last, Peer("bob"), (Peer("me"),))

    require_intact(hook, workers, group)


def test_pieces_that_wait_for_the_rest_are_bounded_and_forgotten(
    hook: Any, workers: Any, group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_HELD", 10_000)
    alice, piece = workers["alice"], bytearray(1000)

    def send(number: int, left: int) -> None:
        deliver(alice, Deposit(group._channel, number, piece, left), Peer("bob"), (Peer("me"),))

    with pytest.raises(ProtocolError, match="cannot accept a deposit of 1,000,001,000 bytes"):
        send(group._number + 20, 10**9)
    for place in range(8):
        send(group._number + 1 + place, 1000)
    with pytest.raises(ProtocolError, match="the limit is 10,000"):
        send(group._number + 20, 1001)
    with pytest.raises(ProtocolError, match="it is too far ahead"):
        send(10**9, 1)
    assert channel_of(alice, group).joining == 8000

    x = torch.arange(3).share(workers["bob"], alice, crypto_provider=workers["carol"])
    for _ in range(9):
        x.refresh()

    assert channel_of(alice, group).joining == 0
    send(group._number, 1000)  # Of a run that has ended.
    assert channel_of(alice, group).joining == 0


def test_the_quota_of_a_user_bounds_what_waits_too(workers: Any, group: Group) -> None:
    alice = workers["alice"]
    alice.guard = QuotaGuard(alice, {"default": Allowance(bytes=1000)})
    large = pack(KERNELS, (torch.zeros(500, dtype=torch.int64),))

    with pytest.raises(ProtocolError, match="the limit is 1,000"):
        deliver(alice, Deposit(group._channel, 1, large), Peer("bob"), (Peer("me"),))


def test_who_claims_to_act_for_a_client_does_not_close_its_channels(
    hook: Any, workers: dict[str, VirtualWorker], group: Group
) -> None:
    require_intact(hook, workers, group)

    for number in range(channel_module.MAX_CHANNELS + 1):
        opening = OpenChannel(number, "torch", ("bob", "alice"), "carol", 0, number)
        with pytest.raises(TicketError, match="only the client itself may do that"):
            deliver(workers["bob"], opening, EVE, (group.client.peer,))
    for message in (
        RunProtocol(group._channel, 10**6, "zero", (), {}, 1, 0, False),
        Prepare(group._channel, 10**6, "zero", (), {}, 1),
    ):
        with pytest.raises(TicketError, match="only the client itself may do that"):
            deliver(workers["bob"], message, EVE, (group.client.peer,))

    require_intact(hook, workers, group)


def test_keys_are_used_only_by_their_group_and_its_client(hook: Any, workers: Any, group: Group) -> None:
    bob, me = workers["bob"], hook.local_worker.peer
    for sender, names, provider, rank in (
        (EVE, ("bob", "alice"), "carol", 0),
        (me, ("bob", "alice"), "dora", 0),
        (me, ("bob", "dora"), "carol", 0),
        (me, ("alice", "bob"), "carol", 1),
    ):
        assert deliver(bob, OpenChannel(78, "torch", names, provider, rank, group.keys), sender) is False
    assert deliver(bob, OpenChannel(78, "torch", ("bob", "alice"), "carol", 0, 79), me) is False
    require_intact(hook, workers, group)


def test_keys_are_not_used_again_after_another_party_cheated(hook: Any, workers: Any, group: Group) -> None:
    bob, alice, me = workers["bob"], workers["alice"], hook.local_worker.peer
    x, y = (
        torch.arange(3).share(bob, alice, crypto_provider=workers["carol"], protocol="authenticated") for _ in range(2)
    )
    alice.object_store.entry(x.child.child["alice"].id_at_location).value[0] += 1
    keys = group.keys
    with pytest.raises(CheatingError, match="worker 'alice'"):
        x.get()

    assert deliver(bob, OpenChannel(80, "torch", ("bob", "alice"), "carol", 0, keys), me) is False
    with pytest.raises(ProtocolError, match="cannot use these authenticated shares"):
        y.get()
    assert group.keys != keys


def test_the_number_of_keys_of_a_client_is_bounded(hook: Any, workers: Any, group: Group) -> None:
    channels = workers["bob"].part(Channels)
    for id in range(channel_module.MAX_CHANNELS + 5):
        channels.keep_keys(EVE, id, channel_module.TagKeys((("bob", "alice"), "carol", 0), {}))

    assert len(channels._keys[EVE]) == channel_module.MAX_CHANNELS
    channels.forget(EVE.id)
    assert EVE not in channels._keys
    require_intact(hook, workers, group)


def test_a_client_with_many_channels_loses_its_own(hook: Any, workers: Any, group: Group) -> None:
    bob = workers["bob"]
    for id in range(channel_module.MAX_CHANNELS + 5):
        with pytest.raises(ProtocolError):  # The others do not answer.
            deliver(bob, OpenChannel(id, "torch", ("bob", "alice"), "carol", 0, id), EVE)

    assert len(bob.part(Channels)._channels[EVE]) == channel_module.MAX_CHANNELS
    require_intact(hook, workers, group)
    bob.forget_client(EVE)
    assert EVE not in bob.part(Channels)._channels


def test_runs_that_nobody_else_joins_are_bounded(hook: Any, workers: Any, group: Group) -> None:
    bob, x = workers["bob"], torch.arange(1000).send(workers["bob"])
    group._state = None  # The client uses another channel afterwards.

    def start() -> None:
        group._number += 1
        call = (group._channel, group._number, "spdz_mul", (x.child, x.child), {}, 10**6 + group._number, 1, False)
        hook.local_worker.location_of(bob).ask(RunProtocol(*call))

    for _ in range(channel_module.MAX_RUNS):
        start()
    with pytest.raises(ProtocolError, match="cannot start a run: 8 runs of this channel wait for the other parties"):
        start()

    y = torch.arange(3).share(bob, workers["alice"], crypto_provider=workers["carol"])
    assert torch.equal((y * y).get(), torch.arange(3) ** 2)


def test_what_is_prepared_is_bounded(hook: Any, workers: Any, group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel_module, "MAX_STOCK", 10)
    forms = (((0,), "int64"),) * 2

    group.prepare("spdz_mul", forms, {}, 10)
    with pytest.raises(ProtocolError, match="cannot prepare more correlations: 10 are prepared and not used"):
        group.prepare("spdz_mul", forms, {}, 1)

    y = torch.arange(3).share(workers["bob"], workers["alice"], crypto_provider=workers["carol"])
    assert torch.equal((y * y).get(), torch.arange(3) ** 2)


def test_empty_arrays_and_bytes_weigh_something_while_they_wait() -> None:
    empty = torch.zeros(0, dtype=torch.int64)

    assert channel_module.weigh((empty,) * 100) > 100 * channel_module.weigh(())
    assert channel_module.weigh((bytes(5000),)) > 5000


def test_what_the_provider_sends_in_advance_is_bounded(
    workers: Any, group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_HELD", 100_000)

    def send(place: int) -> None:
        payload = pack(KERNELS, (1000, place, (torch.zeros(7000, dtype=torch.int64),)))
        deliver(workers["bob"], Deposit(group._channel, SETUP, payload), Peer("carol"), (Peer("me"),))

    send(0)
    with pytest.raises(ProtocolError, match="the limit is 100,000"):
        send(1)


@pytest.mark.parametrize("count", [0, -1, 5, 1 << 40])
def test_results_never_replace_objects(hook: Any, workers: Any, group: Group, count: int) -> None:
    bob = workers["bob"]
    bob.load_data([torch.tensor([4.0, 2.0]).tag("#owned")])
    id, x = bob.search("#owned")[0].id_at_location, torch.arange(3).send(bob)
    group._number += 1
    call = (group._channel, group._number, zero.__name__)
    hook.local_worker.location_of(workers["carol"]).ask(RunProtocol(*call, (((3,), "int64"),), {}, 1, 0, False))

    with pytest.raises(IdNotUniqueError):
        hook.local_worker.location_of(bob).ask(RunProtocol(*call, (x.child,), {}, id, count, False))

    assert bob.get_obj(id).tolist() == [4.0, 2.0]


@pytest.mark.parametrize("name", ["share", "sum"])
def test_a_single_share_of_a_private_value_is_not_fetched(workers: Any, group: Group, name: str) -> None:
    bob, alice, carol = workers["bob"], workers["alice"], workers["carol"]
    bob.load_data([torch.tensor([52, 48]).private_tensor([]).tag("#ages")])
    bob.trust(alice, carol)
    ages = bob.search("#ages")[0].share(bob, alice, crypto_provider=carol)
    value = ages if name == "share" else (ages + ages * ages).sum()

    with pytest.raises(GetNotPermittedError, match="it is private"):
        value.child.child["bob"].get()
    with pytest.raises(GetNotPermittedError, match="it is private"):
        value.reconstruct()
    value.child.child["alice"].get()  # A random number.


def test_a_party_does_not_know_the_ids_of_the_shares_of_others(workers: Any, group: Group) -> None:
    """The owner of bob, who is a user of alice too, looks there under the ids of all objects at bob."""
    x = torch.arange(3).share(workers["bob"], workers["alice"], crypto_provider=workers["carol"])
    results = [x * x, torch.relu(x), x.refresh(), x + x]
    ids = list(workers["bob"].object_store)

    assert len(ids) > len(results)
    for id in ids:
        with pytest.raises(ObjectNotFoundError):
            deliver(workers["alice"], Fetch(id), EVE)


# --- what may be computed


@pytest.mark.parametrize(
    "options",
    [
        {"divisor": 1.5},
        {"divisor": 1 << 70},
        {"divisor": [1]},
        {"op": (("a",),)},
        {"stride": (1,) * 100},
        {"stride": (True, True)},
        {"groups": True},
    ],
    ids=str,
)
def test_options_of_a_wrong_type_are_refused(hook: Any, workers: Any, group: Group, options: Any) -> None:
    for worker in workers.values():
        args = (((3,), "int64"),) * 2
        call = RunProtocol(group._channel, group._number + 1, spdz_mul.__name__, args, options, 1, 1, False)
        with pytest.raises(Exception, match="cannot (run 'spdz_mul': its option|read a RunProtocol|read)"):
            deliver(worker, call, Peer("me"))


@pytest.mark.parametrize("options", [{"divisor": 1.5}, {"groups": True}], ids=str)
def test_options_of_a_wrong_type_are_refused_in_advance_too(workers: Any, group: Group, options: Any) -> None:
    call = Prepare(group._channel, group._number + 1, spdz_mul.__name__, (((3,), "int64"),) * 2, options, 1)

    with pytest.raises(ProtocolError, match="cannot run 'spdz_mul': its option '(divisor|groups)' has a wrong type"):
        deliver(workers["carol"], call, Peer("me"))


def test_threads_of_one_channel_draw_different_random_numbers() -> None:
    channel = groups.Group(2, KERNELS).channels[1]
    both = threading.Barrier(2)

    class Slow(dict[bytes, Any]):
        """Lets another thread read what is prepared before this one has taken it."""

        def get(self, *args: Any) -> Any:
            found = super().get(*args)
            with suppress(threading.BrokenBarrierError):
                both.wait(0.2)
            return found

    demand = Square((3,), "int64")
    channel.prepare(1, [demand], 2)
    channel._pools = Slow(channel._pools)
    drawn: list[Any] = []
    threads = [threading.Thread(target=lambda: drawn.append(channel.draw({}, demand, {})[1])) for _ in range(2)]
    for thread in threads:
        thread.start()
    wait_for_end(*threads)

    assert sorted(drawn) == [(1, 0), (1, 1)]


def test_a_channel_that_is_closed_while_it_advances_a_run_ends_the_run() -> None:
    channel = groups.Group(2, KERNELS).channels[0]
    ended: list[Any] = []

    def steps() -> Any:
        channel.close(ProtocolError("closed"))  # As another thread may do at this moment.
        yield Open(KERNELS.arrays.zeros((3,), "int64"))

    channel.start(1, steps(), lambda _result, error: ended.append(str(error)))

    assert ended == ["closed"]


def test_an_unknown_protocol_or_operand_is_refused(workers: Any, group: Group) -> None:
    for name, args in (("system", ()), (zero.__name__, (5,)), (zero.__name__, (torch.rand(3),))):
        call = RunProtocol(group._channel, group._number + 1, name, args, {}, 1, 1, False)
        with pytest.raises(Exception, match="cannot (find|run)"):
            deliver(workers["bob"], call, Peer("me"))


@pytest.mark.parametrize("form", [((-1,), "int64"), ((1 << 40,), "int64"), ((3,), "float32"), "x", ((3,),)], ids=str)
def test_the_provider_refuses_malformed_forms(workers: Any, group: Group, form: Any) -> None:
    call = RunProtocol(group._channel, group._number + 1, zero.__name__, (form,), {}, 1, 0, False)

    with pytest.raises(ProtocolError, match="cannot read the form of a share"):
        deliver(workers["carol"], call, Peer("me"))


def test_a_result_that_exceeds_the_quota_is_refused_before_it_is_computed(workers: Any, group: Group) -> None:
    bob, carol = workers["bob"], workers["carol"]
    for worker in (bob, carol):
        worker.guard = QuotaGuard(worker, {"default": Allowance(bytes=100_000)})
    x, y = torch.zeros(1000, 1).long().send(bob), torch.zeros(1, 1000).long().send(bob)
    operands = (x.child, y.child)
    forms = (((1000, 1), "int64"), ((1, 1000), "int64"))

    for worker, args in ((bob, operands), (carol, forms)):
        call = RunProtocol(group._channel, group._number + 1, spdz_mul.__name__, args, {}, 1, 1, False)
        with pytest.raises(QuotaExceededError, match="bytes on the worker, and the limit is 100,000"):
            deliver(worker, call, Peer("me"))
    with pytest.raises(QuotaExceededError):
        deliver(carol, Prepare(group._channel, group._number + 1, spdz_mul.__name__, forms, {}, 1), Peer("me"))


def test_forms_that_exceed_the_quota_are_refused_before_a_protocol_is_rehearsed(workers: Any, group: Group) -> None:
    carol, shape = workers["carol"], (20_001,)
    carol.guard = QuotaGuard(carol, {"default": Allowance(bytes=100_000)})

    with pytest.raises(QuotaExceededError):
        deliver(carol, Prepare(group._channel, group._number + 1, "largest", ((shape, "int64"),), {}, 1), Peer("me"))

    assert not [key for key in protocol._rehearsals if Spec(shape) in key[2]]


# --- private data


@pytest.fixture
def secret(workers: Any) -> Any:
    """A private tensor of bob's owner, which looks like a share."""
    bob = workers["bob"]
    bob.load_data([torch.tensor([7, 8, 9]).private_tensor(["the board"]).tag("#secret")])
    (found,) = bob.search("#secret")
    return found


@pytest.fixture
def mixed(workers: Any, secret: Any) -> dict[str, Any]:
    """The shares of the secret: itself at bob, and zeros at alice."""
    return {"bob": secret.child, "alice": torch.zeros(3).long().send(workers["alice"]).child}


def test_a_private_object_is_no_share_among_parties_that_its_owner_does_not_trust(
    workers: Any, group: Group, mixed: dict[str, Any]
) -> None:
    for trusted in ((), ("alice",), ("carol",)):
        workers["bob"].trusted = set(trusted)
        with pytest.raises(ProtocolError, match="its owner does not trust them; ask the owner to call"):
            group.run(spdz_mul, mixed, mixed)


def test_among_trusted_parties_the_result_stays_private(
    hook: Any, workers: Any, group: Group, mixed: dict[str, Any]
) -> None:
    workers["bob"].trust("alice", "carol")

    (result,) = group.run(spdz_mul, mixed, mixed)
    with pytest.raises(GetNotPermittedError, match="it is private"):
        result["bob"].get()

    hook.local_worker.user = "the board"
    total = result["bob"].get() + result["alice"].get()
    assert total.tolist() == [49, 64, 81]


def test_a_private_value_is_not_opened(workers: Any, group: Group, mixed: dict[str, Any]) -> None:
    workers["bob"].trust("alice", "carol")
    before = len(workers["bob"].ledger)

    with pytest.raises(GetNotPermittedError, match="it is private"):
        group.run(reconstruct, mixed)

    assert len(workers["bob"].ledger) == before


def test_a_protocol_that_differs_between_the_parties_opens_nothing(
    hook: Any, workers: Any, group: Group, mixed: dict[str, Any]
) -> None:
    """Alice opens what bob sends for another protocol: it is masked."""
    bob, alice, carol = workers["bob"], workers["alice"], workers["carol"]
    bob.trust("alice", "carol")
    number, own, zeros = group._number + 1, mixed["bob"], mixed["alice"]
    deliver(
        carol,
        RunProtocol(group._channel, number, "truncate", (((3,), "int64"),), {"divisor": 1}, 1, 0, False),
        Peer("me"),
    )
    deliver(bob, RunProtocol(group._channel, number, "truncate", (own,), {"divisor": 1}, 501, 1, False), Peer("me"))
    deliver(alice, RunProtocol(group._channel, number, "reconstruct", (zeros,), {}, 502, 1, False), Peer("me"))

    opened = alice.object_store.get(502)
    assert opened is None or opened.value.tolist() != [7, 8, 9]


def test_what_is_written_into_an_operand_during_a_run_is_not_part_of_it(
    workers: Any, group: Group, secret: Any
) -> None:
    """Bob's run waits for the provider, so that the client can write the secret into its operand."""
    bob, alice, carol = workers["bob"], workers["alice"], workers["carol"]
    own, other = torch.ones(3).long().send(bob).child, torch.zeros(3).long().send(alice).child
    group.run(zero, {"bob": own, "alice": other})
    number = group._number + 1
    square = partial(RunProtocol, group._channel, number, "square")
    deliver(bob, square((own,), {}, 501, 1, False), Peer("me"))

    deliver(bob, Run("torch", "torch.Tensor.copy_", (own, secret.child), {}, 900), Peer("me"))
    deliver(alice, square((other,), {}, 502, 1, False), Peer("me"))
    deliver(carol, square((((3,), "int64"),), {}, 503, 0, False), Peer("me"))

    total = deliver(bob, Fetch(501), Peer("me")) + deliver(alice, Fetch(502), Peer("me"))
    assert total.tolist() == [1, 1, 1]
    with pytest.raises(GetNotPermittedError, match="it is private"):
        deliver(bob, Fetch(own.id_at_location), Peer("me"))


def test_a_group_with_a_party_of_the_client_gets_no_private_value(hook: Any, workers: Any, secret: Any) -> None:
    workers["bob"].trust("alice", "carol")
    mallory = VirtualWorker(hook, id="mallory", serialize=True)
    group = find_group(hook.local_worker, [workers["bob"], mallory], workers["carol"], hook.attributes)
    shares = {"bob": secret.child, "mallory": torch.zeros(3).long().send(mallory).child}

    with pytest.raises(ProtocolError, match="its owner does not trust them"):
        group.run(spdz_mul, shares, shares)

    hook.local_worker.remove_worker_from_registry("mallory")


def test_fetching_a_shared_value_asks_every_policy_and_is_in_every_ledger(workers: Any, group: Group) -> None:
    bob, alice, carol = workers["bob"], workers["alice"], workers["carol"]
    asked: list[str] = []
    for worker in (bob, alice):

        def policy(verb: str, _stored: Any, peer: Peer, _value: Any, worker: Any = worker) -> str | None:
            if verb == "read":
                asked.append(worker.id)
            return None

        worker.policy = policy
    x = torch.arange(3).share(bob, alice, crypto_provider=carol)

    (x * x).get(reason="a test")

    assert set(asked) == {"bob", "alice"}
    assert [[line.reason for line in worker.ledger] for worker in (bob, alice)] == [["a test"]] * 2
    x.reconstruct()
    assert [worker.ledger[-1].reason for worker in (bob, alice)] == ["opened at all parties"] * 2


# --- over a socket


@pytest.fixture
def server(hook: Any) -> Iterator[Server]:
    server = Server(VirtualWorker(hook, id="alice", auto_add=False), "127.0.0.1", 0, authenticate)
    server.start()
    yield server
    server.stop(1)


def test_a_client_with_a_token_cannot_send_deposits(hook: Any, server: Server) -> None:
    address = Address("127.0.0.1", server.port, secure=False)
    eve = TicketLink(VirtualWorker(hook, id="bob", auto_add=False), "alice", address, "bob", "Bearer secret of eve")

    eve.tell(Deposit(5, 1, PAYLOAD))

    with pytest.raises(TicketError, match="its ticket does not cover it"):
        eve.flush()
    eve.close()


def test_whoever_poses_as_the_provider_gets_no_half_of_a_seed(hook: Any, server: Server) -> None:
    address = Address("127.0.0.1", server.port, secure=False)
    eve = TicketLink(VirtualWorker(hook, id="eve", auto_add=False), "alice", address, "eve", "Bearer secret of eve")
    client = Peer(eve.client_id, "eve")
    sent: list[Any] = []
    alice = Channel(["bob", "alice"], "carol", 1, KERNELS, lambda *post: sent.append(post))
    server.worker.part(Channels).add(client, 5, alice)
    ticket = eve.ask(GetTicket("carol", (5,)))
    carol = TicketLink(VirtualWorker(hook, id="x", auto_add=False), "alice", address, "carol", f"Ticket {ticket}")

    assert carol.ask(Deposit(5, SETUP, b"chosen by a liar")) is None

    assert [(rank, number) for rank, number, _ in sent] == [(PROVIDER, SETUP)]
    for location in (eve, carol):
        location.close()


def test_arbitrary_frames_in_place_of_a_deposit_are_refused(hook: Any, server: Server) -> None:
    address = Address("127.0.0.1", server.port, secure=False)
    eve = TicketLink(VirtualWorker(hook, id="eve", auto_add=False), "alice", address, "eve", "Bearer secret of eve")
    ticket = eve.ask(GetTicket("bob", (5,)))
    bob = TicketLink(VirtualWorker(hook, id="x", auto_add=False), "alice", address, "bob", f"Ticket {ticket}")
    noise = random.Random(7)

    for location in (eve, bob):
        for _ in range(200):
            count = noise.randrange(4)
            with location._lock:
                location.transmit(Purpose.NOTE, [noise.randbytes(noise.randrange(60)) for _ in range(count)])
        with pytest.raises(Exception, match="cannot"):
            location.flush()
        location.flush()
        location.close()
