"""A hostile peer that sends arbitrary messages: no value is revealed, and the worker keeps working."""

from __future__ import annotations

import contextlib
import gc
import itertools
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("numpy")

import numpy as np
import torch

import syft_core as sy
from syft_core.exceptions import (
    GetNotPermittedError,
    IdNotUniqueError,
    NotRegisteredError,
    ObjectNotFoundError,
    SerdeError,
    SyftError,
    TagNotPermittedError,
    TooManyHopsError,
    ValueRefusedError,
    WriteNotPermittedError,
)
from syft_core.hook.hook import current_worker
from syft_core.messages import (
    Batch,
    Call,
    Describe,
    Fetch,
    Forward,
    GetBack,
    Lease,
    Message,
    Named,
    Placed,
    Release,
    Run,
    Search,
    SendOn,
    Store,
    Tag,
)
from syft_core.pointers.callable_pointer import ObjectWrapper
from syft_core.pointers.pointer_tensor import PointerTensor
from syft_core.serde import Context, frames, from_frames
from syft_core.workers.addresses.results import from_named
from syft_core.workers.party.virtual import VirtualWorker
from syft_core.workers.seeing import permissions

SECRETS = [86753.0, 1.0, 4.0]
DIGITS = ("86753", "8.6753", "8.675e")


class Peer:
    """Sends handwritten messages to workers, under its own id."""

    def __init__(self, hook: Any, target: Any, serialize: bool) -> None:
        self.worker = VirtualWorker(hook, id="mallory", serialize=serialize)
        self.target = target
        self.framework = hook.attributes
        self._next = 1000

    def ask(self, message: Message, of: Any = None) -> Any:
        target, context = of or self.target, Context(worker=self.worker)
        if not target.serialize:
            return self.worker.location_of(target).ask(message)
        sent = frames(Batch(1, (message,), True), context)
        reply = from_frames(target.deliver(sent, self.worker.peer), context)
        if reply.failure is not None:
            raise reply.failure.error
        return from_named(reply.value, self.worker)

    def pointer(self, id: Any, at: Any = None, **options: Any) -> PointerTensor:
        """Return a pointer that nobody gave it."""
        options = {"garbage_collect_data": False, **options}
        return PointerTensor(at or self.target, id, self.framework, owner=self.worker, **options)

    def run(self, op: str, *args: Any, **kwargs: Any) -> Any:
        message = Run(self.framework.ALIAS, f"{self.framework.ALIAS}.{op}", args, kwargs, self.new_id())
        return self.ask(message)

    def compute(self, op: str, *args: Any, **kwargs: Any) -> PointerTensor:
        """Run an operation with one result, and return a pointer to it."""
        return self.pointer(self.run(op, *args, **kwargs).id)

    def give(self, value: Any, **options: Any) -> PointerTensor:
        id = self.new_id()
        self.ask(Store(id, value, **options))
        return self.pointer(id)

    def new_id(self) -> int:
        self._next += 10
        return self._next

    def is_refused(self, pointer: PointerTensor, at: Any = None) -> bool:
        """Return whether no message brings the object, or its gradient, out."""
        id = pointer.id_at_location
        for message in (
            Fetch(id),
            Fetch(id, None, True),
            Fetch(id, "grad", True),
            Fetch(id, None, True, "owner"),
            Forward(id, None, self.worker.id, self.new_id(), True),
            SendOn(id, self.worker.id, 99),
        ):
            with pytest.raises((GetNotPermittedError, ValueRefusedError)):
                self.ask(message, at)
        return True


@pytest.fixture
def mallory(hook: Any, bob: Any, serialize: bool) -> Peer:
    return Peer(hook, bob, serialize)


@pytest.fixture
def secret(bob: Any, mallory: Peer) -> PointerTensor:
    """A pointer of the peer's to data at bob that is for "owner" only."""
    return mallory.pointer(private(bob, "owner", torch.tensor(SECRETS)))


def pools_by_tensor() -> bool:
    """Return whether this torch takes a tensor for the size of a pool."""
    try:
        torch.nn.functional.avg_pool1d(torch.ones(1, 6), kernel_size=torch.tensor(2))
    except (RuntimeError, TypeError):
        return False
    return True


TAKES_TENSOR = pytest.mark.skipif(not pools_by_tensor(), reason="this torch takes no tensor for the size of a pool")


def private(worker: Any, user: str, tensor: Any) -> Any:
    """Keep a tensor at a worker for one user only; return its id."""
    head = tensor.private_tensor([user])
    worker.load_data([head])
    return head.id


# --- values that change what is not private


