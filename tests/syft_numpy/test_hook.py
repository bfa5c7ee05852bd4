from __future__ import annotations

import copy
import json
import operator
from typing import Any

import pytest

np = pytest.importorskip("numpy")

from syft_core.exceptions import OperationNotAllowedError, WrapperLeakError  # noqa: E402
from syft_core.tensors.logging import LoggingTensor  # noqa: E402
from syft_core.tensors.polynomial import PolynomialTensor  # noqa: E402
from syft_core.workers.party.base import BaseWorker  # noqa: E402
from syft_core.workers.party.virtual import VirtualWorker  # noqa: E402
from syft_numpy.wrapper import Wrapper  # noqa: E402
from tests.surface.checks import Raised, attempt, map_tensors, tensors  # noqa: E402
from tests.surface.numpy_surface import NumpySurface  # noqa: E402


def chain(values: Any) -> Any:
    return LoggingTensor().on(np.array(values))


def data(wrapper: Any) -> Any:
    return wrapper.child.child


def test_the_hook_creates_arrays_that_can_be_sent_and_tagged(hook: Any) -> None:
    x = hook.array([1.0, 2.0]).tag("#x").describe("two")
    assert isinstance(x, np.ndarray)
    assert (x.tags, x.description, str(x)) == ({"#x"}, "two", "[1. 2.]")
    assert (hook.zeros((2, 2)) + 1).sum().item() == 4.0
    assert hook.linspace(0, 1, 3).tolist() == [0.0, 0.5, 1.0]


def test_results_have_no_identity_of_their_operands(hook: Any) -> None:
    x = hook.array([1.0, 2.0], id=7).tag("#x")
    for result in (x + 1, x[1:], x.sum(), copy.copy(x)):
        assert (result.tags, result.id == 7) == (set(), False)
    assert (x.copy().tags, x.copy().id == 7) == ({"#x"}, False)


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


def test_functions_ufuncs_and_their_methods_pass(hook: Any) -> None:
    x = chain([[1.0, 2.0], [3.0, 4.0]])
    assert data(np.add.reduce(x, axis=1)).tolist() == [3.0, 7.0]
    assert data(np.einsum("ij->ji", x)).tolist() == [[1.0, 3.0], [2.0, 4.0]]
    result = np.linalg.svd(x)
    assert type(result).__name__ == "SVDResult"
    assert type(result.S.child) is LoggingTensor
    np.add.at(x, (0, 0), 10.0)
    assert data(x)[0, 0] == 11.0
    assert data(np.add(x, 1, where=np.array([[True, False], [False, True]]), out=chain(np.zeros((2, 2))))).shape == (
        2,
        2,
    )


def test_out_and_in_place_keep_the_object(hook: Any) -> None:
    x, out = chain([1.0, 2.0]), chain([0.0, 0.0])
    assert np.multiply(x, 3, out=out) is out
    assert data(out).tolist() == [3.0, 6.0]
    same = x
    x -= 1
    assert x is same
    assert data(x).tolist() == [0.0, 1.0]


def test_reductions_stay_in_the_chain(hook: Any) -> None:
    total = chain([1.5, 2.5]).sum()
    assert str(total) == "(Wrapper)>LoggingTensor>array(4.)"
    assert float(total.round()) == 4.0


def test_indexing_with_chains(hook: Any) -> None:
    x = chain([1.0, 2.0, 3.0])
    assert data(x[x > 1.5]).tolist() == [2.0, 3.0]
    x[chain([0, 2])] = 9.0
    assert data(x).tolist() == [9.0, 2.0, 9.0]
    assert 2.0 in x


def test_copies(hook: Any) -> None:
    x = chain([1.0])
    for twin in (copy.copy(x), copy.deepcopy(x), x.copy()):
        assert type(twin.child) is LoggingTensor
        assert data(twin) is not data(x)


@pytest.mark.parametrize("function", ["save", "savez", "savetxt"])
def test_functions_that_write_files_are_refused(hook: Any, function: str, tmp_path: Any) -> None:
    with pytest.raises(OperationNotAllowedError, match=f"cannot run 'numpy.{function}' on a pointer or another layer"):
        getattr(np, function)(tmp_path / "x", chain([1.0]))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("method", ["tofile", "dump", "dumps", "ctypes", "data", "base"])
