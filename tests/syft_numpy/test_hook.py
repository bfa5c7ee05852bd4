from __future__ import annotations

import json
import operator
from typing import Any

import pytest

np = pytest.importorskip("numpy")

from syft_core.tensors.logging import LoggingTensor  # noqa: E402
from syft_core.tensors.polynomial import PolynomialTensor  # noqa: E402
from syft_core.workers.party.base import BaseWorker  # noqa: E402
from syft_core.workers.party.virtual import VirtualWorker  # noqa: E402
from syft_numpy.wrapper import Wrapper  # noqa: E402


def data(wrapper: Any) -> Any:
    return wrapper.child.child


def test_a_created_array_takes_a_layer(hook: Any) -> None:
    x = hook.arange(3, id=7)
    chained = LoggingTensor().on(x)
    assert chained.id == 7
    assert type((chained * 2).child) is LoggingTensor
    assert type((x + chained).child) is LoggingTensor


def test_created_arrays_take_an_owner_and_an_id(hook: Any) -> None:
    bob = BaseWorker(hook, id="bob")
    x = hook.array([1], owner=bob, id=7)
    assert bob.get_obj(7) is x
    assert x.owner is bob


def test_a_creator_that_the_hook_lacks_names_those_it_has(hook: Any) -> None:
    with pytest.raises(AttributeError, match=r"write `hook.array\(numpy.tri\(...\)\)`"):
        hook.tri(3)


def test_factories(hook: Any) -> None:
    assert hook.create_shape([2, 3]) == (2, 3)
    assert hook.create_wrapper(np.int8).dtype == np.int8
    assert hook.create_zeros(2, 3).shape == (2, 3)


def test_polynomials_answer_numpys_functions(hook: Any) -> None:
    points = np.linspace(-3, 3, 50)
    x = PolynomialTensor().on(points.copy())
    assert np.abs(data(np.exp(x)) - np.exp(points)).max() <= 1e-3
    assert np.abs(data(np.tanh(x)) - np.tanh(points)).max() <= 1e-3
    positive = PolynomialTensor().on(np.linspace(1, 10, 50))
    assert np.abs(data(np.log(positive)) - np.log(np.linspace(1, 10, 50))).max() <= 1e-3
    assert np.array_equal(data(x), points)


def test_numpy_and_its_arrays_are_left_alone(hook: Any) -> None:
    assert not hasattr(np.ndarray, "send")
    assert not hasattr(np, "native_add")
    assert type(np.ones(2) + np.ones(2)) is np.ndarray


@pytest.fixture(params=[False, True], ids=["in_process", "by_wire"])
def pointer(hook: Any, request: pytest.FixtureRequest) -> Any:
    carol = VirtualWorker(hook, id="carol", serialize=request.param)
    return hook.array([[0.0], [1.0], [2.0], [3.0]]).tag("#x").send(carol)


def test_what_was_fetched_is_a_plain_array(pointer: Any) -> None:
    fetched = (pointer * 2).get()

    assert type(fetched) is type(pointer.get()) is np.ndarray
    assert fetched.flags.writeable
    assert fetched.tolist() == [[0.0], [2.0], [4.0], [6.0]]


def test_sending_and_fetching_leave_no_wrapper_around_data(pointer: Any) -> None:
    carol, here = pointer.location, pointer.owner
    results = [*np.split(pointer, 2), pointer > 1, pointer.T, pointer[0, 0], pointer.copy().move(here)]

    fetched = [result.get() if type(result) is Wrapper else result for result in results]

    assert {type(array) for array in fetched} == {np.ndarray}
    assert all(isinstance(stored, np.ndarray) for stored in carol._objects.values())


@pytest.mark.parametrize("make", [json.dumps, lambda p: operator.mod("%d", p.sum()), "from_numpy"])
@pytest.mark.torch
def test_what_python_refuses_itself_reveals_nothing(pointer: Any, make: Any) -> None:
    if make == "from_numpy":
        make = pytest.importorskip("torch").from_numpy

    with pytest.raises(TypeError, match="Wrapper"):
        make(pointer)


@pytest.mark.torch
def test_torch_takes_what_was_fetched(hook: Any, pointer: Any) -> None:
    torch = pytest.importorskip("torch")

    for array in (hook.arange(3.0), pointer.sum(1).get()):
        assert torch.from_numpy(array).tolist() == array.tolist()


def test_scikit_learn_takes_what_was_fetched(hook: Any, pointer: Any) -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")

    model = linear_model.LinearRegression().fit(pointer.get(), hook.array([1.0, 3.0, 5.0, 7.0]))

    assert model.predict(hook.array([[4.0]])).round(6).tolist() == [9.0]