def test_a_gradient_through_a_view_whose_base_is_gone_stays(mallory: Peer, secret: Any) -> None:
    leaf = mallory.give(torch.ones(3, requires_grad=True))
    view = mallory.compute("Tensor.view", leaf, 3)
    mallory.ask(Release((leaf.id_at_location,)))
    mallory.run("Tensor.backward", mallory.compute("Tensor.sum", mallory.compute("Tensor.mul", view, secret)))

    with pytest.raises(ValueRefusedError):
        mallory.run("Tensor._base.__get__", view)


def test_a_gradient_is_pointed_to_and_never_becomes_an_object_itself(mallory: Peer) -> None:
    leaf = mallory.give(torch.ones(3, requires_grad=True))

    with pytest.raises(ValueRefusedError):
        mallory.run("Tensor.grad.__get__", leaf)


def test_a_gradient_that_is_fetched_leaves_its_object_there(mallory: Peer, bob: Any) -> None:
    leaf = mallory.give(torch.ones(3, requires_grad=True))
    mallory.run("Tensor.backward", mallory.compute("Tensor.sum", leaf))

    assert mallory.ask(Fetch(leaf.id_at_location, "grad")).tolist() == [1.0, 1.0, 1.0]
    assert bob.get_obj(leaf.id_at_location) is not None


@pytest.mark.parametrize("hold", ["view", "view of a view", "setter"])
def test_a_gradient_that_is_held_by_itself_becomes_private(mallory: Peer, secret: Any, hold: str) -> None:
    leaf = mallory.give(torch.ones(3, requires_grad=True))
    mallory.run("Tensor.backward", mallory.compute("Tensor.sum", leaf))
    if hold == "setter":
        held = mallory.give(torch.ones(3))
        mallory.run("Tensor.grad.__set__", leaf, held)
    else:
        held = mallory.compute("Tensor.view", mallory.pointer(leaf.id_at_location, point_to_attr="grad"), 3)
        if hold == "view of a view":
            first, held = held, mallory.compute("Tensor.view", held, 3)
            mallory.ask(Release((first.id_at_location,)))
    used = mallory.compute("Tensor.mul", leaf, 1)
    mallory.ask(Release((leaf.id_at_location,)))

    mallory.run("Tensor.backward", mallory.compute("Tensor.sum", mallory.compute("Tensor.mul", used, secret)))

    assert mallory.is_refused(held)


def test_a_gradient_sent_to_another_worker_is_as_private_there(bob: Any, alice: Any, mallory: Peer) -> None:
    secret = mallory.pointer(private(bob, "alice", torch.tensor(SECRETS)))  # alice may have it, mallory not
    mallory.ask(Store(5, torch.zeros(3, requires_grad=True)), alice)
    copy = mallory.give(torch.ones(3, requires_grad=True), origin=("alice", 5))

    with pytest.raises(WriteNotPermittedError):  # Nobody noted at alice that the copy was made of that object.
        mallory.run("Tensor.backward", mallory.compute("Tensor.sum", mallory.compute("Tensor.mul", copy, secret)))

    assert alice.get_obj(5).grad is None


@pytest.mark.parametrize(
    "change",
    [
        lambda peer, secret, own: peer.run("Tensor.copy_", own, secret),
        lambda peer, secret, own: peer.run("Tensor.__setitem__", own, ..., secret),
        lambda peer, secret, own: peer.run("add", secret, 0, out=own),
        lambda peer, secret, own: peer.run("add", input=secret, other=0, out=own),
        lambda peer, secret, own: peer.run("Tensor.data.__set__", own, secret),
        lambda peer, secret, own: peer.run("Tensor.grad.__set__", own, secret),
        lambda peer, secret, own: peer.run("_foreach_copy_", [own], [secret]),
        lambda peer, secret, own: peer.run("_foreach_add_", (own,), (secret,)),
        lambda peer, secret, own: peer.run("nn.functional.batch_norm", peer.compute("Tensor.view", secret, 3, 1), own),
        lambda peer, secret, own: peer.run("functional.norm", secret, 2, None, False, own),
        lambda peer, secret, own: peer.run("clamp_", own, max=secret),
        lambda peer, secret, own: peer.run("_foreach_add_", [own, own], [secret, torch.ones(7)]),
        lambda peer, secret, own: peer.run("_foreach_copy_", [own, peer.give(torch.ones(2))], [secret, secret]),
    ],
)
def test_what_is_changed_with_a_secret_is_secret_or_unchanged(mallory: Peer, secret: Any, change: Any) -> None:
    own = mallory.give(torch.zeros(3))

    with contextlib.suppress(SyftError, RuntimeError, TypeError):
        change(mallory, secret, own)

    kept = mallory.target.get_obj(own.id_at_location)
    while hasattr(kept, "child"):
        kept = kept.child
    unchanged = kept.grad is None and kept.shape == (3,) and kept.eq(0).all()
    assert unchanged or mallory.is_refused(own)


