"""Arrays travel as tensors do: every name of a tensor's travels, as far as it makes sense without gradients."""

from __future__ import annotations

import copy
from typing import Any

import pytest

pytest.importorskip("numpy")

import numpy as np

import syft_core as sy
from syft_core.exceptions import (
    AlreadyRetrievedError,
    GetNotPermittedError,
    InvalidTensorForRemoteGetError,
    NotCollocatedError,
    ObjectNotFoundError,
    SendNotPermittedError,
    ValueRefusedError,
    WorkerNotFoundError,
)
from syft_core.pointers.pointer_tensor import PointerTensor


@pytest.fixture
def x(numpy_hook: Any) -> Any:
    return numpy_hook.array([1.0, 2.0, 3.0])


def values(fetched: Any) -> list[float]:
    return fetched.child.tolist()  # type: ignore[no-any-return]


def test_in_place_and_out_keep_the_object(x: Any, carol: Any) -> None:
    p = x.send(carol)
    q = p

    q += 1

    assert q is p
    assert np.multiply(p, 2, out=p) is p
    assert values(p.get()) == [4.0, 6.0, 8.0]
    assert carol.objects_count == 0


def test_arrays_move(x: Any, carol: Any, dave: Any) -> None:
    p = x.send(carol)

    q = p.move(dave)

    assert (q.location, carol.objects_count, dave.objects_count) == (dave, 0, 1)
    with pytest.raises(AlreadyRetrievedError):
        p + 1
    assert values(q.send(carol).get().get()) == [1.0, 2.0, 3.0]


def test_copies_are_made_where_the_array_is(x: Any, carol: Any) -> None:
    p = x.send(carol)

    for twin in (p.copy(), copy.copy(p), copy.deepcopy(p)):
        twin += 1
        assert values(twin.get()) == [2.0, 3.0, 4.0]
    assert values(p.get()) == [1.0, 2.0, 3.0]


def test_tags_and_search(x: Any, carol: Any) -> None:
    p = x.send(carol).tag("#x").describe("three numbers")

    (found,) = carol.search(["#x", "three"])

    assert (found.id_at_location, found.tags, found.description) == (p.id_at_location, {"#x"}, "three numbers")


def test_values_and_mixtures_are_refused(x: Any, carol: Any, dave: Any) -> None:
    p = x.send(carol)

    for ask in (lambda: p.tolist(), lambda: float(p.sum()), lambda: bool(p.all()), lambda: p.item(0)):
        with pytest.raises(ValueRefusedError):
            ask()
    with pytest.raises(NotCollocatedError, match="'carol' and 'dave'"):
        np.add(p, x.send(dave))
    with pytest.raises(NotCollocatedError, match="'carol' and in this process"):
        p + np.ones(3)
    assert values((p + np.float64(1)).get()) == [2.0, 3.0, 4.0]


# --- the names of the journeys, one by one


def test_send_takes_its_words(x: Any, carol: Any) -> None:
    assert type(x.send(carol, no_wrap=True)) is PointerTensor
    kept = x.send(carol, garbage_collect_data=False)
    del kept
    assert carol.objects_count == 1
    assert x.copy().send(carol, inplace=True).location is carol
    assert x.send("carol").location is carol


def test_what_arrays_cannot_do_is_said(x: Any, carol: Any, dave: Any) -> None:
    for ask in (
        lambda: x.send(carol, requires_grad=True),
        lambda: x.send(carol, preinitialize_grad=True),
        lambda: x.send(carol).move(dave, requires_grad=True),
    ):
        with pytest.raises(TypeError, match="cannot bring gradients back: numpy computes none"):
            ask()
    with pytest.raises(AttributeError, match="cannot read 'grad'"):
        x.send(carol).grad  # noqa: B018  # asking is the act


def test_bad_journeys_are_refused_and_harm_nothing(x: Any, carol: Any, dave: Any) -> None:
    p = x.send(carol)

    for call in (lambda: x.send("nobody"), lambda: p.move("nobody"), lambda: p.remote_send("nobody")):
        with pytest.raises(WorkerNotFoundError, match="cannot find worker 'nobody'"):
            call()
    with pytest.raises(TypeError, match="cannot send to nobody"):
        x.send()
    with pytest.raises(TypeError, match="cannot send in place to 2 workers"):
        x.send_(carol, dave)
    with pytest.raises(ValueError, match="could not be broadcast"):
        p + x[:2].send(carol)
    with pytest.raises(InvalidTensorForRemoteGetError, match="it is not a pointer"):
        p.mid_get()
    assert values(p.get()) == [1.0, 2.0, 3.0]
    with pytest.raises(AlreadyRetrievedError, match="it was fetched by 'me'"):
        p.get()
    assert (carol.objects_count, dave.objects_count) == (0, 0)


def test_get_takes_its_words(x: Any, carol: Any) -> None:
    p = x.send(carol)

    assert values(p.get(deregister_ptr=False, reason="a look")) == values(p.get(user="me")) == [1.0, 2.0, 3.0]
    assert [line.reason for line in carol.ledger] == ["a look", ""]


def test_a_dead_pointer_says_what_became_of_the_array(x: Any, carol: Any) -> None:
    p = x.send(carol)
    second = p.child.clone()
    p.get()

    with pytest.raises(ObjectNotFoundError, match="it was fetched by 'me'"):
        second.shape  # noqa: B018  # asking is the act


