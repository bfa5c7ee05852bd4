"""Arrays are sent, fetched and moved like tensors, except for gradients."""

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
    assert type(fetched) is np.ndarray
    return fetched.tolist()  # type: ignore[no-any-return]


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


def test_send_accepts_its_options(x: Any, carol: Any) -> None:
    assert type(x.send(carol, no_wrap=True)) is PointerTensor
    kept = x.send(carol, garbage_collect_data=False)
    del kept
    assert carol.objects_count == 1
    assert x.send("carol").location is carol


def test_options_that_need_gradients_are_refused(x: Any, carol: Any, dave: Any) -> None:
    for ask in (
        lambda: x.send(carol, requires_grad=True),
        lambda: x.send(carol, preinitialize_grad=True),
        lambda: x.send(carol).move(dave, requires_grad=True),
    ):
        with pytest.raises(TypeError, match="cannot return gradients: numpy does not compute any"):
            ask()
    with pytest.raises(AttributeError, match="cannot read 'grad'"):
        x.send(carol).grad  # noqa: B018  # asking is the act


def test_invalid_transfers_are_refused_and_change_nothing(x: Any, carol: Any, dave: Any) -> None:
    p = x.send(carol)

    for call in (lambda: x.send("nobody"), lambda: p.move("nobody"), lambda: p.remote_send("nobody")):
        with pytest.raises(WorkerNotFoundError, match="cannot find worker 'nobody'"):
            call()
    with pytest.raises(TypeError, match="cannot send without a worker"):
        x.send()
    with pytest.raises(ValueError, match="could not be broadcast"):
        p + x[:2].send(carol)
    with pytest.raises(InvalidTensorForRemoteGetError, match="it is not a pointer"):
        p.mid_get()
    assert values(p.get()) == [1.0, 2.0, 3.0]
    with pytest.raises(AlreadyRetrievedError, match="it was fetched by 'me'"):
        p.get()
    assert (carol.objects_count, dave.objects_count) == (0, 0)


def test_get_accepts_its_options(x: Any, carol: Any) -> None:
    p = x.send(carol)

    assert values(p.get(deregister_ptr=False, reason="a look")) == values(p.get(user="me")) == [1.0, 2.0, 3.0]
    assert [line.reason for line in carol.ledger] == ["a look", ""]


def test_a_dead_pointer_reports_why_the_array_is_gone(x: Any, carol: Any) -> None:
    p = x.send(carol)
    second = p.child.clone()
    p.get()

    with pytest.raises(ObjectNotFoundError, match="it was fetched by 'me'"):
        second.shape  # noqa: B018  # asking is the act


def test_moves_to_the_local_worker_and_to_the_same_worker(x: Any, carol: Any, numpy_hook: Any) -> None:
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
    assert values((p + 1).get().child.child) == [2.0, 3.0, 4.0]
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
def test_a_private_float_does_not_determine_a_form(numpy_hook: Any, carol: Any, ask: Any) -> None:
    secret = numpy_hook.array(1.0).private_tensor(["me"]).send(carol)
    p = numpy_hook.ones((2, 3)).send(carol)
    numpy_hook.local_worker.user = "stranger"

    with pytest.raises(ValueRefusedError, match="the shape of its result would reveal private values"):
        ask(p, secret)


def test_private_integers_are_data_to_operators(numpy_hook: Any, carol: Any) -> None:
    secret = numpy_hook.array([1, 2, 3]).private_tensor(["me"]).send(carol)
    numpy_hook.local_worker.user = "stranger"

    result = secret + secret
    result += secret

    numpy_hook.local_worker.user = "me"
    assert values(result.get().child.child) == [3, 6, 9]


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