@pytest.mark.parametrize(
    ("op", "args"),
    [
        ("add", (1,)),
        ("clip", (0, 10)),
        ("cumsum", (0, None)),
        ("ndarray.clip", (0, 10)),
        ("take", ([0, 1, 2], 0)),
        ("ndarray.round", (2,)),
        ("frexp", ()),
        ("ndarray.choose", ()),
        ("median", (0,)),
        ("percentile", (50, 0)),
        ("nanmedian", (0,)),
        ("dot", (1,)),
        ("copyto", ()),
        ("ndarray.put", ()),
    ],
)
def test_a_target_given_by_position_becomes_private(
    numpy_hook: Any, carol: Any, serialize: bool, op: str, args: tuple[Any, ...]
) -> None:
    mallory = Peer(numpy_hook, carol, serialize)
    secret = mallory.pointer(private(carol, "owner", numpy_hook.array(SECRETS)))
    for shape in ((3,), ()) if op != "cumsum" else ((3,),):  # numpy itself crashes on cumsum(x, 0, None, zeros(()))
        own = mallory.give(np.full(shape, -7.0))
        try:
            mallory.run(op, secret, *args, own)
        except (SyftError, ValueError, TypeError):
            assert (mallory.ask(Fetch(own.id_at_location)) == -7).all()
        else:
            changed = not (carol.get_obj(own.id_at_location) == -7).all()
            assert not changed or mallory.is_refused(own)


@pytest.mark.parametrize("op", ["Tensor.copy_", "Tensor.add_", "Tensor.__setitem__"])
def test_a_tensor_of_the_peer_itself_is_not_changed(mallory: Peer, secret: Any, op: str) -> None:
    own = torch.zeros(3)

    with pytest.raises(SyftError):
        mallory.run(op, own, *((..., secret) if op.endswith("setitem__") else (secret,)))
    assert own.eq(0).all()


# --- values that change the form of a result


@pytest.mark.parametrize(
    "ask",
    [
        lambda peer, n, x: peer.run("zeros", n),
        lambda peer, n, x: peer.run("zeros", (n, 2)),
        lambda peer, n, x: peer.run("zeros", size=(n,)),
        lambda peer, n, x: peer.run("rand", n),
        lambda peer, n, x: peer.run("randint", 5, (n,)),
        lambda peer, n, x: peer.run("topk", x, n),
        lambda peer, n, x: peer.run("chunk", x, n),
        lambda peer, n, x: peer.run("diag", x, n),
        lambda peer, n, x: peer.run("Tensor.size", x, n),
        pytest.param(
            lambda peer, n, x: peer.run("sum", x, n),
            marks=pytest.mark.skipif(
                torch.sum(torch.ones(2, 2), torch.tensor(0)).dim() == 0,
                reason="this torch takes a tensor for no dimension at all, and does not read it",
            ),
        ),
        lambda peer, n, x: peer.run("sum", x, (n,)),
        lambda peer, n, x: peer.run("fft.fft", x, n),
        pytest.param(lambda peer, n, x: peer.run("nn.functional.adaptive_avg_pool1d", x, n), marks=TAKES_TENSOR),
        pytest.param(lambda peer, n, x: peer.run("nn.functional.avg_pool1d", x, kernel_size=n), marks=TAKES_TENSOR),
        lambda peer, n, x: peer.run("Tensor.unfold", x, 0, n, 1),
        lambda peer, n, x: peer.run("linspace", 0, 1, n),
        lambda peer, n, x: peer.run("multinomial", x, n),
        lambda peer, n, x: peer.run("broadcast_to", x, (n, 6, 6)),
        lambda peer, n, x: peer.run("histc", x, n),
        lambda peer, n, x: peer.run("Tensor.__getitem__", x, slice(None, n)),
        lambda peer, n, x: peer.run("Tensor.__getitem__", x, [slice(n)]),
        lambda peer, n, x: peer.run("Tensor.new_zeros", x, n),
        lambda peer, n, x: peer.run("nn.functional.one_hot", n),
        lambda peer, n, x: peer.run("Tensor.nonzero", n),
    ],
)
@pytest.mark.parametrize("policy", [permissions.unless_private, permissions.only_published, permissions.nothing])
def test_a_secret_cannot_be_used_as_a_size(bob: Any, mallory: Peer, ask: Callable[..., Any], policy: Any) -> None:
    if policy is permissions.unless_private:
        number = mallory.pointer(private(bob, "owner", torch.tensor(2)))
    else:
        number = mallory.pointer(torch.tensor(2).send(bob, garbage_collect_data=False).id_at_location)
    bob.policy = policy
    own = mallory.give(torch.ones(6, 6))

    with pytest.raises((ValueRefusedError, SerdeError, GetNotPermittedError, ObjectNotFoundError)):
        ask(mallory, number, own)


