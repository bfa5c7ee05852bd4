from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple

import pytest
import toy
from syft_toy.wrapper import Wrapper
from toy_layers import Negating, Pointer, Scaled, Watcher, under, values

from syft_core.exceptions import (
    AlreadyRegisteredError,
    MixedLayersError,
    ObjectNotFoundError,
    PureFrameworkTensorFoundError,
    RemoteObjectFoundError,
    ResponseSignatureError,
)
from syft_core.hook import caches, hook_args
from syft_core.tensors.abstract import AbstractTensor
from syft_core.workers.party.base import BaseWorker

CACHES = (
    "hook_method_args_functions",
    "hook_method_response_functions",
    "get_tensor_type_functions",
    "register_response_functions",
)
PUBLISHED = """
hook_method_args_functions hook_method_response_functions get_tensor_type_functions base_types one get_child type_rule
forward_func backward_func ambiguous_methods ambiguous_functions register_type_rule register_forward_func
register_backward_func register_ambiguous_method register_ambiguous_function default_backward_func
default_register_tensor unwrap_args_from_method unwrap_args_from_function build_unwrap_args_from_function hook_response
build_wrap_reponse_from_function build_rule build_unwrap_args_with_rules build_get_tensor_type one_layer two_layers
three_layers four_layers get_element_at build_wrap_response_with_rules zero_fold one_fold two_fold three_fold four_fold
five_fold six_fold seven_fold eight_fold many_fold typed_identity register_response_functions register_response
build_register_response_function register_tensor build_register_response
""".split()


@pytest.fixture(autouse=True)
def hooked(hook: Any) -> None:
    """Workers store tensors of a framework that is hooked."""


class Pair(NamedTuple):
    left: Any
    right: Any


@pytest.fixture
def vector() -> toy.Vector:
    return toy.Vector([1.0, 2.0])


@pytest.fixture
def layer(vector: toy.Vector) -> Watcher:
    return Watcher().on(vector, wrap=False)


@pytest.fixture
def empty_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in CACHES:
        monkeypatch.setattr(hook_args, name, {})


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_published_symbol_exists(name: str) -> None:
    assert hasattr(hook_args, name)
    assert name in hook_args.__all__


def test_all_lists_existing_names_once() -> None:
    assert [name for name in hook_args.__all__ if not hasattr(hook_args, name)] == []
    assert len(set(hook_args.__all__)) == len(hook_args.__all__)


# --- the registries


def test_the_registries_have_an_example_entry() -> None:
    assert hook_args.forward_func["my_syft_tensor_type"] is hook_args.get_child
    assert hook_args.backward_func["my_syft_tensor_type"] is hook_args.default_backward_func


def test_a_type_works_immediately_after_its_registration(vector: toy.Vector) -> None:
    class Custom:
        def __init__(self, child: Any = None) -> None:
            self.child = child

    custom = Custom(vector)
    rule_before = hook_args.build_rule((custom,))
    hook_args.register_type_rule({Custom: hook_args.one})
    hook_args.register_forward_func({Custom: lambda x, **_: ("child of", x.child)})
    hook_args.register_backward_func({Custom: lambda child, **_: Custom(child)})

    new_self, _, _ = hook_args.unwrap_args_from_method("custom", custom, (), {})
    wrapped = hook_args.hook_response("custom", vector, wrap_type=Custom)

    assert rule_before == (0,)
    assert hook_args.build_rule((custom,)) == (1,)
    assert new_self == ("child of", vector)
    assert type(wrapped) is Custom
    assert wrapped.child is vector


def test_one_call_registers_a_layer_type(vector: toy.Vector) -> None:
    class Plain(AbstractTensor):
        pass

    hook_args.default_register_tensor(Plain)

    layer = Plain().on(vector, wrap=False)
    assert hook_args.build_rule(layer) == 1
    assert hook_args.unwrap_args_from_method("plain", layer, (), {})[0] is vector
    assert type(hook_args.hook_response("plain", vector, wrap_type=Plain)) is Plain


def test_several_types_may_be_registered_in_one_call() -> None:
    class First(AbstractTensor):
        pass

    class Second(AbstractTensor):
        pass

    hook_args.default_register_tensor(First, Second)

    assert First in hook_args.backward_func
    assert Second in hook_args.backward_func


def test_registering_a_type_twice_is_refused_with_advice() -> None:
    with pytest.raises(AlreadyRegisteredError) as caught:
        hook_args.default_register_tensor(Watcher)

    assert str(caught.value) == (
        "cannot register toy_layers.Watcher in 'backward_func': it is registered already; "
        "register it once, or use another type"
    )