def test_an_array_is_not_encoded_or_shared_in_place(x: Any, carol: Any, dave: Any) -> None:
    fixed = x.fix_precision()
    integers = x.astype(np.int64)

    for ask in (
        x.fix_precision_,
        x.fix_prec_,
        fixed.float_precision_,
        lambda: integers.share_(carol, dave),
        lambda: x.encrypt(workers=[carol, dave], inplace=True),
    ):
        with pytest.raises(TypeError, match=r"an array cannot turn into a chain; assign the result, e.g. `x = x.fix"):
            ask()
    assert x.tolist() == fixed.float_precision().tolist() == [1.0, 2.0, 3.0]


def test_nothing_happens_in_place(x: Any, carol: Any) -> None:
    p = x.send(carol)

    for ask in (lambda: x.send_(carol), lambda: x.send(carol, inplace=True)):
        with pytest.raises(TypeError, match=r"an array cannot turn into a pointer; write `x = x.send\(bob\)`"):
            ask()
    with pytest.raises(TypeError, match=r"a pointer cannot turn into an array; write `x = p.get\(\)`"):
        p.get_()
    assert carol.objects_count == 1
    assert values(p.get()) == [1.0, 2.0, 3.0]


def test_tags_are_kept_by_each_worker_that_stores_an_array(x: Any, carol: Any, dave: Any) -> None:
    p = x.tag("#x").describe("three numbers").send(carol)
    doubled = (p * 2).tag("#doubled")

    moved, sent_on = p.move(dave), doubled.remote_send(dave)

    assert type(dave.get_obj(moved.id_at_location)) is np.ndarray
    for query, expected in (["#x", "three"], [1.0, 2.0, 3.0]), (["#doubled"], [2.0, 4.0, 6.0]):
        (found,) = dave.search(query)
        assert values(found.get(deregister_ptr=False)) == expected
    assert values(sent_on.get().get()) == [2.0, 4.0, 6.0]


def test_loaded_arrays_are_found_by_their_tags(numpy_hook: Any, carol: Any) -> None:
    tagged = numpy_hook.array([1.0, 2.0]).tag("#x").describe("two numbers")
    carol.load_data([tagged, np.ones(2)])

    (found,) = carol.search("#x")

    assert (found.tags, found.description, carol.tensors_count) == ({"#x"}, "two numbers", 2)
    assert carol.get_obj(found.id_at_location) is tagged
    assert values((found + 1).get()) == [2.0, 3.0]
    assert values(found.get()) == [1.0, 2.0]


def test_a_worker_starts_with_its_data(numpy_hook: Any, serialize: bool) -> None:
    data = [numpy_hook.arange(3).tag("#x"), np.ones(2)]
    erin = sy.VirtualWorker(numpy_hook, id="erin", data=data, serialize=serialize)

    assert (len(erin.search("#x")), erin.objects_count) == (1, 2)


def test_arrays_without_dimensions_stay_arrays(numpy_hook: Any, carol: Any, dave: Any) -> None:
    number = numpy_hook.array(3.0)

    for p in (number.send(carol), number.send(carol) + 1, numpy_hook.ones(3).send(carol).sum()):
        assert p.get().shape == ()
    assert values(number.send(carol, dave).get(sum_results=True)) == 6.0


def test_an_array_of_the_hook_goes_along_as_a_number_or_an_index(x: Any, numpy_hook: Any, carol: Any) -> None:
    p = x.send(carol)

    assert values((p + numpy_hook.array(1.0).tag("#one")).get()) == [2.0, 3.0, 4.0]
    assert values(p[numpy_hook.array([2, 0])].get()) == [3.0, 1.0]


def test_plain_arrays_can_be_loaded_too(carol: Any, numpy_hook: Any) -> None:
    carol.load_data([np.ones(2)])
    (id,) = carol._objects
    (found,) = carol.search(id)

    assert (found + 1).get().tolist() == [2.0, 2.0]
    assert carol.tensors_count == 1


def test_a_chain_on_an_array_arrives_as_a_chain(x: Any, carol: Any) -> None:
    p = sy.LoggingTensor().on(x).send(carol)

    assert repr((p + 1).get()) == "(Wrapper)>LoggingTensor>array([2., 3., 4.])"