def test_a_stored_number_cannot_be_a_size_next_to_private_data(mallory: Peer, secret: Any) -> None:
    two = mallory.give(torch.tensor(2))

    with pytest.raises(ValueRefusedError, match="its kind of result depends on private values"):
        mallory.compute("Tensor.unfold", secret, 0, two, 1)


@pytest.mark.parametrize(
    "ask",
    [
        lambda peer, n, x: peer.run("zeros", n),
        lambda peer, n, x: peer.run("arange", n),
        lambda peer, n, x: peer.run("ones", [n, 2]),
        lambda peer, n, x: peer.run("repeat", x, n),
        lambda peer, n, x: peer.run("expand_dims", x, n),
        lambda peer, n, x: peer.run("sum", x, n),
        lambda peer, n, x: peer.run("reshape", x, (n, 18)),
        lambda peer, n, x: peer.run("split", x, n),
        lambda peer, n, x: peer.run("resize", x, n),
        lambda peer, n, x: peer.run("fft.fft", x, n),
        lambda peer, n, x: peer.run("pad", x, n),
        lambda peer, n, x: peer.run("diff", x, n=n),
        lambda peer, n, x: peer.run("ndarray.diagonal", x, n),
        lambda peer, n, x: peer.run("min_scalar_type", n),
        lambda peer, n, x: peer.run("ndarray.__getitem__", x, slice(None, n)),
    ],
)
def test_a_secret_integer_in_an_array_cannot_be_used_as_a_size(
    numpy_hook: Any, carol: Any, serialize: bool, ask: Callable[..., Any]
) -> None:
    mallory = Peer(numpy_hook, carol, serialize)
    number = private(carol, "owner", numpy_hook.array(2))
    own = mallory.give(np.ones((6, 6)))

    with pytest.raises((ValueRefusedError, SerdeError)):
        ask(mallory, mallory.pointer(number), own)


# --- policies that let little or nothing leave


def test_a_peer_does_not_publish_what_it_may_not_have(bob: Any, mallory: Peer) -> None:
    bob.policy = only_published_shown
    other = torch.tensor(SECRETS).send(bob)
    pointer = mallory.pointer(other.id_at_location)

    with pytest.raises(TagNotPermittedError):
        mallory.ask(Tag(other.id_at_location, publish=True))
    with pytest.raises(GetNotPermittedError):
        mallory.ask(Tag(mallory.compute("Tensor.clone", pointer).id_at_location, ("#mine",), publish=True))

    assert mallory.is_refused(pointer)
    assert bob.search("#mine") == []


def only_published_shown(verb: Any, stored: Any, peer: Any, value: Any) -> str | None:
    """Let only published objects leave, and show the forms of all others."""
    return None if verb == "describe" else permissions.only_published(verb, stored, peer, value)


@pytest.mark.parametrize("way", ["copy_", "out", "by position", "gradient", "own"])
def test_a_published_object_does_not_leak_other_data(bob: Any, mallory: Peer, way: str) -> None:
    published = torch.zeros(3, requires_grad=way == "gradient").publish(bob)
    own = mallory.give(torch.zeros(3), publish=True) if way == "own" else mallory.pointer(published.id_at_location)
    bob.policy = only_published_shown
    other = mallory.pointer(torch.tensor(SECRETS).send(bob, garbage_collect_data=False).id_at_location)

    with pytest.raises(WriteNotPermittedError) if way != "own" else contextlib.nullcontext():
        if way in ("copy_", "own"):
            mallory.run("Tensor.copy_", own, other)
        elif way == "out":
            mallory.run("add", other, 0, out=own)
        elif way == "by position":
            mallory.run("functional.norm", other, 2, None, False, mallory.compute("Tensor.__getitem__", own, 0))
        else:
            mallory.run("Tensor.backward", mallory.compute("Tensor.sum", mallory.compute("Tensor.mul", own, other)))

    if way == "own":
        assert mallory.is_refused(own)
        with pytest.raises(GetNotPermittedError):
            mallory.ask(Tag(own.id_at_location, publish=True))