def test_moves_here_and_nowhere(x: Any, carol: Any, numpy_hook: Any) -> None:
    p = x.send(carol)

    assert p.move(carol) is p
    assert values(p.move(numpy_hook.local_worker)) == [1.0, 2.0, 3.0]


def test_remote_send_and_remote_get(x: Any, carol: Any, dave: Any) -> None:
    p = x.send(carol)

    assert p.remote_send(dave) is p
    assert (p.location, carol.get_obj(p.id_at_location).location) == (carol, dave)
    assert values((p + 1).get().get()) == [2.0, 3.0, 4.0]
    assert values(p.remote_get().get()) == [1.0, 2.0, 3.0]
    assert (carol.objects_count, dave.objects_count) == (0, 0)


def test_pointers_to_pointers(x: Any, carol: Any, dave: Any) -> None:
    pp = x.send(carol).send(dave)

    assert (pp.location, pp.shape, pp.dtype) == (dave, (3,), np.dtype("f8"))
    assert values((pp * 2).get().get()) == [2.0, 4.0, 6.0]
    assert values(pp.mid_get().get()) == [1.0, 2.0, 3.0]


def test_a_second_pointer_to_the_same_array(x: Any, carol: Any) -> None:
    p = x.send(carol)
    second = p.child.clone()
    del p

    assert values(second.get()) == [1.0, 2.0, 3.0]


def test_several_workers_and_combined_pointers(x: Any, carol: Any, dave: Any) -> None:
    both = x.send(carol).combine(x.send(dave))

    assert [values(part) for part in (both + 1).get()] == [[2.0, 3.0, 4.0]] * 2
    assert values(sy.combine_pointers(x.send(carol), x.send(dave)).get(sum_results=True)) == [2.0, 4.0, 6.0]
    with pytest.raises(ValueError, match="two pointers to worker 'carol'"):
        x.send(carol).combine(x.send(carol))


def test_private_arrays(x: Any, carol: Any, dave: Any, numpy_hook: Any) -> None:
    private = x.private_tensor(["me"])

    assert (private.allow("me"), private.allow("dave"), x.allow("dave")) == (True, False, True)
    p = private.send(carol)
    with pytest.raises(GetNotPermittedError):
        dave.request_obj(p.id_at_location, carol)
    assert values((p + 1).get().child) == [2.0, 3.0, 4.0]
    assert private.register_credentials(["dave"]) is private
    with pytest.raises(SendNotPermittedError):
        private.send(carol)


@pytest.mark.parametrize(
    "ask",
    [
        lambda p, secret: np.rot90(p, secret),
        lambda p, secret: np.array_split(p, secret),
        lambda p, secret: np.linalg.svd(p, True, secret),
    ],
)
def test_a_private_fraction_does_not_decide_on_a_form(numpy_hook: Any, carol: Any, ask: Any) -> None:
    secret = numpy_hook.array(1.0).private_tensor(["me"]).send(carol)
    p = numpy_hook.ones((2, 3)).send(carol)
    numpy_hook.local_worker.user = "stranger"

    with pytest.raises(ValueRefusedError, match="the shape of its result would reveal private values"):
        ask(p, secret)


def test_private_whole_numbers_are_data_to_operators(numpy_hook: Any, carol: Any) -> None:
    secret = numpy_hook.array([1, 2, 3]).private_tensor(["me"]).send(carol)
    numpy_hook.local_worker.user = "stranger"

    result = secret + secret
    result += secret

    numpy_hook.local_worker.user = "me"
    assert values(result.get().child) == [3, 6, 9]


def test_the_collection_flags(x: Any, carol: Any) -> None:
    p = x.send(carol)

    assert (p.gc, p.garbage_collection) == (True, True)
    p.gc = False
    assert p.garbage_collection is False
    p.garbage_collection = True
    assert p.disable_gc is p
    del p
    assert carol.objects_count == 1


def test_sizes_rows_and_comparisons(x: Any, carol: Any) -> None:
    p = x.send(carol)

    assert (p.shape, len(p), p.ndim, p.size, np.shape(p), np.size(p)) == ((3,), 3, 1, 3, (3,), 3)
    assert [values(row.get()) for row in p] == [1.0, 2.0, 3.0]
    assert values((p == p).get()) == [True, True, True]
    assert values((p != p).get()) == [False, False, False]
    assert p.get_class_attributes() == {"type": np.dtype("f8")}


def test_what_is_published_stays(x: Any, carol: Any) -> None:
    x.copy().tag("#x").publish(carol)
    x.send(carol).tag("#y").publish()

    for tag in ("#x", "#y"):
        (found,) = carol.search(tag)
        assert values(found.get()) == [1.0, 2.0, 3.0]
    assert carol.objects_count == 2


def test_words_travel_there_and_back_and_the_id_stays(x: Any, carol: Any) -> None:
    p = x.tag("#x").describe("three numbers").send(carol)
    id = p.id_at_location

    back = p.get()

    assert (back.id, back.tags, back.description) == (id, {"#x"}, "three numbers")


def test_plain_arrays_can_be_loaded_too(carol: Any, numpy_hook: Any) -> None:
    carol.load_data([np.ones(2)])
    (id,) = carol._objects
    (found,) = carol.search(id)

    assert (found + 1).get().tolist() == [2.0, 2.0]
    assert carol.tensors_count == 1


def test_a_chain_on_an_array_arrives_as_a_chain(x: Any, carol: Any) -> None:
    p = sy.LoggingTensor().on(x).send(carol)

    assert repr((p + 1).get()) == "(Wrapper)>LoggingTensor>array([2., 3., 4.])"
