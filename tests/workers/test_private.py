"""Private tensors: every way in which data could leave a worker is checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from syft_core.exceptions import (
    GetNotPermittedError,
    OperationNotAllowedError,
    SendNotPermittedError,
    ValueRefusedError,
)
from syft_core.messages import Fetch, Forward, SendOn
from syft_core.tensors.logging import LoggingTensor
from syft_core.tensors.private import PrivateTensor
from syft_core.workers.seeing import permissions

from .secrets_of_others import store

F = torch.nn.functional


@pytest.fixture
def secret(bob: Any) -> Any:
    """A pointer to data on bob that only alice may have."""
    return store(bob, ["alice"], [1.0, 2.0, 3.0])


@pytest.fixture
def public(bob: Any) -> Any:
    return torch.tensor([10.0, 20.0, 30.0]).send(bob)


def is_refused(p: Any) -> bool:
    """Return whether there is no way to fetch the data, not even through another worker."""
    elsewhere = p.location.id
    with pytest.raises(GetNotPermittedError):
        p.copy().get()
    with pytest.raises(GetNotPermittedError):
        p.get()
    with pytest.raises(GetNotPermittedError):
        p.move("alice" if elsewhere != "alice" else "bob")
    return True


# --- here


def test_a_private_tensor_names_its_users_and_hides_its_values(hook: Any) -> None:
    x = torch.tensor([1.0]).private_tensor(allowed_users=["alice", "bob"])

    assert (x.allow("alice"), x.allow("eve")) == (True, False)
    assert repr(x) == "(Wrapper)>PrivateTensor>(values for alice, bob)"
    assert isinstance(torch.tensor([1.0]).private_tensor("bob", no_wrap=True), PrivateTensor)


def test_credentials_can_be_registered(hook: Any) -> None:
    x = torch.tensor([1.0]).private_tensor()

    assert x.register_credentials(["eve"]) is x
    assert x.allow("eve")
    with pytest.raises(TypeError, match="the tensor is not private"):
        torch.tensor([1.0]).register_credentials(["eve"])


def test_a_tensor_that_is_not_private_allows_everybody(hook: Any) -> None:
    assert torch.tensor([1.0]).allow("anybody")


def test_results_are_for_users_whom_all_operands_allow(hook: Any) -> None:
    x = torch.tensor([1.0]).private_tensor(["alice", "bob"])
    y = torch.tensor([1.0]).private_tensor(["bob", "eve"])

    for z in (x + y, torch.stack([x, y]), torch.add(input=x, other=y)):
        assert z.child.allowed_users == {"bob"}
    assert (x + 1).child.allowed_users == {"alice", "bob"}


def test_changing_a_private_tensor_with_another_restricts_it(hook: Any) -> None:
    x = torch.tensor([1.0]).private_tensor(["alice", "bob"])
    y = torch.tensor([1.0]).private_tensor(["bob", "eve"])

    assert x.add_(y) is x

    assert x.child.allowed_users == {"bob"}
    assert x.child.child.tolist() == [2.0]


def test_a_plain_tensor_is_not_changed_with_a_private_one(hook: Any) -> None:
    x, y = torch.tensor([1.0]), torch.tensor([1.0]).private_tensor(["bob"])

    for change in (lambda: x.add_(y), lambda: torch.add(y, y, out=x), lambda: x.__setitem__(0, y[0])):
        with pytest.raises(OperationNotAllowedError, match="a plain tensor cannot be changed in place"):
            change()
    assert x.tolist() == [1.0]


def test_a_pointer_cannot_be_made_private(public: Any) -> None:
    with pytest.raises(TypeError, match="make the data private before it is sent"):
        public.private_tensor(["me"])


# --- sending


def test_only_an_allowed_user_sends_a_private_tensor(bob: Any, me: Any) -> None:
    x = torch.tensor([1.0]).private_tensor(["alice"])

    with pytest.raises(SendNotPermittedError, match="cannot send a private tensor as 'me': its owner allows alice"):
        x.send(bob)
    with pytest.raises(SendNotPermittedError):
        x.send(bob, user="eve")
    me.user = "alice"
    assert x.send(bob).location is bob


def test_a_claimed_name_does_not_send(bob: Any) -> None:
    x = torch.tensor([1.0]).private_tensor(["alice"])

    with pytest.raises(SendNotPermittedError, match="cannot send as 'alice': the sender is 'me'"):
        x.send(bob, user="alice")


# --- every way out


def test_the_allowed_user_gets_it_and_it_stays_private(secret: Any, bob: Any, me: Any) -> None:
    me.user = "alice"

    x = secret.get()

    assert x.child.allowed_users == {"alice"}
    assert x.child.child.tolist() == [1.0, 2.0, 3.0]


def test_nobody_else_gets_it(secret: Any, bob: Any, alice: Any) -> None:
    assert is_refused(secret)
    assert len(bob.ledger) == 0


def test_claiming_to_be_an_allowed_user_is_refused(secret: Any) -> None:
    known = "the sender is known here as 'me', and a claimed user name is not authentication"
    with pytest.raises(GetNotPermittedError, match=known):
        secret.get(user="alice")


def test_a_user_may_confirm_who_it_is(public: Any) -> None:
    assert public.get(user="me").tolist() == [10.0, 20.0, 30.0]


DERIVED: dict[str, Callable[[Any, Any], Any]] = {
    "operator": lambda s, p: s + 1,
    "mixed": lambda s, p: p + s,
    "mixed function": lambda s, p: torch.stack([p, s]),
    "keyword": lambda s, p: torch.add(input=p, other=s),
    "view": lambda s, p: s[:1],
    "alias": lambda s, p: s.contiguous(),
    "copy": lambda s, p: s.copy(),
    "clone": lambda s, p: s.clone(),
    "detach": lambda s, p: s.detach(),
    "data": lambda s, p: s.data,
    "data of a result": lambda s, p: (s * 2).data,
    "part of a result": lambda s, p: s.max(0)[1],
    "chunk": lambda s, p: torch.chunk(s, 3)[2],
    "comparison": lambda s, p: s > p,
    "index": lambda s, p: p[s.long() - 1],
    "out": lambda s, p: torch.mul(s, p, out=s.clone()),
    "autograd.grad": lambda s, p: torch.autograd.grad((p.requires_grad_() * s).sum(), p)[0],
    "shape keeper": lambda s, p: torch.where(s > 2, s, p),
    "chain above": lambda s, p: LoggingTensor().on(s + p),
}


@pytest.mark.parametrize("way", DERIVED)
def test_results_of_private_data_are_private(secret: Any, public: Any, alice: Any, way: str) -> None:
    assert is_refused(DERIVED[way](secret, public))


CHANGES: dict[str, Callable[[Any, Any], Any]] = {
    "in place": lambda s, p: p.add_(s),
    "operator": lambda s, p: p.__iadd__(s),
    "out": lambda s, p: torch.mul(s, s, out=p),
    "item": lambda s, p: p.__setitem__(slice(0, 1), s[:1]),
    "copy_": lambda s, p: p.copy_(s),
    "view": lambda s, p: p.view(-1).add_(s),
    "data": lambda s, p: setattr(p, "data", s),
    "data in place": lambda s, p: p.data.add_(s),
    "grad": lambda s, p: setattr(p, "grad", s),
    "foreach": lambda s, p: torch._foreach_add_([p], [s]),
}


@pytest.mark.parametrize("way", CHANGES)
def test_targets_changed_with_private_data_become_private_or_are_refused(
    secret: Any, public: Any, alice: Any, way: str
) -> None:
    try:
        CHANGES[way](secret, public)
    except OperationNotAllowedError:
        assert public.get().tolist() == [10.0, 20.0, 30.0]
    else:
        assert is_refused(public)


def make_restricted_but_plain(bob: Any, secret: Any) -> Any:
    """Return a pointer to a plain tensor at bob that is restricted because of how it came about: a gradient."""
    w = torch.tensor([0.0, 0.0, 0.0], requires_grad=True).send(bob)
    (w * secret).sum().backward()
    return w


def test_a_gradient_from_private_data_is_as_private(secret: Any, bob: Any, alice: Any) -> None:
    w = torch.tensor([0.0, 0.0, 0.0], requires_grad=True).send(bob)
    made_there = torch.zeros_like(w.detach(), requires_grad=True)
    between = w * 2
    loss = (w * secret + made_there * secret + between * secret).sum()
    between.retain_grad()

    loss.backward()

    for p in (w, made_there, between):
        with pytest.raises(GetNotPermittedError):
            p.grad.get()
        with pytest.raises(GetNotPermittedError):
            p.grad.copy().get()
        assert is_refused(p)


def test_a_gradient_seen_through_an_older_view_is_as_private(secret: Any, bob: Any, alice: Any) -> None:
    w = torch.tensor([0.0, 0.0, 0.0], requires_grad=True).send(bob)
    (w * 1).sum().backward()
    view = w.grad.view(-1)

    (w * secret).sum().backward()

    assert is_refused(view)


def test_other_tensors_that_need_gradients_stay_free(secret: Any, bob: Any) -> None:
    free = torch.tensor([1.0], requires_grad=True).send(bob)
    (free * 1).sum().backward()

    make_restricted_but_plain(bob, secret)

    assert free.get().grad.tolist() == [1.0]


@pytest.mark.parametrize("way", [name for name in CHANGES if name not in ("data",)])
def test_a_restriction_without_a_layer_spreads_too(secret: Any, public: Any, bob: Any, alice: Any, way: str) -> None:
    gradient = make_restricted_but_plain(bob, secret).grad

    CHANGES[way](gradient, public)

    assert is_refused(public)


def test_everything_that_shares_memory_with_what_became_private_is_private(
    secret: Any, public: Any, bob: Any, alice: Any
) -> None:
    older = public[1:]
    gradient = make_restricted_but_plain(bob, secret).grad

    public.view(-1).add_(gradient)

    assert is_refused(older)
    assert is_refused(public)


def test_running_statistics_of_private_data_are_private(secret: Any, bob: Any, alice: Any) -> None:
    gradient = make_restricted_but_plain(bob, secret).grad
    mean, variance = torch.zeros(3).send(bob), torch.ones(3).send(bob)

    F.batch_norm(torch.stack([gradient, gradient]), mean, variance, training=True)

    assert is_refused(mean)
    assert is_refused(variance)


def test_weights_used_with_private_data_stay_free(secret: Any, bob: Any) -> None:
    w = torch.ones(3, 3).send(bob)

    secret @ w

    assert w.get().shape == (3, 3)


def test_a_pointer_to_a_pointer_does_not_bypass_the_restriction(secret: Any, bob: Any, alice: Any, me: Any) -> None:
    over_alice = secret.send(alice)

    with pytest.raises(GetNotPermittedError):
        over_alice.get().get()
    over_alice = secret.send(alice)
    with pytest.raises(GetNotPermittedError, match="as 'me through alice'"):
        over_alice.remote_get()  # alice may have it, but not for somebody who may not
    with pytest.raises(GetNotPermittedError):
        (over_alice * 1).get().get()


def test_a_restriction_without_a_layer_travels_over_another_worker(secret: Any, bob: Any, alice: Any) -> None:
    w = make_restricted_but_plain(bob, secret)
    over_alice = w.send(alice)

    with pytest.raises(GetNotPermittedError):
        over_alice.remote_get()


def test_no_message_reveals_private_data(secret: Any, bob: Any, alice: Any, me: Any) -> None:
    id = secret.id_at_location

    for message in (
        Fetch(id),
        Fetch(id, None, True),
        Fetch(id, "grad", True, "alice"),
        Forward(id, None, alice.id, 1, True),
        Forward(id, "grad", alice.id, 2),
        SendOn(id, alice.id, 99),
    ):
        with pytest.raises(GetNotPermittedError):
            me.location_of(bob).ask(message)
    assert (alice.objects_count, len(bob.ledger)) == (0, 0)


def test_an_allowed_user_may_move_it_and_it_stays_private(bob: Any, alice: Any, me: Any) -> None:
    p = store(bob, ["me"], [1.0])

    q = p.move(alice)
    me.user = "eve"

    with pytest.raises(GetNotPermittedError):
        q.get()


def test_the_owner_of_a_worker_may_allow_others_later(secret: Any, bob: Any) -> None:
    bob.get_obj(secret.id_at_location).register_credentials(["me"])

    assert secret.get().child.child.tolist() == [1.0, 2.0, 3.0]


# --- what an answer reveals


class Asked(torch.Tensor):
    @classmethod
    def __torch_function__(cls, *call: Any) -> Any:
        return "asked"


def does_not_ask_sizes() -> bool:
    try:
        return torch.ones(1).new_zeros(torch.ones(1).as_subclass(Asked)) != "asked"
    except TypeError:
        return True


asks_sizes = pytest.mark.skipif(does_not_ask_sizes(), reason="this torch does not ask tensors that are sizes")


@pytest.mark.parametrize(
    "ask",
    [
        lambda s: s[s > 2],
        lambda s: s.nonzero(),
        lambda s: s.unique(),
        lambda s: torch.masked_select(s, s > 2),
        lambda s: torch.bincount(s.long()),
        lambda s: F.one_hot(s.long()),
        lambda s: torch.repeat_interleave(s, s.long()),
        lambda s: torch.repeat_interleave(s.long()),
        lambda s: torch.where(s > 2),
        lambda s: s.to_sparse(),
        lambda s: s[s[0].long() :],
        pytest.param(lambda s: s.new_zeros(s[0].long()), marks=asks_sizes),
        pytest.param(lambda s: torch.zeros_like(s).expand(s[1].long(), 3), marks=asks_sizes),
    ],
)
def test_shapes_that_would_disclose_values_are_refused(secret: Any, public: Any, ask: Callable[[Any], Any]) -> None:
    with pytest.raises(
        ValueRefusedError, match="the shape of its result would reveal private values|it has not been reviewed"
    ):
        ask(secret)


def test_a_worker_that_lets_nothing_leave_hides_shapes(public: Any, bob: Any) -> None:
    bob.policy = permissions.nothing

    with pytest.raises(ValueRefusedError):
        public[public > 15]
    with pytest.raises(GetNotPermittedError, match="this worker lets nothing leave"):
        public.get()


def test_a_worker_may_let_only_published_things_leave(public: Any, bob: Any) -> None:
    bob.policy = permissions.only_published

    with pytest.raises(GetNotPermittedError, match="only published objects"):
        (public + 1).get()
    assert public.publish().get().tolist() == [10.0, 20.0, 30.0]


# --- lineage


def test_every_departure_names_what_it_was_computed_from(public: Any, bob: Any) -> None:
    other = torch.tensor([1.0, 1.0, 1.0]).send(bob)
    w = torch.zeros(3, requires_grad=True).send(bob)
    ids = {p.id_at_location for p in (public, other, w)}

    ((w * public) + other).sum().backward()
    w.grad.get(reason="step")

    assert set(bob.ledger[-1].sources) == ids
    assert bob.ledger[-1].form == "Tensor[3]"


def test_changes_in_place_enter_the_lineage(public: Any, bob: Any) -> None:
    other = torch.tensor([1.0, 1.0, 1.0]).send(bob)
    ids = {public.id_at_location, other.id_at_location}

    public.add_(other)
    public.get()

    assert set(bob.ledger[-1].sources) == ids