# --- pointers in unexpected places, and messages in unexpected order


@pytest.mark.parametrize(
    "place",
    [
        lambda peer, p: Run("torch", "torch.Tensor.add", (p, Placed(p.id_at_location)), {}, 7),
        lambda peer, p: Run("torch", "torch.Tensor.add", (p, Named("torch", "max", (p,))), {}, 7),
        lambda peer, p: Run("torch", "torch.Tensor.add", (p, Fetch(p.id_at_location)), {}, 7),
        lambda peer, p: Run("torch", "torch.Tensor.add", ([[p]],), {"other": {"a": p}}, 7),
        lambda peer, p: Run("torch", "torch.Tensor.add", (), {"self": p, "other": p}, 7),
        lambda peer, p: Run("torch", "torch.Tensor.add", (p, p), {"op": p, "args": p, "worker": p}, 7),
        lambda peer, p: Run("torch", "torch.Tensor.add", (p, frozenset({p})), {}, 7),
        lambda peer, p: Run("torch", "torch.Tensor.add", (p, {p: p}), {}, 7),
        lambda peer, p: Run("torch", "torch.Tensor.add", (p, 1), {}, 7, "x y z"),
        lambda peer, p: Run("torch", "torch.Tensor.add", (p, 1), {}, 7, ""),
        lambda peer, p: Run("torch", "torch.Tensor.add", (p, 1), {}, 7, "True True float64 None"),
        lambda peer, p: Run("torch", "torch.Tensor.add", (p, peer.worker), {}, 7),
        lambda peer, p: Run("torch", "torch.Tensor.tolist", (p,), {}, 7),
        lambda peer, p: Run("torch", "torch.Tensor.__class__", (p,), {}, 7),
        lambda peer, p: Run("torch", "os.system", ("true",), {}, 7),
        lambda peer, p: Run("os", "os.system", ("true",), {}, 7),
        lambda peer, p: Run(
            "torch", "torch.Tensor.add", (peer.pointer(p.id_at_location, point_to_attr="child"),), {}, 7
        ),
        lambda peer, p: Run(
            "torch", "torch.Tensor.add", (peer.pointer(p.id_at_location, point_to_attr="__dict__"),), {}, 7
        ),
        lambda peer, p: Fetch(p.id_at_location, "_syft_owner"),
        lambda peer, p: Fetch(p.id_at_location, "child"),
        lambda peer, p: Fetch(p.id_at_location, ""),
        lambda peer, p: Describe((p.id_at_location,), "child"),
        lambda peer, p: Forward(p.id_at_location, "child", peer.target.id, 7, True),
        lambda peer, p: Call(p.id_at_location, (p,), {}, 7),
        lambda peer, p: GetBack(p.id_at_location),
        lambda peer, p: Placed(p.id_at_location),
        lambda peer, p: Named("torch", "max", (p,)),
        lambda peer, p: Store(p.id_at_location, torch.zeros(3)),
        lambda peer, p: Store(7, "text"),
        lambda peer, p: Store(7, peer.target),
        lambda peer, p: Store(7, [torch.zeros(3)]),
        lambda peer, p: Store(7, None),
        lambda peer, p: Store(7, ObjectWrapper(print)),
        lambda peer, p: Store(7, torch.zeros(3), False, 5),
        lambda peer, p: Fetch(p.id_at_location, None, True, "owner"),
        lambda peer, p: Fetch(-1),
        lambda peer, p: Fetch(2**200),
        lambda peer, p: Fetch(str(p.id_at_location)),
        lambda peer, p: Forward(p.id_at_location, None, 5, 7),
        lambda peer, p: SendOn(p.id_at_location, peer.worker.id, 99),
        lambda peer, p: Lease((p.id_at_location, -1)),
        lambda peer, p: Tag(-1, ("#a",)),
    ],
)
def test_no_malformed_message_reveals_a_value_or_harms_the_worker(
    bob: Any, mallory: Peer, secret: Any, place: Callable[..., Message]
) -> None:
    default = torch.get_default_dtype()
    before = bob.objects_count
    message = place(mallory, secret)

    with sy.trace() as trace, pytest.raises(Exception) as caught:  # noqa: PT011  # any error will do, if it reveals nothing
        mallory.ask(message)

    told = [str(caught.value), repr(caught.value), str(caught.value.__cause__), str(trace), trace._repr_html_()]
    assert not any(digits in text for text in told for digits in DIGITS)
    assert bob.objects_count == before
    assert torch.get_default_dtype() is default
    assert torch.is_grad_enabled()
    assert (torch.ones(2).send(bob) + 1).get().tolist() == [2.0, 2.0]


