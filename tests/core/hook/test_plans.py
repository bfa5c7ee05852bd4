"""Plans against a plain recursive map, on arguments that hypothesis makes up."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple

import pytest
import toy
from hypothesis import given, settings
from hypothesis import strategies as st
from syft_toy.wrapper import Wrapper
from toy_layers import Negating, Scaled, Watcher

from syft_core.hook import hook_args
from syft_core.hook.hook_args import get_plan
from syft_core.tensors.abstract import AbstractTensor
from syft_core.workers.base import BaseWorker

exhaustive = settings(deadline=None, max_examples=80)

RANKS = {Wrapper: 2, Watcher: 1, Negating: 0}


class Pair(NamedTuple):
    left: Any
    right: Any


class Shape(tuple[Any, ...]):
    """A tuple of another type, as frameworks have for their shapes."""


class Lifting(Negating):
    """Lifts a vector to the one that the test prepared, so that the test can compare by identity."""

    @classmethod
    def lift(cls, plain: Any, **_kwargs: Any) -> Any:
        return plain.lifted


hook_args.default_register_tensor(Lifting)
RANKS[Lifting] = 0

# --- arguments


def vectors() -> st.SearchStrategy[toy.Vector]:
    def make(value: int) -> toy.Vector:
        vector = toy.Vector([value])
        vector.lifted = toy.Vector([-value])
        return vector

    return st.integers(0, 9).map(make)


def put_on(cls: type[AbstractTensor]) -> Any:
    return lambda child: cls().on(child, wrap=False)


layers = st.one_of(
    vectors().map(put_on(Watcher)),
    vectors().map(put_on(Lifting)),
    vectors().map(put_on(Lifting)).map(put_on(Watcher)),
    vectors().map(put_on(Watcher)).map(Wrapper),
    vectors().map(put_on(Lifting)).map(Wrapper),
)
simple = st.one_of(st.integers(-2, 2), st.text("ab", max_size=2), st.none(), st.just(...), st.booleans(), st.floats())
tensors = st.one_of(layers, vectors())


def nested(leaf: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.lists(inner, max_size=3).map(tuple),
            st.lists(inner, max_size=2).map(Shape),
            st.dictionaries(st.text("ab", min_size=1, max_size=2), inner, max_size=2),
            st.dictionaries(st.text("ab", min_size=1, max_size=2), inner, max_size=2).map(OrderedDict),
            st.builds(Pair, inner, inner),
            st.builds(slice, leaf, leaf, leaf),
        ),
        max_leaves=8,
    )


arguments = st.lists(nested(st.one_of(tensors, simple)), max_size=10).map(tuple)
keywords = st.dictionaries(st.sampled_from(["out", "dim", "other"]), nested(st.one_of(tensors, simple)), max_size=2)
names = st.sampled_from(["toy.f", "toy.cat", "toy.Vector.__getitem__", "toy.Vector.sum"])
calls = st.tuples(names, arguments, keywords)

# --- the plain recursive map


def recursively(f: Any, obj: Any) -> Any:
    if isinstance(obj, Pair):
        return Pair(recursively(f, obj.left), recursively(f, obj.right))
    if isinstance(obj, list):
        return [recursively(f, item) for item in obj]
    if isinstance(obj, tuple):
        return type(obj)(recursively(f, item) for item in obj)
    if isinstance(obj, dict):
        return type(obj)((key, recursively(f, value)) for key, value in obj.items())
    if isinstance(obj, slice):
        return slice(recursively(f, obj.start), recursively(f, obj.stop), recursively(f, obj.step))
    return f(obj)


def all_leaves(obj: Any) -> list[Any]:
    found: list[Any] = []
    recursively(found.append, obj)
    return found


def outermost(obj: Any) -> Any:
    """Return the type that comes off first: of all layer types in ``obj``, the one of the highest rank."""
    return max((type(x) for x in all_leaves(obj) if type(x) in RANKS), key=RANKS.__getitem__, default=None)


def take_off(layer: Any, obj: Any) -> Any:
    def one_leaf(x: Any) -> Any:
        if type(x) is layer:
            return x.child
        return x.lifted if type(x) is toy.Vector and layer is Lifting else x

    return recursively(one_leaf, obj)


def alike(one: Any, other: Any) -> bool:
    """Say whether two structures have the same shape, the same types and the very same leaves."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, slice):
        return alike([one.start, one.stop, one.step], [other.start, other.stop, other.step])
    return one is other


def wrapped_like(result: Any, response: Any, wrap_type: type, attributes: dict[str, Any]) -> bool:
    """Say whether ``result`` is ``response`` with ``wrap_type`` on every tensor."""

    def unwrap(x: Any) -> Any:
        right = type(x) is wrap_type and x in made and all(getattr(x, key) == v for key, v in attributes.items())
        return x.child if right else x

    originals = {id(leaf) for leaf in all_leaves(response)}
    made = Identities([leaf for leaf in all_leaves(result) if id(leaf) not in originals])
    tensors_inside = [leaf for leaf in all_leaves(response) if type(leaf) in {*RANKS, toy.Vector}]
    return len(made) == len(tensors_inside) and alike(recursively(unwrap, result), response)


class Identities(list[Any]):
    """A list that compares by identity: ``==`` of vectors is elementwise."""

    def __contains__(self, item: object) -> bool:
        return any(item is known for known in self)