def test_another_rule_for_a_known_type_is_refused() -> None:
    with pytest.raises(AlreadyRegisteredError, match=r"cannot register builtins\.int in 'type_rule'"):
        hook_args.register_type_rule({int: hook_args.one})


def test_the_default_backward_func_keeps_attributes(vector: toy.Vector) -> None:
    put_on = hook_args.default_backward_func(Scaled)

    layer = put_on(vector, scale=3)

    assert type(layer) is Scaled
    assert layer.scale == 3
    assert layer.child is vector


# --- unwrapping


def test_the_outermost_layer_of_a_method_call_is_unwrapped(layer: Watcher, vector: toy.Vector) -> None:
    other = under(Watcher(), 3.0)

    result = hook_args.unwrap_args_from_method("add", layer, (other, 2, "mode"), {"alpha": other, "beta": 1})

    assert result == (vector, (other.child, 2, "mode"), {"alpha": other.child, "beta": 1})
    assert result[0] is vector


def test_the_outermost_layer_of_a_function_call_is_unwrapped_and_the_types_returned(
    layer: Watcher, vector: toy.Vector
) -> None:
    args = ([layer, layer], 1)

    short = hook_args.unwrap_args_from_function("f", args, {"out": layer})
    long = hook_args.unwrap_args_from_function("f", args, {"out": layer}, return_args_type=True)

    new_args, new_kwargs, new_type = short
    assert new_args == ([vector, vector], 1)
    assert new_kwargs == {"out": vector}
    assert new_type is toy.Vector
    assert long[2:] == (toy.Vector, Watcher)


def test_a_function_call_may_have_its_only_layer_in_a_keyword(layer: Watcher, vector: toy.Vector) -> None:
    new_args, new_kwargs, new_type = hook_args.unwrap_args_from_function("f", (1,), {"x": layer})

    assert (new_args, new_kwargs, new_type) == ((1,), {"x": vector}, toy.Vector)


def test_one_layer_is_unwrapped_at_a_time(layer: Watcher) -> None:
    wrapper = Wrapper(layer)

    new_args, _, new_type, old_type = hook_args.unwrap_args_from_function("f", (wrapper,), {}, return_args_type=True)

    assert new_args == (layer,)
    assert (new_type, old_type) == (Watcher, Wrapper)


def test_lists_stay_lists_and_tuples_stay_tuples(layer: Watcher, vector: toy.Vector) -> None:
    args = ([layer, (layer, [layer])], (layer,), [], (), Pair(layer, 1), {"a": [layer]}, slice(layer, None))

    new_args, _, _ = hook_args.unwrap_args_from_function("f", args, {})

    assert new_args == (
        [vector, (vector, [vector])],
        (vector,),
        [],
        (),
        Pair(vector, 1),
        {"a": [vector]},
        slice(vector, None),
    )
    assert type(new_args[4]) is Pair


def test_subclasses_of_dict_keep_their_type(layer: Watcher, vector: toy.Vector) -> None:
    new_args, _, _ = hook_args.unwrap_args_from_function("f", (OrderedDict(a=layer), layer), {})

    assert new_args[0] == OrderedDict(a=vector)
    assert type(new_args[0]) is OrderedDict


def test_subclasses_of_list_and_tuple_keep_their_type(layer: Watcher, vector: toy.Vector) -> None:
    class Shape(tuple[Any, ...]):
        pass

    class Batch(list[Any]):
        pass

    (shape, batch), _, _ = hook_args.unwrap_args_from_function("f", (Shape([1, layer]), Batch([layer])), {})

    assert (type(shape), type(batch)) == (Shape, Batch)
    assert (tuple(shape), list(batch)) == ((1, vector), [vector])


def test_arguments_may_nest_six_deep(layer: Watcher, vector: toy.Vector) -> None:
    new_args, _, new_type = hook_args.unwrap_args_from_function("f", (1, [2, ([(0, [layer])],)]), {})

    assert new_args == (1, [2, ([(0, [vector])],)])
    assert new_type is toy.Vector


def test_a_layer_lifts_plain_operands(vector: toy.Vector) -> None:
    layer = under(Negating(), 5.0, 6.0)

    _, flat, _ = hook_args.unwrap_args_from_method("add", layer, (vector,), {})
    nested, kwargs, _ = hook_args.unwrap_args_from_function("f", ([layer, vector],), {"out": vector})

    assert flat[0].tolist() == [-1.0, -2.0]
    assert nested[0][0] is layer.child
    assert nested[0][1].tolist() == [-1.0, -2.0]
    assert kwargs["out"].tolist() == [-1.0, -2.0]