@pytest.mark.parametrize("id", [None, 1.5, (1,), True, b"x"])
@pytest.mark.parametrize(
    "message",
    [
        lambda odd: Fetch(odd),
        lambda odd: Store(odd, torch.zeros(1)),
        lambda odd: Describe((odd,)),
        lambda odd: Run("torch", "torch.Tensor.add", (torch.ones(1), 1), {}, odd),
        lambda odd: Release((odd,)),
        lambda odd: Lease((odd,)),
        lambda odd: Tag(odd, ("#x",)),
        lambda odd: Call(odd, (), {}, 1),
        lambda odd: SendOn(odd, None, 99),
        lambda odd: GetBack(odd),
    ],
)
def test_malformed_ids_are_refused_before_anything_happens(hook: Any, id: Any, message: Any) -> None:
    bob = VirtualWorker(hook, id="bob", serialize=True)

    with pytest.raises(SerdeError, match=r"cannot read a \w+: its field '\w+' has a wrong type"):
        bob.ask(message(id))
    assert (bob.objects_count, bob.stats.messages) == (0, 0)


def test_what_others_stored_cannot_be_replaced(bob: Any, mallory: Peer) -> None:
    p = torch.ones(3).send(bob)

    for message in (
        Store(p.id_at_location, torch.zeros(3)),
        Forward(mallory.give(torch.zeros(3)).id_at_location, None, bob.id, p.id_at_location, True),
        Run("torch", "torch.zeros", (3,), {}, p.id_at_location),
        Run("torch", "torch.chunk", (mallory.give(torch.zeros(2)), 2), {}, p.id_at_location - 1),
    ):
        with pytest.raises(IdNotUniqueError):
            mallory.ask(message)
    assert p.get().tolist() == [1.0, 1.0, 1.0]


def test_results_of_a_call_are_kept_all_or_none(bob: Any, mallory: Peer) -> None:
    bob.load_data([ObjectWrapper(lambda x: (x, x + 1), id="twice")])
    p = torch.ones(3).send(bob)
    before = bob.objects_count

    with pytest.raises(IdNotUniqueError):
        mallory.ask(Call("twice", (torch.zeros(2),), {}, p.id_at_location - 1))
    assert bob.objects_count == before


def test_a_bad_object_does_not_spoil_searches(bob: Any, mallory: Peer) -> None:
    torch.ones(3).tag("#mnist").publish(bob)

    with pytest.raises(NotRegisteredError):
        mallory.ask(Store(7, "a text"))
    with pytest.raises(ObjectNotFoundError):
        mallory.ask(Tag(7, ("#mnist",)))

    assert len(bob.search("#mnist")) == 1


# --- going in circles, and round others


def test_a_worker_keeps_no_pointer_to_itself(bob: Any, mallory: Peer, hook: Any) -> None:
    with pytest.raises(TooManyHopsError, match="cannot send a pointer to 'bob': its data is there already"):
        mallory.ask(Store(5, hook.attributes.wrapper(mallory.pointer(5))))

    assert bob.objects_count == 0


def test_cyclic_pointers_raise_an_error(bob: Any, alice: Any, mallory: Peer, hook: Any) -> None:
    mallory.ask(Store(5, hook.attributes.wrapper(mallory.pointer(6, alice))))
    mallory.ask(Store(6, hook.attributes.wrapper(mallory.pointer(5))), alice)

    for message in (Run("torch", "torch.Tensor.add", (mallory.pointer(5), 1), {}, 7), GetBack(5)):
        with pytest.raises(SyftError):
            mallory.ask(message)

    assert (torch.ones(2).send(bob) + 1).get().tolist() == [2.0, 2.0]
    assert "bob" in repr(bob)
    assert bob._repr_html_()


def test_forwarding_in_a_cycle_ends(bob: Any, alice: Any, mallory: Peer) -> None:
    p = mallory.give(torch.ones(2))
    ids = itertools.count(1000)
    for _ in range(5):
        mallory.ask(SendOn(p.id_at_location, alice.id, next(ids)))
        with pytest.raises(TooManyHopsError):
            mallory.ask(SendOn(p.id_at_location, alice.id, next(ids)))
        mallory.ask(SendOn(p.id_at_location, bob.id, next(ids)))
        mallory.ask(GetBack(p.id_at_location))

    while isinstance(getattr(bob.get_obj(p.id_at_location), "child", None), PointerTensor):
        mallory.ask(GetBack(p.id_at_location))
    assert mallory.ask(Fetch(p.id_at_location)).tolist() == [1.0, 1.0]
    gc.collect()
    assert (bob.objects_count, alice.objects_count) == (0, 0)


