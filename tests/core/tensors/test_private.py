from __future__ import annotations

from typing import Any

import pytest
import toy
from syft_toy.wrapper import Wrapper
from toy_layers import Scaled, values

from syft_core.exceptions import OperationNotAllowedError, SendNotPermittedError, SerdeError
from syft_core.peer import Peer
from syft_core.serde import Context, codecs, deserialize, serialize
from syft_core.tensors.private import (
    PrivateTensor,
    get_allowed_users,
    remove_restriction,
    require_sendable,
    restrict,
)

pytestmark = pytest.mark.usefixtures("hook")


def private(*users: str, numbers: tuple[float, ...] = (1.0, 2.0)) -> Any:
    return PrivateTensor(users).on(toy.Vector(numbers))


def test_results_are_for_the_users_whom_every_operand_allows() -> None:
    result = private("ann", "eve") + private("ann", "bob")

    assert values(result) == [2.0, 4.0]
    assert get_allowed_users(result) == {"ann"}


def test_results_with_plain_operands_keep_the_restriction() -> None:
    result = toy.cat([private("ann"), toy.Vector([3.0])])

    assert values(result) == [1.0, 2.0, 3.0]
    assert get_allowed_users(result) == {"ann"}


def test_operands_without_a_common_user_give_results_for_nobody() -> None:
    assert get_allowed_users(private("ann") * private("bob")) == frozenset()


def test_a_target_is_restricted_to_the_users_of_what_is_written_into_it() -> None:
    target, out = private("ann", "bob"), private("ann", "bob")

    target += private("ann")
    toy.add(private("bob"), 1.0, out=out)

    assert get_allowed_users(target) == {"ann"}
    assert get_allowed_users(out) == {"bob"}
    assert values(out) == [2.0, 3.0]


def test_a_plain_tensor_is_not_changed_into_a_private_one() -> None:
    plain = toy.Vector([1.0, 2.0])

    with pytest.raises(OperationNotAllowedError, match="a plain tensor cannot be changed in place into a private one"):
        toy.add(private("ann"), 1.0, out=plain)

    assert plain.tolist() == [1.0, 2.0]


def test_it_shows_its_users_and_no_values() -> None:
    assert str(private("eve", "ann").child) == "PrivateTensor>(values for ann, eve)"
    assert str(private().child) == "PrivateTensor>(values for nobody)"


def test_the_users_can_be_replaced() -> None:
    layer = private("ann").child

    assert layer.register_credentials("bob") is layer
    assert (layer.allow("ann"), layer.allow("bob")) == (False, True)
    assert layer.register_credentials(["ann", "bob"]).allowed_users == {"ann", "bob"}


def test_two_layers_allow_the_users_whom_both_allow() -> None:
    assert get_allowed_users(PrivateTensor(["ann", "bob"]).on(private("bob", "eve"))) == {"bob"}
    assert get_allowed_users(Scaled().on(toy.Vector([1.0]))) is None
    assert get_allowed_users(3) is None


def test_a_restriction_is_added_once() -> None:
    chain = private("ann")

    assert restrict(chain, frozenset(["ann"])) is chain
    assert restrict(chain, None) is chain
    assert get_allowed_users(restrict(chain, frozenset())) == frozenset()
    assert get_allowed_users(restrict(toy.Vector([1.0]), frozenset(["bob"]))) == {"bob"}


def test_a_restriction_is_removed_wherever_it_is_in_the_chain() -> None:
    vector = toy.Vector([1.0])
    plain, scaled = PrivateTensor(["ann"]).on(vector), Scaled(3).on(PrivateTensor(["ann"]).on(vector, wrap=False))

    assert remove_restriction(plain) is vector
    assert remove_restriction(vector) is vector
    bare = remove_restriction(scaled)
    assert str(bare) == "(Wrapper)>Scaled>Vector([1.0])"
    assert bare.child.scale == 3
    assert isinstance(bare, Wrapper)
    assert get_allowed_users(scaled) == {"ann"}  # the chain itself stays as it is


def test_only_an_allowed_user_sends_it() -> None:
    require_sendable(private("ann"), Peer("laptop", "ann"))
    require_sendable(toy.Vector([1.0]), Peer("laptop"))

    for sender in (Peer("laptop", "eve"), Peer("ann"), Peer("laptop", None)):
        with pytest.raises(SendNotPermittedError):
            require_sendable(private("ann"), sender)


def test_the_users_travel_with_it() -> None:
    received = deserialize(serialize(private("ann", "bob").child))

    assert received.allowed_users == {"ann", "bob"}


@pytest.mark.parametrize("users", [["ann"], frozenset([1]), "ann", None])
def test_malformed_users_are_refused(users: Any) -> None:
    layer = private("ann").child
    layer.allowed_users = users
    codec = codecs.by_type[PrivateTensor]

    with pytest.raises(SerdeError):
        codec.detail(codec.simplify(layer, Context()), Context())
