from __future__ import annotations

from typing import Any

import pytest
import toy
from syft_toy.wrapper import Wrapper
from toy_layers import Pointer, Scaled, Watcher

from syft_core.exceptions import (
    NotRegisteredError,
    PlanMismatchError,
    ResponseSignatureError,
)
from syft_core.hook import hook_args
from syft_core.tensors.abstract import AbstractTensor
from syft_core.workers.party.base import BaseWorker

pytestmark = pytest.mark.usefixtures("hook")


@pytest.fixture
def vector() -> toy.Vector:
    return toy.Vector([1.0, 2.0])


def test_the_old_spelling_builds_the_same(vector: toy.Vector) -> None:
    assert hook_args.build_wrap_reponse_from_function is hook_args.build_wrap_response_from_function


def test_the_published_example_of_a_wrapped_pointer() -> None:
    pointer = Pointer("bob")

    f = hook_args.build_wrap_reponse_from_function(pointer, Wrapper, {})

    assert str(f(pointer)) == "(Wrapper)>[Pointer -> bob]"


def test_a_wrapping_plan_uses_the_attributes_it_was_built_with(vector: toy.Vector) -> None:
    f = hook_args.build_wrap_reponse_from_function((1, vector), Scaled, {"scale": 2})

    number, wrapped = f((7, vector))

    assert number == 7
    assert wrapped.scale == 2


def test_a_wrapping_plan_refuses_another_signature(vector: toy.Vector) -> None:
    f = hook_args.build_wrap_reponse_from_function((1, vector), Watcher, {})

    for response in ((1, vector, vector), (1,), [1, vector], (vector, vector), (1, 1), ("a", vector)):
        with pytest.raises(PlanMismatchError):
            f(response)


def test_a_wrapping_plan_from_rules_returns_the_requested_container(vector: toy.Vector) -> None:
    def build(response: Any, **how: bool) -> Any:
        rules = hook_args.build_rule(response)
        return hook_args.build_wrap_response_with_rules(response, rules, Watcher, {}, **how)(response)

    assert type(build((vector,))) is Watcher
    assert [type(build((vector,), return_tuple=True)), len(build((vector,), return_tuple=True))] == [tuple, 1]
    assert type(build((vector,), return_list=True)) is list
    assert type(build((vector, 1), return_list=True)) is list
    assert type(build((vector, 1))) is tuple
    assert type(build([vector, 1])) is list
    assert type(build([vector])) is list


def test_a_wrapping_plan_follows_its_rules(vector: toy.Vector) -> None:
    f = hook_args.build_wrap_response_with_rules((vector, vector), (0, 1), Watcher, {})

    left, right = f((vector, vector))

    assert left is vector
    assert type(right) is Watcher


def test_wrapping_with_an_unknown_type_is_refused_with_advice(vector: toy.Vector) -> None:
    class Unknown(AbstractTensor):
        pass

    with pytest.raises(NotRegisteredError, match="cannot find .*Unknown in 'backward_func': it is not registered") as c:
        hook_args.hook_response("f", vector, wrap_type=Unknown)

    assert "`syft_core.hook.hook_args.default_register_tensor(YourTensor)`" in str(c.value)


@pytest.fixture
def bob() -> BaseWorker:
    return BaseWorker(id="bob")


def test_a_registering_plan_is_exact(bob: BaseWorker) -> None:
    vector = toy.Vector([1.0])
    f = hook_args.build_register_response_function((1, vector))

    assert f((2, vector), response_ids=[5], owner=bob) == (2, vector)
    assert bob.get_obj(5) is vector
    with pytest.raises(PlanMismatchError):
        f((2, vector, vector), response_ids=[5, 6], owner=bob)


def test_a_registering_plan_from_rules_follows_the_rules(bob: BaseWorker) -> None:
    vector = toy.Vector([1.0])

    def build(response: Any, rules: Any, **how: bool) -> Any:
        return hook_args.build_register_response(response, rules, **how)(response, response_ids=[5], owner=bob)

    assert build((vector,), (1,)) is vector
    assert build((vector,), (1,), return_tuple=True) == (vector,)
    assert build([vector], [1]) == [vector]
    assert build((vector, vector), (0, 1)) == (vector, vector)


def test_a_tensor_is_registered_under_the_next_id_and_returned(bob: BaseWorker) -> None:
    x = Wrapper(toy.Vector([1.0]))
    ids = [8, 9]

    assert hook_args.register_tensor(x, bob, ids) is x
    assert (x.id, x.owner, bob.get_obj(8), ids) == (8, bob, x, [9])


def test_a_tensor_without_ids_is_registered_under_its_own(bob: BaseWorker) -> None:
    x = Wrapper(toy.Vector([1.0]))
    x.id = "mine"

    hook_args.register_tensor(x, bob)
    hook_args.register_tensor(toy.Vector([1.0]), bob)

    assert bob.get_obj("mine") is x


def test_a_tensor_that_is_registered_again_leaves_its_old_id(bob: BaseWorker) -> None:
    x = Wrapper(toy.Vector([1.0]))

    hook_args.register_tensor(x, bob, [1])
    hook_args.register_tensor(x, bob, [2])

    assert bob.get_obj(2) is x
    with pytest.raises(LookupError):
        bob.get_obj(1)


def test_a_tensor_without_an_id_left_is_refused(bob: BaseWorker) -> None:
    with pytest.raises(ResponseSignatureError):
        hook_args.register_tensor(toy.Vector([1.0]), bob, [])