def test_a_worker_does_not_fetch_a_secret_for_a_peer(bob: Any, alice: Any, mallory: Peer, hook: Any) -> None:
    """Alice may have the secret; a peer asks alice to fetch it, and bob refuses because of that peer."""
    id = private(bob, "alice", torch.tensor(SECRETS))
    mallory.ask(Store(5, hook.attributes.wrapper(mallory.pointer(id))), alice)

    with pytest.raises(GetNotPermittedError, match="as 'worker mallory through alice': it is private"):
        mallory.ask(GetBack(5), alice)
    assert len(bob.ledger) == 0


def test_forwarding_to_itself_keeps_the_restriction(mallory: Peer, secret: Any, bob: Any) -> None:
    mallory.ask(Forward(secret.id_at_location, None, bob.id, 5, True))

    assert mallory.is_refused(mallory.pointer(5))


# --- names


def test_objects_of_others_cannot_be_tagged(bob: Any, mallory: Peer, secret: Any) -> None:
    """Others find and identify objects by their tags."""
    bob.load_data([torch.ones(1).tag("#mnist")])
    ((published, *_),) = mallory.ask(Search(("#mnist",)))  # with a lease
    given = torch.ones(1).publish(bob)
    mallory.ask(Lease((given.id_at_location,)))  # anybody may point to what is published
    sent = torch.ones(1).send(bob)

    for id in (published, given.id_at_location, sent.id_at_location, secret.id_at_location):
        for message in (Tag(id, ("#poisoned",)), Tag(id, description="poisoned"), Tag(id, ("#p",), None, True)):
            with pytest.raises(TagNotPermittedError, match="it belongs to someone else; tag a copy"):
                mallory.ask(message)
    assert bob.search("#poisoned") == []
    assert not bob.object_store.entry(sent.id_at_location).published


def test_own_objects_can_be_tagged(bob: Any, mallory: Peer) -> None:
    given, published = mallory.give(torch.ones(1)), mallory.give(torch.ones(1), publish=True)
    computed = mallory.compute("Tensor.add", given, 1)
    lent = torch.ones(1).send(bob)
    current_worker().location_of(bob).ask(Lease((lent.id_at_location,), "mallory"))

    for pointer in (given, published, computed, lent):
        mallory.ask(Tag(pointer.id_at_location, ("#mine",), "my own"))
    mallory.ask(Tag(computed.id_at_location, publish=True))
    mallory.ask(Tag(computed.id_at_location, ("#result",)))

    assert len(bob.search(["#mine", "own"])) == 4
    assert len(bob.search("#result")) == 1


def test_a_worker_can_tag_its_own_objects(bob: Any) -> None:
    bob.load_data([torch.ones(1).tag("#x")])

    bob.request_search("#x", bob)[0].tag("#y")

    assert len(bob.search("#y")) == 1


# --- everything that shows something


def test_no_representation_shows_a_secret(bob: Any, mallory: Peer, secret: Any, caplog: Any) -> None:
    caplog.set_level(0)
    bob.log_msgs = True
    bob.load_data([ObjectWrapper(lambda x: x.sum(), id="sum"), ObjectWrapper(lambda x: [x.tolist()], id="tell")])
    owner = current_worker()
    owner.user = "owner"
    shown: list[Any] = []
    with sy.trace() as trace:
        total = mallory.compute("Tensor.sum", secret)
        named = mallory.ask(Call("sum", (secret,), {}, 77))
        shown.append(mallory.run("bernoulli", secret))
        for ask in (
            lambda: mallory.ask(Call("tell", (secret,), {}, 78)),
            lambda: mallory.ask(Call("sum", (secret, secret), {}, 79)),
            lambda: mallory.run("Tensor.view", secret, 86),
            lambda: mallory.run("Tensor.item", total),
            lambda: mallory.run("Tensor.__getitem__", mallory.give(torch.ones(1)), secret.id_at_location),
            lambda: mallory.ask(Fetch(secret.id_at_location)),
        ):
            with pytest.raises(Exception) as caught:  # noqa: PT011  # the type does not matter here
                ask()
            shown += [caught.value, caught.value.__cause__, caught.value.__context__]
        (found,) = bob.search(secret.id_at_location)
        shown += [named, mallory.ask(Describe((secret.id_at_location,))), mallory.ask(Search((secret.id_at_location,)))]
        shown += [found, found.child, found.copy(), found.copy().get()]
    shown += [trace, trace.events, trace.summary(), bob, bob.stats, bob.ledger, list(bob.ledger), bob.msg_history]
    shown += [bob.object_store, caplog.text]
    texts = [show(thing) for thing in shown for show in (str, repr, "{}".format)]
    texts += [thing._repr_html_() for thing in shown if hasattr(type(thing), "_repr_html_")]
    texts += [trace.svg(), bob.get_obj(secret.id_at_location)._repr_html_(), repr(bob.get_obj(secret.id_at_location))]

    assert not [text for text in texts for digits in DIGITS if digits in text]
    assert [entry.reason for entry in bob.ledger] == ["a call that failed", ""]