def test_a_call_without_layers_is_refused_by_name(vector: toy.Vector) -> None:
    with pytest.raises(PureFrameworkTensorFoundError) as caught:
        hook_args.unwrap_args_from_function("toy.add", (vector, 1), {})

    assert str(caught.value) == (
        "cannot unwrap the arguments of 'toy.add': none of them has a child; call the framework's own function"
    )


@pytest.mark.parametrize("nest", [lambda p: (p,), lambda p: ([p],), lambda p: (1, {"a": p})])
def test_a_pointer_is_found_and_raised_with_the_error(nest: Any) -> None:
    pointer = Pointer("bob")

    with pytest.raises(RemoteObjectFoundError) as caught:
        hook_args.unwrap_args_from_function("f", nest(pointer), {})

    assert caught.value.pointer is pointer


def test_a_pointer_and_an_opaque_layer_are_refused() -> None:
    with pytest.raises(MixedLayersError, match="it mixes a Scaled with a Pointer"):
        hook_args.unwrap_args_from_function("f", (under(Scaled(), 1.0), Pointer("bob")), {})


def test_arguments_are_not_changed(layer: Watcher) -> None:
    inner = [layer]
    kwargs = {"x": inner}

    hook_args.unwrap_args_from_function("f", (inner,), kwargs)

    assert inner == [layer]
    assert kwargs == {"x": [layer]}


# --- wrapping


def test_a_response_is_wrapped_in_the_layer(vector: toy.Vector) -> None:
    wrapped = hook_args.hook_response("f", vector, wrap_type=Scaled, wrap_args={"scale": 4})

    assert type(wrapped) is Scaled
    assert wrapped.scale == 4
    assert wrapped.child is vector


def test_a_response_keeps_its_structure(vector: toy.Vector) -> None:
    response = ([vector, 1], (vector, "a"), Pair(None, vector), {"a": (vector,)}, 3)

    wrapped = hook_args.hook_response("f", response, wrap_type=Watcher)

    assert str(wrapped) == (
        "([Watcher>Vector([1.0, 2.0]), 1], (Watcher>Vector([1.0, 2.0]), 'a'), "
        "Pair(left=None, right=Watcher>Vector([1.0, 2.0])), {'a': (Watcher>Vector([1.0, 2.0]),)}, 3)"
    )


@pytest.mark.parametrize("response", [None, 1, 2.5, True, "text", ..., NotImplemented])
def test_values_that_are_not_tensors_are_returned_unchanged(response: Any) -> None:
    assert hook_args.hook_response("f", response, wrap_type=Watcher) is response


@pytest.mark.parametrize("name", ["__iadd__", "__isub__", "__imul__", "__itruediv__", "__ipow__", "__ixor__"])
def test_an_in_place_operator_returns_the_new_self(name: str, layer: Watcher, vector: toy.Vector) -> None:
    assert hook_args.hook_response(name, vector, wrap_type=Watcher, new_self=layer) is layer


@pytest.mark.parametrize("name", ["__invert__", "__index__", "__int__", "__iter__", "add"])
def test_other_methods_do_not_return_the_new_self(name: str, layer: Watcher, vector: toy.Vector) -> None:
    wrapped = hook_args.hook_response(name, vector, wrap_type=Watcher, new_self=layer)

    assert wrapped is not layer
    assert wrapped.child is vector


def test_another_response_signature_under_the_same_name_is_wrapped_correctly(vector: toy.Vector) -> None:
    alone = hook_args.hook_response("max", vector, wrap_type=Watcher)
    pair = hook_args.hook_response("max", (vector, vector), wrap_type=Watcher)
    three = hook_args.hook_response("max", (vector, vector, 1), wrap_type=Watcher)

    assert type(alone) is Watcher
    assert [type(item) for item in pair] == [Watcher, Watcher]
    assert [type(item) for item in three] == [Watcher, Watcher, int]


# --- registering


@pytest.fixture
def bob() -> BaseWorker:
    return BaseWorker(id="bob")


def test_a_response_is_stored_under_the_given_ids_in_order(bob: BaseWorker) -> None:
    a, b, c = (Wrapper(toy.Vector([float(i)])) for i in range(3))
    ids = [11, 12, 13, 14]

    registered = hook_args.register_response("f", (1, [a, (b,)], "text", {"k": c}), ids, bob)

    assert registered == (1, [a, (b,)], "text", {"k": c})
    assert registered[1][0] is a
    assert [bob.get_obj(i) for i in (11, 12, 13)] == [a, b, c]
    assert ids == [14], "ids that were used are taken off the list"
    assert (a.id, a.owner) == (11, bob)