def check_unwrap(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    plan = get_plan(name, args, kwargs)
    layer = outermost((args, kwargs))

    assert plan.layer is layer
    new_args, new_kwargs = plan.unwrap(args, kwargs)
    assert alike(new_args, take_off(layer, args))
    assert alike(new_kwargs, take_off(layer, kwargs))
    if layer is not None:
        assert plan.leader(args, kwargs) is next(x for x in all_leaves((args, kwargs)) if type(x) is layer)


@pytest.fixture(autouse=True)
def empty_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook_args, "hook_method_args_functions", {})
    monkeypatch.setattr(hook_args, "hook_method_response_functions", {})


# --- the properties


def test_the_recursive_map_of_this_file_is_right() -> None:
    vector = toy.Vector([1])
    layer = Watcher().on(vector, wrap=False)

    assert alike(take_off(Watcher, ([layer, 1], slice(layer, None))), ([vector, 1], slice(vector, None)))
    assert not alike([vector], (vector,))
    assert not alike([vector], [toy.Vector([1])])
    assert wrapped_like([layer, 1], [vector, 1], Watcher, {})
    assert not wrapped_like([vector, 1], [vector, 1], Watcher, {})


@exhaustive
@given(calls)
def test_an_unwrap_plan_is_the_recursive_map(call: Any) -> None:
    check_unwrap(*call)


@exhaustive
@given(calls)
def test_the_second_run_of_a_plan_is_like_the_first(call: Any) -> None:
    check_unwrap(*call)
    plans = dict(hook_args.hook_method_args_functions)

    check_unwrap(*call)

    assert hook_args.hook_method_args_functions == plans, "the second run builds nothing"


@exhaustive
@given(st.data(), st.lists(calls, min_size=2, max_size=5))
def test_the_order_in_which_signatures_come_does_not_matter(data: st.DataObject, many: list[Any]) -> None:
    for call in many:
        check_unwrap(*call)
    for call in data.draw(st.permutations(many)):
        check_unwrap(*call)
    hook_args.hook_method_args_functions = {}
    for call in reversed(many):
        check_unwrap(*call)


@exhaustive
@given(arguments.filter(lambda args: outermost(args) is not None))
def test_a_plan_built_by_hand_is_the_recursive_map(args: tuple[Any, ...]) -> None:
    unwrap, type_of = hook_args.build_unwrap_args_from_function(args, return_tuple=True)

    new_args = unwrap(args)

    assert alike(new_args, take_off(outermost(args), args))
    assert type_of(new_args) is type(first_tensor_slot(new_args, args))


@exhaustive
@given(nested(st.one_of(tensors, simple)), st.sampled_from([1, 5]))
def test_a_wrap_plan_is_the_recursive_map(response: Any, scale: int) -> None:
    first = hook_args.hook_response("f", response, wrap_type=Scaled, wrap_args={"scale": scale})
    second = hook_args.hook_response("f", response, wrap_type=Scaled, wrap_args={"scale": scale})
    by_hand = hook_args.build_wrap_response_from_function(response, Scaled, {"scale": scale})(response)

    for result in (first, second, by_hand):
        assert wrapped_like(result, response, Scaled, {"scale": scale})


@exhaustive
@given(st.lists(nested(st.one_of(tensors, simple)), min_size=2, max_size=5))
def test_responses_of_one_name_may_come_in_any_order(responses: list[Any]) -> None:
    for response in (*responses, *reversed(responses)):
        for wrap_type in (Watcher, Scaled):
            assert wrapped_like(hook_args.hook_response("max", response, wrap_type), response, wrap_type, {})


@exhaustive
@given(nested(st.one_of(vectors(), simple)))
def test_wrapping_and_unwrapping_is_the_identity(response: Any) -> None:
    wrapped = hook_args.hook_response("f", response, wrap_type=Watcher)
    marker = Watcher().on(toy.Vector([1]), wrap=False)

    (restored, _), _, _ = hook_args.unwrap_args_from_function("f", (wrapped, marker), {})

    assert alike(restored, response)


@exhaustive
@given(nested(st.one_of(tensors, simple)))
def test_a_registering_plan_keeps_the_structure_and_takes_one_id_per_tensor(response: Any) -> None:
    inside = [leaf for leaf in all_leaves(response) if type(leaf) in {*RANKS, toy.Vector}]
    bob, ids = BaseWorker(id="bob"), list(range(100))

    result = hook_args.register_response("f", response, ids, bob)

    assert alike(result, response)
    assert len(ids) == 100 - len(inside)
    assert all(bob.get_obj(i) is tensor for i, tensor in enumerate(inside))


@exhaustive
@given(nested(st.one_of(tensors, simple)))
def test_a_rule_is_one_exactly_where_a_tensor_is(obj: Any) -> None:
    assert hook_args.build_rule(obj) == skeleton(obj)


def skeleton(obj: Any) -> Any:
    if isinstance(obj, list):
        return [skeleton(item) for item in obj]
    if isinstance(obj, tuple):
        return tuple(skeleton(item) for item in obj)
    if isinstance(obj, slice):
        return int(any(type(leaf) in {*RANKS, toy.Vector} for leaf in all_leaves(obj)))
    return int(isinstance(obj, dict) or type(obj) in {*RANKS, toy.Vector})


def first_tensor_slot(new: Any, old: Any) -> Any:
    """Return what stands in ``new`` where ``old`` has its first tensor or dict, depth first."""
    for after, before in zip(new, old, strict=True):
        if isinstance(before, list | tuple):
            found = first_tensor_slot(after, before)
            if found is not None:
                return found
        elif skeleton(before):
            return after
    return None