# --- memory that is shared, random numbers that are drawn


def leak(mallory: Peer, secret: PointerTensor) -> PointerTensor:
    """Return a pointer to a plain tensor with the secret in it, which only its history makes private."""
    leaf = mallory.give(torch.zeros(3, requires_grad=True))
    mallory.run("Tensor.backward", mallory.compute("Tensor.sum", mallory.compute("Tensor.mul", leaf, secret)))
    return mallory.pointer(leaf.id_at_location, point_to_attr="grad")


@pytest.mark.filterwarnings("ignore")
def test_a_sparse_tensor_and_its_parts_are_copies(mallory: Peer, bob: Any) -> None:
    values = mallory.give(torch.zeros(3))
    sparse = mallory.compute("sparse_coo_tensor", torch.tensor([[0, 1, 2]]), values, (3,))
    part = mallory.compute("Tensor._values", sparse)
    secret = mallory.pointer(private(bob, "owner", torch.tensor(SECRETS)))

    mallory.run("Tensor.copy_", part, leak(mallory, secret))
    mallory.run("Tensor.copy_", values, leak(mallory, secret))

    assert mallory.ask(Fetch(sparse.id_at_location, None, True)).to_dense().tolist() == [0.0, 0.0, 0.0]


def test_a_sparse_tensor_with_wrong_indices_is_refused(mallory: Peer) -> None:
    with pytest.raises(RuntimeError, match="found index 9"):
        mallory.run("sparse_coo_tensor", torch.tensor([[0, 9]]), torch.ones(2), (3,), check_invariants=False)
    with pytest.raises((RuntimeError, IndexError)):
        mallory.run("sparse_coo_tensor", torch.tensor([[0, -9]]), torch.ones(2), (3,))


def test_windows_of_an_array_share_its_memory(numpy_hook: Any) -> None:
    array = np.zeros(3)
    windows = np.lib.stride_tricks.sliding_window_view(array, 2)

    for view in (windows, windows[1:], np.frombuffer(memoryview(array))):
        assert numpy_hook.attributes.memory_of(view) == numpy_hook.attributes.memory_of(array)


@pytest.mark.parametrize("network", ["rnn_tanh", "rnn_relu", "gru", "lstm"])
def test_private_lengths_of_packed_sequences_do_not_determine_a_form(mallory: Peer, bob: Any, network: str) -> None:
    lengths = mallory.pointer(private(bob, "owner", torch.tensor([2, 1])))
    cell = getattr(torch.nn, "RNN" if "rnn" in network else network.upper())(1, 1)
    weights = [mallory.give(weight.detach()) for weight in cell._flat_weights]
    data, hidden = mallory.give(torch.ones(3, 1)), mallory.give(torch.zeros(1, 2, 1))
    state = (hidden, hidden) if network == "lstm" else hidden

    with pytest.raises(ValueRefusedError, match="the shape of its result would reveal private values"):
        mallory.run(network, data, lengths, state, weights, True, 1, 0.0, False, False)


def test_draws_on_private_data_cannot_be_related_to_other_draws(mallory: Peer, secret: Any, bob: Any) -> None:
    before = torch.default_generator.manual_seed(7).get_state()

    masks = [mallory.compute("rand_like", secret) for _ in range(2)]

    assert torch.equal(torch.default_generator.get_state(), before)
    public = torch.rand(3)
    drawn = [bob.get_obj(mask.id_at_location) for mask in masks]
    assert len({tuple(values.tolist()) for values in (*drawn, public)}) == 3


def test_the_version_of_a_tensor_is_not_disclosed(mallory: Peer) -> None:
    own = mallory.give(torch.ones(3))

    with pytest.raises(SyftError, match="cannot run"):
        mallory.run("Tensor._version.__get__", own)