def test_too_few_ids_raise_a_response_signature_error(bob: BaseWorker) -> None:
    with pytest.raises(ResponseSignatureError, match="it has more tensors than ids were given"):
        hook_args.register_response("f", (toy.Vector([1.0]), toy.Vector([2.0])), [11], bob)
    with pytest.raises(ObjectNotFoundError):
        bob.get_obj(11)


def test_a_response_without_tensors_needs_no_ids(bob: BaseWorker) -> None:
    assert hook_args.register_response("f", (1, None), [], bob) == (1, None)


def test_plain_vectors_are_stored_too(bob: BaseWorker) -> None:
    vector = toy.Vector([1.0])

    hook_args.register_response("f", vector, [11], bob)

    assert bob.get_obj(11) is vector


def test_another_response_signature_under_the_same_name_is_registered_correctly(bob: BaseWorker) -> None:
    first, second = toy.Vector([1.0]), toy.Vector([2.0])

    hook_args.register_response("max", first, [1], bob)
    hook_args.register_response("max", (first, second), [2, 3], bob)

    assert [bob.get_obj(i) for i in (2, 3)] == [first, second]


# --- the caches


def run_every_function(layer: Watcher, bob: BaseWorker) -> list[str]:
    vector = layer.child
    return [
        str(hook_args.unwrap_args_from_method("m", layer, ([layer], 1), {"k": layer})),
        str(hook_args.unwrap_args_from_function("f", ([layer],), {}, return_args_type=True)),
        str(hook_args.hook_response("f", (vector, [vector]), wrap_type=Watcher)),
        str(hook_args.register_response("f", (vector, 1), [1], bob)),
    ]


@pytest.mark.parametrize("name", CACHES)
def test_a_cache_may_be_replaced_at_any_time(
    monkeypatch: pytest.MonkeyPatch, name: str, layer: Watcher, bob: BaseWorker
) -> None:
    before = run_every_function(layer, bob)

    monkeypatch.setattr(hook_args, name, {})
    first, again = run_every_function(layer, bob), run_every_function(layer, bob)

    assert first == again == before
    assert getattr(hook_args, name), "the new dict is used"


@pytest.mark.usefixtures("empty_caches")
def test_registering_a_type_clears_the_caches(layer: Watcher, bob: BaseWorker) -> None:
    class Late(AbstractTensor):
        pass

    run_every_function(layer, bob)

    hook_args.default_register_tensor(Late)

    assert [name for name in CACHES if getattr(hook_args, name)] == []


@pytest.mark.usefixtures("empty_caches")
def test_the_caches_stay_bounded(monkeypatch: pytest.MonkeyPatch, layer: Watcher, bob: BaseWorker) -> None:
    monkeypatch.setattr(caches, "LIMIT", 5)
    vector = layer.child

    for n in range(40):
        nested = [[layer] * n, layer]
        assert hook_args.unwrap_args_from_function("f", (nested,), {})[0] == ([[vector] * n, vector],)
        assert values(hook_args.hook_response("f", [vector] * n + [1, vector], wrap_type=Watcher)[-1]) == [1.0, 2.0]
        hook_args.register_response("f", [vector] * n, list(range(n)), bob)
        assert max(len(getattr(hook_args, name)) for name in CACHES) <= 5


@pytest.mark.usefixtures("empty_caches")
def test_one_signature_has_one_plan(layer: Watcher) -> None:
    hook_args.unwrap_args_from_function("f", ([layer, 1],), {})
    plans = len(hook_args.hook_method_args_functions)

    for _ in range(5):
        hook_args.unwrap_args_from_function("f", ([under(Watcher(), 5.0), 2],), {})

    assert len(hook_args.hook_method_args_functions) == plans


@pytest.mark.usefixtures("empty_caches")
def test_operations_whose_arguments_are_nested_in_many_ways_do_not_fill_the_cache(layer: Watcher) -> None:
    hook_args.register_ambiguous_function("toy.ambiguous")
    hook_args.register_ambiguous_method("ambiguous_method")

    for n in range(1, 20):
        for name in ("toy.ambiguous", "toy.Vector.ambiguous_method"):
            new_args, _, _ = hook_args.unwrap_args_from_function(name, ([layer] * n,), {})
            assert new_args == ([layer.child] * n,)

    assert len(hook_args.hook_method_args_functions) == 3
    assert "toy.ambiguous" in hook_args.ambiguous_functions
    assert "ambiguous_method" in hook_args.ambiguous_methods


@pytest.mark.usefixtures("empty_caches")
def test_an_operation_that_becomes_ambiguous_loses_its_cached_plans(layer: Watcher) -> None:
    hook_args.unwrap_args_from_function("toy.becomes_ambiguous", ([layer],), {})

    hook_args.register_ambiguous_function("toy.becomes_ambiguous")

    assert hook_args.hook_method_args_functions == {}