def test_methods_that_write_files_or_show_memory_do_not_exist(hook: Any, method: str) -> None:
    with pytest.raises(AttributeError, match=f"cannot read '{method}'"):
        getattr(chain([1.0]), method)


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


def test_the_form_of_an_array_cannot_be_set_on_its_wrapper(hook: Any) -> None:
    x = chain([1.0, 2.0])
    with pytest.raises(AttributeError, match="cannot set 'shape' of a wrapper: it belongs to the data"):
        x.shape = (2, 1)
    assert x.shape == (2,)


def test_what_is_private_to_arrays_is_no_operation(hook: Any) -> None:
    # numpy 2.5 has `_set_shape` and `_set_dtype`, which would change the data under its wrapper.
    private = [op.name for op in hook.attributes.ops if op.attr.startswith("_") and not op.attr.startswith("__")]
    assert private == []


@pytest.mark.parametrize(
    "name", ["numpy.char.equal", "numpy.lib.scimath.sqrt", "numpy.lib.stride_tricks.sliding_window_view"]
)
def test_a_function_has_the_same_wire_name_in_every_numpy(hook: Any, name: str) -> None:
    assert name in hook.attributes.ops


def test_divmod(hook: Any) -> None:
    whole, rest = divmod(chain([7.0, 8.0]), 3)
    assert (data(whole).tolist(), data(rest).tolist()) == ([2.0, 2.0], [1.0, 2.0])
    assert data(divmod(7, chain([3.0]))[1]).tolist() == [1.0]


@pytest.fixture(params=[False, True], ids=["in_process", "by_wire"])
def pointer(hook: Any, request: pytest.FixtureRequest) -> Any:
    carol = VirtualWorker(hook, id="carol", serialize=request.param)
    return hook.array([[0.0], [1.0], [2.0], [3.0]]).tag("#x").send(carol)


def test_a_pointer_is_not_converted_to_an_array(pointer: Any) -> None:
    for convert in (np.asarray, np.array, lambda p: np.asarray(p, "f4"), lambda p: np.array([p])):
        with pytest.raises(WrapperLeakError, match=r"fetch it with `.get\(\)` first"):
            convert(pointer)


def test_what_was_fetched_is_a_plain_array(pointer: Any) -> None:
    fetched = (pointer * 2).get()

    assert type(fetched) is type(pointer.get()) is np.ndarray
    assert fetched.flags.writeable
    assert fetched.tolist() == [[0.0], [2.0], [4.0], [6.0]]


def test_no_operation_makes_a_wrapper_around_data_that_is_here(hook: Any) -> None:
    surface, ran = NumpySurface(), set()
    for op in surface.ops:
        for case in surface.cases(op):
            args, kwargs = map_tensors(surface, lambda x: hook.array(x) if x.ndim else x, (case.args, case.kwargs))
            result = attempt(case.call, args, kwargs)
            if not isinstance(result, Raised):
                ran.add(op.name)
                assert Wrapper not in set(map(type, tensors(surface, result))), op.name

    assert len(ran) > 400


def test_sending_and_fetching_leave_no_wrapper_around_data(pointer: Any) -> None:
    carol, here = pointer.location, pointer.owner
    results = [*np.split(pointer, 2), pointer > 1, pointer.T, pointer[0, 0], pointer.copy().move(here)]

    fetched = [result.get() if type(result) is Wrapper else result for result in results]

    assert {type(array) for array in fetched} == {np.ndarray}
    assert all(isinstance(stored, np.ndarray) for stored in carol._objects.values())


@pytest.mark.parametrize("make", [json.dumps, lambda p: operator.mod("%d", p.sum()), "from_numpy"])
def test_what_python_refuses_itself_reveals_nothing(pointer: Any, make: Any) -> None:
    if make == "from_numpy":
        make = pytest.importorskip("torch").from_numpy

    with pytest.raises(TypeError, match="Wrapper"):
        make(pointer)


def test_torch_takes_what_was_fetched(hook: Any, pointer: Any) -> None:
    torch = pytest.importorskip("torch")

    for array in (hook.arange(3.0), pointer.sum(1).get()):
        assert torch.from_numpy(array).tolist() == array.tolist()


def test_scikit_learn_takes_what_was_fetched(hook: Any, pointer: Any) -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")

    model = linear_model.LinearRegression().fit(pointer.get(), hook.array([1.0, 3.0, 5.0, 7.0]))

    assert model.predict(hook.array([[4.0]])).round(6).tolist() == [9.0]
